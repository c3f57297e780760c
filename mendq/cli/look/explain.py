"""`mendq explain FILE|-`: show what Mendq reads in a CloudTrail record. It does not call AWS."""

from __future__ import annotations

import gzip
import io
import json
import sys
import zlib
from contextlib import nullcontext
from dataclasses import fields
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import typer

from mendq.catalogue import match, symptom_of
from mendq.catalogue.symptom import Symptom
from mendq.cli.commands import CommandKind, command
from mendq.cli.exit_codes import CommandError, Exit
from mendq.cli.invocation import Invocation
from mendq.cli.output import Output
from mendq.model.evidence import DISTINCT_EVENTS, WITHIN_SECONDS
from mendq.model.failed_call import FailedCall, Unreadable, read
from mendq.model.json_text import finite_float, refuse_constant

# A trail file holds at most 50 MB before it is compressed.
MOST_BYTES = 50 * 1024 * 1024
_EVIDENCE_NEEDED = {"distinct_events": DISTINCT_EVENTS, "within_seconds": WITHIN_SECONDS}
_GZIP = b"\x1f\x8b"


@command(7, CommandKind.OFFLINE)
def explain(
    call: Invocation,
    file: Annotated[str, typer.Argument(metavar="FILE", help="A record or a trail file; - stdin.")],
) -> None:
    """What Mendq reads in a CloudTrail record; offline.

    Examples:
      mendq explain record.json
      mendq explain - --json < trail.json.gz
    """
    document = _read_json(file)
    records = document.get("Records") if isinstance(document, dict) else document
    if not isinstance(records, list):
        explained = explain_record(document)
        call.out.print_json(explained)
        _print(call.out, explained)
        return
    shown = []
    for record in records:
        explained = explain_record(record)
        if explained["unreadable"] not in ("not_failed", "not_sqs"):
            shown.append(explained)
    left_out = len(records) - len(shown)
    call.out.print_json({"records": len(records), "left_out": left_out, "explained": shown})
    call.out.say(f"{len(records)} records, {len(shown)} of them failed SQS calls or not readable")
    for explained in shown:
        call.out.say("")
        _print(call.out, explained)


def explain_record(record: object) -> dict[str, Any]:
    """Return how Mendq reads a record: the call, the matching symptom, and when Mendq would act.

    If the record cannot be read, `unreadable` says why, and all else is None.
    """
    failed_call = read(record)
    if isinstance(failed_call, Unreadable):
        return {"unreadable": failed_call.reason, "read": None, "symptom": None, "match": None}
    call_fields = {}
    for field in fields(FailedCall):
        field_value = getattr(failed_call, field.name)
        if isinstance(field_value, datetime):
            field_value = field_value.isoformat()
        call_fields[field.name] = field_value
    symptom = match(failed_call)
    return {
        "unreadable": None,
        "read": call_fields,
        "symptom": symptom_of(failed_call),
        "match": _describe_symptom(symptom, failed_call) if symptom else None,
    }


def _describe_symptom(symptom: Symptom, call: FailedCall) -> dict[str, Any]:
    """Return what Mendq does about the symptom, and if this call counts as evidence of it."""
    return {
        "sentence": symptom.sentence,
        "ships_as": symptom.ships_as,
        "counts_as_evidence": symptom.is_evidence(call),
        "evidence_needed": _EVIDENCE_NEEDED,
        "facts_needed": sorted(need.name.lower() for need in symptom.needs),
        "steps": [step.attribute for step in symptom.steps],
        "plan": symptom.plan_in_words,
        "runbook": symptom.runbook,
    }


def _print(out: Output, explained: dict[str, Any]) -> None:
    """Print what `explain_record` returned."""
    if explained["unreadable"]:
        out.say(f"not read: {explained['unreadable']}", "yellow")
        return
    failed_call = explained["read"]
    matched = explained["match"]
    queue = failed_call["queue_arn"] or "no queue that is named"
    out.say(f"{failed_call['event_name']} on {queue}", "bold")
    lines = {
        "read": f"{failed_call['error_code']} (as recorded: {failed_call['raw_error_code']})",
        "said": failed_call["error_message"],
        "by": f"{failed_call['principal_arn']} at {failed_call['event_time']}",
        "symptom": explained["symptom"],
    }
    if matched:
        counts = "" if matched["counts_as_evidence"] else "; this one does not count"
        events = f"{DISTINCT_EVENTS} distinct events within {WITHIN_SECONDS} s"
        lines |= {
            "match": f"{matched['sentence']} ({matched['ships_as']})",
            "evidence": f"{events}{counts}",
            "facts": ", ".join(matched["facts_needed"]) or "none",
            "may write": ", ".join(matched["steps"]) or "nothing",
            "plan": matched["plan"],
        }
    out.say_labelled([(label, "dim", text) for label, text in lines.items()], indent=0)
    if not matched:
        out.say("no symptom of the catalogue: it is counted and never acted on")


def _read_json(file: str) -> Any:
    """Return the JSON document in a file, or in standard input for `-`.

    Raises CommandError if it cannot be read or is no JSON.
    """
    try:
        with nullcontext(sys.stdin.buffer) if file == "-" else Path(file).open("rb") as opened:
            content = _read_content(opened)
    except FileNotFoundError as missing:
        raise CommandError(f"there is no file {file}", Exit.NOT_FOUND) from missing
    except (OSError, EOFError, zlib.error) as unreadable:
        raise CommandError(f"{file} cannot be read: {unreadable}", Exit.USAGE) from unreadable
    try:
        return json.loads(content, parse_constant=refuse_constant, parse_float=finite_float)
    except (ValueError, RecursionError) as unreadable:
        raise CommandError(f"{file} holds no JSON: {unreadable}", Exit.USAGE) from unreadable


def _read_content(opened: BinaryIO) -> bytes:
    """Return the content, unpacked if it is gzip. Raises CommandError above MOST_BYTES."""
    content = opened.read(MOST_BYTES + 1)
    if content.startswith(_GZIP):
        with gzip.open(io.BytesIO(content)) as unpacked:
            content = unpacked.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise CommandError(f"more than {MOST_BYTES:,} bytes: no trail file is so long", Exit.USAGE)
    return content

"""`mendq explain FILE|-`: what Mendq reads in a CloudTrail record; offline, without credentials."""

from __future__ import annotations

import gzip
import io
import json
import sys
import zlib
from contextlib import nullcontext
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import typer

from mendq.catalogue import match, symptom_of
from mendq.catalogue.symptom import Symptom
from mendq.cli.commands import Kind, command
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


@command(7, Kind.OFFLINE)
def explain(
    call: Invocation,
    file: Annotated[str, typer.Argument(metavar="FILE", help="A record or a trail file; - stdin.")],
) -> None:
    """What Mendq reads in a CloudTrail record; offline.

    Examples:
      mendq explain record.json
      mendq explain - --json < trail.json.gz
    """
    document = _document(file)
    records = document.get("Records") if isinstance(document, dict) else document
    if not isinstance(records, list):
        explained = explained_record(document)
        call.out.print_json(explained)
        _print(call.out, explained)
        return
    every = [explained_record(each) for each in records]
    announced = [each for each in every if each["unreadable"] not in ("not_failed", "not_sqs")]
    left_out = len(every) - len(announced)
    call.out.print_json({"records": len(every), "left_out": left_out, "explained": announced})
    call.out.say(f"{len(every)} records, {len(announced)} of them failed SQS calls or not readable")
    for each in announced:
        call.out.say("")
        _print(call.out, each)


def explained_record(record: object) -> dict[str, Any]:
    """One record: how it was read, what it was matched with, what it would take to act."""
    found = read(record)
    if isinstance(found, Unreadable):
        return {"unreadable": found.reason, "read": None, "symptom": None, "match": None}
    said = {each.name: getattr(found, each.name) for each in fields(FailedCall)}
    moments = {name: each.isoformat() for name, each in said.items() if hasattr(each, "isoformat")}
    matched = match(found)
    return {
        "unreadable": None,
        "read": said | moments,
        "symptom": symptom_of(found),
        "match": matched and _described(matched, found),
    }


def _described(symptom: Symptom, call: FailedCall) -> dict[str, Any]:
    return {
        "sentence": symptom.sentence,
        "ships_as": symptom.ships_as,
        "counts_as_evidence": symptom.is_evidence(call),
        "evidence_needed": _EVIDENCE_NEEDED,
        "facts_needed": sorted(each.name.lower() for each in symptom.needs),
        "steps": [each.attribute for each in symptom.steps],
        "plan": symptom.plan_in_words,
        "runbook": symptom.runbook,
    }


def _print(out: Output, explained: dict[str, Any]) -> None:
    if explained["unreadable"]:
        out.say(f"not read: {explained['unreadable']}", "yellow")
        return
    found, matched = explained["read"], explained["match"]
    out.say(f"{found['event_name']} on {found['queue_arn'] or 'no queue that is named'}", "bold")
    said = {
        "read": f"{found['error_code']} (as recorded: {found['raw_error_code']})",
        "said": found["error_message"],
        "by": f"{found['principal_arn']} at {found['event_time']}",
        "symptom": explained["symptom"],
    }
    if matched:
        counts = "" if matched["counts_as_evidence"] else "; this one does not count"
        events = f"{DISTINCT_EVENTS} distinct events within {WITHIN_SECONDS} s"
        said |= {
            "match": f"{matched['sentence']} ({matched['ships_as']})",
            "evidence": f"{events}{counts}",
            "facts": ", ".join(matched["facts_needed"]) or "none",
            "may write": ", ".join(matched["steps"]) or "nothing",
            "plan": matched["plan"],
        }
    out.say_labelled([(name, "dim", says) for name, says in said.items()], indent=0)
    if not matched:
        out.say("no symptom of the catalogue: it is counted and never acted on")


def _document(file: str) -> Any:
    try:
        with nullcontext(sys.stdin.buffer) if file == "-" else Path(file).open("rb") as opened:
            content = _content(opened)
    except FileNotFoundError as missing:
        raise CommandError(f"there is no file {file}", Exit.NOT_FOUND) from missing
    except (OSError, EOFError, zlib.error) as unreadable:
        raise CommandError(f"{file} cannot be read: {unreadable}", Exit.USAGE) from unreadable
    try:
        return json.loads(content, parse_constant=refuse_constant, parse_float=finite_float)
    except (ValueError, RecursionError) as unreadable:
        raise CommandError(f"{file} holds no JSON: {unreadable}", Exit.USAGE) from unreadable


def _content(opened: BinaryIO) -> bytes:
    content = opened.read(MOST_BYTES + 1)
    if content.startswith(_GZIP):
        with gzip.open(io.BytesIO(content)) as unpacked:
            content = unpacked.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise CommandError(f"more than {MOST_BYTES:,} bytes: no trail file is so long", Exit.USAGE)
    return content

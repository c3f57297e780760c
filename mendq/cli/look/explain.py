"""`mendq explain FILE|-`: show what Mendq reads in CloudTrail records. It does not call AWS.

`record_formats.py` lists the forms of files that it reads.
"""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import fields
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import typer

from mendq.catalogue import find_symptom_of, name_symptom_of
from mendq.catalogue.symptom import Symptom
from mendq.cli.commands import CommandKind, command
from mendq.cli.exit_codes import CommandError, Exit
from mendq.cli.invocation import Invocation
from mendq.cli.look.record_formats import RecordEntry, find_record_entries
from mendq.cli.output import Output
from mendq.model.evidence import (
    EVENTS_SUFFICIENT_FOR_CASE,
    SUFFICIENT_EVENTS_PERIOD_SECONDS,
    Sighting,
)
from mendq.model.failed_call import FailedCall, UnreadableRecord, read, read_refused_mapping

# A trail file holds at most 50 MB before it is compressed.
MOST_FILE_BYTES = 50 * 1024 * 1024
_SUFFICIENT_EVIDENCE = {
    "distinct_events": EVENTS_SUFFICIENT_FOR_CASE,
    "within_seconds": SUFFICIENT_EVENTS_PERIOD_SECONDS,
}
# A call that alone is enough evidence (`Sighting.is_proof`).
_SINGLE_CALL = {"distinct_events": 1, "within_seconds": 0}
_GZIP_SIGNATURE = b"\x1f\x8b"


@command(7, CommandKind.OFFLINE)
def explain(
    call: Invocation,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="Records as AWS's tools write them; - for standard input."
        ),
    ],
) -> None:
    """Show what Mendq reads in CloudTrail records; offline.

    Examples:
      mendq explain record.json
      mendq explain - --json < trail.json.gz
      mendq explain lookup-events.json
    """
    entries = _read_entries(file)
    first_entry = next(entries, None)
    if first_entry and not first_entry.place:
        explanation = explain_record(first_entry.record)
        call.out.print_json(explanation)
        _print_explanation(call.out, explanation)
        return
    record_count = 0
    explained_records = []
    for entry in chain([first_entry] if first_entry else [], entries):
        record_count += 1
        explanation = explain_record(entry.record)
        if explanation["unreadable"] not in ("not_failed", "not_sqs"):
            explained_records.append({"place": entry.place, **explanation})
    call.out.print_json(
        {
            "records": record_count,
            "left_out": record_count - len(explained_records),
            "explained": explained_records,
        }
    )
    call.out.say(
        f"{record_count} records, {len(explained_records)} of them failed SQS calls or not readable"
    )
    for explanation in explained_records:
        call.out.say("")
        call.out.say(f"{explanation['place']}:", "dim")
        _print_explanation(call.out, explanation)


def explain_record(record: object) -> dict[str, Any]:
    """Return how Mendq reads a record: the call, its symptom, and what Mendq would do about it.

    If the record cannot be read or is not a failed SQS call, `unreadable` has the reason, and the
    other values are None. `record` may be such a reason already.
    """
    failed_call = (
        record
        if isinstance(record, UnreadableRecord)
        else read_refused_mapping(record) or read(record)
    )
    if isinstance(failed_call, UnreadableRecord):
        return {"unreadable": failed_call.reason, "read": None, "symptom": None, "match": None}
    failed_call_fields = {}
    for field in fields(FailedCall):
        field_value = getattr(failed_call, field.name)
        if isinstance(field_value, datetime):
            field_value = field_value.isoformat()
        failed_call_fields[field.name] = field_value
    symptom = find_symptom_of(failed_call)
    return {
        "unreadable": None,
        "read": failed_call_fields,
        "symptom": name_symptom_of(failed_call),
        "match": _describe_symptom(symptom, failed_call) if symptom else None,
    }


def _describe_symptom(symptom: Symptom, failed_call: FailedCall) -> dict[str, Any]:
    """Return what Mendq does about the symptom, and if this call counts as evidence of it."""
    return {
        "sentence": symptom.sentence,
        "ships_as": symptom.default_mode_text,
        "counts_as_evidence": symptom.is_evidence(failed_call),
        "evidence_needed": (
            _SINGLE_CALL if Sighting.of(failed_call).is_proof else _SUFFICIENT_EVIDENCE
        ),
        "facts_needed": sorted(needed_facts.name.lower() for needed_facts in symptom.needs),
        "steps": [step.attribute for step in symptom.steps],
        "plan": symptom.plan_in_words,
        "runbook": symptom.runbook,
    }


def _print_explanation(out: Output, explanation: dict[str, Any]) -> None:
    """Print the result of `explain_record` for people."""
    if explanation["unreadable"]:
        out.say(f"not read: {explanation['unreadable']}", "yellow")
        return
    failed_call = explanation["read"]
    symptom_match = explanation["match"]
    queue_text = failed_call["queue_arn"] or "no queue that is named"
    out.say(f"{failed_call['event_name']} on {queue_text}", "bold")
    text_by_label = {
        "read": f"{failed_call['error_code']} (as recorded: {failed_call['raw_error_code']})",
        "said": failed_call["error_message"],
        "by": f"{failed_call['principal_arn']} at {failed_call['event_time']}",
        "symptom": explanation["symptom"],
    }
    if symptom_match:
        evidence_note = "" if symptom_match["counts_as_evidence"] else "; this one does not count"
        needed_evidence = symptom_match["evidence_needed"]
        needed_events = "one event"
        if needed_evidence["distinct_events"] > 1:
            needed_events = (
                f"{needed_evidence['distinct_events']} distinct events within "
                f"{needed_evidence['within_seconds']} s"
            )
        text_by_label |= {
            "match": f"{symptom_match['sentence']} ({symptom_match['ships_as']})",
            "evidence": f"{needed_events}{evidence_note}",
            "facts": ", ".join(symptom_match["facts_needed"]) or "none",
            "may write": ", ".join(symptom_match["steps"]) or "nothing",
            "plan": symptom_match["plan"],
        }
    out.say_labelled(
        [(line_label, "dim", line_text) for line_label, line_text in text_by_label.items()],
        indent=0,
    )
    if not symptom_match:
        out.say("no symptom of the catalogue: it is counted and never acted on")


def _read_entries(file_name: str) -> Iterator[RecordEntry]:
    """Return the records in a file, or in standard input for `-`.

    Raises CommandError if it cannot be read or holds no JSON.
    """
    try:
        with (
            nullcontext(sys.stdin.buffer) if file_name == "-" else Path(file_name).open("rb")
        ) as file_stream:
            file_content = _read_content(file_stream)
    except FileNotFoundError as error:
        raise CommandError(f"there is no file {file_name}", Exit.NOT_FOUND) from error
    except (OSError, EOFError, zlib.error) as error:
        raise CommandError(f"{file_name} cannot be read: {error}", Exit.USAGE) from error
    try:
        return find_record_entries(file_content)
    except ValueError as error:
        raise CommandError(f"{file_name} holds no JSON: {error}", Exit.USAGE) from error


def _read_content(file_stream: BinaryIO) -> bytes:
    """Return the stream's content, unpacked if it is gzip.

    Raises CommandError if the content is longer than MOST_FILE_BYTES.
    """
    file_content = file_stream.read(MOST_FILE_BYTES + 1)
    if file_content.startswith(_GZIP_SIGNATURE):
        with gzip.open(io.BytesIO(file_content)) as unpacked_stream:
            file_content = unpacked_stream.read(MOST_FILE_BYTES + 1)
    if len(file_content) > MOST_FILE_BYTES:
        raise CommandError(
            f"more than {MOST_FILE_BYTES:,} bytes: no trail file is so long", Exit.USAGE
        )
    return file_content

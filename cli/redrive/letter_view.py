"""A letter as people and scripts see it: why it is where it is, and its body only where asked."""

from __future__ import annotations

from base64 import b64encode
from datetime import UTC, datetime
from typing import Any

from cli.output import Output, age, minute
from functions.healing.evidence import to_text
from functions.healing.letters import HOPS, QUARANTINED, Letter, MessageAttribute
from functions.healing.marks import kept_because
from functions.healing.plain_text import counted, plain, value

_MOST_BODY = 4_096
_MOST_VALUE = 60


def document_of(letter: Letter, *, with_body: bool) -> dict[str, Any]:
    """All that can be sent again, without what SQS made up itself."""
    kept = kept_because(letter)
    return {
        "message_id": letter.message_id,
        "sent_at": to_text(letter.sent_at),
        "receives": letter.receive_count,
        "hops": max(letter.hops, kept.hops if kept else 0),
        "source_arn": kept.source if kept else letter.source_arn,
        "why": kept.why if kept else None,
        "quarantined_at": kept.at if kept else None,
        "case_id": kept.case if kept else None,
        "group_id": letter.group_id or None,
        "deduplication_id": letter.deduplication_id or None,
        "trace_header": letter.trace_header or None,
        "bytes": letter.size_bytes,
        "attributes": {name: _attribute(each) for name, each in letter.attributes.items()},
        **({"body": letter.body} if with_body else {}),
    }


def show_letter(out: Output, letter: Letter, now: datetime, *, with_body: bool) -> None:
    kept = kept_because(letter)
    out.say(letter.message_id, "bold")
    if kept is None:
        out.under("why it is here is not known: it bears no mark of Mendq's", "yellow")
    else:
        out.under(plain(kept.why, 400))
        hops = counted(kept.hops, "time")
        out.under(f"here since {_moment(kept.at)}, sent back {hops}, {plain(kept.case, 80)}")
    group = f", group {value(letter.group_id, _MOST_VALUE)}" if letter.group_id else ""
    size = counted(letter.size_bytes, "byte")
    receives = counted(letter.receive_count, "receive")
    out.under(f"{age(letter.sent_at, now)} old, {size}, {receives}{group}", "dim")
    for name, each in letter.attributes.items():
        if name not in (HOPS, QUARANTINED):
            out.under(f"{plain(name, _MOST_VALUE)} = {_in_words(each)}", "dim")
    if with_body:
        out.whole(plain(letter.body, _MOST_BODY), "", indent=2)


def _moment(written: str) -> str:
    """A mark is a sender's text as well, once it was sent again."""
    try:
        return minute(datetime.fromisoformat(written).astimezone(UTC))
    except (ValueError, OverflowError):
        return plain(written, 40)


def _in_words(attribute: MessageAttribute) -> str:
    if isinstance(attribute.value, bytes):
        return f"({counted(len(attribute.value), 'byte')})"
    return value(attribute.value, _MOST_VALUE) or '""'


def _attribute(attribute: MessageAttribute) -> dict[str, str]:
    if isinstance(attribute.value, bytes):
        text = b64encode(attribute.value).decode()
        return {"DataType": attribute.data_type, "BinaryValue": text}
    return {"DataType": attribute.data_type, "StringValue": attribute.value}

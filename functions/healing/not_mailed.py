"""What people are told when SES refuses the weekly report: by the topic, which still works."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from shlex import quote

from functions.healing.page import MOST_BYTES, Page
from functions.healing.plain_text import Section, body, command_line, counted, first_of, plain

RUNBOOK = "docs/runbooks/report_not_mailed.md"
_MOST_ADDRESSES = 20


@dataclass(frozen=True)
class Again:
    """How to deliver once more: the function, the region, and the summary's key in its event."""

    function: str
    region: str
    key: str


def not_mailed(week: str, whom: Mapping[str, str], again: Again) -> Page:
    """`whom` are the addresses that were refused, each with SES's own words."""
    opening = (
        f"SES refused to mail the report of week {plain(week, 10)}. Please act.",
        f"To: {counted(len(whom), 'address', 'addresses')}; nobody else is kept waiting.",
    )
    words = (f"{plain(address, 100)}: {plain(why, 400)}" for address, why in whom.items())
    region = plain(again.region, 32)
    event = json.dumps({"detail": {"object": {"key": again.key}}}, separators=(",", ":"))
    commands = (
        f"aws sesv2 list-email-identities --region {region}",
        command_line(
            f"aws lambda invoke --function-name {again.function} --region {region} "
            f"--cli-binary-format raw-in-base64-out --payload {quote(event)} /dev/stdout"
        ),
        f"runbook: {RUNBOOK}",
    )
    sections = (
        Section("REFUSED", first_of(words, _MOST_ADDRESSES)),
        Section("NEXT", commands, cut=False),
    )
    subject = f"Mendq: the report of week {plain(week, 10)} was not mailed"
    return Page(subject, body(opening, sections, MOST_BYTES))

"""A queue attribute's value as a sentence says it."""

from __future__ import annotations

import re

from functions.report.names import marked
from functions.report.words import duration

_NUMBER = re.compile(r"0|[1-9][0-9]{0,11}", re.ASCII)
_SECONDS = re.compile(r"VisibilityTimeout|MessageRetentionPeriod|\w{1,64}Seconds", re.ASCII)
_MOST_SECONDS_ALONE = 3_600


def written(attribute: str, value: str) -> str:
    """`690 s`, `1,209,600 s (14 d)`, a short text; empty where it is none or too long to say."""
    if not value or len(value) > 40:
        return ""
    if not _NUMBER.fullmatch(value):
        return marked(value)
    number = int(value)
    if _SECONDS.fullmatch(attribute):
        also = f" ({duration(number)})" if number > _MOST_SECONDS_ALONE else ""
        return f"{number:,} s{also}"
    if attribute == "MaximumMessageSize":
        return f"{number:,} bytes"
    return f"{number:,}"


def changed(attribute: str, before: str, after: str) -> str:
    """`from 460 s to 690 s`, `to 690 s`; empty where the new value cannot be said."""
    old, new = written(attribute, before), written(attribute, after)
    if not new:
        return ""
    return f"from {old} to {new}" if old else f"to {new}"

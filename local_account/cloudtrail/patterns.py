"""The size of an event pattern, which MiniStack does not look at.

https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-quota.html
"""

from __future__ import annotations

from collections.abc import Callable

from ministack.services import eventbridge

LONGEST_PATTERN = 2_048
Judge = Callable[[object], str | None]


def install() -> None:
    """Hook what judges patterns, for every way to write a rule; once per process."""
    eventbridge._event_pattern_error = bounded(eventbridge._event_pattern_error)


def bounded(judge: Judge) -> Judge:
    """Refuse what is longer than the quota that every account starts with."""

    def judging(pattern: object) -> str | None:
        if isinstance(pattern, str) and len(pattern) > LONGEST_PATTERN:
            return f"Event pattern is longer than {LONGEST_PATTERN} characters"
        return judge(pattern)

    return judging

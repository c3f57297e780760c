"""The context attributes in a schedule's input.

https://docs.aws.amazon.com/scheduler/latest/UserGuide/managing-schedule-context-attributes.html
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime


class NotFired(Exception):
    """Why a schedule's target was not invoked."""


@dataclass(frozen=True)
class Execution:
    """One time that a schedule fires."""

    id: str
    schedule_arn: str
    scheduled_at: datetime

    @property
    def scheduled_time(self) -> str:
        """The time that it stands for, however late it comes."""
        return f"{self.scheduled_at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def substituted(text: str, execution: Execution) -> str:
    """The input as the target gets it; unknown attributes stay as they are."""
    values = {
        "schedule-arn": execution.schedule_arn,
        "scheduled-time": execution.scheduled_time,
        "execution-id": execution.id,
        "attempt-number": "1",
    }
    for name, value in values.items():
        text = text.replace(f"<aws.scheduler.{name}>", value)
    return text

"""Context attributes in a schedule's input."""

from __future__ import annotations

from datetime import datetime

import pytest

from local_account.scheduler.context import Execution, substituted

EXECUTION = Execution("e-1", "arn:schedule", datetime.fromisoformat("2026-11-10T03:00:00+01:00"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("<aws.scheduler.unknown>", "<aws.scheduler.unknown>"),
        ("aws.scheduler.scheduled-time", "aws.scheduler.scheduled-time"),
        ('{"time": "<aws.scheduler.scheduled-time>"}', '{"time": "2026-11-10T02:00:00Z"}'),
        ("<aws.scheduler.execution-id> <aws.scheduler.attempt-number>", "e-1 1"),
        ("<aws.scheduler.schedule-arn><aws.scheduler.execution-id>", "arn:schedulee-1"),
    ],
)
def test_known_attributes_are_filled_in(text: str, expected: str) -> None:
    assert substituted(text, EXECUTION) == expected

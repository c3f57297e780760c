"""Cases that people are paged for, and what is known beside them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from mendq.catalogue.examples import QUEUE_ARN
from mendq.model.case import Case, State
from mendq.notifications import notification
from mendq.notifications.notification import NotificationText
from mendq.notifications.queue_lines import Change, Known

NOW = datetime(2026, 11, 16, 9, 30, tzinfo=UTC)
STEP = {"attribute": "VisibilityTimeout", "before": "30", "after": "45"}
ATTRIBUTES = {
    "VisibilityTimeout": "30",
    "MessageRetentionPeriod": "345600",
    "ApproximateNumberOfMessages": "812",
    "DelaySeconds": "0",
}
CASE = Case(
    case_id="visibility_timeout_too_short-0123456789ab",
    n=1,
    at=NOW,
    came_from=None,
    state=State.PROPOSED,
    queue_arn=QUEUE_ARN,
    symptom="visibility_timeout_too_short",
    reason="half as much again as 30 s",
    evidence={
        "failed_calls": 3,
        "first_request_id": "request-1",
        "last_request_id": "request-9",
        "first_at": "2026-11-16T09:20:11.000Z",
        "last_at": "2026-11-16T09:29:58.000Z",
        "principals": ["arn:aws:iam::123456789012:role/orders-worker"],
    },
    steps=(STEP,),
    actor="heal",
)
BESIDE: dict[str, Any] = {
    "sentence": "Consumers hold messages longer than their visibility timeout.",
    "runbook": "docs/runbooks/visibility_timeout_too_short.md",
    "attributes": ATTRIBUTES,
    "tags": {"mendq": "propose", "team": "orders"},
    "event_names": ["DeleteMessage"],
    "known": Known(NOW - timedelta(days=1), {**ATTRIBUTES, "VisibilityTimeout": "60"}),
    "last_change": Change(NOW, "SetQueueAttributes", "arn:aws:iam::123456789012:role/deployer"),
    "next_command": f"aws sqs list-queue-tags --queue-url {QUEUE_ARN}",
}


def notified(beside: dict[str, Any] | None = None, **over: Any) -> NotificationText:
    """The page of the example case; `over` are the case's fields, `beside` what else is known."""
    details = notification.CaseDetails(**{**BESIDE, **(beside or {})})
    return notification.of_case(replace(CASE, **over), details)


def section(text: str, heading: str) -> list[str]:
    """The lines under `heading`, without their indentation; empty where there is none."""
    blocks = [each.splitlines() for each in text.split("\n\n")]
    found = [lines[1:] for lines in blocks if lines[0] == heading]
    return [line.removeprefix("  ") for lines in found for line in lines]

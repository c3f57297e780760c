"""Follow up the open cases that are due, each minute; send the gauges that alarms stand on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from functions.entry import Call, Event, entry
from functions.telemetry import emit_follow_up, log_follow_up
from mendq.cases.context import ManagingContext
from mendq.follow_up.follow_up import follow_up
from mendq.model.settings import FollowUpSettings


@entry(FollowUpSettings)
def handler(event: Event, call: Call[FollowUpSettings]) -> dict[str, int]:
    """How many cases are open, were moved, and were handed to their owners.

    Raises CaseStoreUnavailable: then the next minute tries again. Cases are judged by the time
    itself; only the local account may put it forward, by the `time` that the schedule stands for.
    """
    scheduled_at = datetime.fromisoformat(event["time"]).astimezone(UTC)
    latest = call.now + timedelta(days=call.settings.most_days_ahead or 0)
    now = min(max(scheduled_at, call.now), latest)
    owner = call.context.aws_request_id
    context = ManagingContext(call.clients, call.settings, owner, now, real_now=call.now)
    followed = follow_up(context, call.settings.owners, call.remaining_seconds)
    emit_follow_up(call.metrics, followed, now, call.settings.limits)
    log_follow_up(call.log, followed)
    return {
        "open": len(followed.open_cases),
        "moved": len(followed.moved),
        "called": len(followed.called),
        "errors": len(followed.errors),
    }

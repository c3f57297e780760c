"""Follow up the open cases that are due, each minute; send the gauges that alarms stand on."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import TypedDict

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.entry import to_line
from functions.telemetry import emit_follow_up, log_follow_up
from mendq.aws.clients import Clients
from mendq.cases.context import ManagingContext
from mendq.follow_up.follow_up import follow_up
from mendq.model.names import NAMESPACE
from mendq.model.settings import FollowUpSettings

logger = Logger(service="follow_up", json_serializer=to_line)
metrics = Metrics(namespace=NAMESPACE)


class Scheduled(TypedDict):
    """The time that the schedule stands for, which is no clock: anybody who calls names one."""

    time: str


@cache
def _cold_start() -> tuple[FollowUpSettings, Clients]:
    return FollowUpSettings.from_environment(os.environ), Clients.of_this_lambda()


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: Scheduled, context: LambdaContext) -> dict[str, int]:
    """How many cases are open, were moved, and were handed to their owners.

    Raises CaseStoreUnavailable: then the next minute tries again.
    """
    settings, clients = _cold_start()
    real_now = datetime.now(UTC)
    now = _clock(event, real_now, timedelta(days=settings.most_days_ahead or 0))
    case_context = ManagingContext(
        clients, settings, context.aws_request_id, now, real_now=real_now
    )
    left = context.get_remaining_time_in_millis
    followed = follow_up(case_context, settings.owners, lambda: left() / 1000)
    emit_follow_up(metrics, followed, now, settings.limits)
    log_follow_up(logger, followed)
    return {
        "open": len(followed.open_cases),
        "moved": len(followed.moved),
        "called": len(followed.called),
        "errors": len(followed.errors),
    }


def _clock(event: Scheduled, real_now: datetime, most_ahead: timedelta) -> datetime:
    """What cases are judged by: the time itself, and only the local account may put it forward."""
    scheduled_at = datetime.fromisoformat(event["time"]).astimezone(UTC)
    return min(max(scheduled_at, real_now), real_now + most_ahead)

"""Each minute: the open cases that are due, moved on; the gauges that alarms stand on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from typing import TypedDict

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.aws.clients import Clients
from functions.aws.desk import ManagingDesk
from functions.aws.emitting import NAMESPACE, to_line
from functions.aws.follow_up import follow_up
from functions.aws.follow_up_telemetry import emit, log
from functions.settings import FollowUpSettings

logger = Logger(service="follow_up", json_serializer=to_line)
metrics = Metrics(namespace=NAMESPACE)


class Scheduled(TypedDict):
    """The time that the schedule stands for, which is no clock: anybody who calls names one."""

    time: str


@cache
def _cold_start() -> tuple[FollowUpSettings, Clients]:
    return FollowUpSettings.from_environment(), Clients.of_this_lambda()


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: Scheduled, context: LambdaContext) -> dict[str, int]:
    """How many cases are open, were moved, and were handed to their owners.

    Raises LedgerUnavailable: then the next minute tries again.
    """
    settings, clients = _cold_start()
    real_now = datetime.now(UTC)
    now = _clock(event, real_now, timedelta(days=settings.most_days_ahead or 0))
    desk = ManagingDesk(clients, settings, context.aws_request_id, now, real_now=real_now)
    left = context.get_remaining_time_in_millis
    followed = follow_up(desk, settings.owners, lambda: left() / 1000)
    emit(metrics, followed, now, settings.limits)
    log(logger, followed)
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

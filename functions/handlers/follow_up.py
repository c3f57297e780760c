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


# The clock may be put forward to see what becomes of a case: past the week that one waits for a
# person or stays away after a rollback, but not to a year in which none is open any more.
MOST_AHEAD = timedelta(days=15)


class Scheduled(TypedDict):
    """The time that the schedule stands for: the clock that cases are judged by."""

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
    scheduled_at = datetime.fromisoformat(event["time"]).astimezone(UTC)
    now = min(scheduled_at, datetime.now(UTC) + MOST_AHEAD)
    desk = ManagingDesk(clients, settings, context.aws_request_id, now)
    followed = follow_up(
        desk, settings.owners, lambda: context.get_remaining_time_in_millis() / 1000
    )
    emit(metrics, followed, now, settings.limits)
    log(logger, followed)
    return {
        "open": len(followed.open_cases),
        "moved": len(followed.moved),
        "called": len(followed.called),
        "errors": len(followed.errors),
    }

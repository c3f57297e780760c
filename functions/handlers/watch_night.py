"""A run's end in, the night's or the week's figures out: failed, written, doubtful, missing."""

from __future__ import annotations

from functools import cache
from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.aws.clients import Clients
from functions.aws.emitting import NAMESPACE, to_line
from functions.aws.watch_night import emit, log, watch
from functions.healing.night_watch import WeekEnded
from functions.healing.plan import Refusal
from functions.settings import WatchNightSettings

logger = Logger(service="watch_night", json_serializer=to_line)
metrics = Metrics(namespace=NAMESPACE)


@cache
def _cold_start() -> tuple[WatchNightSettings, Clients]:
    return WatchNightSettings.from_environment(), Clients.of_this_lambda()


@logger.inject_lambda_context
def handler(event: dict[str, Any], _context: LambdaContext) -> dict[str, str]:
    """`{"day": .., "verdict": ..}`, of a week `{"week": ..}`, or `{"ignored": why}` of other runs.

    Raises what AWS raises, so that the event is tried again and then parked.
    """
    settings, clients = _cold_start()
    seen = watch(clients, settings, event)
    if isinstance(seen, Refusal):
        logger.info("not watched", code=seen.code, reason=seen.reason)
        return {"ignored": seen.reason}
    emit(metrics, seen)
    log(logger, seen)
    if isinstance(seen, WeekEnded):
        return {"week": seen.week, "verdict": "failed" if seen.failed else "summed_up"}
    return {"day": str(seen.day), "verdict": seen.verdict}

"""Watch a run of the nightly or weekly job end: count whether it failed, wrote, or left doubt."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.entry import to_line
from functions.telemetry import emit_nightly, log_nightly
from mendq.aws.clients import Clients
from mendq.model.names import NAMESPACE
from mendq.model.plan import Refusal
from mendq.model.settings import WatchNightlySettings
from mendq.nightly.outcome import WeekEnded
from mendq.nightly.watch import watch

logger = Logger(service="watch_nightly", json_serializer=to_line)
metrics = Metrics(namespace=NAMESPACE)


@cache
def _cold_start() -> tuple[WatchNightlySettings, Clients]:
    return WatchNightlySettings.from_environment(os.environ), Clients.of_this_lambda()


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
    emit_nightly(metrics, seen)
    log_nightly(logger, seen)
    if isinstance(seen, WeekEnded):
        return {"week": seen.week, "verdict": "failed" if seen.failed else "summed_up"}
    return {"day": str(seen.day), "verdict": seen.verdict}

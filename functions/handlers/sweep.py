"""Every ten minutes: what is left of the hour's round over the managed queues."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.aws.clients import Clients
from functions.aws.emitting import to_line
from functions.aws.sweep_desk import SweepDesk
from functions.aws.sweep_looks import Paces
from functions.aws.sweep_round import sweep_round
from functions.aws.sweep_telemetry import emit, log, totals
from functions.healing.sweeping import Swept
from functions.settings import SweepSettings

logger = Logger(service="sweep", json_serializer=to_line)


@cache
def _cold_start() -> tuple[SweepSettings, Clients]:
    return SweepSettings.from_environment(), Clients.of_this_lambda()


@logger.inject_lambda_context
def handler(_event: dict[str, Any], context: LambdaContext) -> dict[str, int]:
    """What was looked at and found; zeros where the hour's round is done.

    Raises LedgerUnavailable, FactsUnavailable or OwnerUnavailable: then the next sweep tries again.
    """
    settings, clients = _cold_start()
    desk = SweepDesk(
        clients=clients,
        settings=settings,
        owner=context.aws_request_id,
        now=datetime.now(UTC),
        remaining_seconds=lambda: context.get_remaining_time_in_millis() / 1000,
        paces=Paces(),
    )
    swept = sweep_round(desk) or Swept()
    emit(swept)
    log(logger, swept)
    return totals(swept)

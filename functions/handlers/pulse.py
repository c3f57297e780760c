"""Hourly: a failing call that heal has to see, and a page where it did not."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from typing import TypedDict

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.aws.clients import Clients
from functions.aws.emitting import NAMESPACE
from functions.aws.pulse import make_pulse
from functions.healing.own_metrics import OwnMetric
from functions.settings import PulseSettings

logger = Logger(service="pulse")
metrics = Metrics(namespace=NAMESPACE)


class Scheduled(TypedDict):
    """The time that the schedule stands for."""

    time: str


@cache
def _cold_start() -> tuple[PulseSettings, Clients]:
    return PulseSettings.from_environment(), Clients.of_this_lambda()


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: Scheduled, _context: LambdaContext) -> dict[str, int | str]:
    """`{"sent_at": .., "lost_in_a_row": ..}`; raises what `make_pulse` raises, to be tried again.

    The clock is the real one: heal notes by it when it saw the call.
    A time to come counts as now: noted as it is, it would be later than every pulse until then.
    """
    settings, clients = _cold_start()
    now = datetime.now(UTC)
    scheduled_at = min(datetime.fromisoformat(event["time"]).astimezone(UTC), now)
    pulse = make_pulse(clients, settings, scheduled_at, now)
    metrics.add_metric(OwnMetric.PULSES_LOST, MetricUnit.Count, pulse.lost_in_a_row)
    sent_at = pulse.sent_at.isoformat()
    logger.info("a pulse is on its way", sent_at=sent_at, lost_in_a_row=pulse.lost_in_a_row)
    return {"sent_at": sent_at, "lost_in_a_row": pulse.lost_in_a_row}

"""Make a failing call each hour that heal has to see, and page where it did not."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from functools import cache
from typing import TypedDict

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext

from mendq.aws.clients import Clients
from mendq.model.names import NAMESPACE, OwnMetric
from mendq.model.settings import ProbeSettings
from mendq.probe.send import send_probe

logger = Logger(service="probe")
metrics = Metrics(namespace=NAMESPACE)


class Scheduled(TypedDict):
    """The time that the schedule stands for."""

    time: str


@cache
def _cold_start() -> tuple[ProbeSettings, Clients]:
    return ProbeSettings.from_environment(os.environ), Clients.of_this_lambda()


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: Scheduled, _context: LambdaContext) -> dict[str, int | str]:
    """`{"sent_at": .., "lost_in_a_row": ..}`; raises what `send_probe` raises, to be tried again.

    The clock is the real one: heal notes by it when it saw the call.
    A time to come counts as now: noted as it is, it would be later than every probe until then.
    """
    settings, clients = _cold_start()
    now = datetime.now(UTC)
    scheduled_at = min(datetime.fromisoformat(event["time"]).astimezone(UTC), now)
    probe = send_probe(clients, settings, scheduled_at, now)
    metrics.add_metric(OwnMetric.PROBES_LOST, MetricUnit.Count, probe.lost_in_a_row)
    sent_at = probe.sent_at.isoformat()
    logger.info("a probe is on its way", sent_at=sent_at, lost_in_a_row=probe.lost_in_a_row)
    return {"sent_at": sent_at, "lost_in_a_row": probe.lost_in_a_row}

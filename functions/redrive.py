"""Take up the redrive of a case, move it on by a tick, or stop it."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.entry import to_line
from functions.telemetry import emit_taken_up
from mendq.aws.clients import Clients
from mendq.model.names import NAMESPACE, OwnMetric
from mendq.model.settings import RedriveSettings
from mendq.model.steps import Owner
from mendq.redrive.reads import RedriveRun, RedriveStart
from mendq.redrive.redrive import Ticked, redrive

logger = Logger(service="redrive", json_serializer=to_line)
metrics = Metrics(namespace=NAMESPACE)


@cache
def _cold_start() -> tuple[RedriveSettings, Clients]:
    return RedriveSettings.from_environment(os.environ), Clients.of_this_lambda()


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """`{"case_id", "queue_arn", "symptom"}` in, with `"cancel": true` to stop it.

    The case's new state out, or why it did not move.
    """
    settings, clients = _cold_start()
    run = RedriveRun(
        clients=clients,
        settings=settings,
        owner=context.aws_request_id,
        now=datetime.now(UTC),
        remaining_seconds=lambda: context.get_remaining_time_in_millis() / 1000,
        clock=partial(datetime.now, UTC),
        write=RedriveStart(settings.consent).write,
        whose=Owner.REDRIVE,
    )
    outcome = redrive(event, run)
    progress: dict[str, Any] = {}
    if isinstance(outcome, Ticked):
        # Only while something goes on: a series of zeros costs money and says nothing here.
        metrics.add_metric(OwnMetric.REDRIVEN_MESSAGES, MetricUnit.Count, outcome.redriven)
        metrics.add_metric(OwnMetric.QUARANTINED_MESSAGES, MetricUnit.Count, outcome.quarantined)
        progress = outcome.progress.document() if outcome.progress else {}
        progress.pop("fingerprints", None)  # thousands, and of use to the next tick alone
    else:
        emit_taken_up(metrics, outcome)
    logger.info("redrove a case", request=event, progress=progress, **outcome.document())
    return outcome.document()

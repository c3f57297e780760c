"""A case whose dead letters go back in, how far it has come out."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache, partial
from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.aws.clients import Clients
from functions.aws.emitting import NAMESPACE, to_line
from functions.aws.redrive import redrive
from functions.aws.redrive_run import RedriveRun
from functions.aws.redrive_start import RedriveStart
from functions.aws.redrive_telemetry import emit, log
from functions.healing.steps import Owner
from functions.settings import RedriveSettings

logger = Logger(service="redrive", json_serializer=to_line)
metrics = Metrics(namespace=NAMESPACE)


@cache
def _cold_start() -> tuple[RedriveSettings, Clients]:
    return RedriveSettings.from_environment(), Clients.of_this_lambda()


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
    emit(metrics, outcome)
    log(logger, event, outcome)
    return outcome.document()

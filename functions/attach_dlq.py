"""Attach the DLQ that a case waits for, and answer what became of the case."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.entry import to_line
from functions.telemetry import emit_taken_up
from mendq.aws.clients import Clients
from mendq.heal.attach_dlq import attach
from mendq.heal.context import FixContext
from mendq.heal.resume import take_up
from mendq.model.names import NAMESPACE
from mendq.model.settings import AttachDlqSettings
from mendq.model.steps import Owner

logger = Logger(service="attach_dlq", json_serializer=to_line)
metrics = Metrics(namespace=NAMESPACE)


@cache
def _cold_start() -> tuple[AttachDlqSettings, Clients]:
    return AttachDlqSettings.from_environment(os.environ), Clients.of_this_lambda()


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """`{"case_id", "queue_arn", "symptom"}` in; the case's new state, or why it did not move."""
    settings, clients = _cold_start()
    run = FixContext(
        clients=clients,
        settings=settings,
        owner=context.aws_request_id,
        now=datetime.now(UTC),
        remaining_seconds=lambda: context.get_remaining_time_in_millis() / 1000,
        clock=partial(datetime.now, UTC),
        write=attach,
        whose=Owner.ATTACH_DLQ,
    )
    outcome = take_up(event, run)
    emit_taken_up(metrics, outcome)
    logger.info("took up a case", request=event, **outcome.document())
    return outcome.document()

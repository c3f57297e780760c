"""Heal the queues of a batch of failed calls from the intake queue."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.entry import to_line
from functions.telemetry import emit_heal, emit_taken_up, log_heal
from mendq.aws.clients import Clients
from mendq.heal.apply import write
from mendq.heal.batch import heal_batch, heal_findings
from mendq.heal.context import Run
from mendq.heal.resume import take_up
from mendq.model.names import NAMESPACE
from mendq.model.settings import HealSettings
from mendq.model.steps import Owner

logger = Logger(service="heal", json_serializer=to_line)
metrics = Metrics(namespace=NAMESPACE)


@cache
def _cold_start() -> tuple[HealSettings, Clients]:
    return HealSettings.from_environment(os.environ), Clients.of_this_lambda()


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer which messages are to come again; what can never be read ends in the intake's DLQ.

    Called with a case in place of messages: what became of it; or with what a scan found.
    """
    settings, clients = _cold_start()
    run = Run(
        clients=clients,
        settings=settings,
        owner=context.aws_request_id,
        now=datetime.now(UTC),
        remaining_seconds=lambda: context.get_remaining_time_in_millis() / 1000,
        clock=partial(datetime.now, UTC),
        write=write,
        whose=Owner.HEAL,
    )
    if "found" not in event and "Records" not in event:
        outcome = take_up(event, run)
        emit_taken_up(metrics, outcome)
        logger.info("took up a case", request=event, **outcome.document())
        return outcome.document()
    messages = {each["messageId"]: each["body"] for each in event.get("Records", [])}
    healed = heal_findings(event, run) if "found" in event else heal_batch(messages, run)
    emit_heal(metrics, healed.intake, healed.fixed, healed.errors.values())
    log_heal(logger, healed.intake, healed.fixed, healed.errors.values())
    return healed.answer()

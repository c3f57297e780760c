"""Failed calls from the intake queue in, mended queues out."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache, partial
from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.aws.clients import Clients
from functions.aws.emitting import NAMESPACE, to_line
from functions.aws.heal_batch import heal_batch, heal_findings
from functions.aws.run import Run
from functions.aws.take_up import take_up
from functions.aws.telemetry import emit, emit_taken_up, log
from functions.aws.write_steps import write
from functions.healing.steps import Owner
from functions.settings import HealSettings

logger = Logger(service="heal", json_serializer=to_line)
metrics = Metrics(namespace=NAMESPACE)


@cache
def _cold_start() -> tuple[HealSettings, Clients]:
    return HealSettings.from_environment(), Clients.of_this_lambda()


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer which messages are to come again; what can never be read ends in the intake's DLQ.

    Called with a case in place of messages: what became of it; or with what a sweep found.
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
    emit(metrics, healed.intake, healed.mended, healed.errors.values())
    log(logger, healed.intake, healed.mended, healed.errors.values())
    return healed.answer()

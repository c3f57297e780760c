"""A case that waits for its queue's pinned policy in, what became of it out."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache, partial
from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.aws.clients import Clients
from functions.aws.emitting import NAMESPACE, to_line
from functions.aws.pins import Pins
from functions.aws.restore_policy import PolicyWriter
from functions.aws.run import OwnerRun
from functions.aws.take_up import take_up
from functions.aws.telemetry import emit_taken_up
from functions.healing.steps import Owner
from functions.settings import RestorePolicySettings

logger = Logger(service="restore_policy", json_serializer=to_line)
metrics = Metrics(namespace=NAMESPACE)


@cache
def _cold_start() -> tuple[RestorePolicySettings, Clients]:
    return RestorePolicySettings.from_environment(), Clients.of_this_lambda()


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """`{"case_id", "queue_arn", "symptom"}` in; the case's new state, or why it did not move."""
    settings, clients = _cold_start()
    now = datetime.now(UTC)
    run = OwnerRun(
        clients=clients,
        settings=settings,
        owner=context.aws_request_id,
        now=now,
        remaining_seconds=lambda: context.get_remaining_time_in_millis() / 1000,
        clock=partial(datetime.now, UTC),
        write=PolicyWriter(Pins(clients.dynamodb, settings.ledger_table), now).write,
        whose=Owner.RESTORE_POLICY,
    )
    outcome = take_up(event, run)
    emit_taken_up(metrics, outcome)
    logger.info("took up a case", request=event, **outcome.document())
    return outcome.document()

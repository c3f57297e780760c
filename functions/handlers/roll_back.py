"""Takes back what a case wrote into its queue; keeps what people wrote since."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache, partial
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.aws.clients import Clients
from functions.aws.desk import WritingDesk
from functions.aws.emitting import to_line
from functions.aws.operator_request import OperatorRequest, answer
from functions.aws.rolling_back import roll_back
from functions.aws.write_steps import write
from functions.healing.plan import Refusal
from functions.settings import RollBackSettings

logger = Logger(service="roll_back", json_serializer=to_line)


@cache
def _cold_start() -> tuple[RollBackSettings, Clients]:
    return RollBackSettings.from_environment(), Clients.of_this_lambda()


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """`{"case_id", "actor", "dry_run"}` in; each attribute's outcome, or `{"error", "reason"}`."""
    settings, clients = _cold_start()
    desk = WritingDesk(
        clients=clients,
        settings=settings,
        owner=context.aws_request_id,
        now=datetime.now(UTC),
        remaining_seconds=lambda: context.get_remaining_time_in_millis() / 1000,
        clock=partial(datetime.now, UTC),
        write=write,
    )

    def act() -> dict[str, Any] | Refusal:
        request = OperatorRequest.of(event)
        if isinstance(request, Refusal):
            return request
        is_dry = event.get("dry_run") is not False
        return roll_back(request, desk, dry_run=is_dry, functions=settings.owners)

    answered = answer(act)
    logger.info("asked to roll back", request=event, answer=answered)
    return answered

"""A person's word on a case: approve, decline or close it."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.aws.approving import decide
from functions.aws.clients import Clients
from functions.aws.desk import Desk
from functions.aws.emitting import to_line
from functions.aws.operator_request import OperatorRequest, answer
from functions.healing.plan import Refusal
from functions.settings import ApproveSettings

logger = Logger(service="approve", json_serializer=to_line)


@cache
def _cold_start() -> tuple[ApproveSettings, Clients]:
    return ApproveSettings.from_environment(), Clients.of_this_lambda()


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """`{"case_id", "decision", "actor"}` in; what became of the case, or `{"error", "reason"}`."""
    settings, clients = _cold_start()
    desk = Desk(clients, settings, context.aws_request_id, datetime.now(UTC))

    def act() -> dict[str, Any] | Refusal:
        request = OperatorRequest.of(event)
        if isinstance(request, Refusal):
            return request
        return decide(request, event.get("decision"), desk, settings.owners)

    answered = answer(act)
    logger.info("a person's word", request=event, answer=answered)
    return answered

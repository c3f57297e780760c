"""Approve, decline or close a case at a person's word."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from functools import cache
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.entry import to_line
from mendq.aws.clients import Clients
from mendq.cases.context import CaseContext
from mendq.heal.approve import OperatorRequest, answer, decide
from mendq.model.plan import Refusal
from mendq.model.settings import ApproveSettings

logger = Logger(service="approve", json_serializer=to_line)


@cache
def _cold_start() -> tuple[ApproveSettings, Clients]:
    return ApproveSettings.from_environment(os.environ), Clients.of_this_lambda()


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """`{"case_id", "decision", "actor"}` in; what became of the case, or `{"error", "reason"}`."""
    settings, clients = _cold_start()
    case_context = CaseContext(clients, settings, context.aws_request_id, datetime.now(UTC))

    def act() -> dict[str, Any] | Refusal:
        request = OperatorRequest.of(event)
        if isinstance(request, Refusal):
            return request
        return decide(request, event.get("decision"), case_context, settings.owners)

    answered = answer(act)
    logger.info("a person's word", request=event, answer=answered)
    return answered

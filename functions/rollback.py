"""Take back what a case wrote into its queue; keep what people wrote since."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.entry import to_line
from mendq.aws.clients import Clients
from mendq.cases.context import WritingContext
from mendq.heal.apply import write
from mendq.heal.approve import OperatorRequest, answer
from mendq.heal.rollback import rollback
from mendq.model.plan import Refusal
from mendq.model.settings import RollbackSettings

logger = Logger(service="rollback", json_serializer=to_line)


@cache
def _cold_start() -> tuple[RollbackSettings, Clients]:
    return RollbackSettings.from_environment(os.environ), Clients.of_this_lambda()


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """`{"case_id", "actor", "dry_run"}` in; each attribute's outcome, or `{"error", "reason"}`."""
    settings, clients = _cold_start()
    case_context = WritingContext(
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
        return rollback(request, case_context, dry_run=is_dry, functions=settings.owners)

    answered = answer(act)
    logger.info("asked to roll back", request=event, answer=answered)
    return answered

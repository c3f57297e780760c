"""The Lambda that sends DLQ messages back, a few first; no other Lambda of Mendq's moves one."""

from __future__ import annotations

from collections.abc import Iterator

from aws_cdk import Duration, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.case_store import CaseGrants
from infra.lambdas.heal import TIMEOUT
from infra.lambdas.lambda_function import Handler
from infra.lambdas.owner_lambda import OwnerLambda, known_by_owners
from infra.queue_grants import redrive_statements
from mendq.model.limits import Bounds
from mendq.model.names import REDRIVE
from mendq.model.settings import RedriveSettings
from mendq.model.steps import Owner

# It holds thousands of messages at once.
HANDLER = Handler(
    "redrive", "Mendq: sends DLQ messages back, a few first", timeout=TIMEOUT, memory_mb=1_024
)
# The next minute's call does what this one did not.
PATIENCE = Duration.seconds(60)


class Redrive(OwnerLambda):
    """Called with a case by approve and follow_up, and by rollback to stop it."""

    def __init__(
        self, scope: Construct, name: str, *, code: lambda_.Code, context: CaseGrants
    ) -> None:
        super().__init__(
            scope,
            name,
            owner=Owner.REDRIVE,
            handler=HANDLER,
            code=code,
            purpose=REDRIVE,
            context=context,
        )
        context.let_read_a_case(self.role)
        self.function.configure_async_invoke(max_event_age=PATIENCE, retry_attempts=0)
        bounds = Bounds(soak_factor=context.settings.timing.soak_factor)
        self.knows(RedriveSettings(**known_by_owners(context), bounds=bounds))

    def writes(self, owner: Owner, context: CaseGrants) -> Iterator[iam.PolicyStatement]:
        """Messages are messages: its steps alone do not say what moving them takes."""
        yield from redrive_statements(Stack.of(self), context.settings)

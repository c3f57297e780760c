"""The Lambda that sends dead letters back, a few first; no other Lambda of Mendq's moves one."""

from __future__ import annotations

from collections.abc import Iterator

from aws_cdk import Duration, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from functions.healing.own_roles import REDRIVE
from functions.healing.redrive_bounds import Bounds
from functions.healing.steps import Owner
from functions.settings import RedriveSettings
from infra.case_desk import CaseDesk
from infra.heal import TIMEOUT
from infra.lambda_function import Handler
from infra.owner_lambda import OwnerLambda, known_by_owners
from infra.redrive_writes import redrive_statements

# It holds thousands of letters at once.
HANDLER = Handler(
    "redrive", "Mendq: sends dead letters back, a few first", timeout=TIMEOUT, memory_mb=1_024
)
# The next minute's call does what this one did not.
PATIENCE = Duration.seconds(60)


class Redrive(OwnerLambda):
    """Called with a case by approve and follow_up, and by roll_back to stop it."""

    def __init__(self, scope: Construct, name: str, *, code: lambda_.Code, desk: CaseDesk) -> None:
        super().__init__(
            scope,
            name,
            owner=Owner.REDRIVE,
            handler=HANDLER,
            code=code,
            purpose=REDRIVE,
            desk=desk,
        )
        desk.let_read_a_case(self.role)
        self.function.configure_async_invoke(max_event_age=PATIENCE, retry_attempts=0)
        bounds = Bounds(soak_factor=desk.settings.timing.soak_factor)
        self.knows(RedriveSettings(**known_by_owners(desk), bounds=bounds))

    def writes(self, owner: Owner, desk: CaseDesk) -> Iterator[iam.PolicyStatement]:
        """Letters are messages: its steps alone do not say what moving them takes."""
        yield from redrive_statements(Stack.of(self), desk.settings)

"""The Lambdas that own a write beside heal: each takes up cases that wait for its steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from functions.catalogue import CATALOGUE
from functions.healing.looks import LookAction, look_actions
from functions.healing.steps import Owner
from infra.case_desk import CaseDesk
from infra.lambda_function import Handler, OwnLambda
from infra.queue_looks import look_statements
from infra.queue_writes import kinds_of, write_statements


class OwnerLambda(OwnLambda):
    """It looks as heal does, and writes nothing but its own steps."""

    def __init__(  # noqa: PLR0913 - what tells one owner from another
        self,
        scope: Construct,
        name: str,
        *,
        owner: Owner,
        handler: Handler,
        code: lambda_.Code,
        purpose: str,
        desk: CaseDesk,
    ) -> None:
        super().__init__(scope, name, handler=handler, code=code, purpose=purpose)
        stack = Stack.of(self)
        desk.let_move_cases(self.role)
        desk.let_check_freeze(self.role)
        desk.let_page(self.role)
        for statement in (
            *look_statements(stack, owner_looks(owner)),
            *self.writes(owner, desk),
        ):
            self.role.add_to_policy(statement)
        if desk.settings.freeze_calendars:
            self.may(["ssm:GetCalendarState"], *desk.settings.freeze_calendars)

    def writes(self, owner: Owner, desk: CaseDesk) -> Iterator[iam.PolicyStatement]:
        """What taking its steps takes."""
        yield from write_statements(Stack.of(self), desk.settings, kinds_of(owner))


def known_by_owners(desk: CaseDesk) -> dict[str, Any]:
    """The fields of OwnerSettings."""
    settings = desk.settings
    return {
        **desk.known(),
        **desk.managed(),
        "autonomy": settings.autonomy,
        "freeze_calendars": settings.freeze_calendars,
    }


def owner_looks(owner: Owner) -> frozenset[LookAction]:
    """What the facts take of every symptom that it has steps of."""
    return look_actions(
        need
        for symptom in CATALOGUE
        if any(step.owner is owner for step in symptom.steps)
        for need in symptom.every_need
    )

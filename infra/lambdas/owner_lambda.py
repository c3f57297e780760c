"""The Lambdas that own a write beside heal: each takes up cases that wait for its steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.case_store import CaseGrants
from infra.lambdas.lambda_function import Handler, OwnLambda
from infra.queue_grants import kinds_of, look_statements, write_statements
from mendq.catalogue import CATALOGUE
from mendq.model.facts import ReadAction, read_actions
from mendq.model.steps import Owner


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
        context: CaseGrants,
    ) -> None:
        super().__init__(scope, name, handler=handler, code=code, purpose=purpose)
        stack = Stack.of(self)
        context.let_move_cases(self.role)
        context.let_check_freeze(self.role)
        context.let_page(self.role)
        for statement in (
            *look_statements(stack, owner_reads(owner)),
            *self.writes(owner, context),
        ):
            self.role.add_to_policy(statement)
        if context.settings.freeze_calendars:
            self.may(["ssm:GetCalendarState"], *context.settings.freeze_calendars)

    def writes(self, owner: Owner, context: CaseGrants) -> Iterator[iam.PolicyStatement]:
        """What taking its steps takes."""
        yield from write_statements(Stack.of(self), context.settings, kinds_of(owner))


def known_by_owners(context: CaseGrants) -> dict[str, Any]:
    """The fields of OwnerSettings."""
    settings = context.settings
    return {
        **context.known(),
        **context.managed(),
        "autonomy": settings.autonomy,
        "freeze_calendars": settings.freeze_calendars,
    }


def owner_reads(owner: Owner) -> frozenset[ReadAction]:
    """What the facts take of every symptom that it has steps of."""
    return read_actions(
        need
        for symptom in CATALOGUE
        if any(step.owner is owner for step in symptom.steps)
        for need in symptom.every_need
    )

"""The Lambda that looks after open cases, each minute."""

from __future__ import annotations

from collections.abc import Mapping

from aws_cdk import Duration, Stack
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from functions.healing.looks import FOLLOW_UP_LOOKS
from functions.healing.own_roles import FOLLOW_UP
from functions.healing.steps import Owner
from functions.settings import FollowUpSettings
from infra.case_desk import CaseDesk
from infra.lambda_function import Handler, ParkingLambda
from infra.queue_looks import look_statements

# By then four later minutes have looked after the same cases.
PATIENCE = Duration.minutes(5)
HANDLER = Handler(
    "follow_up",
    "Mendq: verifies, watches and closes open cases",
    timeout=Duration.seconds(60),
    memory_mb=512,
)


class FollowUp(ParkingLambda):
    """It writes no queue: it calls the owner of the write."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        code: lambda_.Code,
        desk: CaseDesk,
        owners: Mapping[Owner, lambda_.Function],
    ) -> None:
        super().__init__(
            scope, name, handler=HANDLER, code=code, purpose=FOLLOW_UP, patience=PATIENCE
        )
        desk.let_move_cases(self.role)
        desk.let_page(self.role)
        desk.let_list_open_cases(self.role)
        for statement in look_statements(Stack.of(self), FOLLOW_UP_LOOKS):
            self.role.add_to_policy(statement)
        self.may(["lambda:InvokeFunction"], *(each.function_arn for each in owners.values()))
        names = {owner: each.function_name for owner, each in owners.items()}
        self.knows(FollowUpSettings(**desk.known(), **desk.managed(), owners=names))

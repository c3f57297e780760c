"""The Lambda that takes a person's word about a case: approved, declined, closed."""

from __future__ import annotations

from aws_cdk import Duration
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from functions.settings import ApproveSettings
from infra.case_desk import CaseDesk
from infra.heal import TIMEOUT as HEAL_TIMEOUT
from infra.lambda_function import Handler, OwnLambda
from infra.roles import APPROVE

HANDLER = Handler(
    "approve",
    "Mendq: takes a person's word about a case",
    # It waits for heal, and writes down before and after.
    timeout=HEAL_TIMEOUT.plus(Duration.seconds(30)),
    memory_mb=512,
)


class Approve(OwnLambda):
    """Operators invoke it. It writes no queue: it calls heal with the case."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        code: lambda_.Code,
        desk: CaseDesk,
        heal: lambda_.Function,
    ) -> None:
        super().__init__(scope, name, handler=HANDLER, code=code, purpose=APPROVE)
        desk.let_move_cases(self.role)
        desk.let_read_a_case(self.role)
        self.may(["lambda:InvokeFunction"], heal.function_arn)
        self.knows(ApproveSettings(**desk.known(), heal_function=heal.function_name))

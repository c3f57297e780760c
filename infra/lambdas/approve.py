"""The Lambda that takes a person's decision on a case: approved, declined, closed."""

from __future__ import annotations

from collections.abc import Mapping

from aws_cdk import Duration
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.case_store import CaseGrants
from infra.lambdas.heal import TIMEOUT as HEAL_TIMEOUT
from infra.lambdas.lambda_function import Handler, OwnLambda
from mendq.model.names import APPROVE
from mendq.model.settings import ApproveSettings
from mendq.model.steps import Owner

HANDLER = Handler(
    "approve",
    "Mendq: takes a person's decision on a case",
    # It waits for the owner of the write, and writes down before and after.
    timeout=HEAL_TIMEOUT.plus(Duration.seconds(30)),
    memory_mb=512,
)


class Approve(OwnLambda):
    """Operators invoke it. It writes no queue: it calls the owner of the write."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        code: lambda_.Code,
        context: CaseGrants,
        owners: Mapping[Owner, lambda_.Function],
    ) -> None:
        super().__init__(scope, name, handler=HANDLER, code=code, purpose=APPROVE)
        context.let_move_cases(self.role)
        context.let_read_a_case(self.role)
        self.may(["lambda:InvokeFunction"], *(each.function_arn for each in owners.values()))
        names = {owner: each.function_name for owner, each in owners.items()}
        self.knows(ApproveSettings(**context.known(), owners=names))

"""The Lambda that looks after open cases, each minute."""

from __future__ import annotations

from collections.abc import Mapping

from aws_cdk import Duration, Stack
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.case_store import CaseGrants
from infra.lambdas.lambda_function import Handler, ParkingLambda
from infra.queue_grants import look_statements
from mendq.model.facts import FOLLOW_UP_READS
from mendq.model.names import FOLLOW_UP
from mendq.model.settings import FollowUpSettings
from mendq.model.steps import Owner

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
        context: CaseGrants,
        owners: Mapping[Owner, lambda_.Function],
    ) -> None:
        super().__init__(
            scope, name, handler=HANDLER, code=code, purpose=FOLLOW_UP, patience=PATIENCE
        )
        context.let_move_cases(self.role)
        context.let_page(self.role)
        context.let_list_open_cases(self.role)
        for statement in look_statements(Stack.of(self), FOLLOW_UP_READS):
            self.role.add_to_policy(statement)
        self.may(["lambda:InvokeFunction"], *(each.function_arn for each in owners.values()))
        names = {owner: each.function_name for owner, each in owners.items()}
        self.knows(FollowUpSettings(**context.known(), **context.managed(), owners=names))

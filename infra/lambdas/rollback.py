"""The Lambda that undoes what was written."""

from __future__ import annotations

from collections.abc import Mapping

from aws_cdk import Duration, Stack
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.case_store import CaseGrants
from infra.lambdas.heal import TIMEOUT
from infra.lambdas.lambda_function import Handler, OwnLambda
from infra.queue_grants import look_statements, taken_back, write_statements
from mendq.model.facts import ROLLBACK_READS
from mendq.model.names import ROLLBACK
from mendq.model.settings import RollbackSettings
from mendq.model.steps import Owner

HANDLER = Handler(
    "rollback",
    "Mendq: undoes what it changed, where nobody changed it since",
    # It waits for the owner of what goes on, and writes down before and after.
    timeout=TIMEOUT.plus(Duration.seconds(30)),
    memory_mb=512,
)


class Rollback(OwnLambda):
    """Operators invoke it. It may write the queues that others may write, and no other.

    `owners` are those whose work takes many minutes: it calls them to stop it.
    """

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        code: lambda_.Code,
        context: CaseGrants,
        owners: Mapping[Owner, lambda_.Function],
    ) -> None:
        super().__init__(scope, name, handler=HANDLER, code=code, purpose=ROLLBACK)
        stack = Stack.of(self)
        context.let_move_cases(self.role)
        context.let_page(self.role)
        context.let_read_a_case(self.role)
        for statement in (
            *look_statements(stack, ROLLBACK_READS),
            *write_statements(stack, context.settings, taken_back()),
        ):
            self.role.add_to_policy(statement)
        self.may(["lambda:InvokeFunction"], *(each.function_arn for each in owners.values()))
        names = {owner: each.function_name for owner, each in owners.items()}
        self.knows(RollbackSettings(**context.known(), owners=names))

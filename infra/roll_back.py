"""The Lambda that undoes what was written."""

from __future__ import annotations

from collections.abc import Mapping

from aws_cdk import Duration, Stack
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from functions.healing.looks import ROLL_BACK_LOOKS
from functions.healing.own_roles import ROLL_BACK
from functions.healing.steps import Owner
from functions.settings import RollBackSettings
from infra.case_desk import CaseDesk
from infra.heal import TIMEOUT
from infra.lambda_function import Handler, OwnLambda
from infra.queue_looks import look_statements
from infra.queue_writes import taken_back, write_statements

HANDLER = Handler(
    "roll_back",
    "Mendq: undoes what it changed, where nobody changed it since",
    # It waits for the owner of what goes on, and writes down before and after.
    timeout=TIMEOUT.plus(Duration.seconds(30)),
    memory_mb=512,
)


class RollBack(OwnLambda):
    """Operators invoke it. It may write the queues that others may write, and no other.

    `owners` are those whose work takes many minutes: it calls them to stop it.
    """

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        code: lambda_.Code,
        desk: CaseDesk,
        owners: Mapping[Owner, lambda_.Function],
    ) -> None:
        super().__init__(scope, name, handler=HANDLER, code=code, purpose=ROLL_BACK)
        stack = Stack.of(self)
        desk.let_move_cases(self.role)
        desk.let_page(self.role)
        desk.let_read_a_case(self.role)
        for statement in (
            *look_statements(stack, ROLL_BACK_LOOKS),
            *write_statements(stack, desk.settings, taken_back()),
        ):
            self.role.add_to_policy(statement)
        self.may(["lambda:InvokeFunction"], *(each.function_arn for each in owners.values()))
        names = {owner: each.function_name for owner, each in owners.items()}
        self.knows(RollBackSettings(**desk.known(), owners=names))

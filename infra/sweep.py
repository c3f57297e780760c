"""The Lambda that looks at every managed queue once an hour, in as many goes as that takes."""

from __future__ import annotations

from aws_cdk import Duration, Stack
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from functions.catalogue import CATALOGUE
from functions.healing.looks import LookAction, sweep_look_actions
from functions.healing.own_roles import SWEEP
from functions.settings import SweepSettings
from infra.case_desk import CaseDesk
from infra.lambda_function import Handler, ParkingLambda
from infra.queue_looks import look_statements
from infra.roles import allow

# The next go comes as soon, and does what this one would have done.
PATIENCE = Duration.minutes(10)
HANDLER = Handler(
    "sweep",
    "Mendq: looks for what is wrong with queues although no call fails",
    # As long as Lambda lets it: what it does not get to waits for the next go.
    timeout=Duration.minutes(15),
    memory_mb=1_024,
)


class Sweep(ParkingLambda):
    """It writes no queue and moves no case: it tells heal where to look."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        code: lambda_.Code,
        desk: CaseDesk,
        heal: lambda_.Function,
    ) -> None:
        super().__init__(scope, name, handler=HANDLER, code=code, purpose=SWEEP, patience=PATIENCE)
        desk.let_sweep(self.role)
        desk.let_list_open_cases(self.role)
        desk.let_read_a_case(self.role)
        for statement in look_statements(Stack.of(self), sweep_looks()):
            self.role.add_to_policy(statement)
        allow(self.role, ["lambda:InvokeFunction"], heal.function_arn)
        known = desk.known()
        shared = SweepSettings.__dataclass_fields__.keys() & known.keys()
        self.knows(
            SweepSettings(
                **{name: known[name] for name in shared},
                **desk.managed(),
                heal_function=heal.function_name,
            )
        )


def sweep_looks() -> frozenset[LookAction]:
    """What detecting takes."""
    found = (each.detection for each in CATALOGUE if each.detection)
    return sweep_look_actions(need for each in found for need in each.needs)

"""The Lambda that looks at every managed queue once an hour, in as many runs as that takes."""

from __future__ import annotations

from aws_cdk import Duration, Stack
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.case_store import CaseGrants
from infra.lambdas.lambda_function import Handler, ParkingLambda
from infra.queue_grants import look_statements
from infra.roles import allow
from mendq.catalogue import CATALOGUE
from mendq.model.facts import ReadAction, scan_read_actions
from mendq.model.names import SCAN
from mendq.model.settings import ScanSettings

# The next run comes as soon, and does what this one would have done.
PATIENCE = Duration.minutes(10)
HANDLER = Handler(
    "scan",
    "Mendq: scans managed queues for what makes no call fail",
    # As long as Lambda lets it: what it does not get to waits for the next run.
    timeout=Duration.minutes(15),
    memory_mb=1_024,
)


class Scan(ParkingLambda):
    """It writes no queue and moves no case: it invokes heal for what it finds."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        code: lambda_.Code,
        context: CaseGrants,
        heal: lambda_.Function,
    ) -> None:
        super().__init__(scope, name, handler=HANDLER, code=code, purpose=SCAN, patience=PATIENCE)
        context.let_scan(self.role)
        context.let_list_open_cases(self.role)
        context.let_read_a_case(self.role)
        for statement in look_statements(Stack.of(self), scan_reader()):
            self.role.add_to_policy(statement)
        allow(self.role, ["lambda:InvokeFunction"], heal.function_arn)
        known = context.known()
        shared = ScanSettings.__dataclass_fields__.keys() & known.keys()
        self.knows(
            ScanSettings(
                **{name: known[name] for name in shared},
                **context.managed(),
                heal_function=heal.function_name,
            )
        )


def scan_reader() -> frozenset[ReadAction]:
    """What detecting takes."""
    found = (each.detection for each in CATALOGUE if each.detection)
    return scan_read_actions(need for each in found for need in each.needs)

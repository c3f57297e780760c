"""One account and region: composes the capabilities, defines no resource itself."""

from __future__ import annotations

from typing import Any

from aws_cdk import CfnOutput, Stack
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from functions.settings import HealSettings
from infra.acknowledgements import acknowledge
from infra.case_bucket import CaseBucket
from infra.heal import VISIBILITY, Heal
from infra.heal_role import HealRole
from infra.intake import Intake
from infra.ledger import Ledger
from infra.roles import role_arns
from infra.settings import DeploymentSettings
from infra.trail import Trail


class MendqStack(Stack):
    """`code` is what all Lambdas of this stack are made of."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        settings: DeploymentSettings,
        code: lambda_.Code,
        **stack_properties: Any,
    ) -> None:
        super().__init__(scope, name, **stack_properties)
        trail = Trail(self, "Trail", settings.trail)
        cases = CaseBucket(self, "Cases").bucket
        ledger = Ledger(self, "Ledger").table
        intake = Intake(self, "Intake", VISIBILITY)

        role = HealRole(self, "HealRole", settings)
        role.never_writes_to(intake.queues)
        role.keeps(ledger, cases)
        heal = Heal(self, "Heal", code=code, role=role.role)
        heal.reads(intake.queue)
        heal.knows(
            HealSettings(
                account=self.account,
                ledger_table=ledger.table_name,
                case_bucket=cases.bucket_name,
                own_roles=role_arns(self),
                mode=settings.mode,
                tag_may_raise_to=settings.tag_may_raise_to,
                queues=settings.queues,
                autonomy=settings.autonomy,
                limits=settings.limits,
                timing=settings.timing,
                freeze_calendars=settings.freeze_calendars,
            )
        )

        self._output("TrailBucket", trail.bucket_name)
        self._output("CaseBucket", cases.bucket_name)
        self._output("LedgerTable", ledger.table_name)
        acknowledge(self, settings)

    def _output(self, name: str, value: str) -> None:
        CfnOutput(self, f"{name}Name", value=value).override_logical_id(name)

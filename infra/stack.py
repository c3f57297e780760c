"""One account and region: composes the capabilities, defines no resource itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aws_cdk import CfnOutput, Stack
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from functions.settings import HealSettings
from infra.acknowledgements import acknowledge
from infra.case_bucket import CaseBucket
from infra.deliver_report import DeliverReport
from infra.emr_package import EmrPackage
from infra.heal import VISIBILITY, Heal
from infra.heal_role import HealRole
from infra.info_topic import InfoTopic
from infra.intake import Intake
from infra.ledger import Ledger
from infra.night import Buckets, Night
from infra.report_bucket import ReportBucket
from infra.roles import role_arns
from infra.schedules import Schedules
from infra.settings import DeploymentSettings
from infra.start_night import StartNight
from infra.trail import Trail


@dataclass(frozen=True)
class Code:
    """Where the code of the Lambdas, of the report's Lambda and of the job is staged."""

    lambdas: Path
    report: Path
    job: EmrPackage


class MendqStack(Stack):
    """What Mendq is in one account and region."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        settings: DeploymentSettings,
        code: Code,
        **stack_properties: Any,
    ) -> None:
        super().__init__(scope, name, **stack_properties)
        self._settings = settings
        lambdas = lambda_.Code.from_asset(str(code.lambdas))
        trail = Trail(self, "Trail", settings.trail).bucket
        cases = CaseBucket(self, "Cases").bucket
        reports = ReportBucket(self, "Reports").bucket
        start_night = self._night(code, lambdas, Buckets(trail, cases, reports))
        deliver_report = DeliverReport(
            self,
            "DeliverReport",
            code=lambda_.Code.from_asset(str(code.report)),
            reports=reports,
            info=InfoTopic(self, "Info", settings.pages.info),
        )
        self._heal(lambdas, cases, (start_night.dead_letters, deliver_report.dead_letters))
        self._output("TrailBucket", trail.bucket_name)
        self._output("CaseBucket", cases.bucket_name)
        self._output("ReportBucket", reports.bucket_name)
        acknowledge(self, settings)

    def _night(self, code: Code, lambdas: lambda_.Code, buckets: Buckets) -> StartNight:
        night = Night(
            self,
            "Night",
            settings=self._settings.night,
            buckets=buckets,
            code=code.job,
        )
        if not self._settings.trail.create:
            night.may_decrypt_a_trail()
        start_night = StartNight(self, "StartNight", code=lambdas, night=night, buckets=buckets)
        schedules = Schedules(
            self,
            "Schedules",
            starts=start_night.function,
            dead_letters=start_night.dead_letters,
        )
        schedules.nightly(self._settings.night)
        schedules.weekly(self._settings.report)
        self._output("NightApplication", night.application.attr_application_id)
        return start_night

    def _heal(
        self, code: lambda_.Code, cases: s3.IBucket, more_of_ours: Sequence[sqs.Queue]
    ) -> None:
        settings = self._settings
        ledger = Ledger(self, "Ledger").table
        intake = Intake(self, "Intake", VISIBILITY)
        role = HealRole(self, "HealRole", settings)
        role.never_writes_to((*intake.queues, *more_of_ours))
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
        self._output("LedgerTable", ledger.table_name)

    def _output(self, name: str, value: str) -> None:
        CfnOutput(self, f"{name}Name", value=value).override_logical_id(name)

"""Mendq in one account and region: makes each construct and says what it gets."""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk
from aws_cdk import CfnOutput, Stack
from aws_cdk import aws_lambda as lambda_
from constructs import Construct
from msgspec import Struct

from infra.alarms import Alarms
from infra.alarms.health import WatchedResources
from infra.dashboard import dashboard
from infra.intake import Intake
from infra.lambdas.grants import Work
from infra.lambdas.lambda_function import OwnLambda
from infra.lambdas.rows import every_lambda
from infra.nightly import Nightly
from infra.own_queues import never_managed
from infra.packaging.emr import EmrPackage
from infra.pagerduty import PagerDuty
from infra.queue_grants import keep_off
from infra.schedules import schedule
from infra.settings.deployment import DeploymentSettings
from infra.storage import Buckets, case_bucket, case_table, central_bucket, report_bucket
from infra.topics import Topics
from infra.trail import Trail
from mendq.model.limits import Consent
from mendq.model.steps import Owner

DESCRIPTION = "Mendq fixes SQS queues"


class Code(Struct, frozen=True):
    """Where the code of the Lambdas, of the report's Lambda and of the nightly job is staged."""

    lambdas: Path
    report: Path
    job: EmrPackage


class Placement(Struct, frozen=True):
    """How the stack is called, where it goes, and where its zips lie.

    What is None, CDK chooses: a name after the construct, any account and region, its bootstrap.
    """

    stack_name: str | None = None
    environment: cdk.Environment | None = None
    synthesizer: cdk.IStackSynthesizer | None = None


class MendqStack(Stack):
    """All of Mendq in one account and region."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        settings: DeploymentSettings,
        code: Code,
        placement: Placement,
    ) -> None:
        super().__init__(
            scope,
            name,
            stack_name=placement.stack_name,
            env=placement.environment,
            synthesizer=placement.synthesizer,
            description=DESCRIPTION,
            analytics_reporting=False,
        )
        trail = Trail(self, "Trail", settings.trail)
        cases = Construct(self, "Cases")
        reports = Construct(self, "Reports")
        organization = Construct(self, "Organization")
        central = central_bucket(organization, settings)
        buckets = Buckets(
            trail=trail.bucket,
            cases=case_bucket(cases, settings),
            reports=report_bucket(reports),
            organization=central,
        )
        topics = Topics(self, "Topics", settings.notifications)
        nightly = None
        if settings.nightly.enabled:
            nightly = Nightly(self, "Nightly", settings=settings, buckets=buckets, code=code.job)
        case_store = case_table(Construct(self, "CaseStore"))
        intake = Intake(self, "Intake")
        work = Work(
            stack=self,
            settings=settings,
            consent=self.consent(settings, topics),
            case_store=case_store,
            buckets=buckets,
            topics=topics,
            nightly=nightly,
        )
        lambdas = every_lambda(
            work,
            code=lambda_.Code.from_asset(str(code.lambdas)),
            report_code=lambda_.Code.from_asset(str(code.report)),
        )
        intake.feeds(lambdas["heal"].function)
        schedule(self, lambdas, settings)
        pagerduty = None
        if settings.notifications.pagerduty:
            pagerduty = PagerDuty(self, "PagerDuty", settings.notifications.pagerduty)
        never_managed(self)
        watched = WatchedResources(intake=intake, lambdas=lambdas, paging=pagerduty)
        alarms = Alarms(self, "Alarms", watched=watched, topics=topics, settings=settings)
        if settings.dashboard:
            dashboard(self, alarms, watched, settings)
        for writer in ("heal", "rollback", *Owner):
            keep_off(lambdas[writer].role, moves_messages=writer == Owner.REDRIVE)
        self._add_outputs(work, intake, lambdas)

    def consent(self, settings: DeploymentSettings, topics: Topics) -> Consent:
        """Which queues Mendq manages, and how far it may go there.

        The template of a stack set overrides this with its parameters.
        """
        return Consent(
            mode=settings.mode,
            tag_may_raise_to=settings.tag_may_raise_to,
            queues=settings.queues,
            teams=tuple(settings.notifications.teams),
        )

    def _add_outputs(self, work: Work, intake: Intake, lambdas: dict[str, OwnLambda]) -> None:
        """Add what operators and their tools look up by name."""
        outputs = {
            "TrailBucket": work.buckets.trail.bucket_name,
            "CaseBucket": work.buckets.cases.bucket_name,
            "ReportBucket": work.buckets.reports.bucket_name,
            "CaseTable": work.case_store.table_name,
            "UrgentTopic": work.topics.urgent.arn,
            "InfoTopic": work.topics.info.arn,
            "IntakeQueue": intake.queue.queue_url,
        }
        for own_lambda in lambdas.values():
            outputs[f"{own_lambda.node.id}Function"] = own_lambda.function.function_name
        if work.nightly:
            outputs["TrailRoot"] = work.nightly.roots.trail
            outputs["NightlyApplication"] = work.nightly.application.attr_application_id
        for output, value in outputs.items():
            CfnOutput(self, f"{output}Name", value=value).override_logical_id(output)

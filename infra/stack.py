"""The stack: Mendq in one account and region. It makes all constructs and connects them."""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk
from aws_cdk import CfnOutput, Stack
from aws_cdk import aws_lambda as lambda_
from constructs import Construct
from msgspec import Struct

from infra.alarms import Alarms
from infra.alarms.health import WatchedResources
from infra.dashboard import add_dashboard
from infra.intake import Intake
from infra.lambdas.grants import StackResources
from infra.lambdas.lambda_function import OwnLambda
from infra.lambdas.rows import make_lambdas
from infra.nightly import NightlyJob
from infra.own_queues import tag_own_queues
from infra.packaging.emr import EmrPackage
from infra.pagerduty import PagerDuty
from infra.queue_grants import deny_own_queues
from infra.schedules import add_schedules
from infra.settings.deployment import DeploymentSettings
from infra.storage import (
    Buckets,
    find_or_make_organization_bucket,
    make_case_bucket,
    make_case_table,
    make_report_bucket,
    make_seal_table,
)
from infra.topics import Topics
from infra.trail import TrailWithBucket
from mendq.model.consent import Consent
from mendq.model.steps import Owner

STACK_DESCRIPTION = "Mendq fixes SQS queues"


class StackCode(Struct, frozen=True):
    """Local folders and files with the code that the stack deploys.

    Attributes:
        lambdas: folder of the Lambdas' code.
        report: folder of the code of the Lambda that delivers the report.
        job: code of the nightly job.
    """

    lambdas: Path
    report: Path
    job: EmrPackage


class StackPlacement(Struct, frozen=True):
    """Name, account and region of the stack, and the place of its code.

    Attributes:
        stack_name: the stack's name; None: the id of its construct.
        environment: the stack's account and region; None: those of the credentials at deployment.
        synthesizer: decides how the template refers to the code; None: as files in the buckets of
            CDK's bootstrap.
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
        code: StackCode,
        placement: StackPlacement,
    ) -> None:
        super().__init__(
            scope,
            name,
            stack_name=placement.stack_name,
            env=placement.environment,
            synthesizer=placement.synthesizer,
            description=STACK_DESCRIPTION,
            analytics_reporting=False,
        )
        trail = TrailWithBucket(self, "Trail", settings.trail)
        case_construct = Construct(self, "Cases")
        report_construct = Construct(self, "Reports")
        organization_construct = Construct(self, "Organization")
        buckets = Buckets(
            trail=trail.bucket,
            cases=make_case_bucket(case_construct, settings),
            reports=make_report_bucket(report_construct),
            organization=find_or_make_organization_bucket(organization_construct, settings),
        )
        topics = Topics(self, "Topics", settings.notifications)
        nightly = None
        if settings.nightly.enabled:
            nightly = NightlyJob(self, "Nightly", settings=settings, buckets=buckets, code=code.job)
        case_store = make_case_table(Construct(self, "CaseStore"))
        intake = Intake(self, "Intake")
        resources = StackResources(
            stack=self,
            settings=settings,
            consent=self.make_consent(settings, topics),
            case_store=case_store,
            seal_table=make_seal_table(Construct(self, "Seals")),
            buckets=buckets,
            topics=topics,
            nightly=nightly,
        )
        lambda_by_handler = make_lambdas(
            resources,
            code=lambda_.Code.from_asset(str(code.lambdas)),
            report_code=lambda_.Code.from_asset(str(code.report)),
        )
        intake.connect_to_heal(lambda_by_handler["heal"].function)
        add_schedules(self, lambda_by_handler, settings)
        pagerduty = None
        if settings.notifications.pagerduty:
            pagerduty = PagerDuty(self, "PagerDuty", settings.notifications.pagerduty)
        tag_own_queues(self)
        watched_resources = WatchedResources(
            intake=intake, lambda_by_handler=lambda_by_handler, pagerduty=pagerduty
        )
        alarms = Alarms(
            self, "Alarms", watched_resources=watched_resources, topics=topics, settings=settings
        )
        if settings.dashboard:
            add_dashboard(self, alarms, watched_resources, settings)
        for queue_writer_name in ("heal", "rollback", *Owner):
            deny_own_queues(
                lambda_by_handler[queue_writer_name].role,
                is_redrive=queue_writer_name == Owner.REDRIVE,
            )
        self._add_outputs(resources, intake, lambda_by_handler)

    def make_consent(self, settings: DeploymentSettings, topics: Topics) -> Consent:
        """Return which queues Mendq manages, and how far it may go there.

        The template of a stack set overrides this method: there the modes are parameters.
        """
        return Consent(
            mode=settings.mode,
            tag_may_raise_to=settings.tag_may_raise_to,
            queues=settings.queues,
            teams=tuple(settings.notifications.teams),
        )

    def _add_outputs(
        self, resources: StackResources, intake: Intake, lambda_by_handler: dict[str, OwnLambda]
    ) -> None:
        """Add the outputs: names, ARNs and URLs that operators and tools look up."""
        value_by_output = {
            "TrailBucket": resources.buckets.trail.bucket_name,
            "CaseBucket": resources.buckets.cases.bucket_name,
            "ReportBucket": resources.buckets.reports.bucket_name,
            "CaseTable": resources.case_store.table_name,
            "SealTable": resources.seal_table.table_name,
            "UrgentTopic": resources.topics.urgent.arn,
            "InfoTopic": resources.topics.info.arn,
            "IntakeQueue": intake.queue.queue_url,
        }
        for own_lambda in lambda_by_handler.values():
            value_by_output[f"{own_lambda.node.id}Function"] = own_lambda.function.function_name
        if resources.nightly:
            value_by_output["TrailRoot"] = resources.nightly.roots.trail
            value_by_output["NightlyApplication"] = (
                resources.nightly.application.attr_application_id
            )
        for output_name, value in value_by_output.items():
            CfnOutput(self, f"{output_name}Name", value=value).override_logical_id(output_name)

"""One account and region: composes the capabilities, defines no resource itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aws_cdk import CfnOutput, Stack
from aws_cdk import aws_lambda as lambda_
from constructs import Construct
from msgspec import Struct

from infra.alarms import Alarms
from infra.alarms.health import Watched
from infra.dashboard import dashboard
from infra.intake import Intake
from infra.lambdas.grants import Work
from infra.lambdas.rows import every_lambda
from infra.nightly import Nightly
from infra.own_queues import never_managed
from infra.packaging.emr import EmrPackage
from infra.pagerduty import PagerDuty
from infra.queue_grants import keep_off
from infra.schedules import schedule
from infra.settings.deployment import DeploymentSettings
from infra.settings.hook import FAIL
from infra.storage import Buckets, case_bucket, case_table, central_bucket, report_bucket
from infra.topics import Topics
from infra.trail import Trail
from mendq.model.limits import Bounds, Consent
from mendq.model.steps import Owner


class Code(Struct, frozen=True):
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
        work = self._work(settings, code.job)
        intake = Intake(self, "Intake")
        staged = (lambda_.Code.from_asset(str(each)) for each in (code.lambdas, code.report))
        lambdas = every_lambda(work, self._known(work), *staged)
        intake.feeds(lambdas["heal"].function)
        schedule(self, lambdas, settings)
        pagerduty = settings.notifications.pagerduty
        paging = PagerDuty(self, "PagerDuty", pagerduty) if pagerduty else None
        never_managed(self)
        watched = Watched(intake, lambdas, paging)
        alarms = Alarms(self, "Alarms", watched, work.topics, settings)
        if settings.dashboard:
            dashboard(self, alarms, watched, settings)
        for each in ("heal", "rollback", *Owner):
            keep_off(lambdas[each].role, moves_messages=each == Owner.REDRIVE)
        outputs = {
            "TrailBucket": work.buckets.trail.bucket_name,
            "CaseBucket": work.buckets.cases.bucket_name,
            "ReportBucket": work.buckets.reports.bucket_name,
            "CaseTable": work.case_store.table_name,
            "UrgentTopic": work.topics.urgent.arn,
            "InfoTopic": work.topics.info.arn,
            "IntakeQueue": intake.queue.queue_url,
            **{f"{each.node.id}Function": each.function.function_name for each in lambdas.values()},
        }
        if work.nightly:
            outputs["TrailRoot"] = work.nightly.trail_root
            outputs["NightlyApplication"] = work.nightly.application.attr_application_id
        for output, value in outputs.items():  # what outsiders find by name
            CfnOutput(self, f"{output}Name", value=value).override_logical_id(output)

    def _work(self, settings: DeploymentSettings, job: EmrPackage) -> Work:
        """What is there before the Lambdas are."""
        trail = Trail(self, "Trail", settings.trail).bucket
        cases, reports = Construct(self, "Cases"), Construct(self, "Reports")
        central = central_bucket(Construct(self, "Organization"), settings)
        buckets = Buckets(trail, case_bucket(cases, settings), report_bucket(reports), central)
        topics = Topics(self, "Topics", settings.notifications)
        enabled = settings.nightly.enabled
        nightly = Nightly(self, "Nightly", settings, buckets, job) if enabled else None
        case_store = case_table(Construct(self, "CaseStore"))
        return Work(self, settings, case_store, buckets, topics, nightly)

    def _known(self, work: Work) -> dict[str, Any]:
        """The values of the Lambdas' settings, by their names."""
        settings = work.settings
        return {
            **vars(settings),
            **vars(settings.report),
            **(work.nightly.known() if work.nightly else {}),
            "account": self.account,
            "case_table": work.case_store.table_name,
            "case_bucket": work.buckets.cases.bucket_name,
            "report_bucket": work.buckets.reports.bucket_name,
            "urgent_topic_arn": work.topics.urgent.arn,
            "info_topic_arn": work.topics.info.arn,
            "topic_arn": work.topics.info.arn,
            "team_topic_arns": settings.notifications.teams,
            "chat": settings.notifications.chat.severities,
            "is_member": settings.organization is not None and not settings.is_hub,
            "consent": Consent(
                settings.mode,
                settings.tag_may_raise_to,
                settings.queues,
                tuple(settings.notifications.teams),
            ),
            "hook_fails": settings.template_hook.mode == FAIL,
            "hook_ignores": settings.template_hook.ignore,
            "bounds": Bounds(soak_factor=settings.timing.soak_factor),
        }

"""One account and region: composes the capabilities, defines no resource itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aws_cdk import CfnOutput, Stack
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.acknowledgements import acknowledge
from infra.alarms import Alarms
from infra.alarms.watched import Watched
from infra.buckets import CaseBucket, ReportBucket
from infra.case_store import CaseGrants, CaseStore
from infra.dashboard import Dashboard
from infra.intake import Intake
from infra.lambdas.approve import Approve
from infra.lambdas.attach_dlq import AttachDlq
from infra.lambdas.deliver_report import DeliverReport
from infra.lambdas.follow_up import FollowUp
from infra.lambdas.heal import VISIBILITY, Heal, HealRole
from infra.lambdas.owner_lambda import OwnerLambda, known_by_owners
from infra.lambdas.probe import Probe
from infra.lambdas.redrive import Redrive
from infra.lambdas.restore_policy import RestorePolicy
from infra.lambdas.rollback import Rollback
from infra.lambdas.scan import Scan
from infra.lambdas.start_nightly import StartNightly
from infra.lambdas.watch_nightly import WatchNightly
from infra.nightly import Buckets, Nightly
from infra.own_queues import dead_letter_queues, every_queue, never_managed
from infra.packaging.emr import EmrPackage
from infra.queue_grants import keep_off
from infra.roles import role_arn, role_names
from infra.schedules import Schedules
from infra.settings.deployment import DeploymentSettings
from infra.topics import Topics
from infra.trail import Trail
from mendq.model.names import PROBE
from mendq.model.settings import HealSettings
from mendq.model.steps import Owner


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
        self._lambdas = lambda_.Code.from_asset(str(code.lambdas))
        self._schedules = Schedules(self, "Schedules")
        trail = Trail(self, "Trail", settings.trail).bucket
        cases = CaseBucket(self, "Cases").bucket
        reports = ReportBucket(self, "Reports").bucket
        topics = Topics(self, "Topics", settings.pages)
        self._nightly(code, Buckets(trail, cases, reports))
        DeliverReport(
            self,
            "DeliverReport",
            code=lambda_.Code.from_asset(str(code.report)),
            reports=reports,
            info=topics.info,
            mail=settings.report,
        )
        case_store = CaseStore(self, "CaseStore").table
        context = CaseGrants(case_store, cases, topics, settings)
        intake = Intake(self, "Intake", VISIBILITY)
        heal = self._heal(context, intake)
        owners = self._other_owners(context)
        follow_up, rollback = self._after_heal(context, heal, owners)
        scan = self._scan(context, heal)
        self._probe(context)
        never_managed(self)
        self._watch(
            topics,
            Watched(
                intake,
                heal.function,
                follow_up.function,
                scan.function,
                dead_letter_queues(self),
                {owner.replace("_", "-"): each.function for owner, each in owners.items()},
            ),
        )
        own_queues = [each.queue_arn for each in every_queue(self)]
        writers = {each.role: owner for owner, each in owners.items()}
        for role, owner in {heal.role: Owner.HEAL, rollback.role: None, **writers}.items():
            keep_off(role, own_queues, owner)
        for output, value in (
            ("TrailBucket", trail.bucket_name),
            ("CaseBucket", cases.bucket_name),
            ("ReportBucket", reports.bucket_name),
            ("CaseTable", case_store.table_name),
            ("UrgentTopic", topics.urgent.arn),
            ("InfoTopic", topics.info.arn),
        ):
            self._output(output, value)
        acknowledge(self, settings)

    def _nightly(self, code: Code, buckets: Buckets) -> None:
        nightly = Nightly(
            self,
            "Nightly",
            settings=self._settings.nightly,
            buckets=buckets,
            code=code.job,
        )
        if not self._settings.trail.create:
            nightly.may_decrypt_a_trail()
        start_nightly = StartNightly(
            self, "StartNightly", code=self._lambdas, nightly=nightly, buckets=buckets
        )
        self._schedules.nightly(start_nightly, self._settings.nightly)
        self._schedules.weekly(start_nightly, self._settings.report)
        WatchNightly(
            self, "WatchNightly", code=self._lambdas, nightly=nightly, reports=buckets.reports
        )
        self._output("NightlyApplication", nightly.application.attr_application_id)

    def _heal(self, context: CaseGrants, intake: Intake) -> Heal:
        settings = self._settings
        role = HealRole(self, "HealRole", settings)
        role.works_at(context)
        heal = Heal(self, "Heal", code=self._lambdas, role=role.role)
        heal.reads(intake.queue)
        heal.knows(
            HealSettings(
                **known_by_owners(context),
                own_roles=role_names(self),
                probe_role=role_arn(self, PROBE),
            )
        )
        self._output("IntakeQueue", intake.queue.queue_url)
        self._output("HealFunction", heal.function.function_name)
        return heal

    def _other_owners(self, context: CaseGrants) -> dict[Owner, OwnerLambda]:
        """What writes beside heal."""
        attach = AttachDlq(self, "AttachDlq", code=self._lambdas, context=context)
        self._output("AttachDlqFunction", attach.function.function_name)
        restore = RestorePolicy(self, "RestorePolicy", code=self._lambdas, context=context)
        self._output("RestorePolicyFunction", restore.function.function_name)
        redrive = Redrive(self, "Redrive", code=self._lambdas, context=context)
        self._output("RedriveFunction", redrive.function.function_name)
        return {
            Owner.ATTACH_DLQ: attach,
            Owner.RESTORE_POLICY: restore,
            Owner.REDRIVE: redrive,
        }

    def _after_heal(
        self, context: CaseGrants, heal: Heal, owners: Mapping[Owner, OwnerLambda]
    ) -> tuple[FollowUp, Rollback]:
        """What moves the cases that heal opens, by the clock and by people's word."""
        code = self._lambdas
        functions = {owner: each.function for owner, each in owners.items()}
        functions[Owner.HEAL] = heal.function
        follow_up = FollowUp(self, "FollowUp", code=code, context=context, owners=functions)
        self._schedules.each_minute(follow_up)
        approve = Approve(self, "Approve", code=code, context=context, owners=functions)
        going_on = {Owner.REDRIVE: functions[Owner.REDRIVE]}
        rollback = Rollback(self, "Rollback", code=code, context=context, owners=going_on)
        for name, each in (
            ("FollowUpFunction", follow_up),
            ("ApproveFunction", approve),
            ("RollbackFunction", rollback),
        ):
            self._output(name, each.function.function_name)
        return follow_up, rollback

    def _scan(self, context: CaseGrants, heal: Heal) -> Scan:
        scan = Scan(self, "Scan", code=self._lambdas, context=context, heal=heal.function)
        self._schedules.every_ten_minutes(scan)
        self._output("ScanFunction", scan.function.function_name)
        return scan

    def _probe(self, context: CaseGrants) -> None:
        probe = Probe(
            self,
            "Probe",
            code=self._lambdas,
            case_store=context.case_store,
            urgent=context.topics.urgent,
        )
        self._schedules.probe(probe, self._settings.timing.probe_minutes)
        self._output("ProbeFunction", probe.function.function_name)

    def _watch(self, topics: Topics, watched: Watched) -> None:
        alarms = Alarms(self, "Alarms", watched=watched, topics=topics, settings=self._settings)
        if self._settings.dashboard:
            Dashboard(self, "Dashboard", alarms=alarms, watched=watched, settings=self._settings)

    def _output(self, name: str, value: str) -> None:
        CfnOutput(self, f"{name}Name", value=value).override_logical_id(name)

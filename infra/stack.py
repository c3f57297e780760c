"""One account and region: composes the capabilities, defines no resource itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aws_cdk import CfnOutput, Stack
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from functions.healing.own_roles import PULSE
from functions.healing.steps import Owner
from functions.settings import HealSettings
from infra.acknowledgements import acknowledge
from infra.alarms import Alarms, Watched
from infra.approve import Approve
from infra.attach_dead_letters import AttachDeadLetters
from infra.case_bucket import CaseBucket
from infra.case_desk import CaseDesk
from infra.dashboard import Dashboard
from infra.deliver_report import DeliverReport
from infra.emr_package import EmrPackage
from infra.follow_up import FollowUp
from infra.heal import VISIBILITY, Heal
from infra.heal_role import HealRole
from infra.intake import Intake
from infra.ledger import Ledger
from infra.night import Buckets, Night
from infra.own_queues import dead_letter_queues, every_queue, never_managed
from infra.owner_lambda import OwnerLambda, known_by_owners
from infra.pulse import Pulse
from infra.redrive import Redrive
from infra.redrive_writes import keep_off
from infra.report_bucket import ReportBucket
from infra.restore_policy import RestorePolicy
from infra.roles import role_arn, role_names
from infra.roll_back import RollBack
from infra.schedules import Schedules
from infra.settings import DeploymentSettings
from infra.start_night import StartNight
from infra.sweep import Sweep
from infra.topics import Topics
from infra.trail import Trail
from infra.watch_night import WatchNight


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
        self._night(code, Buckets(trail, cases, reports))
        DeliverReport(
            self,
            "DeliverReport",
            code=lambda_.Code.from_asset(str(code.report)),
            reports=reports,
            info=topics.info,
            mail=settings.report,
        )
        ledger = Ledger(self, "Ledger").table
        desk = CaseDesk(ledger, cases, topics, settings)
        intake = Intake(self, "Intake", VISIBILITY)
        heal = self._heal(desk, intake)
        owners = self._other_owners(desk)
        follow_up, roll_back = self._after_heal(desk, heal, owners)
        sweep = self._sweep(desk, heal)
        self._pulse(desk)
        never_managed(self)
        self._watch(
            topics,
            Watched(
                intake,
                heal.function,
                follow_up.function,
                sweep.function,
                dead_letter_queues(self),
                {owner.replace("_", "-"): each.function for owner, each in owners.items()},
            ),
        )
        own_queues = [each.queue_arn for each in every_queue(self)]
        writers = {each.role: owner for owner, each in owners.items()}
        for role, owner in {heal.role: Owner.HEAL, roll_back.role: None, **writers}.items():
            keep_off(role, own_queues, owner)
        for output, value in (
            ("TrailBucket", trail.bucket_name),
            ("CaseBucket", cases.bucket_name),
            ("ReportBucket", reports.bucket_name),
            ("LedgerTable", ledger.table_name),
            ("UrgentTopic", topics.urgent.arn),
            ("InfoTopic", topics.info.arn),
        ):
            self._output(output, value)
        acknowledge(self, settings)

    def _night(self, code: Code, buckets: Buckets) -> None:
        night = Night(
            self,
            "Night",
            settings=self._settings.night,
            buckets=buckets,
            code=code.job,
        )
        if not self._settings.trail.create:
            night.may_decrypt_a_trail()
        start_night = StartNight(
            self, "StartNight", code=self._lambdas, night=night, buckets=buckets
        )
        self._schedules.nightly(start_night, self._settings.night)
        self._schedules.weekly(start_night, self._settings.report)
        WatchNight(self, "WatchNight", code=self._lambdas, night=night, reports=buckets.reports)
        self._output("NightApplication", night.application.attr_application_id)

    def _heal(self, desk: CaseDesk, intake: Intake) -> Heal:
        settings = self._settings
        role = HealRole(self, "HealRole", settings)
        role.works_at(desk)
        heal = Heal(self, "Heal", code=self._lambdas, role=role.role)
        heal.reads(intake.queue)
        heal.knows(
            HealSettings(
                **known_by_owners(desk),
                own_roles=role_names(self),
                pulse_role=role_arn(self, PULSE),
            )
        )
        self._output("IntakeQueue", intake.queue.queue_url)
        self._output("HealFunction", heal.function.function_name)
        return heal

    def _other_owners(self, desk: CaseDesk) -> dict[Owner, OwnerLambda]:
        """What writes beside heal."""
        attach = AttachDeadLetters(self, "AttachDeadLetters", code=self._lambdas, desk=desk)
        self._output("AttachDeadLettersFunction", attach.function.function_name)
        restore = RestorePolicy(self, "RestorePolicy", code=self._lambdas, desk=desk)
        self._output("RestorePolicyFunction", restore.function.function_name)
        redrive = Redrive(self, "Redrive", code=self._lambdas, desk=desk)
        self._output("RedriveFunction", redrive.function.function_name)
        return {
            Owner.ATTACH_DEAD_LETTERS: attach,
            Owner.RESTORE_POLICY: restore,
            Owner.REDRIVE: redrive,
        }

    def _after_heal(
        self, desk: CaseDesk, heal: Heal, owners: Mapping[Owner, OwnerLambda]
    ) -> tuple[FollowUp, RollBack]:
        """What moves the cases that heal opens, by the clock and by people's word."""
        code = self._lambdas
        functions = {owner: each.function for owner, each in owners.items()}
        functions[Owner.HEAL] = heal.function
        follow_up = FollowUp(self, "FollowUp", code=code, desk=desk, owners=functions)
        self._schedules.each_minute(follow_up)
        approve = Approve(self, "Approve", code=code, desk=desk, owners=functions)
        going_on = {Owner.REDRIVE: functions[Owner.REDRIVE]}
        roll_back = RollBack(self, "RollBack", code=code, desk=desk, owners=going_on)
        for name, each in (
            ("FollowUpFunction", follow_up),
            ("ApproveFunction", approve),
            ("RollBackFunction", roll_back),
        ):
            self._output(name, each.function.function_name)
        return follow_up, roll_back

    def _sweep(self, desk: CaseDesk, heal: Heal) -> Sweep:
        sweep = Sweep(self, "Sweep", code=self._lambdas, desk=desk, heal=heal.function)
        self._schedules.every_ten_minutes(sweep)
        self._output("SweepFunction", sweep.function.function_name)
        return sweep

    def _pulse(self, desk: CaseDesk) -> None:
        pulse = Pulse(
            self, "Pulse", code=self._lambdas, ledger=desk.ledger, urgent=desk.topics.urgent
        )
        self._schedules.pulse(pulse, self._settings.timing.pulse_minutes)
        self._output("PulseFunction", pulse.function.function_name)

    def _watch(self, topics: Topics, watched: Watched) -> None:
        alarms = Alarms(self, "Alarms", watched=watched, topics=topics, settings=self._settings)
        if self._settings.dashboard:
            Dashboard(self, "Dashboard", alarms=alarms, watched=watched, settings=self._settings)

    def _output(self, name: str, value: str) -> None:
        CfnOutput(self, f"{name}Name", value=value).override_logical_id(name)

"""The settings that the stack gives to each Lambda, one function for each settings class.

A Lambda reads its settings from its environment. Every argument is named here, so that mypy finds
one that is missing or of another type before anything is deployed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from infra.lambdas.grants import Work
from infra.settings.hook import FAIL
from mendq.model.limits import Bounds
from mendq.model.settings import (
    DeliverReportSettings,
    FollowUpSettings,
    OperatorSettings,
    OwnerSettings,
    ProbeSettings,
    RedriveSettings,
    ScanSettings,
    StartNightlySettings,
    TemplateHookSettings,
    WatchNightlySettings,
)
from mendq.model.steps import Owner


@dataclass(frozen=True)
class Peers:
    """What one Lambda must know about others. It is known once all Lambdas are made.

    Attributes:
        owners: names of the Lambdas that this one invokes, by the writes that they own.
        heal_function: name of the heal Lambda.
        probe_queue_url: URL of the queue that the probe sends to.
    """

    owners: Mapping[Owner, str]
    heal_function: str
    probe_queue_url: str


def owner_settings(work: Work, _: Peers) -> OwnerSettings:
    """Settings of heal, attach_dlq and restore_policy."""
    settings = work.settings
    return OwnerSettings(
        account=work.stack.account,
        case_table=work.case_store.table_name,
        case_bucket=work.buckets.cases.bucket_name,
        limits=settings.limits,
        timing=settings.timing,
        urgent_topic_arn=work.topics.urgent.arn,
        info_topic_arn=work.topics.info.arn,
        team_topic_arns=settings.notifications.teams,
        chat=settings.notifications.chat.severities,
        docs_url=settings.docs_url,
        consent=work.consent,
        autonomy=settings.autonomy,
        freeze_calendars=settings.freeze_calendars,
    )


def redrive_settings(work: Work, _: Peers) -> RedriveSettings:
    """Settings of redrive."""
    settings = work.settings
    return RedriveSettings(
        account=work.stack.account,
        case_table=work.case_store.table_name,
        case_bucket=work.buckets.cases.bucket_name,
        limits=settings.limits,
        timing=settings.timing,
        urgent_topic_arn=work.topics.urgent.arn,
        info_topic_arn=work.topics.info.arn,
        team_topic_arns=settings.notifications.teams,
        chat=settings.notifications.chat.severities,
        docs_url=settings.docs_url,
        consent=work.consent,
        autonomy=settings.autonomy,
        freeze_calendars=settings.freeze_calendars,
        bounds=Bounds(soak_factor=settings.timing.soak_factor),
    )


def follow_up_settings(work: Work, peers: Peers) -> FollowUpSettings:
    """Settings of follow_up. `most_days_ahead` stays unset: only the local account sets it."""
    settings = work.settings
    return FollowUpSettings(
        account=work.stack.account,
        case_table=work.case_store.table_name,
        case_bucket=work.buckets.cases.bucket_name,
        limits=settings.limits,
        timing=settings.timing,
        urgent_topic_arn=work.topics.urgent.arn,
        info_topic_arn=work.topics.info.arn,
        team_topic_arns=settings.notifications.teams,
        chat=settings.notifications.chat.severities,
        docs_url=settings.docs_url,
        consent=work.consent,
        owners=peers.owners,
        alarms=settings.alarms,
    )


def operator_settings(work: Work, peers: Peers) -> OperatorSettings:
    """Settings of approve and rollback."""
    settings = work.settings
    return OperatorSettings(
        account=work.stack.account,
        case_table=work.case_store.table_name,
        case_bucket=work.buckets.cases.bucket_name,
        limits=settings.limits,
        timing=settings.timing,
        urgent_topic_arn=work.topics.urgent.arn,
        info_topic_arn=work.topics.info.arn,
        team_topic_arns=settings.notifications.teams,
        chat=settings.notifications.chat.severities,
        docs_url=settings.docs_url,
        owners=peers.owners,
    )


def scan_settings(work: Work, peers: Peers) -> ScanSettings:
    """Settings of scan."""
    return ScanSettings(
        account=work.stack.account,
        case_table=work.case_store.table_name,
        case_bucket=work.buckets.cases.bucket_name,
        limits=work.settings.limits,
        timing=work.settings.timing,
        consent=work.consent,
        heal_function=peers.heal_function,
    )


def probe_settings(work: Work, peers: Peers) -> ProbeSettings:
    """Settings of probe."""
    return ProbeSettings(
        account=work.stack.account,
        case_table=work.case_store.table_name,
        urgent_topic_arn=work.topics.urgent.arn,
        probe_queue_url=peers.probe_queue_url,
        chat=work.settings.notifications.chat.severities,
        docs_url=work.settings.docs_url,
    )


def start_nightly_settings(work: Work, _: Peers) -> StartNightlySettings:
    """Settings of start_nightly."""
    job = work.job
    return StartNightlySettings(
        account=work.stack.account,
        application_id=job.application.attr_application_id,
        job_role_arn=job.role.role_arn,
        entry_point=job.code.entry_point,
        package=job.code.package,
        compiled_packages=job.code.compiled_packages,
        trail_root=job.roots.trail,
        case_root=job.roots.cases,
        out_root=job.roots.out,
        log_root=job.roots.logs,
        maximum_executors=job.maximum_executors,
        organization_root=job.organization_root,
        organization_accounts=job.organization_accounts,
        scope=work.settings.nightly.scope,
    )


def watch_nightly_settings(work: Work, _: Peers) -> WatchNightlySettings:
    """Settings of watch_nightly."""
    central = work.buckets.organization
    return WatchNightlySettings(
        account=work.stack.account,
        application_id=work.job.application.attr_application_id,
        report_bucket=work.buckets.reports.bucket_name,
        organization_bucket=central.bucket_name if central else None,
    )


def deliver_report_settings(work: Work, _: Peers) -> DeliverReportSettings:
    """Settings of deliver_report."""
    settings = work.settings
    return DeliverReportSettings(
        account=work.stack.account,
        report_bucket=work.buckets.reports.bucket_name,
        topic_arn=work.topics.info.arn,
        is_member=settings.organization is not None and not settings.is_hub,
        sender=settings.report.sender,
        recipients=settings.report.recipients,
        chat=settings.notifications.chat.severities,
        docs_url=settings.docs_url,
    )


def template_hook_settings(work: Work, _: Peers) -> TemplateHookSettings:
    """Settings of template_hook."""
    return TemplateHookSettings(
        account=work.stack.account,
        hook_fails=work.settings.template_hook.mode == FAIL,
        hook_ignores=work.settings.template_hook.ignore,
    )

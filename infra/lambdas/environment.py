"""The settings of each Lambda, one function for each settings class.

A Lambda reads its settings from its environment variables. Every argument is named here, so that
mypy finds an argument that is missing or has a wrong type before anything is deployed.

Settings classes that inherit from one class share their arguments: `_case_arguments` has those of
CaseSettings, `_owner_arguments` those of OwnerSettings. mypy checks both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

from msgspec import Struct

from infra.lambdas.grants import Work
from infra.settings.hook import FAIL
from mendq.model.case import Severity
from mendq.model.consent import Consent
from mendq.model.limits import Bounds, Limits, Timing
from mendq.model.mode import Mode
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


class Peers(Struct, frozen=True):
    """Other Lambdas, and the probe's queue, that one Lambda needs to know.

    They are known only after all Lambdas are made.

    Attributes:
        owners: function names of the Lambdas that this one invokes, by the writes that they own.
        heal_function: function name of heal.
        probe_queue_url: URL of the queue that the probe sends to.
    """

    owners: Mapping[Owner, str]
    heal_function: str
    probe_queue_url: str


class CaseArguments(TypedDict):
    """The arguments that all classes below CaseSettings have."""

    account: str
    case_table: str
    case_bucket: str
    limits: Limits
    timing: Timing
    urgent_topic_arn: str
    info_topic_arn: str
    team_topic_arns: Mapping[str, str]
    chat: tuple[Severity, ...]
    docs_url: str | None


class OwnerArguments(CaseArguments):
    """The arguments that all classes below OwnerSettings have."""

    consent: Consent
    autonomy: Mapping[str, Mode]
    freeze_calendars: tuple[str, ...]


def _case_arguments(work: Work) -> CaseArguments:
    """Return the arguments for a Lambda that moves cases."""
    settings = work.settings
    return {
        "account": work.stack.account,
        "case_table": work.case_store.table_name,
        "case_bucket": work.buckets.cases.bucket_name,
        "limits": settings.limits,
        "timing": settings.timing,
        "urgent_topic_arn": work.topics.urgent.arn,
        "info_topic_arn": work.topics.info.arn,
        "team_topic_arns": settings.notifications.teams,
        "chat": settings.notifications.chat.severities,
        "docs_url": settings.docs_url,
    }


def _owner_arguments(work: Work) -> OwnerArguments:
    """Return the arguments for a Lambda that owns writes."""
    return {
        **_case_arguments(work),
        "consent": work.consent,
        "autonomy": work.settings.autonomy,
        "freeze_calendars": work.settings.freeze_calendars,
    }


def owner_settings(work: Work, _: Peers) -> OwnerSettings:
    """Return the settings of heal, attach_dlq and restore_policy."""
    return OwnerSettings(**_owner_arguments(work))


def redrive_settings(work: Work, _: Peers) -> RedriveSettings:
    """Return the settings of redrive: those of an owner of writes, and the redrive's bounds."""
    bounds = Bounds(soak_factor=work.settings.timing.soak_factor)
    return RedriveSettings(**_owner_arguments(work), bounds=bounds)


def follow_up_settings(work: Work, peers: Peers) -> FollowUpSettings:
    """Return the settings of follow_up. Only the local account sets `most_days_ahead`."""
    return FollowUpSettings(
        **_case_arguments(work),
        consent=work.consent,
        owners=peers.owners,
        alarms=work.settings.alarms,
    )


def operator_settings(work: Work, peers: Peers) -> OperatorSettings:
    """Return the settings of approve and rollback."""
    return OperatorSettings(**_case_arguments(work), owners=peers.owners)


def scan_settings(work: Work, peers: Peers) -> ScanSettings:
    """Return the settings of scan."""
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
    """Return the settings of probe."""
    return ProbeSettings(
        account=work.stack.account,
        case_table=work.case_store.table_name,
        urgent_topic_arn=work.topics.urgent.arn,
        probe_queue_url=peers.probe_queue_url,
        chat=work.settings.notifications.chat.severities,
        docs_url=work.settings.docs_url,
    )


def start_nightly_settings(work: Work, _: Peers) -> StartNightlySettings:
    """Return the settings of start_nightly."""
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
    """Return the settings of watch_nightly."""
    organization_bucket = work.buckets.organization
    return WatchNightlySettings(
        account=work.stack.account,
        application_id=work.job.application.attr_application_id,
        report_bucket=work.buckets.reports.bucket_name,
        organization_bucket=organization_bucket.bucket_name if organization_bucket else None,
    )


def deliver_report_settings(work: Work, _: Peers) -> DeliverReportSettings:
    """Return the settings of deliver_report."""
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
    """Return the settings of template_hook."""
    return TemplateHookSettings(
        account=work.stack.account,
        hook_fails=work.settings.template_hook.mode == FAIL,
        hook_ignores=work.settings.template_hook.ignore,
    )

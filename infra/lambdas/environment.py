"""The settings of each Lambda: one function for each settings class.

A Lambda reads its settings from its environment variables. Every argument is named here, so that
mypy finds an argument that is missing or has a wrong type before anything is deployed.

Settings classes that inherit from one class share their arguments: `_make_case_arguments` returns
those of CaseSettings, `_make_owner_arguments` those of OwnerSettings. mypy checks both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

from msgspec import Struct

from infra.lambdas.grants import StackResources
from infra.settings.deployment import DeploymentSettings
from infra.settings.hook import FAIL_MODE
from mendq.model.case import Severity
from mendq.model.consent import Consent
from mendq.model.limits import Bounds, Limits, Timing
from mendq.model.mode import Mode
from mendq.model.mutes import Mute
from mendq.model.settings import (
    DeliverReportSettings,
    FollowUpSettings,
    OperatorSettings,
    OwnerSettings,
    ProbeSettings,
    RedriveSettings,
    ScanOnlySettings,
    ScanSettings,
    StartNightlySettings,
    TemplateHookSettings,
    WatchNightlySettings,
)
from mendq.model.steps import Owner


class PeerLambdas(Struct, frozen=True):
    """Names of other Lambdas and the URL of the probe's queue, for the settings of one Lambda.

    They are known only after all Lambdas are made.

    Attributes:
        function_name_by_owner: names of the Lambda functions that this one invokes, by owner. An
            owner is a Lambda that writes queues.
        heal_function_name: name of heal's Lambda function.
        probe_queue_url: URL of the queue that the probe sends to.
    """

    function_name_by_owner: Mapping[Owner, str]
    heal_function_name: str
    probe_queue_url: str


class CaseArguments(TypedDict):
    """The arguments of every settings class that inherits from CaseSettings."""

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
    """The arguments for the settings of a Lambda that changes cases (OwnerSettings)."""

    consent: Consent
    autonomy: Mapping[str, Mode]
    freeze_calendars: tuple[str, ...]
    mutes: tuple[Mute, ...]


def _make_case_arguments(resources: StackResources) -> CaseArguments:
    """Return the arguments for the settings of a Lambda that records cases."""
    settings = resources.settings
    return {
        "account": resources.stack.account,
        "case_table": resources.case_store.table_name,
        "case_bucket": resources.buckets.cases.bucket_name,
        "limits": settings.limits,
        "timing": settings.timing,
        "urgent_topic_arn": resources.topics.urgent.arn,
        "info_topic_arn": resources.topics.info.arn,
        "team_topic_arns": settings.notifications.teams,
        "chat": settings.notifications.chat.severities,
        "docs_url": settings.docs_url,
    }


def _make_owner_arguments(resources: StackResources) -> OwnerArguments:
    """Return the arguments for the settings of an owner: a Lambda that writes queues."""
    return {
        **_make_case_arguments(resources),
        "consent": resources.consent,
        "autonomy": resources.settings.autonomy,
        "freeze_calendars": resources.settings.freeze_calendars,
        "mutes": resources.settings.mutes,
    }


def make_owner_settings(resources: StackResources, _: PeerLambdas) -> OwnerSettings:
    """Return the settings of heal, attach_dlq and restore_policy."""
    return OwnerSettings(**_make_owner_arguments(resources))


def make_redrive_settings(resources: StackResources, _: PeerLambdas) -> RedriveSettings:
    """Return the settings of redrive: those of an owner, its table and bounds."""
    redrive_bounds = Bounds(soak_factor=resources.settings.timing.soak_factor)
    return RedriveSettings(
        **_make_owner_arguments(resources),
        seal_table=resources.seal_table.table_name,
        bounds=redrive_bounds,
    )


def make_follow_up_settings(
    resources: StackResources, peer_lambdas: PeerLambdas
) -> FollowUpSettings:
    """Return the settings of follow_up.

    `most_days_ahead` is not set: only the local account uses it.
    """
    return FollowUpSettings(
        **_make_case_arguments(resources),
        consent=resources.consent,
        owners=peer_lambdas.function_name_by_owner,
        alarms=resources.settings.alarms,
    )


def make_operator_settings(
    resources: StackResources, peer_lambdas: PeerLambdas
) -> OperatorSettings:
    """Return the settings of approve and rollback."""
    return OperatorSettings(
        **_make_case_arguments(resources), owners=peer_lambdas.function_name_by_owner
    )


def make_scan_settings(resources: StackResources, peer_lambdas: PeerLambdas) -> ScanSettings:
    """Return the settings of scan."""
    return ScanSettings(
        account=resources.stack.account,
        case_table=resources.case_store.table_name,
        case_bucket=resources.buckets.cases.bucket_name,
        limits=resources.settings.limits,
        timing=resources.settings.timing,
        consent=resources.consent,
        heal_function=peer_lambdas.heal_function_name,
        mutes=resources.settings.mutes,
    )


def make_scan_only_settings(
    account: str, case_table: str, topic_arn: str, settings: DeploymentSettings
) -> ScanOnlySettings:
    """Return the settings of the only Lambda of a scan-only stack."""
    return ScanOnlySettings(
        account=account,
        case_table=case_table,
        limits=settings.limits,
        timing=settings.timing,
        consent=Consent(queues=settings.queues),
        urgent_topic_arn=topic_arn,
        chat=settings.notifications.chat.severities,
        docs_url=settings.docs_url,
        mutes=settings.mutes,
    )


def make_probe_settings(resources: StackResources, peer_lambdas: PeerLambdas) -> ProbeSettings:
    """Return the settings of probe."""
    return ProbeSettings(
        account=resources.stack.account,
        case_table=resources.case_store.table_name,
        urgent_topic_arn=resources.topics.urgent.arn,
        probe_queue_url=peer_lambdas.probe_queue_url,
        chat=resources.settings.notifications.chat.severities,
        docs_url=resources.settings.docs_url,
    )


def make_start_nightly_settings(resources: StackResources, _: PeerLambdas) -> StartNightlySettings:
    """Return the settings of start_nightly."""
    nightly_job = resources.job
    return StartNightlySettings(
        account=resources.stack.account,
        application_id=nightly_job.application.attr_application_id,
        job_role_arn=nightly_job.role.role_arn,
        entry_point=nightly_job.code.entry_point,
        package=nightly_job.code.package,
        compiled_packages=nightly_job.code.compiled_packages,
        trail_root=nightly_job.roots.trail,
        case_root=nightly_job.roots.cases,
        out_root=nightly_job.roots.output_root,
        log_root=nightly_job.roots.logs,
        maximum_executors=nightly_job.maximum_executors,
        organization_root=nightly_job.organization_root,
        organization_accounts=nightly_job.organization_accounts,
        scope=resources.settings.nightly.scope,
    )


def make_watch_nightly_settings(resources: StackResources, _: PeerLambdas) -> WatchNightlySettings:
    """Return the settings of watch_nightly."""
    organization_bucket = resources.buckets.organization
    return WatchNightlySettings(
        account=resources.stack.account,
        application_id=resources.job.application.attr_application_id,
        report_bucket=resources.buckets.reports.bucket_name,
        organization_bucket=organization_bucket.bucket_name if organization_bucket else None,
    )


def make_deliver_report_settings(
    resources: StackResources, _: PeerLambdas
) -> DeliverReportSettings:
    """Return the settings of deliver_report."""
    settings = resources.settings
    return DeliverReportSettings(
        account=resources.stack.account,
        report_bucket=resources.buckets.reports.bucket_name,
        topic_arn=resources.topics.info.arn,
        is_member=settings.organization is not None and not settings.is_hub,
        sender=settings.report.sender,
        recipients=settings.report.recipients,
        chat=settings.notifications.chat.severities,
        docs_url=settings.docs_url,
    )


def make_template_hook_settings(resources: StackResources, _: PeerLambdas) -> TemplateHookSettings:
    """Return the settings of template_hook."""
    return TemplateHookSettings(
        account=resources.stack.account,
        hook_fails=resources.settings.template_hook.mode == FAIL_MODE,
        hook_ignores=resources.settings.template_hook.ignore,
    )

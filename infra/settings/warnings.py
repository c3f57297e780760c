"""Mistakes and warnings about where stacks are deployed, what they cost, and who is notified.

Settings with a mistake are refused, because a stack could not work. A warning is only printed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from infra.settings.deployment import (
    EXPECTED_EVENTS_WITHOUT_WARNING,
    REGION_PATTERN,
    DeploymentSettings,
    Environment,
    NotificationSettings,
)
from infra.settings.reading import Mistake
from mendq.model.mode import Mode
from mendq.model.partitions import SUPPORTED_PARTITIONS, is_in_known_partition, partition_of
from mendq.model.prices import DATA_EVENT
from mendq.model.settings import ACCOUNT_SCOPE, ORGANIZATION_SCOPE


def find_unusable_settings(
    settings: DeploymentSettings, regions: Sequence[str], accounts: Collection[str] = ()
) -> Iterator[Mistake]:
    """Yield a mistake for each setting that a stack could not use in its account or region.

    These settings are the trail's bucket, Change Calendars, topics, PagerDuty's secret, and what a
    stack's region or partition does not have. A hub without a nightly job is a mistake too.

    Args:
        settings: the deployment's settings.
        regions: the regions of the stacks.
        accounts: the accounts of the stacks, as far as they are known.
    """
    yield from _find_unsupported_partitions(settings, regions)
    yield from _find_missing_resource_types(settings, regions)
    yield from _find_unreachable_bucket(settings, regions)
    yield from _find_idle_hub(settings, regions, accounts)
    remedy = "name one there, and deploy each place with settings of its own"
    for calendar_index, arn in enumerate(settings.freeze_calendars):
        other_region_arn_beginnings = _list_other_region_arn_beginnings(arn, regions)
        if other_region_arn_beginnings:
            fault = (
                f"is not of {other_region_arn_beginnings[0]}, where a stack goes: it cannot be "
                "read, and Mendq would be frozen for ever"
            )
            yield Mistake(f"freezeCalendars[{calendar_index}]", fault, remedy)
    for setting_path, notification_arn in _collect_notification_arns(
        settings.notifications
    ).items():
        account = notification_arn.split(":")[4]
        if _list_other_region_arn_beginnings(notification_arn, regions) or {*accounts} - {account}:
            fault = "is of another account or region than a stack, which cannot use it"
            yield Mistake(f"notifications.{setting_path}", fault, remedy)


# Regions whose CloudFormation has no AWS::Events::ApiDestination, with which Mendq calls PagerDuty,
# as cfn-lint's copy of CloudFormation's registry says. Regions that it does not list are accepted.
# https://docs.aws.amazon.com/govcloud-us/latest/UserGuide/govcloud-eventbridge.html
REGIONS_WITHOUT_API_DESTINATIONS = frozenset(
    {
        "ap-east-2",
        "ap-southeast-5",
        "ap-southeast-6",
        "ca-west-1",
        "il-central-1",
        "mx-central-1",
        "us-gov-east-1",
        "us-gov-west-1",
    }
)
# Partitions whose CloudFormation has no AWS::CloudFormation::LambdaHook, by the same copy.
PARTITIONS_WITHOUT_LAMBDA_HOOKS = frozenset({"aws-cn", "aws-us-gov"})


def _find_unsupported_partitions(
    settings: DeploymentSettings, regions: Sequence[str]
) -> Iterator[Mistake]:
    """Yield a mistake for each region in a partition that Mendq does not support.

    A text that is no region's name is a mistake too. It comes from the environment or the
    credentials, because the settings' own regions were checked.
    """
    configured_regions = [environment.region for environment in settings.environments]
    for region in dict.fromkeys(regions):
        if not re.fullmatch(REGION_PATTERN, region):
            fault = f"{json.dumps(region)} is not a region"
            remedy = "set AWS_REGION to one such as eu-west-1, or list the stacks in environments"
            yield Mistake("AWS_REGION", fault, remedy)
            continue
        partition = partition_of(region)
        if partition in SUPPORTED_PARTITIONS:
            continue
        path = "AWS_REGION"
        if region in configured_regions:
            path = f"environments[{configured_regions.index(region)}].region"
        fault = f"{region} is in the partition {partition}, which Mendq does not support"
        *first_partitions, last_partition = SUPPORTED_PARTITIONS
        remedy = f"say a region of {', '.join(first_partitions)} or {last_partition}"
        yield Mistake(path, fault, remedy)


def _find_missing_resource_types(
    settings: DeploymentSettings, regions: Sequence[str]
) -> Iterator[Mistake]:
    """Yield a mistake for each feature whose resource type CloudFormation lacks in a region."""
    regions_without_hooks = [
        region for region in regions if partition_of(region) in PARTITIONS_WITHOUT_LAMBDA_HOOKS
    ]
    if settings.template_hook.is_on and regions_without_hooks:
        fault = (
            f'is "{settings.template_hook.mode}", and CloudFormation has no '
            f"AWS::CloudFormation::LambdaHook in {regions_without_hooks[0]}, where a stack goes"
        )
        remedy = "say off, or deploy that region with settings of its own"
        yield Mistake("templateHook", fault, remedy)
    regions_without_destinations = [
        region for region in regions if region in REGIONS_WITHOUT_API_DESTINATIONS
    ]
    if settings.notifications.pagerduty and regions_without_destinations:
        fault = (
            "needs AWS::Events::ApiDestination, which CloudFormation does not have in "
            f"{regions_without_destinations[0]}, where a stack goes"
        )
        remedy = "leave it out there: subscribe PagerDuty to the urgent topic instead"
        yield Mistake("notifications.pagerduty", fault, remedy)


def _find_unreachable_bucket(
    settings: DeploymentSettings, regions: Sequence[str]
) -> Iterator[Mistake]:
    """Yield a mistake if a nightly job could not read the trail's bucket.

    The nightly job has no VPC, so it reaches only the endpoints of its own region. If the settings
    do not say the bucket's region, there is a mistake only if jobs in several regions read it.
    https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/vpc-access.html
    """
    if settings.trail.bucket is None or not settings.nightly.enabled:
        return
    regions_of_reading_jobs = list(dict.fromkeys(regions))
    if settings.organization and settings.nightly.scope == ORGANIZATION_SCOPE:
        # Only the hub's job reads the trail that serves all accounts.
        hub_region = settings.organization.hub.region
        regions_of_reading_jobs = [
            region for region in regions_of_reading_jobs if region == hub_region
        ]
    bucket_region = settings.trail.bucket_region
    regions_without_bucket = [
        region for region in regions_of_reading_jobs if region != bucket_region
    ]
    setting_path = "trail.bucketRegion" if bucket_region else "trail.bucket"
    bucket_location_text = f"is {bucket_region}" if bucket_region else "lies in one region"
    # Without bucketRegion, a single region may be the bucket's own.
    minimum_regions_elsewhere = 1 if bucket_region else 2
    if len(regions_without_bucket) >= minimum_regions_elsewhere:
        regions_text = " and ".join(regions_without_bucket)
        fault = f"{bucket_location_text}, and stacks go to {regions_text}, and read no other's"
        remedy = (
            "deploy to the bucket's region, or let Mendq make a trail of its own with create: true"
        )
        yield Mistake(setting_path, fault, remedy)


def _find_idle_hub(
    settings: DeploymentSettings, regions: Sequence[str], accounts: Collection[str]
) -> Iterator[Mistake]:
    """Yield a mistake if one of the stacks is the organization's hub and has no nightly job."""
    if settings.organization is None or settings.nightly.enabled:
        return
    hub = settings.organization.hub
    is_hub_without_environments = (
        not settings.environments and hub.region in regions and hub.account in accounts
    )
    if settings.is_hub or is_hub_without_environments:
        fault = "is false, and the hub's job makes the organization's report"
        yield Mistake("nightly.enabled", fault, "say true, or name another hub")


def _collect_notification_arns(notifications: NotificationSettings) -> Mapping[str, str]:
    """Return the ARNs that are set below `notifications`, by the paths of their settings."""
    arn_by_setting: dict[str, str] = {}
    if notifications.topics.urgent:
        arn_by_setting["topics.urgent"] = notifications.topics.urgent
    if notifications.topics.info:
        arn_by_setting["topics.info"] = notifications.topics.info
    for team, arn in notifications.teams.items():
        arn_by_setting[f"teams.{team}"] = arn
    if notifications.pagerduty:
        arn_by_setting["pagerduty.secretArn"] = notifications.pagerduty.secret_arn
    return arn_by_setting


def _list_other_region_arn_beginnings(arn: str, regions: Sequence[str]) -> list[str]:
    """Return the regions other than the ARN's own, each as the beginning of an ARN.

    Stacks in these regions could not use the resource. For example, a stack asks Systems Manager in
    its own region for a calendar, and a calendar that it cannot read counts as closed.
    https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_GetCalendarState.html
    """
    _, partition, service, region, *_ = arn.split(":")
    arn_beginnings = [f"arn:{partition_of(region)}:{service}:{region}" for region in regions]
    return [
        arn_beginning
        for arn_beginning in arn_beginnings
        if arn_beginning != f"arn:{partition}:{service}:{region}"
    ]


def list_warnings(
    settings: DeploymentSettings, region: str | None = None, account: str | None = None
) -> Iterator[str]:
    """Yield one line for each setting that is valid but probably not intended.

    Args:
        settings: the deployment's settings.
        region: the stack's region, if the settings name no environments; None if it is not known.
        account: the stack's account, if the settings name no environments; None if it is not known.
    """
    region_account_pairs: list[tuple[str | None, str | None]] = [
        (environment.region, environment.account) for environment in settings.environments
    ]
    if not region_account_pairs:
        region_account_pairs.append((region, account))
    yield from _warn_about_unknown_regions(stack_region for stack_region, _ in region_account_pairs)
    for prefix in settings.trail.queue_arn_prefixes:
        if not any(
            _can_prefix_match_stack(prefix, *region_and_account)
            for region_and_account in region_account_pairs
        ):
            yield f"trail.queueArnPrefixes: no stack is where {prefix} is, so no trail logs it"
    yield from _warn_about_cost(settings)
    known_stack_accounts = {stack_account for _, stack_account in region_account_pairs} - {None}
    for arn in settings.freeze_calendars:
        if known_stack_accounts - {arn.split(":")[4]}:
            yield f"freezeCalendars: {arn} is another account's: share it, or a stack stays frozen"
    reads_existing_bucket = settings.trail.bucket is not None and settings.nightly.enabled
    if reads_existing_bucket and settings.trail.bucket_region is None:
        yield "trail.bucketRegion is not said: nightly runs fail unless it is the stack's region"
    for index, mute in enumerate(settings.mutes):
        if mute.has_ended(datetime.now(UTC).date()):
            yield f"mutes[{index}]: {mute.ended_text}"
    yield from _warn_about_recipients(settings)


def _warn_about_unknown_regions(regions: Iterable[str | None]) -> Iterator[str]:
    """Yield a warning for each region that is in no partition that Mendq knows."""
    for region in dict.fromkeys(regions):
        if region and not is_in_known_partition(region):
            yield (
                f"{region}: no partition that Mendq knows has such a region, so ARNs and "
                "addresses in it are written as in the partition aws: check the region's name"
            )


def _can_prefix_match_stack(prefix: str, region: str | None, account: str | None) -> bool:
    """Return True if queues with an ARN of this prefix can be in the stack's account and region.

    A part of the ARN that the prefix does not reach matches. So does a part that is not known,
    because the stack's account or region is None.
    """
    stack_partition = partition_of(region) if region else None
    stack_parts = (stack_partition, "sqs", region, account)
    prefix_parts = prefix.split(":")[1:5]
    for stack_part, prefix_part in zip(stack_parts, prefix_parts, strict=False):
        if stack_part and prefix_part and stack_part != prefix_part:
            return False
    return True


def _warn_about_cost(settings: DeploymentSettings) -> Iterator[str]:
    """Yield a warning if the trail logs every queue.

    Also yield it if Mendq makes the trail and more calls a day are expected than
    EXPECTED_EVENTS_WITHOUT_WARNING. CloudTrail bills every call that it logs, also calls that
    succeed.
    """
    trail = settings.trail
    expected_events_per_day = trail.expected_events_per_day
    # A prefix that ends with a colon ends before the queue's name.
    does_trail_log_every_queue = any(prefix.endswith(":") for prefix in trail.queue_arn_prefixes)
    if does_trail_log_every_queue or (
        trail.create and expected_events_per_day > EXPECTED_EVENTS_WITHOUT_WARNING
    ):
        cost_reason = (
            "every queue's calls are logged" if does_trail_log_every_queue else "the trail is dear"
        )
        dollars_per_month = DATA_EVENT.cost(30 * expected_events_per_day)
        count_text = f"{expected_events_per_day:,} calls a day, as trail.expectedEventsPerDay says"
        cost_text = f"${dollars_per_month:,.2f} a month"
        yield f"{cost_reason}: {cost_text} for {count_text}; `mendq cost --all` counts them"


def _warn_about_recipients(settings: DeploymentSettings) -> Iterator[str]:
    """Yield warnings about messages that reach nobody, for a whole stack or a scan-only one."""
    if settings.scan_only:
        yield from _warn_about_silent_scan(settings)
    else:
        yield from _warn_about_missing_recipients(settings)


def _warn_about_silent_scan(settings: DeploymentSettings) -> Iterator[str]:
    """Yield a warning if nobody gets the reports of a scan-only stack, which does nothing else."""
    notifications = settings.notifications
    if not (notifications.urgent or notifications.topics.urgent):
        yield (
            "nobody gets the reports of this scan-only stack: add an address to "
            "notifications.urgent"
        )


def _warn_about_missing_recipients(settings: DeploymentSettings) -> Iterator[str]:
    """Yield warnings about notifications and mails that reach nobody, and a mode without queues.

    With the default settings, which only observe, there is no warning about missing subscribers.
    """
    notifications = settings.notifications
    urgent_receivers = notifications.urgent or notifications.topics.urgent
    info_receivers = notifications.info or notifications.topics.info
    if settings.mode > Mode.OBSERVE and not settings.queues:
        yield f"mode {settings.mode} holds for no queue: name some in queues, or set tagMayRaiseTo"
    can_change_queues = max(settings.mode, settings.tag_may_raise_to) > Mode.OBSERVE
    if can_change_queues and not (urgent_receivers or info_receivers):
        yield "nobody is subscribed: Mendq may propose or heal, and notifications names no address"
    elif info_receivers and not urgent_receivers:
        yield "nobody is woken: notifications.urgent names no address, so pages reach nobody"
    elif urgent_receivers and not info_receivers:
        yield "nobody reads what can wait: notifications.info names no address for proposals"
    if settings.report.sender is not None and not settings.report.is_mailed:
        yield "nobody is mailed: report.sender is set, and report.recipients names no address"
    elif settings.report.is_mailed and not settings.nightly.enabled:
        yield "nobody is mailed: report.sender is set, and nightly.enabled: false makes no report"


def make_stack_settings(
    settings: DeploymentSettings, account: str | None, region: str
) -> DeploymentSettings:
    """Return the settings of one of the stacks.

    A stack that is not the hub has no nightly job if the hub's job reads the trail for all
    accounts. It mails no report if these settings also deploy the hub, because the recipients then
    get the hub's report. In the result, `environments` has only this stack. It is empty if
    `account` is None, which means that the account is not known.
    """
    environments = (Environment(account, region),) if account else ()
    stack_settings = replace(settings, environments=environments)
    if settings.organization is None or stack_settings.is_hub:
        return stack_settings
    has_nightly_job = settings.nightly.enabled and settings.nightly.scope == ACCOUNT_SCOPE
    nightly_settings = replace(settings.nightly, enabled=has_nightly_job)
    report_settings = settings.report
    if settings.is_hub:
        report_settings = replace(report_settings, sender=None, recipients=())
    return replace(stack_settings, nightly=nightly_settings, report=report_settings)

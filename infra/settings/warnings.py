"""What the settings say of places and people that cannot be so, or is hardly meant."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from infra.settings.deployment import EVENTS_UNSAID, DeploymentSettings, Environment
from infra.settings.reading import Mistake
from mendq.model.limits import Mode
from mendq.model.prices import DATA_EVENT
from mendq.model.queue import partition_of
from mendq.model.settings import ACCOUNT, ORGANIZATION


def misplaced(
    settings: DeploymentSettings, regions: Sequence[str], accounts: Collection[str] = ()
) -> Iterator[Mistake]:
    """Why stacks in `regions` could not read the trail's bucket or a Change Calendar, nor publish.

    `accounts` are theirs, as far as they are known.

    The nightly job has no VPC: it reaches the endpoints of its own region alone.
    https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/vpc-access.html
    """
    said = settings.trail.bucket_region
    hub = settings.organization.hub if settings.organization else None
    reads_it = settings.trail.bucket is not None and settings.nightly.enabled
    # One trail that serves all is read by the hub alone.
    reader = hub.region if hub and settings.nightly.scope == ORGANIZATION else None
    readers = [each for each in regions if reader in (None, each)]
    others = [each for each in dict.fromkeys(readers) if each != said] if reads_it else []
    remedy = "deploy to the bucket's region, or let Mendq make a trail of its own with create: true"
    if others and (said or len(others) > 1):
        where = f"is {said}" if said else "lies in one region"
        fault = f"{where}, and stacks go to {' and '.join(others)}, and read no other's"
        yield Mistake("trail.bucketRegion" if said else "trail.bucket", fault, remedy)
    is_hub = hub and not settings.environments and hub.region in regions and hub.account in accounts
    if (settings.is_hub or is_hub) and not settings.nightly.enabled:
        fault = "is false, and the hub's job makes the organization's report"
        yield Mistake("nightly.enabled", fault, "say true, or name another hub")
    remedy = "name one there, and deploy each place with settings of its own"
    for number, arn in enumerate(settings.freeze_calendars):
        if there := _others(arn, regions):
            fault = f"is not of {there[0]}, where a stack goes: it cannot be read, and Mendq would "
            yield Mistake(f"freezeCalendars[{number}]", f"{fault}be frozen for ever", remedy)
    given = settings.notifications
    arns = {f"topics.{name}": arn for name, arn in vars(given.topics).items()}
    arns |= {f"teams.{name}": arn for name, arn in given.teams.items()}
    if given.pagerduty:
        arns["pagerduty.secretArn"] = given.pagerduty.secret_arn
    for name, arn in arns.items():
        if arn and (_others(arn, regions) or {*accounts} - {arn.split(":")[4]}):
            fault = "is of another account or region than a stack, which cannot use it"
            yield Mistake(f"notifications.{name}", fault, remedy)


def _others(arn: str, regions: Sequence[str]) -> list[str]:
    """Those of `regions` that an ARN is not of, each with its partition.

    A stack asks its own region's Systems Manager; what cannot be read counts as closed.
    https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_GetCalendarState.html
    """
    _, partition, service, region, *_ = arn.split(":")
    there = [f"arn:{partition_of(each)}:{service}:{each}" for each in regions]
    return [each for each in there if each != f"arn:{partition}:{service}:{region}"]


def warnings(
    settings: DeploymentSettings, region: str | None = None, account: str | None = None
) -> Iterator[str]:
    """One line for each thing that is hardly meant, for whoever synthesizes; nothing is refused.

    `region` and `account` are the stack's where no environments are named; None is not known, and
    may be any.
    """
    named = [(each.region, each.account) for each in settings.environments]
    stacks: list[tuple[str | None, str | None]] = [*named] or [(region, account)]
    for prefix in settings.trail.queue_arn_prefixes:
        if not any(_fits(prefix, *stack) for stack in stacks):
            yield f"trail.queueArnPrefixes: no stack is where {prefix} is, so no trail logs it"
    yield from _of_the_bill(settings)
    for arn in settings.freeze_calendars:
        if {of for _, of in stacks} - {None, arn.split(":")[4]}:
            yield f"freezeCalendars: {arn} is another account's: share it, or a stack stays frozen"
    in_use = settings.trail.bucket is not None and settings.nightly.enabled
    if in_use and settings.trail.bucket_region is None:
        yield "trail.bucketRegion is not said: nightly runs fail unless it is the stack's region"
    yield from _of_people(settings)


def _fits(prefix: str, region: str | None, account: str | None) -> bool:
    """A trail sees its own place alone; what a prefix leaves open, after its last colon, is any."""
    place = (region and partition_of(region), "sqs", region, account)
    said = prefix.split(":")[1:5]
    return all(
        not here or not there or here == there for here, there in zip(place, said, strict=False)
    )


def _of_the_bill(settings: DeploymentSettings) -> Iterator[str]:
    """CloudTrail bills every call that is logged, whether it fails or not."""
    trail, expected = settings.trail, settings.trail.expected_events_per_day
    # The prefix ends before a queue's name begins.
    is_every = any(each.endswith(":") for each in trail.queue_arn_prefixes)
    if is_every or (trail.create and expected > EVENTS_UNSAID):
        what = "every queue's calls are logged" if is_every else "the trail is dear"
        dollars = DATA_EVENT.of(30 * expected)
        counts = f"{expected:,} calls a day, as trail.expectedEventsPerDay says"
        yield f"{what}: ${dollars:,.2f} a month for {counts}; `mendq cost --all` counts them"


def _of_people(settings: DeploymentSettings) -> Iterator[str]:
    """Alarms are sent in every mode; who deploys the defaults to see them is left in peace."""
    given = settings.notifications
    urgent, info = (given.urgent or given.topics.urgent), (given.info or given.topics.info)
    if settings.mode > Mode.OBSERVE and not settings.queues:
        yield f"mode {settings.mode} holds for no queue: name some in queues, or set tagMayRaiseTo"
    acts = max(settings.mode, settings.tag_may_raise_to) > Mode.OBSERVE
    if acts and not (urgent or info):
        yield "nobody is subscribed: Mendq may propose or heal, and notifications names no address"
    elif info and not urgent:
        yield "nobody is woken: notifications.urgent names no address, so pages reach nobody"
    elif urgent and not info:
        yield "nobody reads what can wait: notifications.info names no address for proposals"
    if settings.report.sender is not None and not settings.report.mails:
        yield "nobody is mailed: report.sender is set, and report.recipients names no address"
    elif settings.report.mails and not settings.nightly.enabled:
        yield "nobody is mailed: report.sender is set, and nightly.enabled: false makes no report"


def of_stack(settings: DeploymentSettings, account: str | None, region: str) -> DeploymentSettings:
    """What settings are to one of their stacks; its account may not be known.

    A member goes without a nightly job where the hub's reads for all, and without mail where the
    hub's stack has these settings too: the recipients are the hub's.
    """
    here = (Environment(account, region),) if account else ()
    one = replace(settings, environments=here)
    if settings.organization is None or one.is_hub:
        return one
    runs = settings.nightly.enabled and settings.nightly.scope == ACCOUNT
    report = replace(settings.report, sender=None, recipients=())
    nightly = replace(settings.nightly, enabled=runs)
    return replace(one, nightly=nightly, report=report if settings.is_hub else settings.report)

"""What the doctor looks at, in order, and how it judges each: a table over what was gathered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, partial
from typing import Any

from botocore.exceptions import ClientError

from mendq.aws.clients import is_closed, region_of_bucket
from mendq.aws.errors import PASSING, code_of
from mendq.aws.queue import ManagedQueue
from mendq.cli.account import Account
from mendq.cli.decide.freeze import freeze_of
from mendq.cli.doctor import heartbeat, last_round
from mendq.cli.doctor.alarms import Alarms
from mendq.cli.doctor.check import Check, Command, Log, Status, guarded
from mendq.cli.doctor.cost import PRICED, Cost, costs
from mendq.cli.doctor.deployment import Deployment
from mendq.cli.doctor.last_round import LastRound
from mendq.cli.doctor.trails import Trails
from mendq.cli.doctor.visibility import NEVER_SEEN, Situation, not_logged, outside, sights
from mendq.cli.output import age
from mendq.cli.queues import managed_queues
from mendq.model.limits import DRILL_TAG
from mendq.model.queue import parts_of
from mendq.probe.probe import SEEN_WITHIN
from mendq.probe.send import ProbeRecord

TRAIL_BUCKET = "bucket of the trail"
_PENDING = "PendingConfirmation"
_MOST_NAMED = 3


@dataclass
class Findings:
    """What was found so far."""

    checks: list[Check] = field(default_factory=list)
    queues: list[str] = field(default_factory=list)
    trails: Trails = field(default_factory=Trails)
    costs: list[Cost] = field(default_factory=list)
    logs: dict[str, Log] = field(default_factory=dict)
    last_round: LastRound | None = None

    @property
    def outside(self) -> list[str]:
        return outside(self.trails.logging, self.queues)

    @property
    def not_logged(self) -> dict[str, frozenset[str]]:
        return not_logged(self.trails.logging, self.queues)

    @property
    def sights(self) -> list[Situation]:
        return list(sights(self.trails.logging, self.queues))

    def document(self) -> dict[str, Any]:
        return {
            "checks": [each.document() for each in self.checks],
            "logs": {name: vars(log) for name, log in self.logs.items()},
            "managed_queues": self.queues,
            "symptoms": [each.document() for each in self.sights],
            "outside_selectors": self.outside,
            "not_logged": {arn: sorted(calls) for arn, calls in self.not_logged.items()},
            "cost_of_seeing": [each.document() for each in self.costs],
            "priced": PRICED,
            "never_seen": list(NEVER_SEEN),
            "last_scan": self.last_round.document() if self.last_round else None,
        }


@dataclass(frozen=True)
class Doctor:
    """The account that is looked at, the moment, and what was found so far."""

    account: Account
    now: datetime
    found: Findings = field(default_factory=Findings)

    @cached_property
    def deployment(self) -> Deployment:
        return Deployment(self.account, self.now, self.found.logs)


def topics(doctor: Doctor) -> Iterator[Check]:
    """One check a topic: whether anybody would hear it."""
    account = doctor.account
    named = {"urgent": account.settings.urgent_topic_arn, "info": account.settings.info_topic_arn}
    for name, arn in named.items():
        asked = account.clients.sns.get_paginator("list_subscriptions_by_topic")
        pages = asked.paginate(TopicArn=arn)
        found = [each["SubscriptionArn"] for page in pages for each in page["Subscriptions"]]
        pending = found.count(_PENDING)
        label, says = f"topic {name}", f"{pending} of {len(found)} subscription(s) not confirmed"
        if not found:
            yield Check(
                label, Status.WARN, "nobody is subscribed", f"set notifications.{name} and deploy"
            )
        elif pending:
            status = Status.WARN if pending < len(found) else Status.FAIL
            yield Check(label, status, says, "follow the link in AWS's mail; it is good for 3 days")
        else:
            yield Check(label, Status.OK, f"{len(found)} subscription(s), all confirmed")


def life(doctor: Doctor) -> Iterator[Check]:
    """Three checks and one a calendar, each by itself."""
    yield from guarded("heartbeat", lambda: heartbeat.look(doctor.account, doctor.now))
    yield from guarded("probe", lambda: [_probe(doctor)])
    yield from guarded("freeze", lambda: [_freeze(doctor.account)])
    for arn in doctor.account.settings.freeze_calendars:
        name = f"calendar {arn.rpartition('/')[2]}"
        yield from guarded(name, partial(_calendar, doctor.account, name, arn))


def _probe(doctor: Doctor) -> Check:
    account, now = doctor.account, doctor.now
    probe = ProbeRecord(account.clients.dynamodb, account.output("CaseTable")).read()
    if probe is None:
        says = "none was sent yet: the first comes within the hour after a deployment"
        return Check("probe", Status.WARN, says, "ask again in an hour")
    sent = f"sent {age(probe.sent_at, now)} ago"
    if probe.was_seen and probe.seen_at is not None:
        late_seconds = int((probe.seen_at - probe.sent_at).total_seconds())
        says = f"{sent}, seen after {late_seconds} s, spelled {probe.spelled}"
        return Check("probe", Status.OK, says)
    is_under_way = now - probe.sent_at <= SEEN_WITHIN
    status = Status.WARN if probe.lost_in_a_row else Status.OK
    how = ", still on its way" if is_under_way else " and not seen"
    says = f"{sent}{how}; {probe.lost_in_a_row} before it lost in a row"
    return Check(
        "probe", status if is_under_way else Status.FAIL, says, "docs/runbooks/probe_lost.md"
    )


def _freeze(account: Account) -> Check:
    if (freeze := freeze_of(account)) is not None:
        return Check("freeze", Status.WARN, str(freeze), "mendq thaw")
    return Check("freeze", Status.OK, "not frozen by hand")


def _calendar(account: Account, name: str, arn: str) -> Iterator[Check]:
    """One that is closed is somebody's word, one that heal cannot read a fault.

    Asked with the operator's rights, which are not heal's: who of the two is denied is told apart
    by whose calendar it is. Raises what does not say that heal cannot read it either.
    https://docs.aws.amazon.com/systems-manager/latest/userguide/change-calendar-getstate.html
    """
    try:
        closed = is_closed(account.clients, [arn])
    except ClientError as error:
        owner, code = arn.split(":")[4], code_of(error)
        is_ours = owner == account.settings.account
        if code in PASSING or (is_ours and "Denied" in code):
            raise
        says = f"{arn} cannot be read ({code}), so Mendq is frozen until it can"
        share = f"share it with account {account.settings.account} from {owner}, or "
        remedy = f"{'' if is_ours else share}take it out of freezeCalendars and deploy"
        yield Check(name, Status.FAIL, says, remedy)
        return
    if closed:
        says = f"{arn} is closed: nothing is changed"
        yield Check(name, Status.WARN, says, "nothing, if it is meant so")
    else:
        yield Check(name, Status.OK, f"{arn} is open")


def _last_scan(doctor: Doctor) -> Iterator[Check]:
    doctor.found.last_round = found = last_round.last_round(doctor.account)
    yield last_round.check_of(found, doctor.account, doctor.now)


def trail_bucket(doctor: Doctor) -> Iterator[Check]:
    """Whether the nightly job reaches the trail's files: it has no VPC, so in its region alone."""
    account = doctor.account
    bucket, here = account.output("TrailBucket"), account.region
    try:
        region = region_of_bucket(account.clients.s3, bucket)
    except ClientError as error:
        if code_of(error) not in ("404", "NoSuchBucket"):
            raise
        says = f"there is no bucket {bucket}: every night fails"
        remedy = "name one that is there in trail.bucket, and deploy"
        yield Check(TRAIL_BUCKET, Status.FAIL, says, remedy)
        return
    if region is None:
        says = f"S3 does not say in which region {bucket} lies"
        ask = Command.aws(here, "s3api", "get-bucket-location", "--bucket", bucket)
        yield Check(TRAIL_BUCKET, Status.UNKNOWN, says, ask)
    elif region != here:
        says = f"{bucket} lies in {region}, which the nightly job does not reach: every night fails"
        remedy = f"deploy to {region}, or let Mendq make its own with trail.create: true"
        yield Check(TRAIL_BUCKET, Status.FAIL, says, remedy)
    else:
        yield Check(TRAIL_BUCKET, Status.OK, f"{bucket} lies in {region}")


def _queues(doctor: Doctor) -> Iterator[Check]:
    found, managed = doctor.found, managed_queues(doctor.account)
    found.queues = [each.queue_arn for each in managed]
    whole = len(found.queues)
    if not whole:
        says, tag = "none: nothing is looked after. To begin, tag one", ("--tags", "mendq=observe")
        first = _sqs(doctor.account.region, "tag-queue", *tag)
        yield Check("managed queues", Status.WARN, says, first)
        return
    yield Check("managed queues", Status.OK, f"{whole} by tag or by name")
    yield from drills(managed)
    if blind := found.outside:
        says = f"{len(blind)} of {whole} lie outside the trails' selectors"
        remedy = "add them to trail.queueArnPrefixes, and deploy"
        yield Check("selectors", Status.WARN, says, remedy)
    if partly := {arn: calls for arn, calls in found.not_logged.items() if arn not in blind}:
        calls = ", ".join(sorted(frozenset().union(*partly.values())))
        says = f"{len(partly)} of {whole} are logged in part: not {calls}"
        yield Check("selectors", Status.WARN, says, "add them to trail.eventNames, and deploy")


def drills(queues: Iterable[ManagedQueue]) -> Iterator[Check]:
    """A warning that names some of the queues marked as a drill's, where there are any."""
    marked = [each for each in queues if DRILL_TAG in each.tags]
    if marked:
        silent = f"tag {DRILL_TAG}, so nobody is paged; untag it where it is no drill"
        region = parts_of(marked[0].queue_arn).region
        remedy = _sqs(region, "untag-queue", "--tag-keys", DRILL_TAG)
        says = f"{silent}: {some([each.name for each in marked])}"
        yield Check("drills", Status.WARN, says, remedy)


def some(names: Sequence[str]) -> str:
    """The first of the names, and how many more there are."""
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"{', '.join(names[:_MOST_NAMED])}{more}"


def _sqs(region: str, operation: str, *options: str) -> Command:
    return Command.aws(region, "sqs", operation, "--queue-url", "URL", *options)


def _costs(doctor: Doctor) -> Iterator[Check]:
    if unseen := doctor.found.not_logged:
        doctor.found.costs = costs(doctor.account.clients, unseen, doctor.now)
    yield from ()


# What is looked at, the check that says so where it may not be, and how it is judged.
READS: Mapping[str, tuple[str, Callable[[Doctor], Iterable[Check]]]] = {
    "the stack": ("stack", lambda doctor: doctor.deployment.look()),
    "the alarms that ring": (
        "alarms",
        lambda doctor: Alarms(doctor.account, doctor.deployment, doctor.now).look(),
    ),
    "topics and subscriptions": ("topics", topics),
    "heartbeat, probe and freeze": ("life", life),
    "the scan's last round": ("scan", _last_scan),
    "trails": ("trails", lambda doctor: doctor.found.trails.look(doctor.account)),
    "the trail's bucket": (TRAIL_BUCKET, trail_bucket),
    "managed queues": ("queues", _queues),
    "what seeing more would cost": ("cost", _costs),
}

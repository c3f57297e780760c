"""What the doctor looks at, in order, and how it judges each: a table over what was gathered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

from botocore.exceptions import ClientError

from mendq.aws.clients import region_of_bucket
from mendq.aws.errors import code_of
from mendq.aws.queue import ManagedQueue
from mendq.cli.account import Account
from mendq.cli.doctor.alarms import Alarms
from mendq.cli.doctor.check import Check, Command, Log, Status
from mendq.cli.doctor.deployment import Deployment
from mendq.cli.doctor.life import LastRound, last_round, life, round_check
from mendq.cli.doctor.visibility import (
    NEVER_SEEN,
    Situation,
    Trail,
    not_logged,
    outside,
    sights,
    trails_of,
)
from mendq.cli.output import some
from mendq.cli.queues import managed_queues
from mendq.model.limits import DRILL_TAG
from mendq.model.queue import parts_of

TRAIL_BUCKET = "bucket of the trail"
_PENDING = "PendingConfirmation"
_PRICE = "`mendq cost` says what that costs"


@dataclass
class Findings:
    """What was found so far."""

    checks: list[Check] = field(default_factory=list)
    queues: list[str] = field(default_factory=list)
    trails: list[Trail] = field(default_factory=list)
    logs: dict[str, Log] = field(default_factory=dict)
    last_round: LastRound | None = None

    @property
    def sights(self) -> list[Situation]:
        return list(sights(self.trails, self.queues))

    def document(self) -> dict[str, Any]:
        missing = not_logged(self.trails, self.queues)
        return {
            "checks": [each.document() for each in self.checks],
            "logs": {name: vars(log) for name, log in self.logs.items()},
            "managed_queues": self.queues,
            "symptoms": [vars(each) for each in self.sights],
            "outside_selectors": outside(self.trails, self.queues),
            "not_logged": {arn: sorted(calls) for arn, calls in missing.items()},
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
        pending, topic = found.count(_PENDING), f"topic {name}"
        if not found:
            remedy = f"set notifications.{name} and deploy"
            yield Check(topic, Status.WARN, "nobody is subscribed", remedy)
        elif pending:
            status = Status.WARN if pending < len(found) else Status.FAIL
            says = f"{pending} of {len(found)} subscription(s) not confirmed"
            yield Check(topic, status, says, "follow the link in AWS's mail; it is good for 3 days")
        else:
            yield Check(topic, Status.OK, f"{len(found)} subscription(s), all confirmed")


def _last_scan(doctor: Doctor) -> Iterator[Check]:
    doctor.found.last_round = found = last_round(doctor.account)
    yield round_check(found, doctor.account, doctor.now)


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
    if blind := outside(found.trails, found.queues):
        says = f"{len(blind)} of {whole} lie outside the trails' selectors"
        remedy = f"add them to trail.queueArnPrefixes, and deploy; {_PRICE}"
        yield Check("selectors", Status.WARN, says, remedy)
    missing = not_logged(found.trails, found.queues)
    if partly := [calls for arn, calls in missing.items() if arn not in blind]:
        says = f"{len(partly)} of {whole} are logged in part: not "
        says += ", ".join(sorted(frozenset().union(*partly)))
        remedy = f"add them to trail.eventNames, and deploy; {_PRICE}"
        yield Check("selectors", Status.WARN, says, remedy)


def drills(queues: Iterable[ManagedQueue]) -> Iterator[Check]:
    """A warning that names some of the queues marked as a drill's, where there are any."""
    marked = [each for each in queues if DRILL_TAG in each.tags]
    if marked:
        silent = f"tag {DRILL_TAG}, so nobody is paged; untag it where it is no drill"
        region = parts_of(marked[0].queue_arn).region
        remedy = _sqs(region, "untag-queue", "--tag-keys", DRILL_TAG)
        says = f"{silent}: {some([each.name for each in marked])}"
        yield Check("drills", Status.WARN, says, remedy)


def _sqs(region: str, operation: str, *options: str) -> Command:
    return Command.aws(region, "sqs", operation, "--queue-url", "URL", *options)


# What is looked at, the check that says so where it may not be, and how it is judged.
READS: Mapping[str, tuple[str, Callable[[Doctor], Iterable[Check]]]] = {
    "the stack": ("stack", lambda doctor: doctor.deployment.look()),
    "the alarms that ring": (
        "alarms",
        lambda doctor: Alarms(doctor.account, doctor.deployment, doctor.now).look(),
    ),
    "topics and subscriptions": ("topics", topics),
    "heartbeat, probe and freeze": ("life", lambda doctor: life(doctor.account, doctor.now)),
    "the scan's last round": ("scan", _last_scan),
    "trails": ("trails", lambda doctor: trails_of(doctor.account, doctor.found.trails)),
    "the trail's bucket": (TRAIL_BUCKET, trail_bucket),
    "managed queues": ("queues", _queues),
}

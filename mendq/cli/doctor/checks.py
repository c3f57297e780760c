"""What the doctor looks at, in order, and how it judges each: a table over what was gathered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from functools import cached_property
from typing import Any

from botocore.exceptions import ClientError
from msgspec import Struct, field
from msgspec.structs import asdict

from mendq.aws.clients import region_of_bucket
from mendq.aws.errors import code_of
from mendq.aws.queue import ManagedQueue
from mendq.cli.account import Account
from mendq.cli.doctor.alarms import Alarms
from mendq.cli.doctor.check import Check, Command, Log, Status, judged
from mendq.cli.doctor.deployment import Deployment
from mendq.cli.doctor.life import calendars, freeze, heartbeat, last_round, probe, round_check
from mendq.cli.doctor.visibility import (
    ANY_QUEUE,
    NEVER_SEEN,
    Situation,
    Trail,
    not_logged,
    outside,
    read_by_the_job,
    sights,
    trails_of,
    unread,
)
from mendq.cli.output import shorten_list
from mendq.cli.queues import managed_queues
from mendq.model.limits import DRILL_TAG
from mendq.model.queue import parts_of
from mendq.notifications.notification import NOTHING_COUNTED

OK, UNKNOWN, WARN, FAIL = Status
TRAIL_BUCKET = "bucket of the trail"
_PENDING = "PendingConfirmation"
# By the protocol of what waits: nobody gets a mail at a URL.
_CONFIRM = {
    True: "have what listens at the URL ask for the SubscribeURL that SNS posted to it",
    False: "follow the link in AWS's mail; it is good for 3 days",
}
_NAME_ANOTHER = "name one that is there in trail.bucket, and deploy"


class Doctor(Struct, dict=True):
    """The account that is looked at, the moment, and what was found so far."""

    account: Account
    now: datetime
    checks: list[Check] = field(default_factory=list)
    queues: list[str] = field(default_factory=list)
    trails: list[Trail] = field(default_factory=list)
    logs: dict[str, Log] = field(default_factory=dict)

    @cached_property
    def deployment(self) -> Deployment:
        return Deployment(self.account, self.now, self.logs)

    @property
    def sights(self) -> list[Situation]:
        """Before a queue is managed: what could be seen of any that the selectors cover."""
        return list(sights(self.trails, self.queues or [ANY_QUEUE]))

    def document(self) -> dict[str, Any]:
        missing = not_logged(self.trails, self.queues)
        return {
            "checks": [each.document() for each in self.checks],
            "logs": {name: asdict(log) for name, log in self.logs.items()},
            "managed_queues": self.queues,
            "symptoms": [asdict(each) for each in self.sights],
            "outside_selectors": outside(self.trails, self.queues),
            "not_logged": {arn: sorted(calls) for arn, calls in missing.items()},
            "trails_not_read": unread(self.trails),
            "never_seen": list(NEVER_SEEN),
        }


def topics(doctor: Doctor) -> Iterator[Check]:
    """One check a topic: whether anybody would hear it."""
    account = doctor.account
    named = {"urgent": account.settings.urgent_topic_arn, "info": account.settings.info_topic_arn}
    for name, arn in named.items():
        asked = account.clients.sns.get_paginator("list_subscriptions_by_topic")
        gone, found, protocols = "", list[str](), list[str]()
        try:
            for page in asked.paginate(TopicArn=arn):
                found += [each["SubscriptionArn"] for each in page["Subscriptions"]]
                protocols += [each["Protocol"] for each in page["Subscriptions"]]
        except account.clients.sns.exceptions.NotFoundException:
            gone = f"there is no topic {arn}: nobody hears what is {name}"
        pending, whole = found.count(_PENDING), len(found)
        says = f"{pending} of {whole} subscription(s) not confirmed"
        waits = zip(found, protocols, strict=True)
        by_url = {each.startswith("http") for arn, each in waits if arn == _PENDING}
        confirm = "; ".join(_CONFIRM[each] for each in sorted(by_url))
        yield judged(
            f"topic {name}",
            (gone, FAIL, gone, "name one that is there in notifications.topics, and deploy"),
            (not found, WARN, "nobody is subscribed", f"set notifications.{name} and deploy"),
            (pending == whole, FAIL, says, confirm),
            (pending, WARN, says, confirm),
            (True, OK, f"{whole} subscription(s), all confirmed", ""),
        )


def trail_bucket(doctor: Doctor) -> Iterator[Check]:
    """Whether the nightly job reaches the trail's files, and whether all of them lie there.

    It has no VPC, so it reaches its region alone.
    """
    account = doctor.account
    if account.has_no_nightly_job:
        yield Check("nightly job", OK, NOTHING_COUNTED)
        return
    bucket, here = account.output("TrailBucket"), account.region
    root = account.outputs.get("TrailRoot", "").removeprefix("s3://")
    if root and doctor.trails:
        yield read_by_the_job(root, doctor.trails, doctor.queues or [ANY_QUEUE])
    try:
        region = region_of_bucket(account.clients.s3, bucket)
    except ClientError as error:
        if code_of(error) not in ("404", "NoSuchBucket"):
            raise
        region = ""
    unheard = f"S3 does not say in which region {bucket} lies"
    ask = Command.aws(here, "s3api", "get-bucket-location", "--bucket", bucket)
    far = f"{bucket} lies in {region}, which the nightly job does not reach: every night fails"
    move = f"deploy to {region}, or let Mendq make its own with trail.create: true"
    yield judged(
        TRAIL_BUCKET,
        (region == "", FAIL, f"there is no bucket {bucket}: every night fails", _NAME_ANOTHER),
        (region is None, UNKNOWN, unheard, ask),
        (region != here, FAIL, far, move),
        (True, OK, f"{bucket} lies in {region}", ""),
    )


def _queues(doctor: Doctor) -> Iterator[Check]:
    managed = managed_queues(doctor.account)
    doctor.queues = [each.queue_arn for each in managed]
    whole, region = len(managed), doctor.account.region
    tag = _sqs(region, "tag-queue", "--tags", "mendq=observe")
    yield judged(
        "managed queues",
        (not whole, WARN, "none: nothing is looked after. To begin, tag one", tag),
        (True, OK, f"{whole} by tag or by name", ""),
    )
    yield from drills(managed)
    blind = outside(doctor.trails, doctor.queues)
    missing = not_logged(doctor.trails, doctor.queues)
    partly = [calls for arn, calls in missing.items() if arn not in blind]
    unlogged = ", ".join(sorted(frozenset().union(*partly)))
    for queues, how, setting in (
        (blind, "lie outside the trails' selectors", "trail.queueArnPrefixes"),
        (partly, f"are logged in part: not {unlogged}", "trail.eventNames"),
    ):
        if queues:
            remedy = f"add them to {setting}, and deploy; `mendq cost` says what that costs"
            yield Check("selectors", WARN, f"{len(queues)} of {whole} {how}", remedy)


def drills(queues: Iterable[ManagedQueue]) -> Iterator[Check]:
    """A warning that names some of the queues marked as a drill's, where there are any."""
    if marked := [each for each in queues if DRILL_TAG in each.tags]:
        silent = f"tag {DRILL_TAG}, so nobody is paged; untag it where it is no drill"
        region = parts_of(marked[0].queue_arn).region
        says = f"{silent}: {shorten_list([each.name for each in marked])}"
        yield Check("drills", WARN, says, _sqs(region, "untag-queue", "--tag-keys", DRILL_TAG))


def _sqs(region: str, operation: str, *options: str) -> Command:
    return Command.aws(region, "sqs", operation, "--queue-url", "URL", *options)


# What is looked at in this order, by the name of the check that says where it may not be.
READS: Mapping[str, Callable[[Doctor], Iterable[Check]]] = {
    "stack": lambda doctor: doctor.deployment.look(),
    "alarms": lambda doctor: Alarms(doctor.account, doctor.deployment, doctor.now).look(),
    "topics": topics,
    "heartbeat": lambda doctor: heartbeat(doctor.account, doctor.now),
    "probe": lambda doctor: probe(doctor.account, doctor.now),
    "freeze": lambda doctor: freeze(doctor.account),
    "calendars": lambda doctor: calendars(doctor.account),
    "scan": lambda doctor: [round_check(last_round(doctor.account), doctor.account, doctor.now)],
    "trails": lambda doctor: trails_of(doctor.account, doctor.trails),
    "queues": _queues,
    TRAIL_BUCKET: trail_bucket,
}

"""All checks of `mendq doctor` in their order, and the facts that checks and output share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError
from msgspec import Struct, field
from msgspec.structs import asdict

from mendq.aws.clients import find_bucket_region
from mendq.aws.errors import error_code_of
from mendq.aws.queue import ManagedQueue
from mendq.cli.account import SCAN_ONLY_TEXT, Account
from mendq.cli.doctor.alarms import StackAlarms
from mendq.cli.doctor.check import Check, Command, Log, Status, run_checks
from mendq.cli.doctor.deployment import Deployment
from mendq.cli.doctor.life import (
    check_calendars,
    check_freeze,
    check_heartbeat,
    check_mutes,
    check_probe,
    check_scan,
    read_last_complete_scan,
    read_last_scan,
    read_scan_only_summary,
)
from mendq.cli.doctor.receivers import RECEIVERS_CHECK_NAME, check_receivers
from mendq.cli.doctor.visibility import (
    ANY_QUEUE,
    CLOUDTRAIL_LIMITS,
    SymptomVisibility,
    Trail,
    check_trail_files,
    check_trails,
    find_unlogged_calls,
    list_symptom_visibility,
    list_unlogged_queues,
    list_unread_trails,
)
from mendq.cli.output import shorten_list
from mendq.cli.queues import read_managed_queues
from mendq.model.queue import parse_queue_arn
from mendq.model.tags import DRILL_TAG
from mendq.notifications.notification import NIGHTLY_JOB_OFF_REASON

if TYPE_CHECKING:
    from mypy_boto3_sns.type_defs import SubscriptionTypeDef

TRAIL_BUCKET_CHECK_NAME = "bucket of the trail"
# SNS returns this in place of the ARN of a subscription that is not confirmed.
_PENDING_SUBSCRIPTION_ARN = "PendingConfirmation"
_CONFIRM_BY_MAIL_REMEDY = "follow the link in AWS's mail; it is good for 3 days"
_CONFIRM_BY_URL_REMEDY = (
    "have what listens at the URL ask for the SubscribeURL that SNS posted to it"
)


class Doctor(Struct, dict=True):
    """One run of `mendq doctor`: its account and time, and what its checks have read so far."""

    account: Account
    now: datetime
    checks: list[Check] = field(default_factory=list)
    # ARNs of the managed queues.
    queue_arns: list[str] = field(default_factory=list)
    trails: list[Trail] = field(default_factory=list)
    # The Lambdas' logs by function name.
    logs: dict[str, Log] = field(default_factory=dict)
    # True if the stack was deployed with the setting scanOnly.
    is_scan_only: bool = False

    @cached_property
    def deployment(self) -> Deployment:
        """The stack's resources."""
        return Deployment(self.account, self.now, self.logs)

    @cached_property
    def stack_alarms(self) -> StackAlarms:
        """The stack's alarms."""
        return StackAlarms(self.account, self.deployment, self.now)

    @property
    def symptom_visibilities(self) -> list[SymptomVisibility]:
        """For each symptom, the managed queues on which failed calls show it.

        If no queue is managed yet, ANY_QUEUE stands for any queue that the trails' selectors cover.
        """
        return list(list_symptom_visibility(self.trails, self.queue_arns or [ANY_QUEUE]))

    def document(self) -> dict[str, Any]:
        """Return the document that `mendq doctor --json` prints."""
        unlogged_calls = find_unlogged_calls(self.trails, self.queue_arns)
        return {
            "checks": [check.document() for check in self.checks],
            "logs": {function_name: asdict(log) for function_name, log in self.logs.items()},
            "managed_queues": self.queue_arns,
            "symptoms": [
                asdict(symptom_visibility) for symptom_visibility in self.symptom_visibilities
            ],
            "outside_selectors": list_unlogged_queues(self.trails, self.queue_arns),
            "not_logged": {arn: sorted(call_names) for arn, call_names in unlogged_calls.items()},
            "trails_not_read": list_unread_trails(self.trails),
            "never_seen": list(CLOUDTRAIL_LIMITS),
        }


class _Topic(Struct, frozen=True):
    """A topic that Mendq sends notifications to.

    Attributes:
        check_name: The name of its check.
        arn: The topic's ARN.
        missing_consequence: Who hears nothing if the topic does not exist.
        missing_remedy: What to do then.
        subscribe_remedy: What to do if nobody is subscribed.
    """

    check_name: str
    arn: str
    missing_consequence: str
    missing_remedy: str
    subscribe_remedy: str


def check_topics(doctor: Doctor) -> Iterator[Check]:
    """Yield one check for each of the topics `urgent` and `info`, and for each team's topic.

    Does the topic exist, and are its subscriptions confirmed? A topic that cannot be read does not
    hide the others. A scan-only stack has only the topic `urgent`.
    """
    settings = doctor.account.settings
    topics = [_make_stack_topic("urgent", settings.urgent_topic_arn)]
    if not doctor.is_scan_only:
        topics.append(_make_stack_topic("info", settings.info_topic_arn))
        for team, arn in sorted(settings.team_topic_arns.items()):
            topics.append(_make_team_topic(team, arn))
    for topic in topics:
        yield from run_checks(topic.check_name, partial(_check_topic, doctor.account, topic))


def _make_stack_topic(topic_kind: str, topic_arn: str) -> _Topic:
    return _Topic(
        check_name=f"topic {topic_kind}",
        arn=topic_arn,
        missing_consequence=f"nobody gets {topic_kind} notifications",
        missing_remedy="put an existing topic's ARN into notifications.topics, and deploy",
        subscribe_remedy=f"set notifications.{topic_kind} and deploy",
    )


def _make_team_topic(team: str, topic_arn: str) -> _Topic:
    return _Topic(
        check_name=f"topic of team {team}",
        arn=topic_arn,
        missing_consequence=f"team {team} gets no notifications about its queues",
        missing_remedy="put an existing topic's ARN into notifications.teams, and deploy",
        subscribe_remedy=f"subscribe team {team} to {topic_arn}, or take it out of "
        "notifications.teams",
    )


def _check_topic(account: Account, topic: _Topic) -> Iterator[Check]:
    """Yield the check of one topic."""
    sns = account.clients.sns
    subscriptions = []
    try:
        for page in sns.get_paginator("list_subscriptions_by_topic").paginate(TopicArn=topic.arn):
            subscriptions.extend(page["Subscriptions"])
    except sns.exceptions.NotFoundException:
        sentence = f"there is no topic {topic.arn}: {topic.missing_consequence}"
        yield Check(topic.check_name, Status.FAIL, sentence, topic.missing_remedy)
        return
    yield _check_subscriptions(topic, subscriptions)


def _check_subscriptions(topic: _Topic, subscriptions: Sequence[SubscriptionTypeDef]) -> Check:
    """Return the check of a topic that exists."""
    if not subscriptions:
        return Check(topic.check_name, Status.WARN, "nobody is subscribed", topic.subscribe_remedy)
    pending_subscriptions = [
        subscription
        for subscription in subscriptions
        if subscription["SubscriptionArn"] == _PENDING_SUBSCRIPTION_ARN
    ]
    subscription_count = len(subscriptions)
    if not pending_subscriptions:
        return Check(
            topic.check_name, Status.OK, f"{subscription_count} subscription(s), all confirmed"
        )
    # SNS sends no mail to an HTTP endpoint, so such a subscription is confirmed in another way.
    http_subscriptions = [
        subscription
        for subscription in pending_subscriptions
        if subscription["Protocol"].startswith("http")
    ]
    remedies = []
    if len(http_subscriptions) < len(pending_subscriptions):
        remedies.append(_CONFIRM_BY_MAIL_REMEDY)
    if http_subscriptions:
        remedies.append(_CONFIRM_BY_URL_REMEDY)
    status = Status.FAIL if len(pending_subscriptions) == subscription_count else Status.WARN
    sentence = f"{len(pending_subscriptions)} of {subscription_count} subscription(s) not confirmed"
    return Check(topic.check_name, status, sentence, "; ".join(remedies))


def check_trail_bucket(doctor: Doctor) -> Iterator[Check]:
    """Yield checks of the bucket that the nightly job reads: its files, and its region.

    The job runs without a VPC, so it can only reach buckets in its own region. If the stack has no
    nightly job, yield one check that says so. The files are checked only if a trail is known.
    """
    account = doctor.account
    if account.has_no_nightly_job:
        yield Check("nightly job", Status.OK, NIGHTLY_JOB_OFF_REASON)
        return
    bucket_name = account.output("TrailBucket")
    files_root = account.outputs.get("TrailRoot", "").removeprefix("s3://")
    if files_root and doctor.trails:
        yield check_trail_files(files_root, doctor.trails, doctor.queue_arns or [ANY_QUEUE])
    try:
        bucket_region = find_bucket_region(account.clients.s3, bucket_name)
    except ClientError as error:
        if error_code_of(error) not in ("404", "NoSuchBucket"):
            raise
        sentence = f"there is no bucket {bucket_name}: every night fails"
        remedy = "put an existing bucket's name into trail.bucket, and deploy"
        yield Check(TRAIL_BUCKET_CHECK_NAME, Status.FAIL, sentence, remedy)
        return
    if bucket_region is None:
        sentence = f"S3 does not say in which region {bucket_name} lies"
        remedy = Command.aws(
            account.region, "s3api", "get-bucket-location", "--bucket", bucket_name
        )
        yield Check(TRAIL_BUCKET_CHECK_NAME, Status.UNKNOWN, sentence, remedy)
    elif bucket_region != account.region:
        sentence = f"{bucket_name} lies in {bucket_region}, which the nightly job does not reach"
        remedy = f"deploy to {bucket_region}, or let Mendq make its own with trail.create: true"
        yield Check(TRAIL_BUCKET_CHECK_NAME, Status.FAIL, f"{sentence}: every night fails", remedy)
    else:
        yield Check(TRAIL_BUCKET_CHECK_NAME, Status.OK, f"{bucket_name} lies in {bucket_region}")


def check_queues(doctor: Doctor) -> Iterator[Check]:
    """Store the managed queues in `doctor`. Check their number, drill tags and logged calls."""
    queues = read_managed_queues(doctor.account)
    doctor.queue_arns = [queue.queue_arn for queue in queues]
    queue_count = len(queues)
    if queues:
        yield Check("managed queues", Status.OK, f"{queue_count} by tag or by name")
    else:
        sentence = "none: nothing is looked after. To begin, tag one"
        remedy = _make_sqs_command(doctor.account.region, "tag-queue", "--tags", "mendq=observe")
        yield Check("managed queues", Status.WARN, sentence, remedy)
    if doctor.is_scan_only:
        return
    yield from check_drill_tags(queues)
    unlogged_queues = list_unlogged_queues(doctor.trails, doctor.queue_arns)
    if unlogged_queues:
        sentence = f"{len(unlogged_queues)} of {queue_count} lie outside the trails' selectors"
        yield _make_selectors_check(sentence, "trail.queueArnPrefixes")
    partly_logged_queues = []
    unlogged_call_names = set[str]()
    for queue_arn, unlogged_queue_calls in find_unlogged_calls(
        doctor.trails, doctor.queue_arns
    ).items():
        if queue_arn not in unlogged_queues:
            partly_logged_queues.append(queue_arn)
            unlogged_call_names |= unlogged_queue_calls
    if partly_logged_queues:
        unlogged_call_names_text = ", ".join(sorted(unlogged_call_names))
        sentence = (
            f"{len(partly_logged_queues)} of {queue_count} are logged in part: not "
            f"{unlogged_call_names_text}"
        )
        yield _make_selectors_check(sentence, "trail.eventNames")


def _make_selectors_check(sentence: str, setting_name: str) -> Check:
    remedy = f"add them to {setting_name}, and deploy; `mendq cost` says what that costs"
    return Check("selectors", Status.WARN, sentence, remedy)


def check_drill_tags(queues: Iterable[ManagedQueue]) -> Iterator[Check]:
    """Yield a warning if queues have the tag of a drill, because Mendq pages nobody about them."""
    queues_with_drill_tag = [queue for queue in queues if DRILL_TAG in queue.tags]
    if queues_with_drill_tag:
        region = parse_queue_arn(queues_with_drill_tag[0].queue_arn).region
        queue_names_text = shorten_list([queue.name for queue in queues_with_drill_tag])
        sentence = (
            f"tag {DRILL_TAG}, so nobody is paged; untag it where it is no drill: "
            f"{queue_names_text}"
        )
        remedy = _make_sqs_command(region, "untag-queue", "--tag-keys", DRILL_TAG)
        yield Check("drills", Status.WARN, sentence, remedy)


def _make_sqs_command(region: str, operation: str, *options: str) -> Command:
    return Command.aws(region, "sqs", operation, "--queue-url", "URL", *options)


def _check_stack(doctor: Doctor) -> Iterator[Check]:
    return doctor.deployment.check_resources()


def _check_alarms(doctor: Doctor) -> Iterator[Check]:
    return doctor.stack_alarms.check_alarms()


def _check_alarm_actions(doctor: Doctor) -> Iterator[Check]:
    return doctor.stack_alarms.check_actions()


def _check_mute_rules(doctor: Doctor) -> Iterator[Check]:
    return doctor.stack_alarms.check_mute_rules()


def _check_heartbeat(doctor: Doctor) -> Iterator[Check]:
    return check_heartbeat(doctor.account, doctor.now)


def _check_probe(doctor: Doctor) -> Iterator[Check]:
    return check_probe(doctor.account, doctor.now)


def _check_freeze(doctor: Doctor) -> Iterator[Check]:
    return check_freeze(doctor.account)


def _check_calendars(doctor: Doctor) -> Iterator[Check]:
    return check_calendars(doctor.account)


def _check_scan(doctor: Doctor) -> Iterator[Check]:
    if doctor.is_scan_only:
        yield check_scan(read_scan_only_summary(doctor.account), doctor.account, doctor.now)
        return
    yield check_scan(read_last_scan(doctor.account), doctor.account, doctor.now)


def _check_mutes(doctor: Doctor) -> Iterator[Check]:
    if not doctor.account.settings.mutes:
        return
    read_scan = read_scan_only_summary if doctor.is_scan_only else read_last_complete_scan
    yield from check_mutes(doctor.account, read_scan(doctor.account), doctor.now)


def _check_trails(doctor: Doctor) -> Iterator[Check]:
    return check_trails(doctor.account, doctor.trails)


def _check_receivers(doctor: Doctor) -> Iterator[Check]:
    return check_receivers(doctor.account, doctor.queue_arns, doctor.now)


def _describe_scan_only_stack(doctor: Doctor) -> Iterator[Check]:
    """Yield the check that says what a scan-only stack does not have. It is always OK."""
    parts_text = "no trail, probe, cases, nightly job or weekly report"
    sentence = f"stack {doctor.account.stack} {SCAN_ONLY_TEXT}; it has {parts_text}"
    yield Check("scan-only", Status.OK, sentence)


# The checks in their order. The key is the name of the check that reports if AWS refuses to answer.
CHECK_FUNCTION_BY_NAME: Mapping[str, Callable[[Doctor], Iterable[Check]]] = {
    "stack": _check_stack,
    "alarms": _check_alarms,
    "alarm actions": _check_alarm_actions,
    "mute-rules": _check_mute_rules,
    "topics": check_topics,
    "heartbeat": _check_heartbeat,
    "probe": _check_probe,
    "freeze": _check_freeze,
    "calendars": _check_calendars,
    "scan": _check_scan,
    "mutes": _check_mutes,
    "trails": _check_trails,
    "queues": check_queues,
    RECEIVERS_CHECK_NAME: _check_receivers,
    TRAIL_BUCKET_CHECK_NAME: check_trail_bucket,
}
# The checks of a scan-only stack.
SCAN_ONLY_CHECK_FUNCTION_BY_NAME: Mapping[str, Callable[[Doctor], Iterable[Check]]] = {
    "scan-only": _describe_scan_only_stack,
    "stack": _check_stack,
    "alarms": _check_alarms,
    "alarm actions": _check_alarm_actions,
    "mute-rules": _check_mute_rules,
    "topics": check_topics,
    "scan": _check_scan,
    "mutes": _check_mutes,
    "queues": check_queues,
}

"""Symptom `messages_about_to_expire`: messages wait so long that SQS will soon delete them.

The fault: SQS deletes a message when it is older than the queue's `MessageRetentionPeriod`.
Consumers are too slow or have stopped, and the oldest messages come close to that age.

How it shows: the oldest message is older than three quarters of the retention period, and at the
pace of the measured time the backlog is not worked off before that message expires.

What Mendq changes: it proposes a retention period of 14 days, SQS's maximum. If the queue has that
already, Mendq notifies people.

Why that is safe: a longer retention deletes nothing. (A shorter one would delete old messages at
once, so Mendq never lowers a retention.) A short retention may be a rule of the company, and old
messages may be worthless to the consumers, so by default a person approves the change. If
consumers finish messages of a queue that keeps them for less than an hour, Mendq proposes nothing:
then old ones expire on purpose. Nor does it if old messages expire already and nothing is received,
as from an archive. `messages_expire` reports both, as hygiene.
"""

from __future__ import annotations

from mendq.catalogue.examples import DAY_SECONDS, as_dlq, replace_values, standard_queue
from mendq.catalogue.messages.messages_expire import SHORT_RETENTION_SECONDS
from mendq.catalogue.messages.messages_expire import detect as find_expired_messages
from mendq.catalogue.symptom import (
    SQS_GUIDE,
    DetectedFault,
    Detection,
    EvidenceKind,
    FixedSymptom,
    QueueExample,
    QueueNearMiss,
)
from mendq.model.facts import Facts, Need
from mendq.model.limits import Limits
from mendq.model.metrics import Measurement
from mendq.model.plan import Escalate, Ignore, Plan, Refusal
from mendq.model.severity_class import SeverityClass
from mendq.model.steps import SetMessageRetention
from mendq.notifications.commands import list_consumers_command
from mendq.notifications.text import format_count, format_duration

LONGEST_RETENTION_SECONDS = SetMessageRetention.maximum
# The oldest message is in danger if it is older than this share of the retention period.
EXPIRING_SHARE_OF_RETENTION = 0.75


def detect(facts: Facts) -> DetectedFault | None:
    """Find a queue whose oldest message will expire before consumers reach it.

    A DLQ is not reported. There the age metric counts from the move to the DLQ, but SQS deletes a
    message by the time of its first send.
    """
    measurement = facts.measurement
    if measurement is None or facts.receives_only_dlq_messages:
        return None
    expired_messages = find_expired_messages(facts)
    if expired_messages is not None and expired_messages.is_hygiene:
        return None
    oldest_age_seconds = measurement.now.oldest_age_seconds
    retention_seconds = facts.retention_seconds
    if (
        oldest_age_seconds <= EXPIRING_SHARE_OF_RETENTION * retention_seconds
        or (retention_seconds < SHORT_RETENTION_SECONDS and measurement.deleted)
        or _is_backlog_finished_in_time(measurement, retention_seconds - oldest_age_seconds)
    ):
        return None
    return DetectedFault(
        f"the oldest message has waited {oldest_age_seconds:,} s of the {retention_seconds:,} s "
        f"that it is kept; {format_count(measurement.now.backlog, 'message')} left, "
        f"{measurement.deleted:,} deleted in {format_duration(measurement.duration)}"
    )


def _is_backlog_finished_in_time(measurement: Measurement, seconds_left: int) -> bool:
    """Return True if consumers finish the backlog in `seconds_left`, at their measured pace.

    False if nothing was deleted. False also if the same message was the oldest all the time: the
    pace at which other messages were finished proves nothing about that message.
    """
    if measurement.is_oldest_unchanged or not measurement.deleted:
        return False
    window_count_to_finish_backlog = measurement.now.backlog / measurement.deleted
    return window_count_to_finish_backlog * measurement.hours * 3600 <= seconds_left


def plan(facts: Facts, _limits: Limits) -> Plan | Refusal:
    """Plan the longest retention period; notify people if the queue has it already."""
    fault = detect(facts)
    current_retention_seconds = facts.retention_seconds
    if fault is None:
        reason = "its messages are younger by now, or will be gone in time"
        return Ignore("need_already_met", reason)
    if current_retention_seconds >= LONGEST_RETENTION_SECONDS:
        reason = (
            f"{fault.because}. SQS keeps none for longer than {LONGEST_RETENTION_SECONDS:,} s: let "
            "consumers catch up, or save the messages elsewhere before they are lost"
        )
        return Escalate("retention_at_its_longest", reason, list_consumers_command(facts.queue_arn))
    reason = (
        f"{fault.because}. Kept for {LONGEST_RETENTION_SECONDS:,} s they outlast a long weekend; a "
        "short retention can be policy, and old messages can be worth less than none"
    )
    if facts.dlq_arn is not None and not facts.is_fifo:
        reason += ". Its DLQ counts from the first send, so it has to keep messages as long"
    return Plan(
        (SetMessageRetention(current_retention_seconds, LONGEST_RETENTION_SECONDS),), reason
    )


_QUEUE_OF_SLOW_CONSUMERS = standard_queue(
    MessageRetentionPeriod=4 * DAY_SECONDS,
    ApproximateNumberOfMessages=5_300,
    sent=600,
    received=300,
    deleted=300,
    backlog_before=5_000,
    backlog_now=5_300,
    oldest_age_seconds_before=3 * DAY_SECONDS - 3_600,
    oldest_age_seconds_now=3 * DAY_SECONDS + 7_200,
)
_QUEUE_WITH_LONGEST_RETENTION = replace_values(
    _QUEUE_OF_SLOW_CONSUMERS,
    MessageRetentionPeriod=LONGEST_RETENTION_SECONDS,
    deleted=0,
    oldest_age_seconds_now=11 * DAY_SECONDS,
)
_FAST_CONSUMER_COUNTS = {"received": 5_000, "deleted": 5_000}
_RAISE_RETENTION_STEPS = (SetMessageRetention(4 * DAY_SECONDS, LONGEST_RETENTION_SECONDS),)

MESSAGES_ABOUT_TO_EXPIRE = FixedSymptom(
    name="messages_about_to_expire",
    sentence="Messages wait so long that SQS will soon drop them.",
    plan_in_words="Raise MessageRetentionPeriod to 14 days; page where it is that long already.",
    first_step="Raise the retention period to 14 days, then catch up.",
    aws_page=f"{SQS_GUIDE}/setting-up-message-retention.html",
    evidence_kinds=(EvidenceKind(SeverityClass.LOSING),),
    steps=(SetMessageRetention,),
    plan=plan,
    detection=Detection(detect, frozenset({Need.MEASUREMENTS, Need.DLQ_SOURCES})),
    examples=lambda: (
        QueueExample(
            "consumers fall behind, three of four days are over",
            _QUEUE_OF_SLOW_CONSUMERS,
            _RAISE_RETENTION_STEPS,
        ),
        QueueExample(
            "nothing longer is to be had", _QUEUE_WITH_LONGEST_RETENTION, "retention_at_its_longest"
        ),
        QueueNearMiss(
            "just three quarters",
            replace_values(_QUEUE_OF_SLOW_CONSUMERS, oldest_age_seconds_now=3 * DAY_SECONDS),
        ),
        QueueNearMiss(
            "old, and gone by tonight",
            replace_values(_QUEUE_OF_SLOW_CONSUMERS, **_FAST_CONSUMER_COUNTS, backlog_now=600),
        ),
        QueueNearMiss(
            "kept for less than an hour on purpose",
            replace_values(
                _QUEUE_OF_SLOW_CONSUMERS,
                MessageRetentionPeriod=3_599,
                oldest_age_seconds_now=3_590,
            ),
        ),
        QueueNearMiss(
            "an archive that forgets",
            replace_values(
                _QUEUE_OF_SLOW_CONSUMERS,
                MessageRetentionPeriod=14_400,
                oldest_age_seconds_now=14_000,
                highest_oldest_age_seconds=14_390,
                sent=900,
                received=0,
                deleted=0,
                backlog_before=600,
                backlog_now=600,
            ),
        ),
        QueueNearMiss(
            "DLQ messages: the metric counts from the move", as_dlq(_QUEUE_OF_SLOW_CONSUMERS)
        ),
    ),
)

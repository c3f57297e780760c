"""Symptom `messages_about_to_expire`: messages wait so long that SQS will soon delete them.

The fault: SQS deletes a message when it is older than the queue's `MessageRetentionPeriod`.
Consumers are too slow or have stopped, and the oldest messages come close to that age.

How it shows: the oldest message is older than three quarters of the retention period, and at the
pace of the measured time the backlog is not worked off before that message expires.

What Mendq changes: it proposes a retention period of 14 days, SQS's maximum. If the queue has that
already, Mendq notifies people.

Why that is safe: a longer retention deletes nothing. (A shorter one would delete old messages at
once, so Mendq never lowers a retention.) A short retention may be a rule of the company, and old
messages may be worthless to the consumers, so by default a person approves the change.
"""

from __future__ import annotations

from mendq.catalogue.examples import A_DAY, as_dlq, standard, vary
from mendq.catalogue.symptom import (
    SQS_GUIDE,
    DetectedFault,
    Detection,
    FixedSymptom,
    QueueExample,
    QueueNearMiss,
)
from mendq.model.facts import Facts, Need
from mendq.model.limits import Limits
from mendq.model.metrics import Measurement
from mendq.model.plan import Escalate, Ignore, Plan, Refusal
from mendq.model.steps import SetMessageRetention
from mendq.notifications.commands import list_consumers_command
from mendq.notifications.text import format_count, format_duration

LONGEST_SECONDS = SetMessageRetention.maximum
# The oldest message is in danger if it is older than this share of the retention period.
EXPIRING_SHARE = 0.75


def detect(facts: Facts) -> DetectedFault | None:
    """Find a queue whose oldest message will expire before consumers reach it.

    A DLQ is not reported. There the age metric counts from the move to the DLQ, but SQS deletes a
    message by the time of its first send.
    """
    measured = facts.measurement
    if measured is None or facts.receives_only_dlq_messages:
        return None
    age = measured.now.oldest_age_seconds
    retention = facts.retention_seconds
    if age <= EXPIRING_SHARE * retention or _is_finished_in_time(measured, retention - age):
        return None
    return DetectedFault(
        f"the oldest message has waited {age:,} s of the {retention:,} s that it is kept; "
        f"{format_count(measured.now.backlog, 'message')} left, {measured.deleted:,} deleted in "
        f"{format_duration(measured.duration)}"
    )


def _is_finished_in_time(measured: Measurement, left_seconds: int) -> bool:
    """Return True if consumers finish the backlog in that time, at the pace of the measured time.

    False if nothing was deleted. False also if the same message was the oldest all the time: the
    pace at which the others were finished proves nothing about that message.
    """
    if measured.is_oldest_unchanged or not measured.deleted:
        return False
    windows_needed = measured.now.backlog / measured.deleted
    return windows_needed * measured.hours * 3600 <= left_seconds


def plan(facts: Facts, _limits: Limits) -> Plan | Refusal:
    """Plan the longest retention period; notify people if the queue has it already."""
    found = detect(facts)
    current = facts.retention_seconds
    if found is None:
        reason = "its messages are younger by now, or will be gone in time"
        return Ignore("need_already_met", reason)
    if current >= LONGEST_SECONDS:
        reason = (
            f"{found.because}. SQS keeps none for longer than {LONGEST_SECONDS:,} s: let consumers "
            "catch up, or save the messages elsewhere before they are lost"
        )
        return Escalate("retention_at_its_longest", reason, list_consumers_command(facts.queue_arn))
    reason = (
        f"{found.because}. Kept for {LONGEST_SECONDS:,} s they outlast a long weekend; a short "
        "retention can be policy, and old messages can be worth less than none"
    )
    if facts.dlq_arn is not None and not facts.is_fifo:
        reason += ". Its DLQ counts from the first send, so it has to keep messages as long"
    return Plan((SetMessageRetention(current, LONGEST_SECONDS),), reason)


_SLOW = standard(
    MessageRetentionPeriod=4 * A_DAY,
    ApproximateNumberOfMessages=5_300,
    sent=600,
    received=300,
    deleted=300,
    backlog_before=5_000,
    backlog_now=5_300,
    oldest_age_seconds_before=3 * A_DAY - 3_600,
    oldest_age_seconds_now=3 * A_DAY + 7_200,
)
_AT_MAXIMUM = vary(
    _SLOW, MessageRetentionPeriod=LONGEST_SECONDS, deleted=0, oldest_age_seconds_now=11 * A_DAY
)
_FAST_PACE = {"received": 5_000, "deleted": 5_000}
_RAISED = (SetMessageRetention(4 * A_DAY, LONGEST_SECONDS),)

MESSAGES_ABOUT_TO_EXPIRE = FixedSymptom(
    name="messages_about_to_expire",
    sentence="Messages wait so long that SQS will soon drop them.",
    plan_in_words="Raise MessageRetentionPeriod to 14 days; page where it is that long already.",
    aws_page=f"{SQS_GUIDE}/setting-up-message-retention.html",
    steps=(SetMessageRetention,),
    plan=plan,
    detection=Detection(
        detect, frozenset({Need.MEASUREMENTS, Need.DLQ_SOURCES}), lambda facts: facts.visible > 0
    ),
    examples=lambda: (
        QueueExample("consumers fall behind, three of four days are over", _SLOW, _RAISED),
        QueueExample("nothing longer is to be had", _AT_MAXIMUM, "retention_at_its_longest"),
        QueueNearMiss("just three quarters", vary(_SLOW, oldest_age_seconds_now=3 * A_DAY)),
        QueueNearMiss("old, and gone by tonight", vary(_SLOW, **_FAST_PACE, backlog_now=600)),
        QueueNearMiss("DLQ messages: the metric counts from the move", as_dlq(_SLOW)),
    ),
)

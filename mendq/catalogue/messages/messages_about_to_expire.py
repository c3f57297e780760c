"""Messages wait so long that SQS will soon drop them."""

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
from mendq.notifications.commands import consumers_of
from mendq.notifications.text import format_count, span

LONGEST_SECONDS = SetMessageRetention.maximum
EXPIRING_SHARE = 0.75


def detect(facts: Facts) -> DetectedFault | None:
    """The oldest message is three quarters through its time, and will not be gone before its end.

    Not of a DLQ: there the metric counts from the move, and messages expire by when
    they were first sent.
    """
    measured = facts.measurement
    if measured is None or facts.receives_only_dlq_messages:
        return None
    age, retention = measured.now.oldest_age_seconds, facts.retention_seconds
    if age <= EXPIRING_SHARE * retention or _gone_in_time(measured, retention - age):
        return None
    return DetectedFault(
        f"the oldest message has waited {age:,} s of the {retention:,} s that it is kept; "
        f"{format_count(measured.now.backlog, 'message')} left, {measured.deleted:,} deleted in "
        f"{span(measured.duration)}"
    )


def _gone_in_time(measured: Measurement, left_seconds: int) -> bool:
    """Whether all that waits is deleted by then at the pace of the window.

    Where the same message was the oldest all the while, the pace of the others says nothing.
    """
    if measured.is_oldest_unchanged or not measured.deleted:
        return False
    windows_needed = measured.now.backlog / measured.deleted
    return windows_needed * measured.hours * 3600 <= left_seconds


def plan(facts: Facts, _limits: Limits) -> Plan | Refusal:
    """The longest retention there is; a person where the queue has it."""
    found, current = detect(facts), facts.retention_seconds
    if found is None:
        reason = "its messages are younger by now, or will be gone in time"
        return Ignore("need_already_met", reason)
    if current >= LONGEST_SECONDS:
        reason = (
            f"{found.because}. SQS keeps none for longer than {LONGEST_SECONDS:,} s: let consumers "
            "catch up, or save the messages elsewhere before they are lost"
        )
        return Escalate("retention_at_its_longest", reason, consumers_of(facts.queue_arn))
    reason = (
        f"{found.because}. Kept for {LONGEST_SECONDS:,} s they outlast a long weekend; a short "
        "retention can be policy, and old messages can be worth less than none"
    )
    if facts.dlq_arn is not None and not facts.is_fifo:
        reason += ". Its DLQ counts from the first send, so it has to keep messages as long"
    return Plan((SetMessageRetention(current, LONGEST_SECONDS),), reason)


_BEHIND = standard(
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
_NOTHING_LONGER = vary(
    _BEHIND, MessageRetentionPeriod=LONGEST_SECONDS, deleted=0, oldest_age_seconds_now=11 * A_DAY
)
_QUICKER = {"received": 5_000, "deleted": 5_000}
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
        QueueExample("consumers fall behind, three of four days are over", _BEHIND, _RAISED),
        QueueExample("nothing longer is to be had", _NOTHING_LONGER, "retention_at_its_longest"),
        QueueNearMiss("just three quarters", vary(_BEHIND, oldest_age_seconds_now=3 * A_DAY)),
        QueueNearMiss("old, and gone by tonight", vary(_BEHIND, **_QUICKER, backlog_now=600)),
        QueueNearMiss("DLQ messages: the metric counts from the move", as_dlq(_BEHIND)),
    ),
)

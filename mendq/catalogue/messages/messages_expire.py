"""Symptom `messages_expire`: SQS deletes messages that no consumer has finished.

The fault: SQS deletes a message when it is older than the queue's `MessageRetentionPeriod`.
Consumers are so slow, or so few, that messages reach that age. They are lost, and no call fails.

How it shows: messages left the queue without a delete, and the oldest message is nearly as old as
the retention period. Receives without a delete do not explain them: such messages went to a DLQ, or
consumers could not handle them.

What Mendq does: it pages, with the number of lost messages. `messages_about_to_expire` proposes a
longer retention period for the same queue. The queue may be meant to forget: nothing was received
at all, as from an archive, or it keeps messages for less than an hour, so that old ones are worth
nothing. Then Mendq does not page, and a scan tells it once, as hygiene.
"""

from __future__ import annotations

from typing import Any

from mendq.catalogue.examples import as_dlq, queue_with_dlq, replace_values, standard_queue
from mendq.catalogue.symptom import (
    NEEDS_OF_SUMS_OF_A_SOURCE,
    SQS_GUIDE,
    DetectedFault,
    Detection,
    EvidenceKind,
    NotifiedSymptom,
    QueueExample,
    QueueNearMiss,
    RefusalExample,
)
from mendq.model.facts import Facts
from mendq.model.limits import Limits
from mendq.model.metrics import Measurement
from mendq.model.plan import Escalate, Refusal, Refuse
from mendq.model.severity_class import SeverityClass
from mendq.model.steps import SetMessageRetention
from mendq.notifications.commands import list_consumers_command
from mendq.notifications.text import format_count, format_duration

# Messages expire if the oldest one is at least as old as this share of the retention period. SQS
# reports ages once a minute and deletes expired messages a little late or early.
EXPIRED_SHARE_OF_RETENTION = 0.9
# SQS's gauges are approximate: a difference of this share of the backlog may be none.
INEXACT_SHARE_OF_BACKLOG = 0.02
# A retention period below this was chosen for messages that are soon worth nothing: the default of
# SQS is four days.
SHORT_RETENTION_SECONDS = 3_600
_CONSUMERS_TOO_SLOW = EvidenceKind(SeverityClass.LOSING, "consumers read the queue")
_ON_PURPOSE = EvidenceKind(
    SeverityClass.HYGIENE,
    "messages may expire on purpose: nothing reads the queue, or it keeps "
    "messages for less than an hour",
)
_CONTRADICTING_TIMES = EvidenceKind(
    SeverityClass.WILL_LOSE,
    "in a template: retention is over before the delay, the visibility timeout or all receives",
    is_of_template=True,
)
# These symptoms explain why messages are not finished in time.
EXPLAINING_SYMPTOMS = frozenset(
    {"consumer_failing", "consumer_stopped", "function_errors", "function_times_out"}
)


def may_expire_on_purpose(facts: Facts, measurement: Measurement) -> bool:
    """Return True if messages may expire on purpose.

    Nothing was received, as from an archive. Or the retention period is so short that it was chosen
    for it, and consumers finish messages.
    """
    return measurement.received == 0 or (
        facts.retention_seconds < SHORT_RETENTION_SECONDS and measurement.deleted > 0
    )


def detect(facts: Facts) -> DetectedFault | None:
    """Find a queue from which messages vanish at the age at which SQS deletes them.

    A DLQ is not reported: there the age counts from the move to the DLQ.
    """
    measurement = facts.measurement
    if measurement is None or facts.receives_only_dlq_messages or facts.move_task_running:
        return None
    if EXPLAINING_SYMPTOMS & facts.open_symptoms:
        return None
    lost_message_count = measurement.messages_gone_undeleted
    largest_backlog = max(measurement.before.backlog, measurement.now.backlog)
    tolerated_difference = max(
        measurement.balance_tolerance, INEXACT_SHARE_OF_BACKLOG * largest_backlog
    )
    is_old_enough = (
        measurement.highest_oldest_age_seconds
        >= EXPIRED_SHARE_OF_RETENTION * facts.retention_seconds
    )
    if (
        not is_old_enough
        or lost_message_count <= tolerated_difference
        or measurement.fruitless_receives >= lost_message_count
    ):
        return None
    is_on_purpose = may_expire_on_purpose(facts, measurement)
    return DetectedFault(
        f"about {format_count(lost_message_count, 'message')} expired unread in "
        f"{format_duration(measurement.duration)}: SQS keeps a message for "
        f"{facts.retention_seconds:,} s, and the oldest was "
        f"{measurement.highest_oldest_age_seconds:,} s old. {measurement.sent:,} arrived, and "
        f"consumers deleted {measurement.deleted:,}",
        seconds_left=None if is_on_purpose else 0.0,
        is_hygiene=is_on_purpose,
        evidence_kind=_ON_PURPOSE if is_on_purpose else _CONSUMERS_TOO_SLOW,
    )


def plan(facts: Facts, _limits: Limits) -> Refusal:
    """Return the refusal that notifies people: a person must decide what the messages are worth.

    It pages, unless messages may expire on purpose (`may_expire_on_purpose`). On a standard queue
    a message keeps its age when it moves to the DLQ, so a longer retention period needs one as long
    there: otherwise SQS deletes the message in the DLQ soon after the move.
    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html
    """
    command = list_consumers_command(facts.queue_arn)
    if facts.measurement is not None and may_expire_on_purpose(facts, facts.measurement):
        advice = (
            "Nothing receives from it. If its messages may expire, as in an archive, do nothing; "
            "otherwise start its consumer"
            if facts.measurement.received == 0
            else "If its retention is short on purpose, do nothing; otherwise raise it"
        )
        return Refuse("messages_expire", f"{facts.found}. {advice}", command)
    reason = (
        f"{facts.found}. These messages are lost. Run more consumers at once or make them faster. "
        "A longer retention period (14 days at most) gives them time, unless a short one is policy"
    )
    if facts.dlq_arn is not None and not facts.is_fifo:
        reason += (
            f". First set MessageRetentionPeriod of its DLQ to {SetMessageRetention.maximum}: a "
            "message keeps its age when it moves there. The change takes up to 15 minutes"
        )
    return Escalate("messages_expire", reason, command)


def _make_example_queue(**overrides: Any) -> Facts:
    """Return a queue with a retention of an hour whose consumers are too slow."""
    counts = {
        "sent": 2_280,
        "received": 1_719,
        "deleted": 1_719,
        "backlog_before": 117,
        "backlog_now": 345,
        "highest_oldest_age_seconds": 3_566,
    }
    return standard_queue(
        MessageRetentionPeriod=3_600,
        ApproximateNumberOfMessages=345,
        **{**counts, **overrides},
    )


MESSAGES_EXPIRE = NotifiedSymptom(
    name="messages_expire",
    sentence="SQS deletes messages that nobody has read, because they are too old.",
    plan_in_words="Page with how many messages expired. If they may expire on purpose, list the "
    "finding as hygiene and do not page.",
    habit="keeps losing messages that expire",
    first_step="Add or start consumers, or raise the retention period.",
    aws_page=f"{SQS_GUIDE}/setting-up-message-retention.html",
    evidence_kinds=(_CONSUMERS_TOO_SLOW, _ON_PURPOSE, _CONTRADICTING_TIMES),
    plan=plan,
    gives_way_to=EXPLAINING_SYMPTOMS,
    detection=Detection(
        detect,
        NEEDS_OF_SUMS_OF_A_SOURCE,
    ),
    examples=lambda: (
        QueueExample("consumers are too slow", _make_example_queue(), "messages_expire"),
        QueueExample(
            "the only consumer finishes one message in a while",
            _make_example_queue(
                sent=961, received=12, deleted=12, backlog_before=163, backlog_now=162
            ),
            "messages_expire",
        ),
        QueueExample(
            "consumers are too slow, and the queue has a DLQ",
            replace_values(
                _make_example_queue(), RedrivePolicy=queue_with_dlq().attributes["RedrivePolicy"]
            ),
            "messages_expire",
        ),
        QueueNearMiss(
            "old messages, and all are read in time",
            _make_example_queue(deleted=2_052, received=2_052),
        ),
        QueueNearMiss(
            "young messages are purged", _make_example_queue(highest_oldest_age_seconds=3_239)
        ),
        QueueNearMiss(
            "a large backlog that SQS counts inexactly",
            _make_example_queue(
                sent=100, received=100, deleted=100, backlog_before=9_000, backlog_now=8_850
            ),
        ),
        QueueNearMiss(
            "the DLQ takes them",
            replace_values(
                _make_example_queue(received=2_800),
                RedrivePolicy=queue_with_dlq(3).attributes["RedrivePolicy"],
            ),
        ),
        QueueNearMiss(
            "DLQ messages are moved out of it", _make_example_queue(move_task_running=True)
        ),
        QueueNearMiss("a DLQ", as_dlq(_make_example_queue())),
        RefusalExample(
            "an archive that nobody reads is no page",
            _make_example_queue(
                sent=961, received=0, deleted=0, backlog_before=163, backlog_now=162
            ),
            "messages_expire",
        ),
        RefusalExample(
            "a retention of less than an hour is no page",
            replace_values(_make_example_queue(), MessageRetentionPeriod=3_599),
            "messages_expire",
        ),
    ),
)

"""Symptom `fifo_group_blocked`: one message that always fails blocks its FIFO message group.

The fault: a FIFO queue keeps the order within a group. It returns no later message while an earlier
one is in flight. If the first message of a group always fails, it is received again after each
visibility timeout, and the messages behind it wait until it expires.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/using-messagegroupid-property.html

How it shows: one message is the oldest for all of the measured time, and about one receive per
visibility timeout is not followed by a delete. `stuck_group.py` tells this from failures by chance
and from a consumer that is merely slow.

What Mendq changes: it proposes a DLQ, which takes the message after `maxReceiveCount` receives, so
the group continues. If the queue has a DLQ that takes the message only hours later, Mendq notifies
people.

Why a person decides: the group continues without the failed message, which is right only if the
order does not matter. Good messages of the group may move to the DLQ together with it
(`mendq/catalogue/dlq/moved_along.py` counts them). While the visibility timeout is too short or the
consumers fail, Mendq proposes no DLQ: it would take good messages.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from mendq.catalogue.dlq.attach import SYMPTOMS_TO_FIX_FIRST, has_no_dlq, plan_new_dlq
from mendq.catalogue.dlq.moved_along import (
    describe_good_messages,
    make_good_messages_section,
    require_approval,
)
from mendq.catalogue.examples import (
    EXAMPLE_TIME,
    QUEUE_ARN,
    STANDARD_ARN,
    as_dlq,
    measurement,
    queue,
    replace_values,
)
from mendq.catalogue.fifo.stuck_group import (
    MINIMUM_RECEIVES_OF_STUCK_MESSAGE,
    does_one_group_block,
    is_oldest_message_stuck,
)
from mendq.catalogue.symptom import (
    SQS_GUIDE,
    DetectedFault,
    Detection,
    EvidenceKind,
    FixedSymptom,
    QueueExample,
    QueueNearMiss,
)
from mendq.model.facts import Facts, Need, QueueFacts
from mendq.model.frameworks import CONSUMER_TAG
from mendq.model.limits import Limits
from mendq.model.metrics import DATAPOINT_PERIOD, RecentCounts
from mendq.model.plan import Escalate, Ignore, Plan, Refusal
from mendq.model.queue import DEFAULT_MAX_RECEIVE_COUNT, RedrivePolicy, arn_of_dlq
from mendq.model.severity_class import SeverityClass
from mendq.model.steps import AttachDlq, CreateDlq
from mendq.notifications.commands import dlq_messages_command
from mendq.notifications.text import format_count, format_duration


def detect(facts: Facts) -> DetectedFault | None:
    """Find a message that is received again and again and blocks its group, or the whole queue.

    None if the queue has a DLQ that takes the message soon, or should have taken it by now.
    """
    measurement = facts.measurement
    if measurement is None or facts.receives_only_dlq_messages or not is_possible(facts):
        return None
    if facts.move_task_running or (facts.dlq_arn and _estimate_seconds_until_dlq(facts) <= 0):
        return None
    oldest_age_text = f"its oldest message has waited {measurement.now.oldest_age_seconds:,} s"
    if does_one_group_block(measurement):
        return DetectedFault(
            f"{oldest_age_text}; in {format_duration(measurement.duration)} "
            f"{measurement.received:,} receives led to {measurement.deleted:,} deletes, one group "
            f"is in flight, {format_count(measurement.now.visible, 'message')} waiting"
        )
    measurement_of_standstill = measurement.recent.standstill
    if measurement_of_standstill is None or not is_oldest_message_stuck(
        measurement, facts.visibility_seconds
    ):
        return None
    standstill_duration = min(
        measurement_of_standstill.duration, timedelta(seconds=measurement.now.oldest_age_seconds)
    )
    return DetectedFault(
        f"{oldest_age_text}, and was the oldest for the last "
        f"{format_duration(standstill_duration)}. In that time consumers deleted "
        f"{format_count(measurement_of_standstill.deleted, 'message')}, and "
        f"{measurement_of_standstill.fruitless_receives:,} receives were not followed by a delete, "
        "as if one message is received after each visibility timeout of "
        f"{facts.visibility_seconds:,} s. At least one group is held up; "
        f"{format_count(measurement.now.groups_in_flight or 0, 'group')} in flight"
    )


def is_possible(facts: Facts) -> bool:
    """Return True for a FIFO queue without a DLQ that takes the message soon."""
    has_redrive_policy = facts.attributes.get(AttachDlq.attribute)
    max_receive_count = facts.max_receive_count or 0
    return facts.is_fifo and (
        not has_redrive_policy or max_receive_count > MINIMUM_RECEIVES_OF_STUCK_MESSAGE
    )


def _estimate_seconds_until_dlq(facts: Facts) -> int:
    """Return the seconds until the DLQ takes the oldest message; 0 or less if that time is over.

    This assumes one receive of the message after each visibility timeout.
    """
    oldest_age_seconds = facts.measurement.now.oldest_age_seconds if facts.measurement else 0
    return (facts.max_receive_count or 0) * facts.visibility_seconds - oldest_age_seconds


def plan(facts: Facts, _limits: Limits) -> Plan | Refusal:
    """Plan a DLQ that takes the failing message.

    If the queue has a DLQ already, notify people and say when the DLQ will take the message.
    """
    fault = detect(facts)
    if fault is None:
        return Ignore("need_already_met", _describe_queue_without_fault(facts))
    first_sentences = f"{fault.because}. {describe_good_messages(facts)}"
    if has_no_dlq(facts):
        return require_approval(plan_new_dlq(facts, first_sentences))
    reason = (
        f"{first_sentences}. Its DLQ takes a message after {facts.max_receive_count:,} receives, "
        f"which is in about {_estimate_seconds_until_dlq(facts):,} s; with a maxReceiveCount of "
        f"{DEFAULT_MAX_RECEIVE_COUNT} the group continues without it sooner, which is right only "
        "if order does not matter"
    )
    return Escalate("waits_for_dlq", reason, dlq_messages_command(facts.queue_arn))


def _describe_queue_without_fault(facts: Facts) -> str:
    """Return what the queue shows if no blocked group shows: that alone does not mean health."""
    waiting_text = (
        f"{format_count(facts.visible, 'message')} waiting, {facts.in_flight:,} in flight"
    )
    if facts.visible and not facts.in_flight:
        return (
            f"no group shows as blocked now, but no message is in flight either ({waiting_text}): "
            "its consumers may have stopped"
        )
    return f"no group shows as blocked now ({waiting_text})"


_DLQ_ARN = arn_of_dlq(QUEUE_ARN)
_REDRIVE_POLICY = RedrivePolicy(_DLQ_ARN, DEFAULT_MAX_RECEIVE_COUNT).text
_ATTACH_STEPS = (CreateDlq("", _DLQ_ARN), AttachDlq("", _REDRIVE_POLICY))


_BLOCKED_QUEUE = queue(
    ApproximateNumberOfMessages=59,
    ApproximateNumberOfMessagesNotVisible=1,
    sent=40,
    received=720,
    backlog_before=20,
    backlog_now=60,
    visible_now=59,
    in_flight_now=1,
    oldest_age_seconds_before=600,
    oldest_age_seconds_now=22_200,
    groups_in_flight_now=1,
    dlq_sources=(),
    dlq_namesake=QueueFacts(_DLQ_ARN, {}),
)
_REDRIVE_POLICY_THAT_MOVES_LATE = RedrivePolicy(_DLQ_ARN, 1_000).text
_REDRIVE_POLICY_THAT_MOVES_SOON = RedrivePolicy(_DLQ_ARN, 130).text


def _make_queue_with_blocked_group(
    receives_in_vain: int = 2, failing_receive_share_before: float | None = None, **overrides: Any
) -> Facts:
    """Return a queue with one blocked group whose consumers finish messages of other groups.

    In 65 minutes consumers received the group's first message 130 times and finished 2,000 others.

    Args:
        receives_in_vain: Receives without a delete in the first of every four minutes.
        failing_receive_share_before: Share of the receives without a delete before these minutes;
            None if not measured.
        overrides: Other values for the 65 minutes.
    """
    standstill_counts = {
        "since": EXAMPLE_TIME - 65 * DATAPOINT_PERIOD,
        "received": 2_130,
        "deleted": 2_000,
        **overrides,
    }
    earlier_measurement = None
    if failing_receive_share_before is not None:
        earlier_measurement = measurement(
            received=1_000, deleted=round(1_000 * (1 - failing_receive_share_before))
        )
    receives_in_vain_by_minute = (receives_in_vain, 2, 2, 4 - receives_in_vain) * 16
    recent_metrics = RecentCounts(
        0, 0, measurement(**standstill_counts), earlier_measurement, receives_in_vain_by_minute
    )
    return replace_values(
        _BLOCKED_QUEUE, deleted=360, oldest_age_seconds_now=3_900, recent=recent_metrics
    )


FIFO_GROUP_BLOCKED = FixedSymptom(
    name="fifo_group_blocked",
    sentence="One message that always fails blocks all messages behind it in its group.",
    plan_in_words="Make a DLQ and attach it, if a person approves: good "
    "messages may move along. Page if a DLQ takes the message only hours later. Never while "
    "visibility_timeout_too_short or consumer_failing is open.",
    first_step="Attach a DLQ that takes the blocking message.",
    aws_page=f"{SQS_GUIDE}/using-messagegroupid-property.html",
    evidence_kinds=(EvidenceKind(SeverityClass.FAILING_IN_PART),),
    needs=frozenset(
        {
            Need.QUEUE,
            Need.LAMBDA_CONSUMERS,
            Need.DLQ_SOURCES,
            Need.DLQ_NAMESAKE,
            Need.OPEN_CASES,
        }
    ),
    steps=(CreateDlq, AttachDlq),
    plan=plan,
    extra_sections=make_good_messages_section,
    gives_way_to=SYMPTOMS_TO_FIX_FIRST,
    tags=(CONSUMER_TAG,),
    detection=Detection(
        detect, frozenset({Need.MEASUREMENTS, Need.MOVE_TASKS, Need.DLQ_SOURCES}), is_possible
    ),
    examples=lambda: (
        QueueExample("the first of its group fails each time", _BLOCKED_QUEUE, _ATTACH_STEPS),
        QueueExample(
            "one group stands still while others flow",
            _make_queue_with_blocked_group(),
            _ATTACH_STEPS,
        ),
        QueueExample(
            "fewer came to nothing before", _make_queue_with_blocked_group(0, 0.01), _ATTACH_STEPS
        ),
        QueueExample(
            "a DLQ takes it hours later",
            replace_values(
                _make_queue_with_blocked_group(), RedrivePolicy=_REDRIVE_POLICY_THAT_MOVES_LATE
            ),
            "waits_for_dlq",
        ),
        QueueNearMiss(
            "a DLQ has taken it by now",
            replace_values(
                _make_queue_with_blocked_group(), RedrivePolicy=_REDRIVE_POLICY_THAT_MOVES_SOON
            ),
        ),
        QueueNearMiss("as many come to nothing by chance", _make_queue_with_blocked_group(0)),
        QueueNearMiss("as many came to nothing before", _make_queue_with_blocked_group(0, 0.06)),
        QueueNearMiss(
            "the oldest is new",
            _make_queue_with_blocked_group(since=EXAMPLE_TIME - 29 * DATAPOINT_PERIOD),
        ),
        QueueNearMiss(
            "twenty timeouts are not over",
            replace_values(_make_queue_with_blocked_group(), VisibilityTimeout=200),
        ),
        QueueNearMiss(
            "one message takes very long, and is received once",
            replace_values(_BLOCKED_QUEUE, received=1),
        ),
        QueueNearMiss(
            "several groups are tried", replace_values(_BLOCKED_QUEUE, groups_in_flight_now=3)
        ),
        QueueNearMiss(
            "DLQ messages are being moved back",
            replace_values(_BLOCKED_QUEUE, move_task_running=True),
        ),
        QueueNearMiss("it takes DLQ messages itself", as_dlq(_BLOCKED_QUEUE)),
        QueueNearMiss(
            "a DLQ takes it after five receives",
            replace_values(_BLOCKED_QUEUE, RedrivePolicy=_REDRIVE_POLICY),
        ),
        QueueNearMiss(
            "a standard queue holds no groups up",
            replace_values(_BLOCKED_QUEUE, queue_arn=STANDARD_ARN),
        ),
    ),
)

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

from mendq.catalogue.dlq.attach import FIXED_FIRST, has_no_dlq, plan_new_dlq
from mendq.catalogue.dlq.moved_along import ask_first, describe_moved_along, good_messages_section
from mendq.catalogue.examples import AT, QUEUE_ARN, STANDARD_ARN, as_dlq, measurement, queue, vary
from mendq.catalogue.fifo.stuck_group import TRIES, head_is_stuck, one_group_blocks
from mendq.catalogue.symptom import (
    SQS_GUIDE,
    DetectedFault,
    Detection,
    FixedSymptom,
    QueueExample,
    QueueNearMiss,
)
from mendq.model.facts import Facts, Need, QueueFacts
from mendq.model.limits import Limits
from mendq.model.metrics import DATAPOINT_PERIOD, Recent
from mendq.model.plan import Escalate, Ignore, Plan, Refusal
from mendq.model.queue import DEFAULT_MAX_RECEIVE_COUNT, Redrive, arn_of_dlq
from mendq.model.steps import AttachDlq, CreateDlq
from mendq.notifications.commands import dlq_messages_command
from mendq.notifications.text import format_count, format_duration


def detect(facts: Facts) -> DetectedFault | None:
    """Find a message that is received again and again and blocks its group, or the whole queue."""
    measured = facts.measurement
    if measured is None or facts.receives_only_dlq_messages or not is_suspect(facts):
        return None
    if facts.move_task_running or (facts.dlq_arn and _seconds_left(facts) <= 0):
        return None
    waits = f"its oldest message has waited {measured.now.oldest_age_seconds:,} s"
    if one_group_blocks(measured):
        return DetectedFault(
            f"{waits}; in {format_duration(measured.duration)} {measured.received:,} receives led "
            f"to {measured.deleted:,} deletes, one group is in flight, "
            f"{format_count(measured.now.visible, 'message')} waiting"
        )
    still = measured.recent.standstill
    if still is None or not head_is_stuck(measured, facts.visibility_seconds):
        return None
    lasted = min(still.duration, timedelta(seconds=measured.now.oldest_age_seconds))
    return DetectedFault(
        f"{waits}, and was the oldest for the last {format_duration(lasted)}. In that time "
        f"consumers deleted {format_count(still.deleted, 'message')}, and "
        f"{still.fruitless_receives:,} receives were not followed by a delete, as if one message "
        f"is received after each visibility timeout of {facts.visibility_seconds:,} s. At least "
        f"one group is held up; {format_count(measured.now.groups_in_flight or 0, 'group')} in "
        "flight"
    )


def is_suspect(facts: Facts) -> bool:
    """Return True for a FIFO queue with messages and without a DLQ that takes the message soon."""
    has_messages = facts.visible + facts.in_flight > 0
    has_policy = facts.attributes.get(AttachDlq.attribute)
    receives = facts.max_receive_count or 0
    return facts.is_fifo and has_messages and (not has_policy or receives > TRIES)


def _seconds_left(facts: Facts) -> int:
    """Return the seconds until the DLQ takes the oldest message; negative if it should have by now.

    This assumes one receive of the message after each visibility timeout.
    """
    waited = facts.measurement.now.oldest_age_seconds if facts.measurement else 0
    return (facts.max_receive_count or 0) * facts.visibility_seconds - waited


def plan(facts: Facts, _limits: Limits) -> Plan | Refusal:
    """Plan a DLQ that takes the message. If the queue has one, notify people when it will."""
    found = detect(facts)
    if found is None:
        return Ignore("need_already_met", "its groups move on by now")
    because = f"{found.because}. {describe_moved_along(facts)}"
    if has_no_dlq(facts):
        return ask_first(plan_new_dlq(facts, because))
    reason = (
        f"{because}. Its DLQ takes a message after {facts.max_receive_count:,} receives, which is "
        f"in about {_seconds_left(facts):,} s; with a maxReceiveCount of "
        f"{DEFAULT_MAX_RECEIVE_COUNT} the group continues without it sooner, which is right only "
        "if order does not matter"
    )
    return Escalate("waits_for_dlq", reason, dlq_messages_command(facts.queue_arn))


_DLQ_ARN = arn_of_dlq(QUEUE_ARN)
_REDRIVE = Redrive(_DLQ_ARN, DEFAULT_MAX_RECEIVE_COUNT).text
_ATTACH = (CreateDlq("", _DLQ_ARN), AttachDlq("", _REDRIVE))


_BLOCKED = queue(
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
_LATE = Redrive(_DLQ_ARN, 1_000).text
_SOON = Redrive(_DLQ_ARN, 130).text


def _queue_with_blocked_group(in_vain: int = 2, share: float | None = None, **over: Any) -> Facts:
    """Return a queue with one blocked group whose consumers finish messages of other groups.

    In 65 minutes consumers received the group's first message 130 times and finished 2,000 others.

    Args:
        in_vain: Receives without a delete in the first of every four minutes.
        share: Share of the receives without a delete before these minutes; None if not measured.
        over: Other values for the 65 minutes.
    """
    counts = {"since": AT - 65 * DATAPOINT_PERIOD, "received": 2_130, "deleted": 2_000, **over}
    before = None
    if share is not None:
        before = measurement(received=1_000, deleted=round(1_000 * (1 - share)))
    by_minute = (in_vain, 2, 2, 4 - in_vain) * 16
    recent = Recent(0, 0, measurement(**counts), before, by_minute)
    return vary(_BLOCKED, deleted=360, oldest_age_seconds_now=3_900, recent=recent)


FIFO_GROUP_BLOCKED = FixedSymptom(
    name="fifo_group_blocked",
    sentence="One message that always fails blocks all messages behind it in its group.",
    plan_in_words="Make a DLQ and attach it, if a person approves: good "
    "messages may move along. Page if a DLQ takes the message only hours later. Never while "
    "visibility_timeout_too_short or consumer_failing is open.",
    aws_page=f"{SQS_GUIDE}/using-messagegroupid-property.html",
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
    extra_sections=good_messages_section,
    gives_way_to=FIXED_FIRST,
    detection=Detection(
        detect, frozenset({Need.MEASUREMENTS, Need.MOVE_TASKS, Need.DLQ_SOURCES}), is_suspect
    ),
    examples=lambda: (
        QueueExample("the first of its group fails each time", _BLOCKED, _ATTACH),
        QueueExample(
            "one group stands still while others flow", _queue_with_blocked_group(), _ATTACH
        ),
        QueueExample("fewer came to nothing before", _queue_with_blocked_group(0, 0.01), _ATTACH),
        QueueExample(
            "a DLQ takes it hours later",
            vary(_queue_with_blocked_group(), RedrivePolicy=_LATE),
            "waits_for_dlq",
        ),
        QueueNearMiss(
            "a DLQ has taken it by now", vary(_queue_with_blocked_group(), RedrivePolicy=_SOON)
        ),
        QueueNearMiss("as many come to nothing by chance", _queue_with_blocked_group(0)),
        QueueNearMiss("as many came to nothing before", _queue_with_blocked_group(0, 0.06)),
        QueueNearMiss(
            "the oldest is new", _queue_with_blocked_group(since=AT - 29 * DATAPOINT_PERIOD)
        ),
        QueueNearMiss(
            "twenty timeouts are not over", vary(_queue_with_blocked_group(), VisibilityTimeout=200)
        ),
        QueueNearMiss(
            "one message takes very long, and is received once", vary(_BLOCKED, received=1)
        ),
        QueueNearMiss("several groups are tried", vary(_BLOCKED, groups_in_flight_now=3)),
        QueueNearMiss("DLQ messages are being moved back", vary(_BLOCKED, move_task_running=True)),
        QueueNearMiss("it takes DLQ messages itself", as_dlq(_BLOCKED)),
        QueueNearMiss("a DLQ takes it after five receives", vary(_BLOCKED, RedrivePolicy=_REDRIVE)),
        QueueNearMiss(
            "a standard queue holds no groups up", vary(_BLOCKED, queue_arn=STANDARD_ARN)
        ),
    ),
)

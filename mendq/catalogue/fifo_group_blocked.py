"""One message that always fails holds up all that come behind it in its group."""

from __future__ import annotations

from mendq.catalogue._attach_dlq import FIXED_FIRST, has_none, make_and_attach
from mendq.catalogue.examples import QUEUE_ARN, STANDARD_ARN, as_dlq, but, queue
from mendq.catalogue.symptom import SQS_GUIDE, Detected, Detection, Fixed, Found, NotFound
from mendq.model.facts import Facts, Need, QueueFacts
from mendq.model.limits import Limits, Mode
from mendq.model.plan import Ignore, Plan, Refusal
from mendq.model.queue import MAX_RECEIVE_COUNT, Redrive, arn_of_dlq
from mendq.model.steps import AttachDlq, CreateDlq
from mendq.notifications.text import counted


def detect(facts: Facts) -> Found | None:
    """One group in flight, tried again and again, while nothing gets through."""
    measured = facts.measured
    if measured is None or not has_none(facts) or not is_suspect(facts):
        return None
    if facts.move_task_running or not measured.one_group_blocks:
        return None
    return Found(
        f"its oldest message has waited {measured.now.oldest_age_seconds:,} s; in "
        f"{measured.hours:.1f} h {measured.received:,} receives ended in {measured.deleted:,} "
        f"deletes, one group is in flight, {counted(measured.now.visible, 'message')} waiting"
    )


def is_suspect(facts: Facts) -> bool:
    """Something has to wait; and a DLQ would take the message after a while."""
    waits = facts.visible + facts.in_flight > 0
    return facts.is_fifo and not facts.attributes.get(AttachDlq.attribute) and waits


def plan(facts: Facts, _limits: Limits) -> Plan | Refusal:
    """A DLQ, which takes the message after five receives."""
    found = detect(facts)
    if found is None:
        return Ignore("need_already_met", "its groups move on by now")
    order = "what stands behind it is then handled without it, in the order that is left"
    return make_and_attach(facts, f"{found.because}. A DLQ would take it, and {order}")


_DEAD = arn_of_dlq(QUEUE_ARN)
_REDRIVE = Redrive(_DEAD, MAX_RECEIVE_COUNT).text
_ATTACH = (CreateDlq("", _DEAD), AttachDlq("", _REDRIVE))


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
    dlq_namesake=QueueFacts(_DEAD, {}),
)


FIFO_GROUP_BLOCKED = Fixed(
    name="fifo_group_blocked",
    sentence="One message that always fails holds up all that come behind it in its group.",
    plan_in_words="Make a DLQ and attach it after 5 receives. Never while "
    "visibility_timeout_too_short or consumer_failing is open.",
    aws_page=f"{SQS_GUIDE}/using-messagegroupid-property.html",
    needs=frozenset({Need.QUEUE, Need.DLQ_SOURCES, Need.DLQ_NAMESAKE, Need.OPEN_CASES}),
    steps=(CreateDlq, AttachDlq),
    plan=plan,
    autonomy=Mode.PROPOSE,
    gives_way_to=FIXED_FIRST,
    detection=Detection(
        detect, frozenset({Need.MEASUREMENTS, Need.MOVE_TASKS, Need.DLQ_SOURCES}), is_suspect
    ),
    examples=lambda: (
        Detected("the first of its group fails each time", _BLOCKED, _ATTACH),
        Detected(
            "a message gets through now and then", but(_BLOCKED, sent=76, deleted=36), _ATTACH
        ),
        NotFound("one message takes very long, and is received once", but(_BLOCKED, received=1)),
        NotFound("other groups get through", but(_BLOCKED, deleted=300)),
        NotFound("several groups are tried", but(_BLOCKED, groups_in_flight_now=3)),
        NotFound("DLQ messages are being moved back", but(_BLOCKED, move_task_running=True)),
        NotFound("it takes DLQ messages itself", as_dlq(_BLOCKED)),
        NotFound("the head moves on", but(_BLOCKED, oldest_age_seconds_now=3_600)),
        NotFound("a DLQ takes it after five receives", but(_BLOCKED, RedrivePolicy=_REDRIVE)),
        NotFound(
            "a standard queue has no groups to hold up", but(_BLOCKED, queue_arn=STANDARD_ARN)
        ),
    ),
)

"""Messages die, and nothing that Mendq knows of their source says why."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mendq.catalogue.dlq.redrive_causes import CAUSES
from mendq.catalogue.examples import AT, STANDARD_ARN, dlq, source
from mendq.catalogue.symptom import (
    DLQ_GUIDE,
    DetectedFault,
    Detection,
    NotifiedSymptom,
    QueueExample,
    QueueNearMiss,
    RefusalExample,
)
from mendq.catalogue.visibility.needed_timeout import MAX_PROCESSING_TAG
from mendq.model.evidence import name_first_few
from mendq.model.facts import Facts, Need
from mendq.model.harms import OWN_CHANGE
from mendq.model.limits import Limits
from mendq.model.own_change import OwnChange
from mendq.model.plan import Escalate, Ignore, Refusal
from mendq.notifications.commands import messages_of
from mendq.notifications.own_change import rollback_command
from mendq.notifications.text import format_count, span

_NEEDS = frozenset(
    {Need.QUEUE, Need.DLQ_SOURCES, Need.MEASUREMENTS, Need.MOVE_TASKS, Need.OPEN_CASES}
)


def detect(facts: Facts) -> DetectedFault | None:
    """SQS does not count as sent what it moves here; what somebody sends here is no message."""
    measured = facts.measurement
    if measured is None or facts.move_task_running or facts.open_symptoms & CAUSES:
        return None
    risen = measured.visible_growth
    # Where producers send here too, counters that are not exact show arrivals that were none.
    explained = measured.counter_tolerance if facts.is_sent_to else 0
    if not facts.dlq_sources or risen < 1 or measured.messages_arrived <= explained:
        return None
    return DetectedFault(
        f"{format_count(risen, 'more DLQ message')} in {span(measured.duration)}, "
        f"{measured.now.visible:,} in all, from {name_first_few(facts.source_arns)}"
    )


def is_suspect(facts: Facts) -> bool:
    """A queue with messages in it; whose they are is known from its sources, where asked."""
    return facts.visible > 0 and facts.dlq_sources != ()


def plan(facts: Facts, _limits: Limits) -> Refusal:
    """Return the page's reason and command. Mendq changes nothing: the fault is not in the queue.

    If a change by Mendq may have moved the messages, the page offers its rollback. If the case of
    that change reports the messages already, there is no second page.
    """
    found, change = facts.found or "messages arrive", facts.own_change
    if change is not None and change.is_reported and len(facts.source_arns) == 1:
        return Ignore("said_of_another", f"case {change.case_id} reports these messages already")
    look = (
        "Look at the log of the source's consumer, then at a message; "
        f"send them back when it is fixed{_or_for_want_of_time(facts)}"
    )
    if change is not None:
        return Escalate(OWN_CHANGE, f"{found}. {look}", rollback_command(change))
    command = messages_of(facts.source_arns[0]) if facts.source_arns else ""
    return Escalate("no_known_cause", f"{found}; no open case says why. {look}", command)


def _or_for_want_of_time(facts: Facts) -> str:
    """No count tells messages that die of errors from those whose work takes too long."""
    first = facts.dlq_sources[0] if facts.dlq_sources else None
    if first is None or first.max_receive_count is None:
        return ""
    return (
        f". From {first.name} they come after {format_count(first.max_receive_count, 'receive')} "
        f"of {first.visibility_seconds:,} s each: where work takes longer than that, the tag "
        f"{MAX_PROCESSING_TAG} on {first.name} says so to Mendq"
    )


def _queue(before: int = 2, now: int = 3, **over: Any) -> Facts:
    """A DLQ with so many messages before and now; `over` that."""
    backlog = {"backlog_before": before, "backlog_now": now}
    visible = {"visible_before": before, "visible_now": now}
    return dlq(**{"ApproximateNumberOfMessages": 3, **backlog, **visible, **over})


_FIRST = _queue(1, 1, began_silent=True, dlq_sources=(source(),))
_ATTACHED = OwnChange(
    case_id="dlq_missing-0123456789ab",
    queue_arn=STANDARD_ARN,
    written_at=AT,
    did="attached the DLQ orders-dlq to orders",
    effect="messages that had been received 5 times move there",
    take_back="To take the change back",
)
_REPORTED = replace(_ATTACHED, is_reported=True)

DLQ_MESSAGES_ARRIVING = NotifiedSymptom(
    name="dlq_messages_arriving",
    sentence="Messages that nobody could finish arrive in a DLQ.",
    plan_in_words="Page with the sources and the numbers, and first with Mendq's own change if "
    "that can be the cause; messages are not touched.",
    aws_page=DLQ_GUIDE,
    plan=plan,
    gives_way_to=CAUSES,
    shown_attributes=("ApproximateNumberOfMessages", "RedriveAllowPolicy"),
    detection=Detection(detect, _NEEDS, is_suspect),
    examples=lambda: (
        QueueExample("one more than there were", _queue(), "no_known_cause"),
        QueueExample("the first one after hours of silence", _FIRST, "no_known_cause"),
        QueueExample("Mendq attached it", _queue(own_change=_ATTACHED), OWN_CHANGE),
        RefusalExample("that case reports it", _queue(own_change=_REPORTED), "said_of_another"),
        QueueNearMiss("the only message is there all the while", _queue(1, 1)),
        QueueNearMiss("the cause is known", _queue(open_symptoms=frozenset({"consumer_failing"}))),
        QueueNearMiss("a redrive moves them", _queue(move_task_running=True)),
        QueueNearMiss("somebody sends straight to it", _queue(sent=1)),
        QueueNearMiss("a queue that takes no DLQ messages", _queue(dlq_sources=())),
    ),
)

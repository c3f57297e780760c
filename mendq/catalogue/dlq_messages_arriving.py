"""Messages die, and nothing that Mendq knows of their source says why."""

from __future__ import annotations

from typing import Any

from mendq.catalogue._redrive_causes import CAUSES
from mendq.catalogue._visibility import MAX_PROCESSING_TAG
from mendq.catalogue.examples import dlq, source
from mendq.catalogue.symptom import DLQ_GUIDE, Detected, Detection, Found, NotFound, Paged
from mendq.model.evidence import named
from mendq.model.facts import Facts, Need
from mendq.model.limits import Limits
from mendq.model.plan import Escalate, Refusal
from mendq.notifications.commands import messages_of
from mendq.notifications.text import counted, span

_NEEDS = frozenset(
    {Need.QUEUE, Need.DLQ_SOURCES, Need.MEASUREMENTS, Need.MOVE_TASKS, Need.OPEN_CASES}
)


def detect(facts: Facts) -> Found | None:
    """SQS does not count as sent what it moves here; what somebody sends here is no message."""
    measured = facts.measured
    if measured is None or facts.move_task_running or facts.open_symptoms & CAUSES:
        return None
    risen = measured.messages_risen
    # Where producers send here too, counters that are not exact show arrivals that were none.
    explained = measured.inexact_by if facts.is_sent_to else 0
    if not facts.dlq_sources or risen < 1 or measured.messages_arrived <= explained:
        return None
    return Found(
        f"{counted(risen, 'more DLQ message')} in {span(measured.lasted)}, "
        f"{measured.now.visible:,} in all, from {named(facts.source_arns)}; no open case says why"
    )


def suspects(facts: Facts) -> bool:
    """A queue with messages in it; whose they are is known from its sources, where asked."""
    return facts.visible > 0 and facts.dlq_sources != ()


def plan(facts: Facts, _limits: Limits) -> Refusal:
    """A page: what is wrong with the messages or with who handles them is not the queue's."""
    reason = (
        f"{facts.found or 'messages arrive'}. Look at what handled them, then at a message; "
        f"send them back when it is fixed{_or_for_want_of_time(facts)}"
    )
    command = messages_of(facts.source_arns[0]) if facts.source_arns else ""
    return Escalate("no_known_cause", reason, command)


def _or_for_want_of_time(facts: Facts) -> str:
    """No count tells messages that die of errors from those whose work takes too long."""
    first = facts.dlq_sources[0] if facts.dlq_sources else None
    if first is None or first.max_receive_count is None:
        return ""
    return (
        f". From {first.name} they come after {counted(first.max_receive_count, 'receive')} of "
        f"{first.visibility_seconds:,} s each: where work takes longer than that, the tag "
        f"{MAX_PROCESSING_TAG} on {first.name} says so to Mendq"
    )


def _queue(before: int = 2, now: int = 3, **over: Any) -> Facts:
    """A DLQ with so many messages before and now; `over` that."""
    backlog = {"backlog_before": before, "backlog_now": now}
    visible = {"visible_before": before, "visible_now": now}
    return dlq(**{"ApproximateNumberOfMessages": 3, **backlog, **visible, **over})


_FIRST = _queue(1, 1, began_silent=True, dlq_sources=(source(),))

DLQ_MESSAGES_ARRIVING = Paged(
    name="dlq_messages_arriving",
    sentence="Messages arrive in a DLQ, and no known cause explains them.",
    plan_in_words="Page with the sources and the numbers; messages are not touched.",
    aws_page=DLQ_GUIDE,
    plan=plan,
    gives_way_to=CAUSES,
    shows=("ApproximateNumberOfMessages", "RedriveAllowPolicy"),
    detection=Detection(detect, _NEEDS, suspects),
    examples=lambda: (
        Detected("one more than there were", _queue(), "no_known_cause"),
        Detected("the first one after hours of silence", _FIRST, "no_known_cause"),
        NotFound("the only message is there all the while", _queue(1, 1)),
        NotFound("the cause is known", _queue(open_symptoms=frozenset({"consumer_failing"}))),
        NotFound("a redrive moves them", _queue(move_task_running=True)),
        NotFound("somebody sends straight to it", _queue(sent=1)),
        NotFound("a queue that takes no DLQ messages", _queue(dlq_sources=())),
    ),
)

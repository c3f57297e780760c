"""Symptom `redrive_loop`: something sends DLQ messages back again and again, and they fail.

The fault: a schedule, a job or a Lambda function sends the messages of the DLQ back to their
source. The consumers still cannot handle them, so they return to the DLQ, and are sent back again.
Each round wastes receives, and other messages wait behind them. `redrive_cycle` is another fault:
there the RedrivePolicies themselves form a circle.

How it shows: at least three times in the measured time, messages left the DLQ, reached the source,
and failed there as often as `maxReceiveCount` allows. Two things show that they left the DLQ: SQS's
list of message movement tasks, and the minutes in which messages were deleted from the DLQ while as
many were sent to the source. `redrive_rounds.py` has the rules and the limits. Mendq's own redrives
are left out.

What Mendq does: it names the source, the number of rounds and what sends the messages back. It
pages if consumers fail at other messages too; otherwise it records a case without a page. It
changes nothing: it neither cancels a task nor stops a job, because people must decide that.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ListMessageMoveTasks.html

What it must not hide: whoever may delete from the DLQ and send to the source can fake rounds. And
messages that go round may be messages that people were never told about. So `dlq_messages_arriving`
waits for this symptom only if it pages, and it pages whenever more of the other messages are
unfinished than inexact counters explain: `consumer_failing` and `function_errors` wait for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from mendq.catalogue.consumers.failing_runs import find_failed_runs
from mendq.catalogue.dlq.redrive_rounds import (
    RedriveLoop,
    are_other_messages_unfinished,
    find_redrive_loop,
    is_nothing_else_finished,
)
from mendq.catalogue.examples import DLQ_ARN, EXAMPLE_TIME, measurement, queue_with_dlq
from mendq.catalogue.symptom import (
    SQS_GUIDE,
    DetectedFault,
    Detection,
    EvidenceKind,
    NotifiedSymptom,
    QueueExample,
    QueueNearMiss,
    RefusalExample,
)
from mendq.model.facts import Facts, Need, QueueFacts
from mendq.model.limits import Limits
from mendq.model.metrics import MinuteCounts, RecentCounts
from mendq.model.plan import Escalate, Refusal, Refuse
from mendq.model.redrives import MoveTask, Redrives
from mendq.model.severity_class import SeverityClass
from mendq.notifications.commands import list_consumers_command, list_move_task_starts_command
from mendq.notifications.text import format_count, format_duration

# If the visibility timeout is too short, or Lambda stops the function at its timeout, good messages
# reach the DLQ. Sending them back cannot help before that is fixed.
EXPLAINING_SYMPTOMS = frozenset({"function_times_out", "visibility_timeout_too_short"})


def detect(facts: Facts) -> DetectedFault | None:
    """Find messages that go round between the queue and its DLQ."""
    loop = find_redrive_loop(facts)
    if (
        loop is None
        or facts.measurement is None
        or EXPLAINING_SYMPTOMS & facts.open_symptoms
        or _does_consumer_explain(facts, loop)
    ):
        return None
    sender_text = "SQS's move tasks" if loop.is_by_move_tasks else "A job"
    return DetectedFault(
        f"{sender_text} sent DLQ messages back {format_count(len(loop.rounds), 'time')} in "
        f"{format_duration(facts.measurement.duration)}, and they failed again each time: "
        f"{format_count(loop.rounds[-1].messages, 'message')} the last time. "
        f"{format_count(loop.new_messages, 'other message')} arrived, and consumers deleted "
        f"{facts.measurement.deleted:,}",
        should_page=_must_page(facts, loop),
    )


def _must_page(facts: Facts, loop: RedriveLoop) -> bool:
    """Return True if consumers finish nothing, or leave other messages unfinished."""
    return facts.measurement is not None and (
        is_nothing_else_finished(facts.measurement, loop.new_messages)
        or are_other_messages_unfinished(facts.measurement, loop.new_messages)
    )


def _does_consumer_explain(facts: Facts, loop: RedriveLoop) -> bool:
    """Return True if the consumer fails at most messages, and another symptom reports that.

    While move tasks run, only the symptoms of a Lambda function's failed runs are looked for.
    `function_times_out` comes before this symptom anyway.
    """
    if (
        facts.measurement is None
        or not loop.new_messages
        or not is_nothing_else_finished(facts.measurement, loop.new_messages)
    ):
        return False
    if not loop.is_by_move_tasks:
        return True
    return find_failed_runs(facts, at_timeout=False) is not None


def is_possible(facts: Facts) -> bool:
    """Return True if the queue has a DLQ."""
    return facts.dlq_arn is not None


def plan(facts: Facts, _limits: Limits) -> Refusal:
    """Return the refusal that notifies people: a page if consumers fail at other messages too."""
    loop = find_redrive_loop(facts)
    sender_text = "a job or a function that receives from the DLQ"
    command = list_consumers_command(facts.dlq_arn or facts.queue_arn)
    if loop is not None and loop.is_by_move_tasks:
        sender_text = "a schedule or a script that calls StartMessageMoveTask"
        command = list_move_task_starts_command(facts.queue_arn)
    reason = (
        f"{facts.found}. Stop what sends them back: {sender_text}. Then find out why these "
        "messages fail, and send them back once after the repair"
    )
    if loop is not None and _must_page(facts, loop):
        return Escalate("redrive_loop", reason, command)
    return Refuse("redrive_loop", reason, command)


_SINCE = EXAMPLE_TIME - timedelta(hours=6)
_RECEIVES = 3
_MESSAGES = 20


def _at(minute: int) -> datetime:
    """Return the time of a minute of the examples' measurement."""
    return _SINCE + timedelta(minutes=minute)


def _make_minutes(
    fails_at: Sequence[int],
    sent_at: Sequence[int] = (),
    *,
    arriving: int = 1,
    finished: int = 1,
) -> tuple[MinuteCounts, ...]:
    """Return six hours in which messages arrive each minute.

    Args:
        fails_at: The minutes in which _MESSAGES messages come back and fail.
        sent_at: The minutes in which a job sends so many messages.
        arriving: How many other messages arrive each minute. Each is received once.
        finished: How many messages are finished each minute.
    """
    minutes = [MinuteCounts(arriving, arriving, finished) for _ in range(360)]
    for minute in fails_at:
        counts = minutes[minute]
        minutes[minute] = counts._replace(received=counts.received + _RECEIVES * _MESSAGES)
    for minute in sent_at:
        minutes[minute] = minutes[minute]._replace(sent=minutes[minute].sent + _MESSAGES)
    return tuple(minutes)


def _make_example_queue(
    minutes: Sequence[MinuteCounts],
    redrives: Redrives | None,
    *,
    dlq_messages: int = _MESSAGES,
    **overrides: Any,
) -> Facts:
    """Return a queue with these minutes, whose DLQ holds `dlq_messages` messages now."""
    counts = {
        "sent": sum(counts.sent for counts in minutes),
        "received": sum(counts.received for counts in minutes),
        "deleted": sum(counts.deleted for counts in minutes),
        "recent": RecentCounts(minutes=tuple(minutes)),
    }
    facts = queue_with_dlq(
        _RECEIVES,
        dlq=QueueFacts(DLQ_ARN, {"ApproximateNumberOfMessages": str(dlq_messages)}),
        redrives=redrives,
        **overrides,
    )
    return replace(facts, measurement=measurement(**counts))


def _move_at(*minutes: int, messages: int = _MESSAGES) -> Redrives:
    """Return move tasks that were started in these minutes."""
    return Redrives(tuple(MoveTask(_at(minute), messages) for minute in minutes))


def _delete_at(*minutes: int) -> Redrives:
    """Return a DLQ from which _MESSAGES messages were deleted in each of these minutes."""
    return Redrives(dlq_deletes=tuple((_at(minute), _MESSAGES) for minute in minutes))


_THREE_TIMES = (60, 180, 300)
_TWICE = (60, 300)
_BEFORE = (40, 160, 280)
_MOVED = _make_example_queue(_make_minutes(_THREE_TIMES), _move_at(*_THREE_TIMES))
_RESENT = _make_example_queue(_make_minutes(_THREE_TIMES, _THREE_TIMES), _delete_at(*_THREE_TIMES))
_MOVED_AND_NOTHING_FINISHED = _make_example_queue(
    _make_minutes(_THREE_TIMES, finished=0), _move_at(*_THREE_TIMES)
)


def _add_finding(facts: Facts) -> Facts:
    """Return the queue with the sentence of its finding, as heal plans with it."""
    fault = detect(facts)
    return replace(facts, found=fault.because if fault else "")


REDRIVE_LOOP = NotifiedSymptom(
    name="redrive_loop",
    sentence="DLQ messages are sent back to their source again and again, and fail each time.",
    plan_in_words="Report the rounds and what sends the messages back; page if other messages are "
    "not finished either. No task is cancelled.",
    habit="keeps getting its DLQ messages back",
    first_step="Stop the redrives until the consumer is fixed.",
    aws_page=f"{SQS_GUIDE}/sqs-configure-dead-letter-queue-redrive.html",
    evidence_kinds=(EvidenceKind(SeverityClass.FAILING_IN_PART),),
    needs=frozenset({Need.QUEUE, Need.LAMBDA_CONSUMERS}),
    plan=plan,
    gives_way_to=EXPLAINING_SYMPTOMS,
    detection=Detection(
        detect,
        frozenset(
            {
                Need.QUEUE,
                Need.DLQ,
                Need.LAMBDA_CONSUMERS,
                Need.MEASUREMENTS,
                Need.REDRIVES,
                Need.OPEN_CASES,
            }
        ),
        is_possible,
    ),
    examples=lambda: (
        QueueExample(
            "a schedule moves them back three times, and nothing is finished",
            _MOVED_AND_NOTHING_FINISHED,
            "redrive_loop",
        ),
        QueueExample(
            "the last messages are on their way to the DLQ",
            replace(
                _MOVED_AND_NOTHING_FINISHED,
                attributes={
                    **_MOVED_AND_NOTHING_FINISHED.attributes,
                    "ApproximateNumberOfMessagesNotVisible": str(_MESSAGES),
                },
                dlq=QueueFacts(DLQ_ARN, {"ApproximateNumberOfMessages": "0"}),
            ),
            "redrive_loop",
        ),
        QueueExample(
            "a job sends them back three times, and no other message arrives",
            _make_example_queue(
                _make_minutes(_THREE_TIMES, _THREE_TIMES, arriving=0, finished=0),
                _delete_at(*_THREE_TIMES),
            ),
            "redrive_loop",
        ),
        QueueNearMiss(
            "moved back twice", _make_example_queue(_make_minutes(_TWICE), _move_at(*_TWICE))
        ),
        QueueNearMiss(
            "sent back twice by a job",
            _make_example_queue(_make_minutes(_TWICE, _TWICE), _delete_at(*_TWICE)),
        ),
        QueueNearMiss(
            "each time other messages, which are finished",
            _make_example_queue(_make_minutes(_BEFORE), _move_at(*_THREE_TIMES)),
        ),
        QueueNearMiss(
            "two messages go round",
            _make_example_queue(_make_minutes(_THREE_TIMES), _move_at(*_THREE_TIMES, messages=2)),
        ),
        QueueNearMiss(
            "a job archives the DLQ's messages",
            _make_example_queue(_make_minutes(_BEFORE, _BEFORE), _delete_at(*_THREE_TIMES)),
        ),
        QueueNearMiss(
            "a job archives them while a producer sends twice as many",
            _make_example_queue(
                [
                    counts._replace(sent=counts.sent + _MESSAGES * (counts.sent > 1))
                    for counts in _make_minutes(_THREE_TIMES, _THREE_TIMES)
                ],
                _delete_at(*_THREE_TIMES),
            ),
        ),
        QueueNearMiss(
            "the DLQ is empty, so the messages were finished",
            _make_example_queue(
                _make_minutes(_THREE_TIMES), _move_at(*_THREE_TIMES), dlq_messages=0
            ),
        ),
        QueueNearMiss(
            "the DLQ holds many, and a few of them go back each time",
            _make_example_queue(
                _make_minutes(_THREE_TIMES, _THREE_TIMES),
                _delete_at(*_THREE_TIMES),
                dlq_messages=10 * _MESSAGES,
            ),
        ),
        QueueNearMiss(
            "a job sends back, and consumers finish nothing else",
            _make_example_queue(
                _make_minutes(_THREE_TIMES, _THREE_TIMES, finished=0), _delete_at(*_THREE_TIMES)
            ),
        ),
        QueueNearMiss("Mendq sends them back", replace(_MOVED, redrives=None)),
        QueueNearMiss(
            "the visibility timeout is too short",
            replace(_MOVED, open_symptoms=EXPLAINING_SYMPTOMS),
        ),
        RefusalExample(
            "moved back, and the other messages are finished", _add_finding(_MOVED), "redrive_loop"
        ),
        RefusalExample(
            "sent back by a job, and the other messages are finished",
            _add_finding(_RESENT),
            "redrive_loop",
        ),
    ),
)

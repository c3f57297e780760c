"""Messages die, and nothing that Mendq knows of their source says why.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html
"""

from __future__ import annotations

from dataclasses import replace

from mendq.catalogue import examples
from mendq.catalogue._redrive_causes import CAUSES
from mendq.catalogue.symptom import NOT_FOUND, Detected, Detection, Found, NearMiss, Symptom
from mendq.model.evidence import named
from mendq.model.facts import Facts, Need, SourceQueue
from mendq.model.limits import Limits
from mendq.model.plan import Escalate, Refusal
from mendq.notifications.commands import consumers_of

_NEEDS = frozenset(
    {
        Need.QUEUE,
        Need.DLQ_SOURCES,
        Need.MEASUREMENTS,
        Need.MOVE_TASKS,
        Need.OPEN_CASES,
    }
)


def detect(facts: Facts) -> Found | None:
    """SQS does not count as sent what it moves here; what somebody sends here is no message."""
    measured, sources = facts.measured, facts.dlq_sources
    if measured is None or not sources or facts.move_task_running or facts.open_symptoms & CAUSES:
        return None
    risen = measured.messages_risen
    if risen < 1 or measured.messages_arrived < 1:
        return None
    names = named([each.queue_arn for each in sources])
    return Found(
        f"{risen:,} more DLQ {'message' if risen == 1 else 'messages'} in {measured.hours:.1f} h, "
        f"{measured.visible_now:,} in all, "
        f"from {names}; no case that is open says why"
    )


def suspects(facts: Facts) -> bool:
    """A queue with messages in it; whose they are is known from its sources, where asked."""
    return facts.visible > 0 and facts.dlq_sources != ()


def plan(facts: Facts, _limits: Limits) -> Refusal:
    """A page: what is wrong with the messages or with who handles them is not the queue's."""
    found = facts.found or "messages arrive"
    sources = facts.dlq_sources or ()
    look = consumers_of(sources[0].queue_arn) if sources else ""
    reason = (
        f"{found}. Look at what handled them, then at a message; send them back when it is fixed"
    )
    return Escalate("no_known_cause", reason, next_command=look)


_MESSAGES = replace(
    examples.queue(queue_arn=examples.DLQ_ARN, ApproximateNumberOfMessages="3"),
    dlq_sources=(SourceQueue(examples.STANDARD_ARN, {}),),
    measured=examples.measured(backlog_before=2, backlog_now=3, visible_before=2, visible_now=3),
)
_AFTER_SILENCE = replace(
    examples.measured(backlog_before=1, backlog_now=1, visible_before=1, visible_now=1),
    began_silent=True,
)
_FIRST = replace(_MESSAGES, measured=_AFTER_SILENCE)

DLQ_MESSAGES_ARRIVING = Symptom(
    name="dlq_messages_arriving",
    sentence="Messages arrive in a DLQ, and no known cause explains them.",
    plan_in_words="Page with the sources and the numbers; messages are not touched.",
    aws_page="https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/"
    "sqs-dead-letter-queues.html",
    needs=_NEEDS,
    plan=plan,
    gives_way_to=CAUSES,
    shows=("ApproximateNumberOfMessages", "RedriveAllowPolicy"),
    detection=Detection(detect, needs=_NEEDS, suspects=suspects),
    detected=(
        Detected("one more than there were", _MESSAGES, code="no_known_cause"),
        Detected("the first one after hours of silence", _FIRST, code="no_known_cause"),
        Detected(
            "messages arrive while somebody deletes others",
            replace(
                _MESSAGES,
                measured=examples.measured(
                    deleted=40, backlog_before=2, backlog_now=9, visible_before=2, visible_now=9
                ),
            ),
            code="no_known_cause",
        ),
    ),
    near_misses=(
        NearMiss(
            "the only message is there all the while",
            NOT_FOUND,
            facts=replace(_FIRST, measured=replace(_AFTER_SILENCE, began_silent=False)),
        ),
        NearMiss(
            "somebody sends to it after hours of silence",
            NOT_FOUND,
            facts=replace(_FIRST, measured=replace(_AFTER_SILENCE, sent=1)),
        ),
        NearMiss(
            "the cause is known",
            NOT_FOUND,
            facts=replace(_MESSAGES, open_symptoms=frozenset({"consumer_failing"})),
        ),
        NearMiss(
            "old messages that nobody looked at",
            NOT_FOUND,
            facts=replace(_MESSAGES, measured=examples.measured(visible_before=3, visible_now=3)),
        ),
        NearMiss(
            "a redrive moves them",
            NOT_FOUND,
            facts=replace(_MESSAGES, move_task_running=True),
        ),
        NearMiss(
            "somebody sends straight to it",
            NOT_FOUND,
            facts=replace(
                _MESSAGES,
                measured=examples.measured(
                    sent=1, backlog_before=2, backlog_now=3, visible_before=2, visible_now=3
                ),
            ),
        ),
        NearMiss(
            "a queue that takes no DLQ messages",
            NOT_FOUND,
            facts=replace(_MESSAGES, dlq_sources=()),
        ),
    ),
)

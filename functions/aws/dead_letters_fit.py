"""Whether two queues fit as source and dead-letter queue, asked right before a write.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html
"""

from __future__ import annotations

from collections.abc import Sequence

from functions.aws.clients import Clients
from functions.aws.errors import QueueGone
from functions.aws.queue_look import attributes_of
from functions.healing.dead_letter_steps import (
    AllowRedriveFrom,
    AttachDeadLetters,
    CreateDeadLetters,
)
from functions.healing.dead_letters import allow_of, redrive_of, unfit
from functions.healing.facts import Facts
from functions.healing.plan import Refusal
from functions.healing.queue_names import arn_of
from functions.healing.steps import AttributeStep

# So many dead-letter queues behind one another are a fault of their own.
LONGEST_CHAIN = 5


def misfit(clients: Clients, now: Facts, steps: Sequence[AttributeStep]) -> Refusal | None:
    """Why these steps are not to be taken of a queue as it is `now`; raises FactsUnavailable."""
    for step in steps:
        fault = _fault(clients, now, step, steps)
        if fault:
            reason = f"{step.attribute} is not written: {fault}"
            return Refusal("dead_letters_unfit", reason)
    return None


def _fault(
    clients: Clients, now: Facts, step: AttributeStep, steps: Sequence[AttributeStep]
) -> str | None:
    if isinstance(step, AllowRedriveFrom):
        return _not_its_sources(clients, now.queue_arn, step)
    if isinstance(step, AttachDeadLetters):
        target = _target(step)
        return unfit(now.queue_arn, target) or _leads_back(clients, now.queue_arn, target)
    if isinstance(step, CreateDeadLetters):
        attached = next((each for each in steps if isinstance(each, AttachDeadLetters)), None)
        if (_target(attached) if attached else now.dead_letter_arn) != step.after:
            return f"the queue does not name {step.after[:120]} as its dead-letter queue"
        return unfit(now.queue_arn, step.after)
    return "this Lambda does not own it"


def _target(step: AttachDeadLetters) -> str:
    redrive = redrive_of(step.after)
    return redrive.dead_letter_arn if redrive else ""


def _leads_back(clients: Clients, source_arn: str, dead_letter_arn: str) -> str | None:
    """Whether letters would come round to their source; what cannot be followed does not."""
    behind = dead_letter_arn
    for _ in range(LONGEST_CHAIN):
        attributes = _attributes(clients, behind)
        following = arn_of(Facts(behind, attributes, {}).dead_letter_arn)
        if following is None or unfit(behind, following):
            return None
        if following == source_arn:
            return f"its letters would come back from {behind}"
        behind = following
    return f"more than {LONGEST_CHAIN} dead-letter queues stand behind one another"


def _not_its_sources(clients: Clients, queue_arn: str, step: AllowRedriveFrom) -> str | None:
    before, after = allow_of(step.before), allow_of(step.after)
    added = set(after.sources if after else ()) - set(before.sources if before else ())
    for each in sorted(added):
        fault = unfit(each, queue_arn)
        if fault:
            return f"{each[:120]} cannot be a source: {fault}"
        if Facts(each, _attributes(clients, each), {}).dead_letter_arn != queue_arn:
            return f"{each} does not name it as its dead-letter queue"
    return None


def _attributes(clients: Clients, queue_arn: str) -> dict[str, str]:
    """None of a queue that is not there."""
    try:
        return dict(attributes_of(clients, queue_arn))
    except QueueGone:
        return {}

"""Takes the steps of a plan: read again, compare, write.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html
"""

from __future__ import annotations

from collections.abc import Sequence

from botocore.exceptions import BotoCoreError, ClientError

from functions.aws.clients import Clients
from functions.aws.errors import StepFailed, is_passing
from functions.aws.queue_look import attributes_of, queue_url
from functions.healing.facts import Facts
from functions.healing.plan import AWS_REFUSED, Refusal
from functions.healing.states import State
from functions.healing.steps import AttributeStep


def changed_meanwhile(facts: Facts, seen: Facts, steps: Sequence[AttributeStep]) -> Refusal | None:
    """A refusal where the queue no longer stands as it was `seen`, or is another of its name."""
    if facts.created_at != seen.created_at:
        reason = "the queue was deleted and made anew while Mendq looked"
        return Refusal("changed_meanwhile", reason, becomes=None, again=True)
    for step in steps:
        found = step.standing_in(facts.attributes)
        if found != str(step.before):
            reason = (
                f"{step.attribute} became {found} while Mendq looked; somebody is at work on it"
            )
            return Refusal("changed_meanwhile", reason, becomes=None, again=True)
    return None


def write(clients: Clients, seen: Facts, steps: Sequence[AttributeStep]) -> Refusal | None:
    """Compare and set: None when all steps are taken.

    A refusal when the queue had changed since it was `seen`, or when SQS refused for good: then
    nothing was written. Raises FactsUnavailable where it could not look, StepFailed where SQS may
    take it later.
    """
    queue_arn = seen.queue_arn
    now = Facts(queue_arn, attributes_of(clients, queue_arn), seen.tags)
    refusal = changed_meanwhile(now, seen, steps)
    if refusal:
        return refusal
    try:
        clients.sqs_for_writing.set_queue_attributes(
            QueueUrl=queue_url(clients, queue_arn),
            Attributes={step.attribute: str(step.after) for step in steps},  # type: ignore[misc]
        )
    except (ClientError, BotoCoreError) as error:
        if is_passing(error):
            raise StepFailed(steps[0], str(error)) from error
        return Refusal(AWS_REFUSED, f"AWS refused the change: {error}", becomes=State.ESCALATED)
    return None

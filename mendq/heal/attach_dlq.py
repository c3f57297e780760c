"""Attach a DLQ: make the queue, name it in the source, let the source in.

In this order a crash anywhere is harmless: first the queue, whole in one call that may be made
twice, then the one attribute of the queue that the case is about. What was made and not attached
is empty, and nothing names it.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_CreateQueue.html
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from botocore.exceptions import BotoCoreError, ClientError

from mendq.aws.clients import Clients
from mendq.aws.dead_letter_queues import misfit
from mendq.aws.errors import StepFailed
from mendq.aws.queue import attributes_of, make_queue, taken
from mendq.catalogue._attach_dlq import POLICIES
from mendq.heal.apply import changed_meanwhile, write
from mendq.model.dlq import attributes_of_dlq
from mendq.model.facts import Facts
from mendq.model.plan import Refusal
from mendq.model.steps import AttributeStep


def attach(clients: Clients, seen: Facts, steps: Sequence[AttributeStep]) -> Refusal | None:
    """Take the steps: None when all are taken; refuses and raises as `apply.write` does.

    The queues are checked to fit as they are now, however it was planned. A queue that
    was made before something was refused stays: the same plan takes it up again.
    """
    now = replace(seen, attributes=attributes_of(clients, seen.queue_arn))
    to_make = [step for step in steps if step.stays]
    to_set = [step for step in steps if not step.stays]
    refusal = changed_meanwhile(now, seen, to_set) or misfit(clients, now, steps)
    for step in to_make:
        refusal = refusal or _made(clients, now, step)
    if refusal or not to_set:
        return refusal
    return write(clients, seen, to_set)


def _made(clients: Clients, source: Facts, step: AttributeStep) -> Refusal | None:
    """Make the queue: None once it is there; one from before may have policies of its own."""
    dlq_arn = str(step.after)
    try:
        made = make_queue(clients, dlq_arn, attributes_of_dlq(source, dlq_arn))
    except (ClientError, BotoCoreError) as error:
        raise StepFailed(step, str(error)) from error
    if isinstance(made, Refusal):
        return made
    theirs = [name for name in POLICIES if made.get(name)]
    return taken(dlq_arn, f"it has a {theirs[0]}") if theirs else None

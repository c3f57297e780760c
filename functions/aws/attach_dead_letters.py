"""Takes the steps of dead letters: makes a queue, attaches it, lets a source in.

In an order in which a crash anywhere is harmless: first the queue, whole in one call that may be
made twice, then the one attribute of the queue that the case is about. What was made and not
attached is empty, and nothing names it.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_CreateQueue.html
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from botocore.exceptions import BotoCoreError, ClientError

from functions.aws.clients import Clients
from functions.aws.dead_letters_fit import misfit
from functions.aws.errors import StepFailed
from functions.aws.make_queue import make_queue, taken
from functions.aws.queue_look import attributes_of
from functions.aws.write_steps import changed_meanwhile, write
from functions.healing.attaching import POLICIES
from functions.healing.dead_letters import attributes_of_new
from functions.healing.facts import Facts
from functions.healing.plan import Refusal
from functions.healing.steps import AttributeStep


def attach(clients: Clients, seen: Facts, steps: Sequence[AttributeStep]) -> Refusal | None:
    """None when all steps are taken; refuses and raises as `write_steps.write` does.

    Whether the queues fit is asked of them as they are now, however it was planned. A queue that
    was made before something was refused stays: the same plan takes it up again.
    """
    now = replace(seen, attributes=attributes_of(clients, seen.queue_arn))
    to_make = [step for step in steps if step.is_kept]
    to_set = [step for step in steps if not step.is_kept]
    refusal = changed_meanwhile(now, seen, to_set) or misfit(clients, now, steps)
    for step in to_make:
        refusal = refusal or _made(clients, now, step)
    if refusal or not to_set:
        return refusal
    return write(clients, seen, to_set)


def _made(clients: Clients, source: Facts, step: AttributeStep) -> Refusal | None:
    """None once the queue is there; one that was there before may have policies of its own."""
    dead_letter_arn = str(step.after)
    try:
        made = make_queue(clients, dead_letter_arn, attributes_of_new(source, dead_letter_arn))
    except (ClientError, BotoCoreError) as error:
        raise StepFailed(step, str(error)) from error
    if isinstance(made, Refusal):
        return made
    theirs = [name for name in POLICIES if made.get(name)]
    return taken(dead_letter_arn, f"it has a {theirs[0]}") if theirs else None

"""Takes the steps of dead letters: makes a queue, attaches it, lets a source in.

In an order in which a crash anywhere is harmless: first the queue, whole in one call that may be
made twice, then the one attribute of the queue that the case is about. What was made and not
attached is empty, and nothing names it.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_CreateQueue.html
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from botocore.exceptions import BotoCoreError, ClientError

from functions.aws.clients import Clients
from functions.aws.dead_letters_fit import misfit
from functions.aws.errors import QueueGone, StepFailed, code_of, is_passing
from functions.aws.queue_look import attributes_of
from functions.aws.write_steps import changed_meanwhile, write
from functions.healing.attaching import POLICIES
from functions.healing.dead_letters import attributes_of_new
from functions.healing.error_codes import canonical
from functions.healing.facts import Facts
from functions.healing.plan import Refusal
from functions.healing.queue_names import parts_of
from functions.healing.states import State
from functions.healing.steps import AttributeStep

# "You must wait at least one second after the queue is created to be able to use the queue."
SECONDS_UNTIL_USABLE = 1
LOOKS_AT_A_NEW_QUEUE = 3


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
    """None once the queue is there, made by this call or by one like it."""
    dead_letter_arn = str(step.after)
    try:
        clients.sqs_for_writing.create_queue(
            QueueName=parts_of(dead_letter_arn).name,
            Attributes=attributes_of_new(source, dead_letter_arn),  # type: ignore[arg-type]
        )
    except (ClientError, BotoCoreError) as error:
        return _refused(step, error)
    return _taken_by_another(clients, dead_letter_arn)


def _refused(step: AttributeStep, error: ClientError | BotoCoreError) -> Refusal:
    code = canonical(code_of(error)) if isinstance(error, ClientError) else ""
    if code == "QueueDeletedRecently":
        reason = f"{step.after} was deleted within the last minute; SQS makes it anew after that"
        return Refusal("deleted_recently", reason, becomes=None, again=True)
    if code == "QueueAlreadyExists":
        return _taken(
            str(step.after), "its attributes are not those of one that is made for this queue"
        )
    if is_passing(error):
        raise StepFailed(step, str(error)) from error
    return Refusal("aws_refused", f"AWS refused to make it: {error}", becomes=State.ESCALATED)


def _taken_by_another(clients: Clients, dead_letter_arn: str) -> Refusal | None:
    """CreateQueue compares no policies: a queue that was there before may have its own."""
    for _ in range(LOOKS_AT_A_NEW_QUEUE):
        try:
            found = attributes_of(clients, dead_letter_arn)
        except QueueGone:
            time.sleep(SECONDS_UNTIL_USABLE)
            continue
        theirs = [name for name in POLICIES if found.get(name)]
        return _taken(dead_letter_arn, f"it has a {theirs[0]}") if theirs else None
    reason = f"{dead_letter_arn} was made and cannot be used yet"
    return Refusal("not_usable_yet", reason, becomes=None, again=True)


def _taken(dead_letter_arn: str, because: str) -> Refusal:
    reason = f"there is another queue {dead_letter_arn} already: {because}"
    return Refusal("name_taken", reason, becomes=State.ESCALATED)

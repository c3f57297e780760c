"""What stands of a case's steps now: in its queue, and beside it where a queue was made.

SQS has no attribute that says whether another queue exists, so that is put where the step that
makes one looks for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from functions.aws.clients import Clients
from functions.aws.errors import QueueGone
from functions.aws.queue_look import attributes_of
from functions.healing.dead_letter_steps import CreateDeadLetters
from functions.healing.queue_names import arn_of


def standing(
    clients: Clients, queue_arn: str, documents: Iterable[Mapping[str, str]]
) -> Mapping[str, str]:
    """The queue's attributes, and the queues that these steps made, where they are there.

    Raises QueueGone for the queue itself, or FactsUnavailable.
    """
    attributes = attributes_of(clients, queue_arn)
    made = next((each for each in documents if _makes_a_queue(each)), None)
    if made is None or not exists(clients, made["after"]):
        return attributes
    return {**attributes, CreateDeadLetters.attribute: made["after"]}


def exists(clients: Clients, queue_arn: str) -> bool:
    """Whether there is a queue of that ARN; raises FactsUnavailable."""
    try:
        attributes_of(clients, queue_arn)
    except QueueGone:
        return False
    return True


def _makes_a_queue(document: Mapping[str, str]) -> bool:
    made = document["attribute"] == CreateDeadLetters.attribute
    return made and arn_of(document["after"]) is not None

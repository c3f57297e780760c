"""Gives a source its quarantine on first use; nothing here takes one away.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_CreateQueue.html
"""

from __future__ import annotations

from botocore.exceptions import BotoCoreError, ClientError

from functions.aws.clients import Clients
from functions.aws.consumers import consuming, mappings_of
from functions.aws.errors import FactsUnavailable, QueueGone
from functions.aws.make_queue import make_queue, taken
from functions.aws.queue_look import attributes_of
from functions.healing.facts import Facts
from functions.healing.plan import Refusal
from functions.healing.quarantines import arn_for, attributes_of_new, unfit


def quarantine_of(clients: Clients, source: Facts) -> str | Refusal:
    """The ARN of the source's quarantine, made where there is none yet.

    Refuses where a queue of that name would not keep the letters safe, or a Lambda function
    consumes it. Raises FactsUnavailable where asking again may help.
    """
    queue_arn = arn_for(source.queue_arn)
    try:
        attributes = attributes_of(clients, queue_arn)
    except QueueGone:
        try:
            made = make_queue(clients, queue_arn, attributes_of_new(source))
        except (ClientError, BotoCoreError) as error:
            raise FactsUnavailable(f"making {queue_arn}: {error}") from error
        if isinstance(made, Refusal):
            return made
        attributes = made
    because = unfit(source, attributes, consuming(mappings_of(clients, queue_arn)))
    return taken(queue_arn, because) if because else queue_arn

"""Makes a queue, whole in one call that may be made twice.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_CreateQueue.html
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from botocore.exceptions import BotoCoreError, ClientError

from functions.aws.clients import Clients
from functions.aws.errors import QueueGone, code_of, is_passing
from functions.aws.queue_look import attributes_of
from functions.healing.error_codes import canonical
from functions.healing.plan import AWS_REFUSED, Refusal
from functions.healing.queue_names import parts_of
from functions.healing.states import State

# "You must wait at least one second after the queue is created to be able to use the queue."
SECONDS_UNTIL_USABLE = 1
LOOKS_AT_A_NEW_QUEUE = 3


def make_queue(
    clients: Clients, queue_arn: str, attributes: Mapping[str, str]
) -> Mapping[str, str] | Refusal:
    """The attributes of the queue once it is there, made by this call or by one like it.

    CreateQueue compares no policies: what was there before may have its own. Raises ClientError or
    BotoCoreError where asking again may help, and FactsUnavailable.
    """
    try:
        clients.sqs_for_writing.create_queue(
            QueueName=parts_of(queue_arn).name,
            Attributes=attributes,  # type: ignore[arg-type]
        )
    except (ClientError, BotoCoreError) as error:
        return _refused(queue_arn, error)
    for _ in range(LOOKS_AT_A_NEW_QUEUE):
        try:
            return attributes_of(clients, queue_arn)
        except QueueGone:
            time.sleep(SECONDS_UNTIL_USABLE)
    reason = f"{queue_arn} was made and cannot be used yet"
    return Refusal("not_usable_yet", reason, becomes=None, again=True)


def taken(queue_arn: str, because: str) -> Refusal:
    """The name is somebody else's."""
    reason = f"there is another queue {queue_arn} already: {because}"
    return Refusal("name_taken", reason, becomes=State.ESCALATED)


def _refused(queue_arn: str, error: ClientError | BotoCoreError) -> Refusal:
    code = canonical(code_of(error)) if isinstance(error, ClientError) else ""
    if code == "QueueDeletedRecently":
        reason = f"{queue_arn} was deleted within the last minute; SQS makes it anew after that"
        return Refusal("deleted_recently", reason, becomes=None, again=True)
    if code == "QueueAlreadyExists":
        return taken(queue_arn, "its attributes are not those of one that is made for this queue")
    if is_passing(error):
        raise error
    return Refusal(AWS_REFUSED, f"AWS refused to make it: {error}", becomes=State.ESCALATED)

"""Delete messages or change their visibility timeouts, up to ten in one call.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ChangeMessageVisibilityBatch.html
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

SQSCall = Callable[..., Any]
# SQS lets a consumer hold a message for at most 12 hours after the receive. Extensions cannot make
# it longer.
LONGEST_HOLD_SECONDS = 43_200
MOST_ENTRIES_PER_BATCH = 10
# Error codes of SQS for a message that another consumer has received by now, or for a message or a
# queue that was deleted. In a standard queue SQS may accept such a call, so the heartbeat also
# checks its own clock.
LOST_MESSAGE_CODES = frozenset(
    {
        "InvalidParameterValue",
        "MessageNotInflight",
        "NonExistentQueue",
        "QueueDoesNotExist",
        "ReceiptHandleIsInvalid",
    }
)
# Used as the error code if SQS did not answer.
_NO_ANSWER_CODE = ""


@dataclass(eq=False)
class Hold:
    """A message that this consumer holds. Times are those of the heartbeat's clock, in seconds.

    Attributes:
        message_id: The message's id.
        handle: The receipt handle of the newest receive.
        received_at: When the receive began.
        hidden_until: When the visibility timeout ends.
    """

    message_id: str
    handle: str
    received_at: float
    hidden_until: float

    @property
    def hold_limit_at(self) -> float:
        """When SQS's limit of 12 hours ends, after which other consumers can get the message."""
        return self.received_at + LONGEST_HOLD_SECONDS

    def is_extension_due(self, now: float, visibility_seconds: float) -> bool:
        """Return True if half of the visibility timeout is over and it can be extended.

        SQS's limit of 12 hours may forbid an extension.
        """
        is_half_over = now >= self.hidden_until - visibility_seconds / 2
        return is_half_over and self.hold_limit_at - self.hidden_until >= 1


def change_messages(
    single_message_call: SQSCall,
    batch_call: SQSCall,
    queue_url: str,
    holds: Sequence[Hold],
    **arguments: int,
) -> dict[str, str]:
    """Make one call about at most ten messages. Return the error codes of messages that failed.

    The result has the codes by message id; an empty code means that SQS did not answer. Errors of
    boto3 are not raised. For one message, `single_message_call` is used, because CloudTrail does
    not record a failed entry of a batch.

    Args:
        single_message_call: boto3's call for one message.
        batch_call: boto3's call for several messages.
        queue_url: The queue.
        holds: The messages.
        arguments: Further arguments of the call, the same for each message.
    """
    receipt_handles = [hold.handle for hold in holds]
    response: Mapping[str, Any]
    try:
        if len(receipt_handles) == 1:
            single_message_call(QueueUrl=queue_url, ReceiptHandle=receipt_handles[0], **arguments)
            response = {"Successful": [{"Id": "0"}]}
        else:
            entries = [
                {"Id": str(index), "ReceiptHandle": receipt_handle, **arguments}
                for index, receipt_handle in enumerate(receipt_handles)
            ]
            response = batch_call(QueueUrl=queue_url, Entries=entries)
    except ClientError as error:
        error_code = _read_error_code(error.response.get("Error", {}))
        return {hold.message_id: error_code for hold in holds}
    except BotoCoreError:
        return {hold.message_id: _NO_ANSWER_CODE for hold in holds}
    return _read_error_code_by_message_id(response, holds)


def _read_error_code_by_message_id(
    response: Mapping[str, Any], holds: Sequence[Hold]
) -> dict[str, str]:
    """Return the error code of each message that SQS did not report as successful, by message id.

    The id of an entry in SQS's response is the index of its message in `holds`.
    """
    error_code_by_entry_id = {
        entry["Id"]: _read_error_code(entry) for entry in response.get("Failed", [])
    }
    # An entry that is missing in the answer counts as failed.
    successful_entry_ids = {entry["Id"] for entry in response.get("Successful", [])}
    successful_entry_ids -= error_code_by_entry_id.keys()
    error_code_by_message_id: dict[str, str] = {}
    for index, hold in enumerate(holds):
        entry_id = str(index)
        if entry_id not in successful_entry_ids:
            error_code_by_message_id[hold.message_id] = error_code_by_entry_id.get(
                entry_id, _NO_ANSWER_CODE
            )
    return error_code_by_message_id


def split_into_batches(holds: Iterable[Hold]) -> Iterator[tuple[Hold, ...]]:
    """Yield the holds in batches of at most ten, the most that SQS accepts in one call."""
    remaining_holds = iter(holds)
    while batch := tuple(islice(remaining_holds, MOST_ENTRIES_PER_BATCH)):
        yield batch


def _read_error_code(error: Mapping[str, Any]) -> str:
    """Return an error's code without its prefix, such as `AWS.SQS.`, and the suffix `Exception`."""
    return str(error.get("Code", "")).rpartition(".")[2].removesuffix("Exception")

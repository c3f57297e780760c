"""Write about received messages, ten at a time, and tell which writes SQS did not take.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ChangeMessageVisibilityBatch.html
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

# SQS counts from the receive, and no extension counts anew.
LONGEST_SECONDS = 43_200
MOST_ENTRIES = 10
# What SQS says of a message that is somebody else's by now, or gone. Of a standard queue it may
# say nothing at all, so the clock decides too.
LOST = frozenset(
    {
        "InvalidParameterValue",
        "MessageNotInflight",
        "NonExistentQueue",
        "QueueDoesNotExist",
        "ReceiptHandleIsInvalid",
    }
)
_UNANSWERED = ""
_Call = Callable[..., Any]


@dataclass(eq=False)
class Hold:
    """A message by the handle that it was received with; times are the heartbeat's clock."""

    message_id: str
    handle: str
    received_at: float
    until: float

    @property
    def last_at(self) -> float:
        """When SQS gives it to others, whatever is extended."""
        return self.received_at + LONGEST_SECONDS

    def is_due(self, now: float, seconds: float) -> bool:
        """Past the half of its time, where an extension by `seconds` would hold it for longer."""
        return now >= self.until - seconds / 2 and self.last_at - self.until >= 1


class Writes:
    """Each write takes at most ten, never raises for what SQS answers, and answers with the error
    code, by message id, of each that SQS did not take; an empty one is no answer."""

    def __init__(self, sqs: SQSClient, queue_url: str) -> None:
        self._sqs, self._queue_url = sqs, queue_url

    def change(self, holds: Sequence[Hold], seconds: int) -> dict[str, str]:
        """Hide them for so long from now on; 0 makes them visible."""
        calls = (self._sqs.change_message_visibility, self._sqs.change_message_visibility_batch)
        return self._refused(*calls, holds, {"VisibilityTimeout": seconds})

    def delete(self, holds: Sequence[Hold]) -> dict[str, str]:
        calls = (self._sqs.delete_message, self._sqs.delete_message_batch)
        return self._refused(*calls, holds, {})

    def _refused(
        self, single: _Call, batch: _Call, holds: Sequence[Hold], more: Mapping[str, int]
    ) -> dict[str, str]:
        """One alone goes by the single call: CloudTrail records no refusal within a batch."""
        handles = [each.handle for each in holds]
        answer: Mapping[str, Any] = {"Successful": [{"Id": "0"}]}
        try:
            if len(handles) == 1:
                single(QueueUrl=self._queue_url, ReceiptHandle=handles[0], **more)
            else:
                entries = [
                    {"Id": f"{n}", "ReceiptHandle": each, **more} for n, each in enumerate(handles)
                ]
                answer = batch(QueueUrl=self._queue_url, Entries=entries)
        except ClientError as error:
            code = _code(error.response.get("Error", {}))
            return {each.message_id: code for each in holds}
        except BotoCoreError:
            return {each.message_id: _UNANSWERED for each in holds}
        taken = {each["Id"] for each in answer.get("Successful", [])}
        codes = {each["Id"]: _code(each) for each in answer.get("Failed", [])}
        by_id = {f"{n}": each.message_id for n, each in enumerate(holds)}
        return {name: codes.get(n, _UNANSWERED) for n, name in by_id.items() if n not in taken}


def tens(holds: Iterable[Hold]) -> Iterator[tuple[Hold, ...]]:
    """The holds, as many at a time as SQS takes."""
    left = iter(holds)
    while ten := tuple(islice(left, MOST_ENTRIES)):
        yield ten


def _code(error: Mapping[str, Any]) -> str:
    return str(error.get("Code", "")).rpartition(".")[2].removesuffix("Exception")

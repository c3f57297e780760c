"""Write about received messages, ten at a time, and tell which writes SQS did not take.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ChangeMessageVisibilityBatch.html
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

Call = Callable[..., Any]
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


def write(
    single: Call, batch: Call, queue_url: str, holds: Sequence[Hold], **more: int
) -> dict[str, str]:
    """Make the call about at most ten; the error codes of those that SQS did not take.

    Never raises for what SQS answers; codes are by message id, an empty one is no answer. One
    alone goes by the single call: CloudTrail records no refusal within a batch.
    """
    handles = [each.handle for each in holds]
    answer: Mapping[str, Any] = {"Successful": [{"Id": "0"}]}
    try:
        if len(handles) == 1:
            single(QueueUrl=queue_url, ReceiptHandle=handles[0], **more)
        else:
            entries = [{"Id": f"{n}", "ReceiptHandle": it, **more} for n, it in enumerate(handles)]
            answer = batch(QueueUrl=queue_url, Entries=entries)
    except (ClientError, BotoCoreError) as error:
        said = error.response.get("Error", {}) if isinstance(error, ClientError) else {}
        return dict.fromkeys((each.message_id for each in holds), _code(said))
    codes = {each["Id"]: _code(each) for each in answer.get("Failed", [])}
    # SQS took an entry only if it says so: an entry that it does not mention was not taken.
    taken = {each["Id"] for each in answer.get("Successful", [])} - codes.keys()
    by_id = {f"{n}": each.message_id for n, each in enumerate(holds)}
    return {name: codes.get(n, _UNANSWERED) for n, name in by_id.items() if n not in taken}


def tens(holds: Iterable[Hold]) -> Iterator[tuple[Hold, ...]]:
    """The holds, as many at a time as SQS takes."""
    left = iter(holds)
    while ten := tuple(islice(left, MOST_ENTRIES)):
        yield ten


def _code(error: Mapping[str, Any]) -> str:
    return str(error.get("Code", "")).rpartition(".")[2].removesuffix("Exception")

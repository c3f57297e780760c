"""The temporary queue of a drill, and the calls on it that fail on purpose."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError
from msgspec import Struct

from mendq.aws.errors import error_code_of
from mendq.cli.exit_codes import CommandError, Exit
from mendq.model.failed_call import make_canonical_error_code
from mendq.model.tags import DRILL_TAG

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


VISIBILITY_TIMEOUT_SECONDS = 2
LATE_DELETE_COUNT = 3
LATE_DELETE_EVENT_NAME = "DeleteMessage"
# The longest time for which SQS lets a receive wait.
_RECEIVE_WAIT_SECONDS = 20


class DrillQueue(Struct, frozen=True):
    """The FIFO queue of a drill.

    Its visibility timeout is too short for its only consumer, the drill.
    """

    client: SQSClient
    url: str

    def make_calls_fail(self, print_line: Callable[[str], None]) -> datetime:
        """Receive a message, wait for the end of its visibility timeout, and try to delete it.

        The delete is tried LATE_DELETE_COUNT times. Return the time after the last failed delete.
        Raises CommandError if SQS accepts a late delete, because then there is nothing to fix, or
        if the message does not arrive. Raises ClientError if SQS answers with another error.
        """
        receipt_handle = self._receive_message()
        print_line(
            f"a message is received; its visibility timeout of {VISIBILITY_TIMEOUT_SECONDS} s runs "
            "out"
        )
        time.sleep(VISIBILITY_TIMEOUT_SECONDS + 1)
        for _attempt in range(LATE_DELETE_COUNT):
            try:
                self.client.delete_message(QueueUrl=self.url, ReceiptHandle=receipt_handle)
            except ClientError as error:
                if make_canonical_error_code(error_code_of(error)) != "InvalidParameterValue":
                    raise
            else:
                fault = "SQS took a delete after the visibility timeout had ended"
                raise CommandError(f"{fault}: nothing failed to be healed")
        return datetime.now(UTC)

    @property
    def visibility_timeout_seconds(self) -> int:
        """The queue's visibility timeout in seconds. Each access asks SQS."""
        answer = self.client.get_queue_attributes(QueueUrl=self.url, AttributeNames=["All"])
        return int(answer["Attributes"]["VisibilityTimeout"])

    def _receive_message(self) -> str:
        """Send a message and receive it. Return its receipt handle.

        Raises CommandError if the message does not arrive.
        """
        fifo_arguments: Any = {"MessageGroupId": "drill", "MessageDeduplicationId": "drill"}
        self.client.send_message(QueueUrl=self.url, MessageBody="mendq drill", **fifo_arguments)
        answer = self.client.receive_message(
            QueueUrl=self.url, WaitTimeSeconds=_RECEIVE_WAIT_SECONDS
        )
        for message in answer.get("Messages", []):
            return message["ReceiptHandle"]
        raise CommandError(f"the drill's own message did not arrive in {_RECEIVE_WAIT_SECONDS} s")


@contextmanager
def make_drill_queue(client: SQSClient, name: str, tags: Mapping[str, str]) -> Iterator[DrillQueue]:
    """Make the queue of a drill, yield it, and delete it at the end, also after an error.

    The queue has the tag of a drill. So Mendq does not count it among the operator's queues when it
    checks if many queues show a symptom at once. Raises CommandError if a queue of that name
    exists: the drill would delete it.
    """
    # CreateQueue succeeds if the queue exists with the same attributes, so look first.
    try:
        client.get_queue_url(QueueName=name)
    except client.exceptions.QueueDoesNotExist:
        pass
    else:
        fault = f"--queue {name!r} is there already: give a name that no queue has"
        raise CommandError(fault, Exit.USAGE)
    url = client.create_queue(
        QueueName=name,
        Attributes={"FifoQueue": "true", "VisibilityTimeout": str(VISIBILITY_TIMEOUT_SECONDS)},
        tags={**tags, DRILL_TAG: "true"},
    )["QueueUrl"]
    try:
        yield DrillQueue(client, url)
    finally:
        client.delete_queue(QueueUrl=url)

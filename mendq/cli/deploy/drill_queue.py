"""The queue of a drill: made, called too late on purpose, removed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError
from msgspec import Struct

from mendq.aws.errors import code_of
from mendq.cli.exit_codes import CommandError, Exit
from mendq.model.failed_call import canonical_code
from mendq.model.limits import DRILL_TAG

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


VISIBILITY_SECONDS = 2
LATE_CALLS = 3
LATE_CALL = "DeleteMessage"
# As long as SQS lets a receive wait.
_PATIENCE_SECONDS = 20


class DrillQueue(Struct, frozen=True):
    """A FIFO queue with a visibility timeout that its only consumer, this drill, outlives."""

    client: SQSClient
    url: str

    def fail(self, say: Callable[[str], None]) -> datetime:
        """Delete a message late, again and again; when the last delete failed.

        CommandError where SQS lets a late delete pass: then there is nothing to heal.
        """
        handle = self._received()
        say(f"a message is received; its visibility timeout of {VISIBILITY_SECONDS} s runs out")
        time.sleep(VISIBILITY_SECONDS + 1)
        for _ in range(LATE_CALLS):
            try:
                self.client.delete_message(QueueUrl=self.url, ReceiptHandle=handle)
            except ClientError as error:
                if canonical_code(code_of(error)) != "InvalidParameterValue":
                    raise
            else:
                late = "SQS took a delete after the visibility timeout had ended"
                raise CommandError(f"{late}: nothing failed to be healed")
        return datetime.now(UTC)

    @property
    def needed_seconds(self) -> int:
        """What stands in the queue now."""
        answer = self.client.get_queue_attributes(QueueUrl=self.url, AttributeNames=["All"])
        return int(answer["Attributes"]["VisibilityTimeout"])

    def _received(self) -> str:
        of_fifo: Any = {"MessageGroupId": "drill", "MessageDeduplicationId": "drill"}
        self.client.send_message(QueueUrl=self.url, MessageBody="mendq drill", **of_fifo)
        answer = self.client.receive_message(QueueUrl=self.url, WaitTimeSeconds=_PATIENCE_SECONDS)
        for each in answer.get("Messages", []):
            return each["ReceiptHandle"]
        raise CommandError(f"the drill's own message did not arrive in {_PATIENCE_SECONDS} s")


@contextmanager
def drill_queue(client: SQSClient, name: str, tags: Mapping[str, str]) -> Iterator[DrillQueue]:
    """The queue, for as long as the block lasts; removed however it ends.

    It is marked as a drill's, so that it makes no mass symptom with the queues of others.

    CommandError where one of that name is there: it is somebody's, and would be removed with the
    drill.
    """
    # CreateQueue would hand over the queue that is there, as if it had been made.
    try:
        client.get_queue_url(QueueName=name)
    except client.exceptions.QueueDoesNotExist:
        pass
    else:
        line = f"--queue {name!r} is there already: give a name that no queue has"
        raise CommandError(line, Exit.USAGE)
    url = client.create_queue(
        QueueName=name,
        Attributes={"FifoQueue": "true", "VisibilityTimeout": str(VISIBILITY_SECONDS)},
        tags={**tags, DRILL_TAG: "true"},
    )["QueueUrl"]
    try:
        yield DrillQueue(client, url)
    finally:
        client.delete_queue(QueueUrl=url)

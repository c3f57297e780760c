"""The queue of a drill: made, called too late on purpose, removed."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from mendq.aws.errors import code_of
from mendq.cli.account import Account
from mendq.cli.exit_codes import Exit, Stopped
from mendq.heal.approve import DECISIONS
from mendq.model.case import Case
from mendq.model.failed_call import canonical
from mendq.model.limits import DRILL_TAG

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


VISIBILITY_SECONDS = 2
LATE_CALLS = 3
LATE_CALL = "DeleteMessage"
_PATIENCE_SECONDS = 60


@dataclass(frozen=True)
class DrillQueue:
    """A FIFO queue with a visibility timeout that its only consumer, this drill, outlives."""

    client: SQSClient
    url: str

    def fail(self, say: Callable[[str], None]) -> datetime:
        """Delete messages after their visibility timeout has ended; when the last of them failed.

        Stopped where SQS lets a late delete pass: then there is nothing to heal.
        """
        handles = self._received()
        timeout = f"their visibility timeout of {VISIBILITY_SECONDS} s runs out"
        say(f"{len(handles)} messages received; {timeout}")
        time.sleep(VISIBILITY_SECONDS + 1)
        for handle in handles:
            try:
                self.client.delete_message(QueueUrl=self.url, ReceiptHandle=handle)
            except ClientError as error:
                if canonical(code_of(error)) != "InvalidParameterValue":
                    raise
            else:
                late = "SQS took a delete after the visibility timeout had ended"
                raise Stopped(f"{late}: nothing failed to be healed")
        return datetime.now(UTC)

    @property
    def needed_seconds(self) -> int:
        """What stands in the queue now."""
        answer = self.client.get_queue_attributes(
            QueueUrl=self.url, AttributeNames=["VisibilityTimeout"]
        )
        return int(answer["Attributes"]["VisibilityTimeout"])

    def _received(self) -> list[str]:
        for number in range(LATE_CALLS):
            self.client.send_message(
                QueueUrl=self.url,
                MessageBody="mendq drill",
                MessageGroupId=f"group-{number}",
                MessageDeduplicationId=uuid.uuid4().hex,
            )
        handles: dict[str, str] = {}
        until = time.monotonic() + _PATIENCE_SECONDS
        while len(handles) < LATE_CALLS:
            if time.monotonic() > until:
                raise Stopped("the drill's own messages did not arrive within a minute")
            answer = self.client.receive_message(
                QueueUrl=self.url, MaxNumberOfMessages=10, WaitTimeSeconds=1
            )
            for each in answer.get("Messages", []):
                handles[each["MessageId"]] = each["ReceiptHandle"]
        return list(handles.values())


@contextmanager
def drill_queue(client: SQSClient, name: str, tags: Mapping[str, str]) -> Iterator[DrillQueue]:
    """The queue, for as long as the block lasts; removed however it ends.

    It is marked as a drill's, so that it makes no mass symptom with the queues of others.

    Stopped where one of that name is there: it is somebody's, and would be removed with the drill.
    """
    # CreateQueue would hand over the queue that is there, as if it had been made.
    try:
        client.get_queue_url(QueueName=name)
    except client.exceptions.QueueDoesNotExist:
        pass
    else:
        line = f"--queue {name!r} is there already: give a name that no queue has"
        raise Stopped(line, Exit.USAGE)
    url = client.create_queue(
        QueueName=name,
        Attributes={"FifoQueue": "true", "VisibilityTimeout": str(VISIBILITY_SECONDS)},
        tags={**tags, DRILL_TAG: "true"},
    )["QueueUrl"]
    try:
        yield DrillQueue(client, url)
    finally:
        client.delete_queue(QueueUrl=url)


# A person's words that end a case without a change to the queue, the plainest first.
_ENDING = ("close", "decline")


@dataclass(frozen=True)
class Stage:
    """Something that was waited for, and when it was there."""

    name: str
    at: datetime

    def document(self, start: datetime) -> dict[str, Any]:
        seconds = round((self.at - start).total_seconds(), 1)
        return {"stage": self.name, "at": self.at.isoformat(), "seconds": seconds}


@dataclass
class Ending:
    """What became of the drill's case; `fault` is empty where it has ended."""

    account: Account
    case: Case
    stages: list[Stage] = field(default_factory=list)
    fault: str = ""

    def run(self, needed_seconds: Callable[[], int]) -> None:
        """Take the fix back, where one was made, then end the case, where that has not.

        `needed_seconds` reads what stands in the queue.
        """
        if self.case.has_written:
            self._ask("RollbackFunction", dry_run=False)
            self._stage(f"fix taken back: {needed_seconds()} s")
        self.case = self._newest()
        state = self.case.state
        word = next((each for each in _ENDING if state in DECISIONS[each].out_of), None)
        if word:
            self._ask("ApproveFunction", decision=word)
            self.case = self._newest()
        if self.case.is_final:
            self._stage(f"case ended: {self.case.state}")
        else:
            because = self.fault or "its change could not be taken back"
            self.fault = f"{self.case.case_id} stays {self.case.state}: {because}"

    def _ask(self, output: str, **said: object) -> None:
        event = {"case_id": self.case.case_id, "actor": self.account.identity, **said}
        answer = self.account.invoke(output, event)
        self.fault = str(answer.get("reason") or answer["error"]) if "error" in answer else ""

    def _newest(self) -> Case:
        return self.account.open_cases.transitions(self.case.case_id)[-1]

    def _stage(self, name: str) -> None:
        if not self.fault:
            self.stages.append(Stage(name, datetime.now(UTC)))

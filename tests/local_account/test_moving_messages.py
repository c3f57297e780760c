"""Messages that really died go back whole, by the mover, in an account that keeps its own time."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import Any

import pytest

from local_account.process import LocalAccount
from mendq.redrive.messages import Message, hopped
from mendq.redrive.mover import MessageMover
from mendq.redrive.send_batches import Destination, MoveResult
from tests.local_account.queues import eventually

pytestmark = pytest.mark.account
TRACE = "Root=1-5759e988-bd862e3fe1be46a994272793"
SENT: Mapping[str, Any] = {
    "MessageAttributes": {
        "kind": {"DataType": "String", "StringValue": "order"},
        "picture": {"DataType": "Binary.png", "BinaryValue": b"\x00\xff"},
    },
    "MessageSystemAttributes": {"AWSTraceHeader": {"DataType": "String", "StringValue": TRACE}},
}


class Dead:
    """A queue whose messages die at their second receive, and where they go then."""

    def __init__(self, account: LocalAccount, *, fifo: bool) -> None:
        self.sqs: Any = account.client("sqs")
        self.fifo = fifo
        ending = ".fifo" if fifo else ""
        name = f"dead-{uuid.uuid4().hex[:8]}"
        kind = {"FifoQueue": "true"} if fifo else {}
        self.messages = self._make(f"{name}-dlq{ending}", kind)
        redrive = {"deadLetterTargetArn": self._arn(self.messages), "maxReceiveCount": 1}
        self.source = self._make(f"{name}{ending}", kind | {"RedrivePolicy": json.dumps(redrive)})

    def _make(self, name: str, attributes: Mapping[str, str]) -> str:
        return str(self.sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"])

    def _arn(self, url: str) -> str:
        answer = self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
        return str(answer["Attributes"]["QueueArn"])

    def kill(self, *bodies: str) -> None:
        for body in bodies:
            more = {"MessageGroupId": "tenant-7"}
            if self.fifo:
                more["MessageDeduplicationId"] = body
            self.sqs.send_message(QueueUrl=self.source, MessageBody=body, **SENT, **more)
        eventually(lambda: self._receive_in_vain() == len(bodies))

    def _receive_in_vain(self) -> int:
        self.sqs.receive_message(QueueUrl=self.source, MaxNumberOfMessages=10, VisibilityTimeout=0)
        return self._count(self.messages)

    def _count(self, url: str) -> int:
        name = "ApproximateNumberOfMessages"
        answer = self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=[name])
        return int(answer["Attributes"][name])

    def redrive(self) -> tuple[list[Message], MoveResult]:
        to = Destination(self._arn(self.source), self.source, "case-1", hopped)
        taken, done = list[Message](), MoveResult()
        with MessageMover(self.sqs, self.messages) as mover:
            while messages := mover.take(10):
                taken += messages
                done = sum(mover.put(messages, to), done)
        return taken, done

    def arrived(self) -> list[Message]:
        with MessageMover(self.sqs, self.source) as mover:
            return mover.take(10)


@pytest.mark.parametrize("fifo", [False, True])
def test_a_dlq_goes_back_whole(account: LocalAccount, *, fifo: bool) -> None:
    dead = Dead(account, fifo=fifo)
    bodies = [f"order {at:02}" for at in range(12)]
    dead.kill(*bodies)
    messages, moved = dead.redrive()
    assert (moved.moved, moved.failed, moved.unmarked) == (12, (), ())
    assert {each.source_arn for each in messages} == {dead._arn(dead.source)}
    arrived = dead.arrived()
    assert len({each.body for each in arrived}) == 10
    if fifo:
        assert [each.body for each in arrived] == bodies[:10]
    by_body = {each.body: each for each in messages}
    for each in arrived:
        before = by_body[each.body]
        assert each.attributes == hopped(before).attributes
        assert each.attributes["picture"].value == b"\x00\xff"
        assert (each.group_id, each.trace_header) == ("tenant-7", TRACE)
        assert each.message_id not in {one.message_id for one in messages}
    assert dead._count(dead.messages) == 0

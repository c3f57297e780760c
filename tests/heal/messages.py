"""Two queues and the messages in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any

import pytest

from mendq.redrive.messages import Message, hopped
from mendq.redrive.mover import MessageMover, message_of
from mendq.redrive.send_batches import Destination, MoveResult
from tests.heal.conftest import Account

VISIBILITY_SECONDS = 30
BOTH = pytest.mark.parametrize("fifo", [False, True])
# A queue's messages may be hidden for so long.
LONGER_THAN_A_VISIBILITY = 61


@dataclass
class Two:
    """A queue that messages wait in, and the one that they go to."""

    account: Account
    here: str
    there: str

    @property
    def is_fifo(self) -> bool:
        return self.here.endswith(".fifo")

    @property
    def sqs(self) -> Any:
        return self.account.clients.sqs

    def write(self, *bodies: str, group: str = "g", **more: Any) -> None:
        """Messages into the first; FIFO ones of one group."""
        for body in bodies:
            fifo = {"MessageGroupId": group, "MessageDeduplicationId": body[:80]}
            self.sqs.send_message(
                QueueUrl=self.account.url(self.here),
                MessageBody=body,
                **(fifo if self.is_fifo else {}),
                **more,
            )

    def to(self, mark: Callable[[Message], Message] = hopped, **more: Any) -> Destination:
        return Destination(self.there, self.account.url(self.there), "case-1", mark, **more)

    def mover(self, sqs: Any = None) -> MessageMover:
        return MessageMover(
            sqs or self.sqs,
            self.account.url(self.here),
            visibility_seconds=VISIBILITY_SECONDS,
            wait_seconds=0,
            clock=lambda: self.account.now.timestamp(),  # noqa: PLW0108 - `now` moves
        )

    def move(
        self,
        to: Destination | None = None,
        sqs: Any = None,
        takes: Callable[[Message], bool] = lambda _: True,
        most: int = 1_000,
    ) -> MoveResult:
        """Ten by ten, at most so many of those that `takes` says yes to."""
        tried, done = 0, MoveResult()
        with self.mover(sqs) as mover:
            while tried < most and (messages := mover.take(10)):
                chosen = [each for each in messages if takes(each)][: most - tried]
                tried += len(chosen)
                done = sum(mover.put(chosen, to or self.to()), done)
        return done

    def read(self, queue_arn: str) -> list[Message]:
        """All of a queue's messages that can be seen, each deleted; in order of a FIFO group."""
        url, found = self.account.url(queue_arn), []
        while True:
            answer = self.sqs.receive_message(
                QueueUrl=url,
                MaxNumberOfMessages=10,
                MessageAttributeNames=["All"],
                MessageSystemAttributeNames=["All"],
            )
            for each in answer.get("Messages", []):
                found.append(message_of(each))
                self.sqs.delete_message(QueueUrl=url, ReceiptHandle=each["ReceiptHandle"])
            if "Messages" not in answer:
                return found

    def is_empty(self) -> bool:
        counts = self.account.attributes(self.here)
        kinds = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")
        return not any(int(counts[each]) for each in kinds)

    def arrived(self) -> list[Message]:
        return self.read(self.there)

    def left(self) -> list[Message]:
        return self.read(self.here)


@pytest.fixture
def timed(account: Account, monkeypatch: pytest.MonkeyPatch) -> Account:
    """The account, where visibility timeouts too keep its time; at SQS no two moments are one."""
    tick = count()
    monkeypatch.setattr(
        "moto.sqs.models.unix_time_millis",
        lambda: account.now.timestamp() * 1_000 + next(tick) / 1_000,
    )
    return account


def two(account: Account, *, fifo: bool = False, **attributes: str) -> Two:
    ending = ".fifo" if fifo else ""
    here = account.queue(f"orders-dlq{ending}", **attributes)
    return Two(account, here, account.queue(f"orders{ending}", **attributes))


def texts(count: int) -> list[str]:
    return [f"message {at:03}" for at in range(count)]


class Answers:
    """The account's SQS, but for what is said of some texts."""

    def __init__(self, sqs: Any, **by_call: Callable[[Any, dict[str, Any]], Any]) -> None:
        self._sqs, self._by_call = sqs, by_call

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._sqs, name)
        if name not in self._by_call:
            return real
        return lambda **asked: self._by_call[name](real, asked)

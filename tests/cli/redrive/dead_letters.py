"""A source, its dead letters, and an operator who looks at both."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, cast

import pytest

from cli import asking
from cli.commands import quarantine, redrive
from cli.redrive import asked
from functions.aws import message_mover
from functions.aws.course_ledger import CourseLedger
from functions.aws.message_mover import MessageMover, letter_of
from functions.healing.dead_letters import Redrive
from functions.healing.letters import HOPS, Letter
from functions.healing.redrive_progress import RedriveProgress, RedriveQueues, Stage
from tests.cli.conftest import Operator

# moto says of no letter where it died: here an attribute does, which nobody sees.
DIED_IN = "died-in"


class _Answer:
    status_code = 200


@dataclass
class DeadLetters:
    """`tasks` are what SQS lists of the dead-letter queue; moto knows none."""

    operator: Operator
    source: str
    letters: str
    tasks: list[dict[str, Any]] = field(default_factory=list)
    # What SQS refuses, by operation.
    refused: dict[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def sqs(self) -> Any:
        return self.operator.aws.clients.sqs

    def write(
        self, body: object = "hello", queue: str | None = None, group: str = "g", **attributes: str
    ) -> str:
        """One letter, died in the source unless `died_in` says otherwise; its message id."""
        arn = queue or self.letters
        given = {name.replace("_", "-"): text for name, text in attributes.items()}
        given = {DIED_IN: self.source, **given}
        text = body if isinstance(body, str) else json.dumps(body)
        fifo = {"MessageGroupId": group, "MessageDeduplicationId": f"{len(self.ids(arn))}-{text}"}
        answer = self.sqs.send_message(
            QueueUrl=self.operator.aws.url(arn),
            MessageBody=text,
            MessageAttributes={
                name: {"DataType": "Number" if name == HOPS else "String", "StringValue": value}
                for name, value in given.items()
                if value
            },
            **(fifo if arn.endswith(".fifo") else {}),
        )
        return str(answer["MessageId"])

    def seen(self, arn: str) -> list[Letter]:
        """All that is visible; it is visible still after that."""
        found: list[Any] = []
        while received := self._received(arn):
            found += received
        for each in found:
            self.sqs.change_message_visibility(
                QueueUrl=self.operator.aws.url(arn),
                ReceiptHandle=each["ReceiptHandle"],
                VisibilityTimeout=0,
            )
        return [letter_of(each) for each in found]

    def taken(self, arn: str) -> list[Letter]:
        """All that is visible, as somebody else takes it away."""
        found: list[Letter] = []
        while received := self._received(arn):
            found += map(letter_of, received)
            for each in received:
                self.sqs.delete_message(
                    QueueUrl=self.operator.aws.url(arn), ReceiptHandle=each["ReceiptHandle"]
                )
        return found

    def _received(self, arn: str) -> Any:
        answer = self.sqs.receive_message(
            QueueUrl=self.operator.aws.url(arn),
            MaxNumberOfMessages=10,
            MessageAttributeNames=["All"],
        )
        return answer.get("Messages", [])

    def ids(self, arn: str) -> set[str]:
        return {each.message_id for each in self.seen(arn)}

    def bodies(self, arn: str) -> list[str]:
        return sorted(each.body for each in self.seen(arn))

    def redrive(self, *arguments: str, code: int = 0) -> Any:
        name = self.source.rpartition(":")[2]
        return self.operator.json("redrive", name, *arguments, code=code)

    def course_in(self, stage: Stage) -> None:
        """As case-7 of Mendq's own has come to that stage with these letters."""
        now = datetime.now(UTC)
        dead, queues = self.letters, RedriveQueues(self.letters, self.source)
        course = RedriveProgress.begun("case-7", queues, size=5, now=now)
        ledger = CourseLedger(self.operator.aws.clients.dynamodb, "ledger")
        claimed = ledger.claim(dead, "me", now)
        assert claimed is not None
        course = (claimed.course or course).now_in(stage, now)
        ledger.save(course.with_stage(soak_ends_at=now + timedelta(minutes=3)), "me")
        ledger.release(dead, "me")

    def answer(self, model: Any, **_: Any) -> tuple[_Answer, Any] | None:
        """What the operator's client is answered in moto's place."""
        if model.name in self.refused:
            code, message = self.refused[model.name]
            refusal = _Answer()
            refusal.status_code = 403
            return refusal, {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {}}
        if model.name == "ListMessageMoveTasks":
            return _Answer(), {"Results": self.tasks}
        return None


def dead_letters(operator: Operator, *, fifo: bool = False, **attributes: str) -> DeadLetters:
    """Two empty queues; whatever is held in them is hidden for long."""
    ending = ".fifo" if fifo else ""
    letters = operator.aws.queue(f"orders-dlq{ending}", tag=None, VisibilityTimeout="600")
    policy = {"RedrivePolicy": Redrive(letters, 3).text}
    source = operator.aws.queue(f"orders{ending}", tag=None, **policy, **attributes)
    made = DeadLetters(operator, source, letters)
    events = operator.account.clients.sqs.meta.events
    events.register("before-call", cast("Any", made.answer))
    return made


def _letter_of(message: Mapping[str, Any]) -> Letter:
    letter = letter_of(message)
    said = letter.attributes.get(DIED_IN)
    source_arn = str(said.value) if said and said.value != "nobody" else None
    return replace(letter.without(DIED_IN), source_arn=source_arn)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """moto's clock stands still, so nobody can wait for a letter there."""
    hand = partial(MessageMover, wait_seconds=0)
    monkeypatch.setattr(message_mover, "letter_of", _letter_of)
    monkeypatch.setattr(asked, "MessageMover", hand)
    monkeypatch.setattr("cli.commands.quarantine.MessageMover", hand)
    monkeypatch.setattr(asking, "somebody_is_there", _somebody_is_there)


def _somebody_is_there() -> bool:
    """Whoever stands in for the question can be asked."""
    stands_in = any(each.confirm is not asking.confirm for each in (redrive, quarantine))
    return stands_in or sys.stdin.isatty()

"""A source, its DLQ messages, and an operator who looks at both."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mendq.cli import output
from mendq.cli.redrive import work
from mendq.model.queue import Redrive
from mendq.redrive.messages import REDRIVE_COUNT, Message
from mendq.redrive.mover import MessageMover, message_of
from mendq.redrive.progress import RedriveProgress, RedriveQueues, Stage
from mendq.redrive.store import RedriveStore
from tests.cli.conftest import Operator
from tests.redrive.world import read

# moto says of no message where it died: here an attribute does, which nobody sees.
DIED_IN = "died-in"
_NUMBERS = count()


@dataclass
class Dlq:
    """`tasks` are what SQS lists of the DLQ; moto knows none."""

    operator: Operator
    source: str
    messages: str
    tasks: list[dict[str, Any]] = field(default_factory=list)
    # What SQS refuses, by operation.
    refused: dict[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def dlq(self) -> str:
        """`messages` may be the quarantine."""
        return self.source.replace("orders", "orders-dlq")

    @property
    def sqs(self) -> Any:
        return self.operator.aws.clients.sqs

    def write(
        self, body: object = "hello", queue: str | None = None, group: str = "g", **attributes: str
    ) -> str:
        """One message, died in the source unless `died_in` says otherwise; its message id."""
        arn = queue or self.messages
        given = {name.replace("_", "-"): text for name, text in attributes.items()}
        given = {DIED_IN: self.source, **given}
        text = body if isinstance(body, str) else json.dumps(body)
        fifo = {"MessageGroupId": group, "MessageDeduplicationId": f"{next(_NUMBERS)}-{text[:60]}"}
        answer = self.sqs.send_message(
            QueueUrl=self.operator.aws.url(arn),
            MessageBody=text,
            MessageAttributes={
                name: {
                    "DataType": "Number" if name == REDRIVE_COUNT else "String",
                    "StringValue": value,
                }
                for name, value in given.items()
                if value
            },
            **(fifo if arn.endswith(".fifo") else {}),
        )
        return str(answer["MessageId"])

    def seen(self, arn: str) -> list[Message]:
        """All that is visible; it is visible still after that."""
        return read(self.operator.aws, arn, stay=True)

    def taken(self, arn: str) -> list[Message]:
        """All that is visible, as somebody else takes it away."""
        return read(self.operator.aws, arn)

    def ids(self, arn: str) -> set[str]:
        return {each.message_id for each in self.seen(arn)}

    def bodies(self, arn: str) -> list[str]:
        return sorted(each.body for each in self.seen(arn))

    def redrive(self, *arguments: str, code: int = 0) -> Any:
        name = self.source.rpartition(":")[2]
        return self.operator.json("redrive", name, *arguments, code=code)

    def said(self, *arguments: str, code: int = 0) -> str:
        """What people read, in one line."""
        result = self.operator.mendq(*arguments)
        assert result.exit_code == code, result.output
        return " ".join(result.output.split())

    @property
    def redrives(self) -> RedriveStore:
        return RedriveStore(self.operator.aws.clients.dynamodb, "case_store")

    def claimed(self, later: float = 0) -> object:
        """As a tick of Mendq's claims the messages."""
        now = datetime.now(UTC) + timedelta(seconds=later)
        return self.redrives.claim(self.dlq, "a tick", now)

    def redrive_in(self, stage: Stage) -> None:
        """As case-7 of Mendq's own has come to that stage with these messages."""
        now, queues = datetime.now(UTC), RedriveQueues(self.dlq, self.source)
        claimed = self.redrives.claim(self.dlq, "me", now)
        assert claimed is not None
        begun = RedriveProgress.begun("case-7", queues, size=5, now=now)
        progress = (claimed.progress or begun).now_in(stage, now)
        self.redrives.save(progress.with_stage(soak_ends_at=now + timedelta(minutes=3)), "me")
        self.redrives.release(self.dlq, "me")

    def set(self, arn: str, **attributes: str) -> None:
        url = self.operator.aws.url(arn)
        self.sqs.set_queue_attributes(QueueUrl=url, Attributes=attributes)

    def answer(self, model: Any, **_: Any) -> tuple[Any, Any] | None:
        """What the operator's client is answered in moto's place."""
        if model.name in self.refused:
            code, message = self.refused[model.name]
            refusal = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {}}
            return SimpleNamespace(status_code=403), refusal
        is_asked = model.name == "ListMessageMoveTasks"
        return (SimpleNamespace(status_code=200), {"Results": self.tasks}) if is_asked else None


def dlq(operator: Operator, *, fifo: bool = False, **attributes: str) -> Dlq:
    """Two empty queues; whatever is held in them is hidden for long."""
    ending = ".fifo" if fifo else ""
    messages = operator.aws.queue(f"orders-dlq{ending}", tag=None, VisibilityTimeout="600")
    policy = {"RedrivePolicy": Redrive(messages, 3).text}
    source = operator.aws.queue(f"orders{ending}", tag=None, **policy, **attributes)
    made = Dlq(operator, source, messages)
    events = operator.account.clients.sqs.meta.events
    events.register("before-call", cast("Any", made.answer))
    return made


def _message_of(received: Mapping[str, Any]) -> Message:
    message = message_of(received)
    said = message.attributes.get(DIED_IN)
    source_arn = str(said.value) if said and said.value != "nobody" else None
    return replace(message.without(DIED_IN), source_arn=source_arn)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """moto's clock stands still, so nobody can wait for a message there."""
    monkeypatch.setattr("mendq.redrive.mover.message_of", _message_of)
    monkeypatch.setattr(
        "mendq.cli.redrive.route.MessageMover", partial(MessageMover, wait_seconds=0)
    )
    # Whoever stands in for the question can be asked.
    monkeypatch.setattr(output, "somebody_is_there", _somebody_is_there)


def _somebody_is_there() -> bool:
    return vars(work)["confirm"] is not output.confirm or sys.stdin.isatty()


@pytest.fixture
def queues(operator: Operator) -> Dlq:
    return dlq(operator)

"""Queues, messages and an operator for the tests of redrive commands."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import patch

from moto.sqs.models import sqs_backends

from mendq.cases.seal_keys import SealUse
from mendq.model.queue import RedrivePolicy
from mendq.model.seal import SealKey
from mendq.redrive.messages import (
    QUARANTINE_MARK_NAME,
    REDRIVE_MARK_NAME,
    Message,
    MessageAttribute,
    RedriveMarker,
)
from mendq.redrive.progress import RedriveProgress, RedriveQueues, Stage
from tests.account.account import ACCOUNT, REGION
from tests.account.receivers import open_seal_keys
from tests.cli.builders import Operator
from tests.redrive.world import DIED_IN, RedriveWorld, send


@dataclass
class OrdersQueues(RedriveWorld):
    """The queue `orders` and its DLQ. `messages` is the DLQ or the quarantine."""

    operator: Operator = field(kw_only=True)
    messages: str = field(kw_only=True)

    def write(
        self, body: object = "hello", queue: str = "", group: str = "g", **attributes: str
    ) -> str:
        """Send one message. Return its message id."""
        given = {
            name: {"DataType": "String", "StringValue": value} for name, value in attributes.items()
        }
        text = body if isinstance(body, str) else json.dumps(body)
        return send(self.account, queue or self.messages, text, group, **given)

    def read_ids(self, arn: str) -> set[str]:
        return {message.message_id for message in self.read_messages(arn)}

    def redrive(self, *arguments: str, code: int = 0) -> Any:
        name = self.source.rpartition(":")[2]
        return self.operator.run_json("redrive", name, *arguments, code=code)

    def read_output(self, *arguments: str, code: int = 0) -> str:
        return self.operator.read_output(*arguments, code=code)

    def claim_dlq(self, later: float = 0) -> object:
        """Claim the DLQ as Mendq's own redrive does."""
        now = datetime.now(UTC) + timedelta(seconds=later)
        return self.redrive_store.claim(self.dlq, "a tick", now)

    def set_redrive_stage(self, stage: Stage) -> None:
        """Store that Mendq's redrive of case-7 is at this stage."""
        now = datetime.now(UTC)
        queues = RedriveQueues(self.dlq, self.source)
        claimed = self.redrive_store.claim(self.dlq, "me", now)
        assert claimed is not None
        begun = RedriveProgress.start("case-7", queues, size=5, now=now)
        progress = (claimed.progress or begun).enter_stage(stage, now)
        self.redrive_store.save(
            progress.change_current_stage(soak_ends_at=now + timedelta(minutes=3)), "me"
        )
        self.redrive_store.release(self.dlq, "me")


@contextmanager
def send_in_the_past(queues: OrdersQueues, seconds: float) -> Iterator[None]:
    """Let messages that are sent in the block have been sent `seconds` ago."""
    sent_at = (queues.account.now.timestamp() - seconds) * 1_000
    with patch("moto.sqs.models.unix_time_millis", lambda: sent_at):
        yield


def set_creation(queue_arn: str, created_at: datetime) -> None:
    """Let a queue in moto have been created at this time."""
    queue = sqs_backends[ACCOUNT][REGION].queues[queue_arn.rpartition(":")[2]]
    queue.created_timestamp = int(created_at.timestamp())


def return_newest_messages_first(queue_arn: str, number: int) -> None:
    """Let moto return the last `number` messages of a queue before all others."""
    messages = sqs_backends[ACCOUNT][REGION].queues[queue_arn.rpartition(":")[2]]._messages
    messages[:] = messages[-number:] + messages[:-number]


def make_died_in_attribute(queue_arn: str) -> dict[str, str]:
    """Return the attribute that names the queue in which a message died, "nobody" if unknown."""
    return {DIED_IN: queue_arn}


def make_quarantine_marks(source: str, redrive_count: int = 2) -> dict[str, str]:
    """Return the attributes of a message in the quarantine of `source`."""
    counts = {"case": "case-7", "redrive_count": redrive_count}
    mark = {"why": "came back", "at": "2026-11-21T20:00:00+00:00", "source": source, **counts}
    return {**make_died_in_attribute("nobody"), QUARANTINE_MARK_NAME: json.dumps(mark)}


def write_sealed(
    queues: OrdersQueues,
    body: object = "one",
    *,
    source: str = "",
    redrive_count: int = 1,
    group: str = "g",
    quarantine: str = "",
    **attributes: str,
) -> str:
    """Send a message to a quarantine as Mendq does, with its sealed mark. Return its message id."""
    quarantine_arn = quarantine or queues.messages
    text = body if isinstance(body, str) else json.dumps(body)
    mark = {"source": source or queues.source, "redrive": "case-7", "redrive_count": redrive_count}
    attributes = {**attributes, REDRIVE_MARK_NAME: json.dumps(mark)}
    message = Message(
        "",
        text,
        datetime.now(UTC),
        attributes={name: MessageAttribute("String", value) for name, value in attributes.items()},
        group_id=group if quarantine_arn.endswith(".fifo") else "",
    )
    marked = RedriveMarker(source or queues.source, "case-7", SealKey(b"")).mark_quarantined(
        message,
        "came back",
        datetime(2026, 11, 21, 20, tzinfo=UTC),
        open_seal_keys(queues.account).provide(
            quarantine_arn, SealUse.QUARANTINE, datetime.now(UTC)
        ),
    )
    sealed = {name: str(attribute.value) for name, attribute in marked.attributes.items()}
    return queues.write(text, quarantine_arn, group, **sealed, **make_died_in_attribute("nobody"))


def read_redrive_command(output: str) -> list[str]:
    """Return the words after `mendq` of the only redrive command in the output of a preview."""
    commands: list[str] = re.findall(r"mendq redrive .*? --region [a-z0-9-]+", output)
    (command,) = commands
    return shlex.split(command)[1:]


def make_orders_queues(
    operator: Operator, *, fifo: bool = False, **attributes: str
) -> OrdersQueues:
    """Make `orders` and its DLQ, both empty. The DLQ's visibility timeout is ten minutes.

    `orders` was created a day ago, before the messages that tests send in the past.
    """
    ending = ".fifo" if fifo else ""
    messages = operator.aws.queue(f"orders-dlq{ending}", tag=None, VisibilityTimeout="600")
    policy = {"RedrivePolicy": RedrivePolicy(messages, 3).text}
    source = operator.aws.queue(f"orders{ending}", tag=None, **policy, **attributes)
    set_creation(source, operator.aws.now - timedelta(days=1))
    queues = OrdersQueues(operator.aws, source, messages, operator=operator, messages=messages)
    queues.register_answers(operator.account.clients)
    return queues

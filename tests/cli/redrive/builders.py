"""A source, its DLQ messages, and an operator who looks at both."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from mendq.model.queue import RedrivePolicy
from mendq.redrive.messages import QUARANTINE_MARK_NAME
from mendq.redrive.progress import RedriveProgress, RedriveQueues, Stage
from tests.cli.builders import Operator
from tests.redrive.world import DIED_IN, Redriving, send


@dataclass
class OrdersQueues(Redriving):
    """`messages` is what is worked on: the DLQ, or the quarantine."""

    operator: Operator = field(kw_only=True)
    messages: str = field(kw_only=True)

    def write(
        self, body: object = "hello", queue: str = "", group: str = "g", **attributes: str
    ) -> str:
        """One message; its message id."""
        given = {
            name: {"DataType": "String", "StringValue": value} for name, value in attributes.items()
        }
        text = body if isinstance(body, str) else json.dumps(body)
        return send(self.account, queue or self.messages, text, group, **given)

    def ids(self, arn: str) -> set[str]:
        return {each.message_id for each in self.seen(arn)}

    def redrive(self, *arguments: str, code: int = 0) -> Any:
        name = self.source.rpartition(":")[2]
        return self.operator.json("redrive", name, *arguments, code=code)

    def said(self, *arguments: str, code: int = 0) -> str:
        return self.operator.shown(*arguments, code=code)

    def claimed(self, later: float = 0) -> object:
        """As a tick of Mendq's claims the messages."""
        now = datetime.now(UTC) + timedelta(seconds=later)
        return self.redrives.claim(self.dlq, "a tick", now)

    def redrive_in(self, stage: Stage) -> None:
        """As case-7 of Mendq's own has come to that stage with these messages."""
        now, queues = datetime.now(UTC), RedriveQueues(self.dlq, self.source)
        claimed = self.redrives.claim(self.dlq, "me", now)
        assert claimed is not None
        begun = RedriveProgress.start("case-7", queues, size=5, now=now)
        progress = (claimed.progress or begun).enter_stage(stage, now)
        self.redrives.save(
            progress.change_current_stage(soak_ends_at=now + timedelta(minutes=3)), "me"
        )
        self.redrives.release(self.dlq, "me")


def make_died_in_attribute(queue_arn: str) -> dict[str, str]:
    """The attribute that says so; "nobody" where SQS would not say."""
    return {DIED_IN: queue_arn}


def make_quarantine_marks(source: str, redrive_count: int = 2) -> dict[str, str]:
    """The attributes of a message that came back, as it lies in the quarantine of `source`."""
    counts = {"case": "case-7", "redrive_count": redrive_count}
    mark = {"why": "came back", "at": "2026-11-21T20:00:00+00:00", "source": source, **counts}
    return {**make_died_in_attribute("nobody"), QUARANTINE_MARK_NAME: json.dumps(mark)}


def make_orders_queues(
    operator: Operator, *, fifo: bool = False, **attributes: str
) -> OrdersQueues:
    """Two empty queues; whatever is held in them is hidden for long."""
    ending = ".fifo" if fifo else ""
    messages = operator.aws.queue(f"orders-dlq{ending}", tag=None, VisibilityTimeout="600")
    policy = {"RedrivePolicy": RedrivePolicy(messages, 3).text}
    source = operator.aws.queue(f"orders{ending}", tag=None, **policy, **attributes)
    made = OrdersQueues(operator.aws, source, messages, operator=operator, messages=messages)
    made.listen(operator.account.clients)
    return made

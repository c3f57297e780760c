"""Somebody who is notified and reads the report: a queue that subscribes to the stack's topics."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self

from local_account.process import LocalAccount
from mendq.model.case import Severity

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

NAME = "demo-reader"
FILE = "notifications.txt"
BETWEEN = f"\n{'-' * 72}\n\n"
# The stack's outputs that name its topics.
TOPICS = {"UrgentTopic": Severity.URGENT, "InfoTopic": Severity.INFO}
_CASE = re.compile(r"^\s*case: (\S+) in ", re.MULTILINE)


@dataclass(frozen=True)
class Message:
    """What a subscriber of a topic gets."""

    severity: Severity
    subject: str
    text: str

    @property
    def case_id(self) -> str | None:
        """The case that it is about; None where it is not about one queue."""
        found = _CASE.search(self.text)
        return found.group(1) if found else None


@dataclass
class Mailbox:
    """What Mendq told the topics since it was opened, once looked at; CloudWatch's alarms aside."""

    sqs: SQSClient
    queue_url: str
    severities: Mapping[str, Severity]
    messages: list[Message] = field(default_factory=list)

    @classmethod
    def open(cls, account: LocalAccount) -> Self:
        """Subscribe to every topic of the stack."""
        sqs, outputs = account.client("sqs"), account.outputs
        topics = {outputs[name]: severity for name, severity in TOPICS.items()}
        url = sqs.create_queue(QueueName=NAME)["QueueUrl"]
        answer = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
        arn = answer["Attributes"]["QueueArn"]
        who = {"Effect": "Allow", "Principal": {"Service": "sns.amazonaws.com"}}
        what = {"Action": "sqs:SendMessage", "Resource": arn}
        policy = json.dumps({"Version": "2012-10-17", "Statement": [who | what]})
        sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": policy})
        for topic in topics:
            account.client("sns").subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn)
        return cls(sqs, url, topics)

    def look(self) -> list[Message]:
        """Return the new messages."""
        new: list[Message] = []
        received = partial(
            self.sqs.receive_message, QueueUrl=self.queue_url, MaxNumberOfMessages=10
        )
        while found := received().get("Messages"):
            for each in found:
                handle = each["ReceiptHandle"]
                self.sqs.delete_message(QueueUrl=self.queue_url, ReceiptHandle=handle)
                envelope = json.loads(each["Body"])
                severity, text = self.severities[envelope["TopicArn"]], envelope["Message"]
                if not text.startswith('{"AlarmName"'):
                    new.append(Message(severity, envelope.get("Subject") or "", text))
        self.messages += new
        return new


def write(messages: Sequence[Message], path: Path) -> None:
    """Add every message in full, in the order they came."""
    texts = [f"To: {each.severity}\nSubject: {each.subject}\n\n{each.text}\n" for each in messages]
    before = [path.read_text()] if path.exists() and path.stat().st_size else []
    path.write_text(BETWEEN.join([*before, *texts]))

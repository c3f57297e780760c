"""A reader of Mendq's notifications: a queue that is subscribed to the stack's topics."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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
    """A notification as a subscriber of a topic gets it."""

    severity: Severity
    subject: str
    text: str

    @property
    def case_id(self) -> str | None:
        """The id of the case that it is about; None if it is not about a single queue."""
        match = _CASE.search(self.text)
        return match.group(1) if match else None


@dataclass
class Mailbox:
    """The notifications since the mailbox was opened, without those of CloudWatch alarms.

    `messages` has those that `look` has received so far.
    """

    sqs: SQSClient
    queue_url: str
    severities: Mapping[str, Severity]
    messages: list[Message] = field(default_factory=list)

    @classmethod
    def open(cls, account: LocalAccount) -> Self:
        """Create the queue and subscribe it to every topic of the stack."""
        sqs = account.client("sqs")
        outputs = account.outputs
        topics = {outputs[name]: severity for name, severity in TOPICS.items()}
        url = sqs.create_queue(QueueName=NAME)["QueueUrl"]
        answer = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
        arn = answer["Attributes"]["QueueArn"]
        statement = {
            "Effect": "Allow",
            "Principal": {"Service": "sns.amazonaws.com"},
            "Action": "sqs:SendMessage",
            "Resource": arn,
        }
        policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": policy})
        for topic in topics:
            account.client("sns").subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn)
        return cls(sqs, url, topics)

    def look(self) -> list[Message]:
        """Receive and return the new notifications."""
        new: list[Message] = []
        while True:
            answer = self.sqs.receive_message(QueueUrl=self.queue_url, MaxNumberOfMessages=10)
            messages = answer.get("Messages")
            if not messages:
                break
            for message in messages:
                handle = message["ReceiptHandle"]
                self.sqs.delete_message(QueueUrl=self.queue_url, ReceiptHandle=handle)
                envelope = json.loads(message["Body"])
                text = envelope["Message"]
                is_alarm = text.startswith('{"AlarmName"')
                if not is_alarm:
                    severity = self.severities[envelope["TopicArn"]]
                    new.append(Message(severity, envelope.get("Subject") or "", text))
        self.messages += new
        return new


def write(messages: Sequence[Message], path: Path) -> None:
    """Append all messages in full to a file, in the order in which they came."""
    texts = [
        f"To: {message.severity}\nSubject: {message.subject}\n\n{message.text}\n"
        for message in messages
    ]
    if path.exists() and path.stat().st_size:
        texts.insert(0, path.read_text())
    path.write_text(BETWEEN.join(texts))

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

MAILBOX_QUEUE_NAME = "demo-reader"
NOTIFICATIONS_FILE_NAME = "notifications.txt"
MESSAGE_SEPARATOR = f"\n{'-' * 72}\n\n"
# The stack's outputs that name its topics.
SEVERITY_BY_OUTPUT = {"UrgentTopic": Severity.URGENT, "InfoTopic": Severity.INFO}
_CASE_LINE_PATTERN = re.compile(r"^\s*case: (\S+) in ", re.MULTILINE)


@dataclass(frozen=True)
class Message:
    """A notification, as a subscriber of an SNS topic receives it."""

    severity: Severity
    subject: str
    text: str

    @property
    def case_id(self) -> str | None:
        """The id of the case that the notification is about; None if it is not about a case."""
        case_line_match = _CASE_LINE_PATTERN.search(self.text)
        return case_line_match.group(1) if case_line_match else None


@dataclass
class Mailbox:
    """A queue that receives the stack's notifications. Those of CloudWatch alarms are left out.

    `messages` has all notifications that `receive_new` has received so far.
    """

    sqs: SQSClient
    queue_url: str
    severity_by_topic_arn: Mapping[str, Severity]
    messages: list[Message] = field(default_factory=list)

    @classmethod
    def open(cls, account: LocalAccount) -> Self:
        """Return a mailbox with a new queue that is subscribed to every topic of the stack."""
        sqs = account.client("sqs")
        outputs = account.outputs
        severity_by_topic_arn = {
            outputs[name]: severity for name, severity in SEVERITY_BY_OUTPUT.items()
        }
        queue_url = sqs.create_queue(QueueName=MAILBOX_QUEUE_NAME)["QueueUrl"]
        response = sqs.get_queue_attributes(QueueUrl=queue_url, AttributeNames=["QueueArn"])
        queue_arn = response["Attributes"]["QueueArn"]
        statement = {
            "Effect": "Allow",
            "Principal": {"Service": "sns.amazonaws.com"},
            "Action": "sqs:SendMessage",
            "Resource": queue_arn,
        }
        policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        sqs.set_queue_attributes(QueueUrl=queue_url, Attributes={"Policy": policy})
        for topic_arn in severity_by_topic_arn:
            account.client("sns").subscribe(TopicArn=topic_arn, Protocol="sqs", Endpoint=queue_arn)
        return cls(sqs, queue_url, severity_by_topic_arn)

    def receive_new(self) -> list[Message]:
        """Receive the new notifications, add them to `messages`, and return them."""
        new_messages: list[Message] = []
        while True:
            response = self.sqs.receive_message(QueueUrl=self.queue_url, MaxNumberOfMessages=10)
            sqs_messages = response.get("Messages")
            if not sqs_messages:
                break
            for sqs_message in sqs_messages:
                receipt_handle = sqs_message["ReceiptHandle"]
                self.sqs.delete_message(QueueUrl=self.queue_url, ReceiptHandle=receipt_handle)
                sns_envelope = json.loads(sqs_message["Body"])
                notification_text = sns_envelope["Message"]
                is_alarm = notification_text.startswith('{"AlarmName"')
                if not is_alarm:
                    severity = self.severity_by_topic_arn[sns_envelope["TopicArn"]]
                    new_messages.append(
                        Message(severity, sns_envelope.get("Subject") or "", notification_text)
                    )
        self.messages += new_messages
        return new_messages


def append_to_file(messages: Sequence[Message], path: Path) -> None:
    """Append the messages to the text file `path`, in full and in their order."""
    message_texts = [
        f"To: {message.severity}\nSubject: {message.subject}\n\n{message.text}\n"
        for message in messages
    ]
    if path.exists() and path.stat().st_size:
        message_texts.insert(0, path.read_text())
    path.write_text(MESSAGE_SEPARATOR.join(message_texts))

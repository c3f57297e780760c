"""Somebody who is paged and reads the report: a queue that subscribes to the stack's topics."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from functions.healing.paging import Severity
from local_account.process import STACK_NAME, LocalAccount

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

NAME = "demo-reader"
TOPIC = "AWS::SNS::Topic"
# How the logical ids of the stack's topics start.
LOGICAL_IDS = {Severity.URGENT: "TopicsUrgent", Severity.INFO: "TopicsInfo"}
_CASE = re.compile(r"^\s*case: (\S+) in ", re.MULTILINE)


@dataclass(frozen=True)
class Message:
    """What a subscriber of a topic gets."""

    severity: Severity
    subject: str
    text: str

    @property
    def case_id(self) -> str | None:
        """The case that it pages; None where it is no page about one queue."""
        found = _CASE.search(self.text)
        return found.group(1) if found else None


@dataclass(frozen=True)
class Notice:
    """What CloudWatch tells of an alarm: that it begins, or is over."""

    severity: Severity
    alarm: str
    state: str

    @classmethod
    def read(cls, severity: Severity, text: str) -> Self | None:
        """None where it is not CloudWatch that tells."""
        try:
            told = json.loads(text)
            return cls(severity, told["AlarmName"], told["NewStateValue"])
        except (ValueError, TypeError, KeyError):
            return None


@dataclass
class Mailbox:
    """Everything that the topics were told since it was opened, once looked at.

    Mendq's own pages are `messages`, CloudWatch's alarms `notices`.
    """

    sqs: SQSClient
    queue_url: str
    severities: Mapping[str, Severity]
    messages: list[Message] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)

    @classmethod
    def open(cls, account: LocalAccount) -> Self:
        """Subscribe to every topic of the stack."""
        sqs, topics = account.client("sqs"), _topics(account)
        url = sqs.create_queue(QueueName=NAME)["QueueUrl"]
        answer = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
        arn = answer["Attributes"]["QueueArn"]
        sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": _policy(arn, list(topics))})
        for topic in topics:
            account.client("sns").subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn)
        return cls(sqs, url, topics)

    def look(self, wait_seconds: int = 0) -> list[Message]:
        """The pages that are new; waits that long for the first message, of whatever kind."""
        received: list[Message] = []
        while found := self._received(0 if received else wait_seconds):
            received += found
        new = [each for each in received if not self._is_notice(each)]
        self.messages += new
        return new

    def _is_notice(self, message: Message) -> bool:
        notice = Notice.read(message.severity, message.text)
        if notice is not None:
            self.notices.append(notice)
        return notice is not None

    def _received(self, wait_seconds: int) -> list[Message]:
        answer = self.sqs.receive_message(
            QueueUrl=self.queue_url, MaxNumberOfMessages=10, WaitTimeSeconds=wait_seconds
        )
        found = answer.get("Messages", [])
        for each in found:
            self.sqs.delete_message(QueueUrl=self.queue_url, ReceiptHandle=each["ReceiptHandle"])
        return [self._read(json.loads(each["Body"])) for each in found]

    def _read(self, envelope: Mapping[str, Any]) -> Message:
        severity = self.severities[envelope["TopicArn"]]
        return Message(severity, envelope.get("Subject") or "", envelope["Message"])


def _policy(queue_arn: str, topic_arns: list[str]) -> str:
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": "sns.amazonaws.com"},
        "Action": "sqs:SendMessage",
        "Resource": queue_arn,
        "Condition": {"ArnEquals": {"aws:SourceArn": topic_arns}},
    }
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def _topics(account: LocalAccount) -> dict[str, Severity]:
    resources = account.client("cloudformation").describe_stack_resources(StackName=STACK_NAME)
    return {
        str(each["PhysicalResourceId"]): severity
        for each in resources["StackResources"]
        for severity, logical_id in LOGICAL_IDS.items()
        if each["ResourceType"] == TOPIC and each["LogicalResourceId"].startswith(logical_id)
    }

"""A reader of the weekly report: a queue that subscribes to the stack's topic."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from local_account.process import STACK_NAME, LocalAccount

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

NAME = "demo-reader"
TOPIC = "AWS::SNS::Topic"


@dataclass(frozen=True)
class Mailbox:
    """What the topic's subscribers get."""

    sqs: SQSClient
    queue_url: str

    def next_message(self, wait_seconds: int) -> str | None:
        """The text of the next message; None where none comes in time."""
        answer = self.sqs.receive_message(QueueUrl=self.queue_url, WaitTimeSeconds=wait_seconds)
        for message in answer.get("Messages", []):
            self.sqs.delete_message(QueueUrl=self.queue_url, ReceiptHandle=message["ReceiptHandle"])
            text: str = json.loads(message["Body"])["Message"]
            return text
        return None


def subscribe(account: LocalAccount) -> Mailbox:
    """A mailbox that gets what the topic is told from now on."""
    sqs, topic = account.client("sqs"), _topic_arn(account)
    url = sqs.create_queue(QueueName=NAME)["QueueUrl"]
    attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": "sns.amazonaws.com"},
        "Action": "sqs:SendMessage",
        "Resource": attributes["QueueArn"],
        "Condition": {"ArnEquals": {"aws:SourceArn": topic}},
    }
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": policy})
    account.client("sns").subscribe(TopicArn=topic, Protocol="sqs", Endpoint=attributes["QueueArn"])
    return Mailbox(sqs, url)


def _topic_arn(account: LocalAccount) -> str:
    resources = account.client("cloudformation").describe_stack_resources(StackName=STACK_NAME)
    (topic,) = (
        each["PhysicalResourceId"]
        for each in resources["StackResources"]
        if each["ResourceType"] == TOPIC
    )
    return str(topic)

"""What `mendq.consumer` adds to a message that is received and deleted, beside boto3 alone.

A real client signs, sends and reads; what it sends to is answered within the process, at once.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from io import BytesIO
from typing import TYPE_CHECKING, Any

import boto3
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.compat import HTTPHeaders
from rich.console import Console
from urllib3 import HTTPResponse

from bench.rounds import Cost, Measure, Way, take
from mendq.consumer import ProcessingTimes, VisibilityHeartbeat
from tests.heal.conftest import REGION

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

ROUNDS, MESSAGES, TEN = 21, 500, 10
URL = f"https://sqs.{REGION}.amazonaws.com/123456789012/bench"
RECEIVED = [{"MessageId": f"{n}", "ReceiptHandle": f"h{n}", "Body": "{}"} for n in range(TEN)]
Consume = Callable[["SQSClient"], int]


def measures(console: Console) -> Iterator[Measure]:
    """A message by itself, and with each thing of the library's."""
    session = boto3.Session("test", "test", region_name=REGION)
    sqs = session.client("sqs")
    sqs.meta.events.register("before-send.sqs", _answer)
    kinds: dict[str, Consume] = {
        "boto3 alone": _alone,
        "VisibilityHeartbeat": _held,
        "VisibilityHeartbeat and ProcessingTimes": partial(_held, is_counted=True),
    }
    ways = [Way(name, partial(_per_message, sqs, kind)) for name, kind in kinds.items()]
    title = "A message: received in tens, deleted by itself"
    yield take(console, "message", title, ways, ROUNDS)


def _answer(request: AWSPreparedRequest, **_: Any) -> AWSResponse:
    """As SQS would, without a network."""
    target = request.headers["X-Amz-Target"]
    is_receive = target in {b"AmazonSQS.ReceiveMessage", "AmazonSQS.ReceiveMessage"}
    body = json.dumps({"Messages": RECEIVED} if is_receive else {}).encode()
    raw = HTTPResponse(BytesIO(body), preload_content=False)
    return AWSResponse(request.url, 200, HTTPHeaders(), raw)


def _per_message(sqs: SQSClient, consume: Consume) -> Cost:
    cpu, started = time.process_time(), time.perf_counter()
    deleted = consume(sqs)
    wall, cpu = time.perf_counter() - started, time.process_time() - cpu
    if deleted != MESSAGES:
        raise RuntimeError(f"{deleted} of {MESSAGES} messages were deleted")
    return Cost(1000 * wall / MESSAGES, 1000 * cpu / MESSAGES)


def _alone(sqs: SQSClient) -> int:
    deleted = 0
    for _ in range(MESSAGES // TEN):
        asked = sqs.receive_message(QueueUrl=URL, MaxNumberOfMessages=TEN, VisibilityTimeout=30)
        for each in asked.get("Messages", []):
            sqs.delete_message(QueueUrl=URL, ReceiptHandle=each["ReceiptHandle"])
            deleted += 1
    return deleted


def _held(sqs: SQSClient, *, is_counted: bool = False) -> int:
    deleted = 0
    times = ProcessingTimes(URL, sink=lambda _: None) if is_counted else None
    for _ in range(MESSAGES // TEN):
        with VisibilityHeartbeat(sqs, URL, seconds=30, processing_times=times) as heartbeat:
            for each in heartbeat.receive(MaxNumberOfMessages=TEN, WaitTimeSeconds=0):
                deleted += len(heartbeat.delete(each["MessageId"]))
    return deleted

"""What a scan shows of queues that a user made just now, and of their look-alikes.

Each is put back by an hour, which the queue has to be as it is before it is measured.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from local_account.process import LocalAccount
from tests.local_account.callers import ALL_OF_SQS, Function, new_function
from tests.local_account.queues import Queue, eventually, new_queue
from tests.local_account.slow_consumers import scan_queues

pytestmark = [pytest.mark.account, pytest.mark.long]
AN_HOUR = 61
UNTIL_MEASURED = 5  # minutes
# Works as long as a message says; "crash" gives it back at once the first time, "bad" fails.
CODE = """
import time

def give_back(record, seconds):
    import boto3
    sqs, name = boto3.client("sqs"), record["eventSourceARN"].split(":")[-1]
    url, handle = sqs.get_queue_url(QueueName=name)["QueueUrl"], record["receiptHandle"]
    sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=handle, VisibilityTimeout=seconds)
    raise ValueError("gave it back")

def handler(event, context):
    for each in event["Records"]:
        body = each["body"]
        if body == "crash" and each["attributes"]["ApproximateReceiveCount"] == "1":
            give_back(each, 0)
        time.sleep(0 if body == "crash" else float(body))
"""
SLOW_SECONDS = 21
DEFAULT_SECONDS = 30
SHORT_SECONDS = 5
WORK_SECONDS = 0.6
RUNS = 33
# More messages come back than the scan's margin of 3.
CRASHES = 5
# Long enough for a slow machine to fail in: a run that is cut off at its timeout proves nothing.
FAILS_SECONDS = 15
HOURS_SECONDS = 14_400
FOUND = (
    ("open", "policy_is_public", "lets anybody in the world call sqs:SendMessage"),
    ("repeated", "dedup_interval_outlasted", "SQS dropped 2 sends of the last hour"),
    ("nobody chose", "visibility_timeout_default", "SQS's default of 30 s"),
    ("hours", "visibility_timeout_too_long", "what crashes waits 14,400 s"),
    ("whole batches", "mapping_wastes_receives", "brings up to 10 messages back"),
    ("too long in full", "batch_outlasts_timeout", "longer than the visibility timeout of 5 s"),
)
NOT_FOUND = (
    ("narrowed", "policy_is_public"),
    ("repeated in time", "dedup_interval_outlasted"),
    ("sent once", "dedup_interval_outlasted"),
    ("31 s are chosen", "visibility_timeout_default"),
    ("15 minutes", "visibility_timeout_too_long"),
    ("one at a time", "mapping_wastes_receives"),
    ("full ones fit", "batch_outlasts_timeout"),
)


@dataclass
class MadeQueues:
    """Queues by what they are made for, and what a scan finds of each."""

    account: LocalAccount
    queues: dict[str, Queue] = field(default_factory=dict)
    mapping_ids: list[str] = field(default_factory=list)
    findings: Mapping[tuple[str, str], Any] = field(default_factory=dict)

    def queue(self, of: str, **options: Any) -> Queue:
        self.queues[of] = new_queue(self.account, tags={"mendq": "observe"}, **options)
        return self.queues[of]

    def map_to_function(
        self, of: str, function: Function, mapping: Mapping[str, Any], **given: str
    ) -> None:
        """A queue that an event source mapping feeds to the function."""
        arn = self.queue(of, **given).arn
        asked = {"FunctionName": function.name, "EventSourceArn": arn, **mapping}
        self.mapping_ids.append(function.client.create_event_source_mapping(**asked)["UUID"])

    def send(self, of: str, *bodies: object) -> None:
        for body in bodies:
            self.queues[of].send(f"{body}")

    def put_back(self, minutes: int) -> None:
        for queue in self.queues.values():
            self.account.put_back(queue.arn, minutes=minutes)

    def because(self, of: str, symptom: str) -> str:
        """Return the scan's reason for the symptom, or an empty string if it found nothing."""
        said: str = self.findings.get((self.queues[of].arn, symptom), {}).get("because", "")
        return said


def _make_function(account: LocalAccount, timeout_seconds: int) -> Function:
    code = io.BytesIO()
    with zipfile.ZipFile(code, "w") as archive:
        archive.writestr("index.py", CODE)
    function = new_function(account, ALL_OF_SQS, Timeout=timeout_seconds)
    function.client.update_function_code(FunctionName=function.name, ZipFile=code.getvalue())
    return function


def _make_open_and_narrowed_queues(made_queues: MadeQueues) -> None:
    anybody = {"Effect": "Allow", "Principal": "*", "Action": "sqs:SendMessage"}
    narrow = {"Condition": {"StringEquals": {"aws:SourceAccount": "111111111111"}}}
    for purpose, condition in (("open", {}), ("narrowed", narrow)):
        queue = made_queues.queue(purpose)
        statement = {**anybody, **condition, "Resource": queue.arn}
        queue.set(Policy=json.dumps({"Version": "2012-10-17", "Statement": [statement]}))


def _make_queues_for_repeats(made_queues: MadeQueues) -> None:
    for purpose, seconds in (("repeated", 301), ("repeated in time", 300), ("sent once", 301)):
        made_queues.queue(purpose, fifo=True, VisibilityTimeout=f"{seconds}")


def _send_repeats(made_queues: MadeQueues) -> None:
    for purpose, ids in (("repeated", "aaab"), ("repeated in time", "aaab"), ("sent once", "abcd")):
        queue = made_queues.queues[purpose]
        for deduplication_id in ids:
            said = {"MessageGroupId": "g", "MessageDeduplicationId": deduplication_id}
            queue.sqs.send_message(QueueUrl=queue.url, MessageBody="hello", **said)


def _map_queues_to_functions(made_queues: MadeQueues) -> None:
    """All mappings poll at once, the slowest of them for as long as the test takes."""
    account = made_queues.account
    one = {"BatchSize": 1}
    ten = {"BatchSize": 10}
    slow = _make_function(account, DEFAULT_SECONDS)
    fails = _make_function(account, DEFAULT_SECONDS)
    made_queues.map_to_function("nobody chose", slow, one)
    made_queues.map_to_function("31 s are chosen", slow, one, VisibilityTimeout="31")
    made_queues.map_to_function("hours", fails, one, VisibilityTimeout=f"{HOURS_SECONDS}")
    made_queues.map_to_function("15 minutes", fails, one, VisibilityTimeout="900")
    for purpose, size in (("whole batches", ten), ("one at a time", one)):
        timeout = {"VisibilityTimeout": f"{FAILS_SECONDS}"}
        made_queues.map_to_function(
            purpose, _make_function(account, FAILS_SECONDS), size, **timeout
        )
    short = {"VisibilityTimeout": f"{SHORT_SECONDS}"}
    made_queues.map_to_function(
        "too long in full", _make_function(account, SHORT_SECONDS), ten, **short
    )
    made_queues.map_to_function(
        "full ones fit", _make_function(account, DEFAULT_SECONDS), ten, VisibilityTimeout="60"
    )


def _send_to_functions(made_queues: MadeQueues) -> None:
    for purpose in ("nobody chose", "31 s are chosen"):
        made_queues.send(purpose, SLOW_SECONDS)
    for purpose in ("hours", "15 minutes"):
        made_queues.send(purpose, *[0] * 10, *["crash"] * CRASHES)
    for purpose in ("whole batches", "one at a time"):
        batch = [{"Id": f"{n}", "MessageBody": "bad" if n % 2 else "0"} for n in range(10)]
        queue = made_queues.queues[purpose]
        for _ in range(3):
            queue.sqs.send_message_batch(QueueUrl=queue.url, Entries=batch)
    _send_alone(made_queues, 0)
    for _ in range(RUNS):
        _send_alone(made_queues, WORK_SECONDS)
    for purpose in ("nobody chose", "31 s are chosen", "hours", "15 minutes"):
        eventually(partial(_has_left, made_queues.queues[purpose], 0), every_seconds=0.5)


def _send_alone(made_queues: MadeQueues, body: float) -> None:
    """Send one message to each of two queues, and wait until none is left there.

    Without the wait, a slow machine makes a full batch of them, which never ends in time.
    """
    purposes = ("too long in full", "full ones fit")
    for purpose in purposes:
        made_queues.send(purpose, body)
    for purpose in purposes:
        eventually(partial(_has_left, made_queues.queues[purpose], 0))


def _has_left(queue: Queue, count: int) -> bool:
    return queue.count() + queue.count("ApproximateNumberOfMessagesNotVisible") == count


@pytest.fixture(scope="module")
def made_queues(account: LocalAccount) -> Iterator[MadeQueues]:
    """Queues of an hour, and what a scan finds minutes after their traffic; gone afterwards."""
    made_queues = MadeQueues(account)
    try:
        _make_open_and_narrowed_queues(made_queues)
        _make_queues_for_repeats(made_queues)
        _map_queues_to_functions(made_queues)
        made_queues.put_back(AN_HOUR)
        _send_repeats(made_queues)
        _send_to_functions(made_queues)
        made_queues.put_back(UNTIL_MEASURED)
        made_queues.findings = scan_queues(account, *made_queues.queues.values())
        yield made_queues
    finally:  # what polls on would fail the tests of those that share the account
        for mapping_id in made_queues.mapping_ids:
            account.client("lambda").delete_event_source_mapping(UUID=mapping_id)
        for queue in made_queues.queues.values():
            queue.sqs.delete_queue(QueueUrl=queue.url)


@pytest.mark.parametrize(("of", "symptom", "told"), FOUND)
def test_scan_finds_the_symptom_on_a_queue_that_shows_it(
    made_queues: MadeQueues, of: str, symptom: str, told: str
) -> None:
    assert told in made_queues.because(of, symptom)


@pytest.mark.parametrize(("of", "symptom"), NOT_FOUND)
def test_scan_does_not_find_the_symptom_on_a_look_alike_queue(
    made_queues: MadeQueues, of: str, symptom: str
) -> None:
    assert not made_queues.because(of, symptom)

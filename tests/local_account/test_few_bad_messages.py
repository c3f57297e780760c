"""What a scan makes of consumers that fail, of a few bad messages and of messages given back.

Each queue is put back by an hour, which it has to be as it is before it is measured. Whatever is
received and not deleted is given back at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from local_account.process import LocalAccount
from mendq.model.queue import parse_redrive_policy
from tests.local_account.queues import Queue, new_queue
from tests.local_account.slow_consumers import scan_queues

pytestmark = [pytest.mark.account, pytest.mark.long]
AN_HOUR = 61
UNTIL_MEASURED = 5  # minutes
FAILING = "consumer_failing"
MISSING = "dlq_missing"
# Returns true if the message with this number is finished at its receive of this number.
Finishes = Callable[[int, int], bool]


@dataclass(frozen=True)
class Lot:
    """Messages that are sent together, and when a consumer stops to receive them."""

    messages: int
    most_receives: int
    finishes: Finishes


# The lots of each queue, one after the other.
SCENES: Mapping[str, tuple[Lot, ...]] = {
    "nothing is finished": (
        Lot(messages=60, most_receives=1_200, finishes=lambda _number, _receive: False),
    ),
    "three are bad": (
        Lot(messages=140, most_receives=500, finishes=lambda number, _receive: number >= 3),
    ),
    "given back eleven times": (
        Lot(messages=82, most_receives=984, finishes=lambda _number, receive: receive >= 12),
        Lot(messages=8, most_receives=96, finishes=lambda _number, _receive: False),
    ),
    "half given back twice": (
        Lot(
            messages=420,
            most_receives=840,
            finishes=lambda number, receive: number % 2 == 0 or receive >= 3,
        ),
    ),
}


def consume_lot(queue: Queue, lot: Lot) -> None:
    """Send the lot, and receive until all is finished or the most receives are made."""
    for first in range(0, lot.messages, 10):
        numbers = range(first, min(first + 10, lot.messages))
        entries = [{"Id": f"{number}", "MessageBody": f"{number}"} for number in numbers]
        queue.sqs.send_message_batch(QueueUrl=queue.url, Entries=entries)
    received = 0
    left = lot.messages
    while received < lot.most_receives and left:
        batch = queue.receive_some(MessageSystemAttributeNames=["ApproximateReceiveCount"])
        received += len(batch)
        for message in batch:
            receive = int(message["Attributes"]["ApproximateReceiveCount"])
            if lot.finishes(int(message["Body"]), receive):
                queue.delete(message["ReceiptHandle"])
                left -= 1
            else:
                queue.change(message["ReceiptHandle"], 0)


@pytest.fixture(scope="module")
def findings(account: LocalAccount) -> Iterator[Mapping[tuple[str, str], Any]]:
    """Findings by scene and symptom; the queues are gone afterwards."""
    queues = {name: new_queue(account, tags={"mendq": "observe"}) for name in SCENES}
    try:
        for queue in queues.values():
            account.put_back(queue.arn, minutes=AN_HOUR)
        for name, lots in SCENES.items():
            for lot in lots:
                consume_lot(queues[name], lot)
        for queue in queues.values():
            account.put_back(queue.arn, minutes=UNTIL_MEASURED)
        names = {queue.arn: name for name, queue in queues.items()}
        by_queue = scan_queues(account, *queues.values())
        yield {(names[arn], symptom): finding for (arn, symptom), finding in by_queue.items()}
    finally:
        for queue in queues.values():
            queue.sqs.delete_queue(QueueUrl=queue.url)


def test_scan_reports_consumer_failing_and_proposes_no_dlq_if_no_message_was_deleted(
    findings: Mapping[tuple[str, str], Any],
) -> None:
    said = findings["nothing is finished", FAILING]["because"]
    assert "consumers received 60 messages 1,200 times and deleted none" in said
    assert not findings.get(("nothing is finished", MISSING), {}).get("steps")


def test_scan_proposes_a_dlq_for_three_messages_that_are_never_deleted(
    findings: Mapping[tuple[str, str], Any],
) -> None:
    assert ("three are bad", FAILING) not in findings
    finding = findings["three are bad", MISSING]
    assert "deleted 137; 3 messages are left" in finding["because"]


def test_scan_proposes_max_receive_count_above_the_receives_that_good_messages_need(
    findings: Mapping[tuple[str, str], Any],
) -> None:
    assert ("given back eleven times", FAILING) not in findings
    finding = findings["given back eleven times", MISSING]
    assert finding["steps"], finding["why"]
    attach = finding["steps"][-1]
    redrive = parse_redrive_policy(attach.partition(" -> ")[2])
    assert redrive is not None, attach
    assert redrive.max_receive_count >= 3 * 12


def test_scan_finds_nothing_if_all_messages_that_were_given_back_are_finally_deleted(
    findings: Mapping[tuple[str, str], Any],
) -> None:
    symptoms = {symptom for name, symptom in findings if name == "half given back twice"}
    assert not symptoms & {FAILING, MISSING}

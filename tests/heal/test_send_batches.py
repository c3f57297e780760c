"""Whatever goes and whatever fails: within a group nothing overtakes, and every message is told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import md5
from typing import Any, cast

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError
from hypothesis import given
from hypothesis import strategies as st

from mendq.redrive.messages import Message, hopped
from mendq.redrive.send_batches import (
    MOST_BYTES,
    MOST_ENTRIES,
    Destination,
    FifoOrder,
    deduplication_id,
    send,
)

AT = datetime(2026, 11, 21, 12, tzinfo=UTC)
ARN = "arn:aws:sqs:us-east-1:123456789012:orders"


def message(at: int, group: str = "", body: str = "x") -> Message:
    return Message(f"m-{at}", body, AT, group_id=group)


def to(ending: str = ".fifo", **more: Any) -> Destination:
    return Destination(f"{ARN}{ending}", "url", "case-1", hopped, **more)


MESSAGES = st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from([1, 300_000, 1_048_576])))


@given(MESSAGES, st.sets(st.integers(0, 20)), st.sampled_from(["", ".fifo"]))
def test_within_a_group_nothing_goes_before_what_stands_in_front(
    given_messages: list[tuple[str, int]], failing: set[int], ending: str
) -> None:
    messages = [message(at, group, "x" * size) for at, (group, size) in enumerate(given_messages)]
    fails = {f"m-{at}" for at in failing}
    lanes, gone, announced = FifoOrder(messages, to(ending)), list[Message](), list[str]()
    while batch := lanes.next_batch():
        assert len(batch) <= MOST_ENTRIES
        sizes = [to(ending).as_sent(each).size_bytes for each in batch]
        assert sum(sizes) <= MOST_BYTES
        for each in batch:
            announced.append(each.message_id)
            if each.message_id in fails:
                announced += [behind.message_id for behind in lanes.close(each)]
            else:
                gone.append(each)
                lanes.take_out(each)
    assert sorted(announced) == sorted(each.message_id for each in messages)
    if not ending:
        assert len(gone) == len([each for each in messages if each.message_id not in fails])
        return
    for group in "abcd":
        of_group = [each for each in messages if each.group_id == group]
        first_fault = next(
            (at for at, each in enumerate(of_group) if each.message_id in fails), len(of_group)
        )
        assert [each for each in gone if each.group_id == group] == of_group[:first_fault]


@dataclass
class Sqs:
    """Takes a batch, unless `error`s are left."""

    errors: list[Exception] = field(default_factory=list)
    asked: list[Sequence[Any]] = field(default_factory=list)

    def send_message_batch(self, **asked: Any) -> Any:
        self.asked.append(asked["Entries"])
        if self.errors:
            raise self.errors.pop(0)
        return {
            "Successful": [
                {
                    "Id": each["Id"],
                    "MessageId": f"copy-{at}",
                    "MD5OfMessageBody": md5(
                        each["MessageBody"].encode(), usedforsecurity=False
                    ).hexdigest(),
                }
                for at, each in enumerate(asked["Entries"])
            ]
        }


def sent(sqs: Sqs, messages: Sequence[Message], where: Destination) -> Any:
    return send(cast("Any", sqs), messages, where)


def test_a_fifo_message_sent_again_by_the_same_run_is_one() -> None:
    sqs = Sqs()
    sent(sqs, [message(1, "g")], to())
    sent(sqs, [message(1, "g")], to())
    (first,), (second,) = sqs.asked
    assert first["MessageDeduplicationId"] == second["MessageDeduplicationId"]
    assert first["MessageGroupId"] == "g"


def test_by_another_run_and_of_another_message_it_is_another() -> None:
    ids = {deduplication_id(run, each) for run in ("a", "b") for each in ("m-1", "m-2")}
    assert len(ids) == 4
    assert deduplication_id("a", "bc") != deduplication_id("ab", "c")
    assert all(len(each) <= 128 and each.isalnum() for each in ids)


def test_to_a_standard_queue_no_deduplication_id_is_sent_and_a_tenant_is() -> None:
    sqs = Sqs()
    sent(sqs, [message(1, "tenant"), message(2)], to(""))
    ((one, other),) = sqs.asked
    assert "MessageDeduplicationId" not in one
    assert one["MessageGroupId"] == "tenant"
    assert "MessageGroupId" not in other


@pytest.mark.parametrize(
    "error",
    [
        ReadTimeoutError(endpoint_url="sqs"),
        ClientError({"Error": {"Code": "RequestThrottled", "Message": ""}}, "SendMessageBatch"),
    ],
)
def test_what_may_have_arrived_is_not_sent_again(error: Exception) -> None:
    sqs = Sqs([error])
    answer = sent(sqs, [message(1), message(2)], to(""))
    assert len(sqs.asked) == 1
    assert answer.is_hopeless
    assert len(answer.refused) == 2
    assert answer.copies == {}


def test_a_mark_that_does_not_fit_changes_nothing_else() -> None:
    large = message(1, body="x" * MOST_BYTES)
    assert not to().can_mark(large)
    assert to().as_sent(large) == large
    assert to().as_sent(message(2)).redrive_count == 1

"""What SQS did not take is told of each message, whatever way it says so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pytest

from mendq.consumer.holds import Hold
from mendq.consumer.writes import LOST, Writes, tens
from tests.consumer.answers import Sqs


def holds(names: str) -> list[Hold]:
    return [Hold(each, f"handle-{each}", 0, 60) for each in names]


def writes(sqs: Sqs) -> Writes:
    return Writes(cast("Any", sqs), "url")


@pytest.mark.parametrize(("names", "sizes"), [("a", []), ("ab", [2])])
def test_one_alone_goes_by_the_call_that_cloudtrail_records_the_refusal_of(
    names: str, sizes: list[int]
) -> None:
    sqs = Sqs()
    assert writes(sqs).change(holds(names), 30) == {}
    assert writes(sqs).delete(holds(names)) == {}
    assert sqs.sizes == sizes * 2
    changes = [("change", f"handle-{each}", 30) for each in names]
    assert sqs.written == [*changes, *(("delete", f"handle-{each}", None) for each in names)]


@pytest.mark.parametrize("names", ["a", "ab"])
@pytest.mark.parametrize(
    "spelled",
    [
        "ReceiptHandleIsInvalid",
        "ReceiptHandleIsInvalidException",
        "AWS.SimpleQueueService.ReceiptHandleIsInvalid",
    ],
)
def test_a_code_is_reported_in_one_spelling(names: str, spelled: str) -> None:
    sqs = Sqs(codes={"handle-a": spelled})
    refused = {"a": "ReceiptHandleIsInvalid"}
    assert writes(sqs).change(holds(names), 30) == refused
    assert writes(sqs).delete(holds(names)) == refused
    assert LOST.issuperset(refused.values())


def test_no_answer_is_no_word_of_its_being_lost() -> None:
    refused = writes(Sqs(codes={"handle-a": None})).delete(holds("a"))
    assert refused == {"a": ""}
    assert LOST.isdisjoint(refused.values())


def test_what_an_answer_says_nothing_of_was_not_taken() -> None:
    class Forgetful(Sqs):
        def delete_message_batch(self, **asked: Any) -> Mapping[str, Any]:
            return {"Successful": super().delete_message_batch(**asked)["Successful"][:1]}

    assert writes(Forgetful()).delete(holds("abc")) == {"b": "", "c": ""}


def test_no_more_than_ten_go_at_a_time() -> None:
    assert [len(each) for each in tens(holds("x" * 25))] == [10, 10, 5]
    assert list(tens([])) == []

"""Whatever does not go is told with its reason, and so is what waits because of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from functions.aws.send_batches import MoveResult
from tests.functions.aws.conftest import Account
from tests.functions.aws.letters import (
    BOTH,
    LONGER_THAN_A_LEASE,
    Answers,
    texts,
    timed,
    two,
)

__all__ = ["timed"]


def _refusing(*bodies: str) -> Callable[[Any, dict[str, Any]], Any]:
    """SendMessageBatch that fails some entries and takes the others."""

    def send(real: Any, asked: dict[str, Any]) -> Any:
        bad = [each for each in asked["Entries"] if each["MessageBody"] in bodies]
        good = [each for each in asked["Entries"] if each not in bad]
        answer = real(**{**asked, "Entries": good}) if good else {"Successful": []}
        failed = [
            {"Id": each["Id"], "Code": "InternalError", "Message": "no", "SenderFault": False}
            for each in bad
        ]
        return {**answer, "Failed": failed}

    return send


def test_what_is_too_long_for_the_destination_stays_and_is_not_sent(timed: Account) -> None:
    queues = two(timed)
    queues.write("x" * 2_000, "short")
    moved = queues.move(queues.to(most_bytes=1_024))
    assert moved.moved == 1
    assert [each.code for each in moved.failed] == ["too_long"]
    assert "2000 bytes" in moved.failed[0].reason
    assert [each.body for each in queues.arrived()] == ["short"]
    assert [len(each.body) for each in queues.left()] == [2_000]


def test_one_that_fails_in_a_batch_stays_alone(timed: Account) -> None:
    queues = two(timed)
    queues.write(*texts(10))
    moved = queues.move(
        sqs=Answers(queues.sqs, send_message_batch=_refusing("letter 004", "letter 009"))
    )
    assert moved.moved == 8
    assert [(each.code, each.reason) for each in moved.failed] == [("InternalError", "no")] * 2
    assert sorted(each.body for each in queues.left()) == ["letter 004", "letter 009"]
    assert len(queues.arrived()) == 8


def test_what_stands_behind_a_fifo_letter_that_failed_waits(timed: Account) -> None:
    queues = two(timed, fifo=True)
    queues.write(*texts(5), group="a")
    queues.write("other 1", "other 2", group="b")
    sqs = Answers(queues.sqs, send_message_batch=_refusing("letter 001"))
    moved = queues.move(sqs=sqs)
    assert moved.moved == 3
    assert Counter(each.code for each in moved.failed) == {
        "InternalError": 1,
        "waits_for_neighbour": 3,
    }
    assert {each.body for each in queues.arrived()} == {"letter 000", "other 1", "other 2"}
    assert [each.body for each in queues.left()] == texts(5)[1:]


def test_a_batch_that_is_refused_whole_is_tried_one_by_one(timed: Account) -> None:
    queues = two(timed)
    queues.write(*texts(10))

    def send(real: Any, asked: dict[str, Any]) -> Any:
        if any(each["MessageBody"] == "letter 003" for each in asked["Entries"]):
            raise ClientError(
                {"Error": {"Code": "InvalidMessageContents", "Message": "no such character"}},
                "SendMessageBatch",
            )
        return real(**asked)

    moved = queues.move(sqs=Answers(queues.sqs, send_message_batch=send))
    assert moved.moved == 9
    assert [each.code for each in moved.failed] == ["InvalidMessageContents"]
    assert [each.body for each in queues.left()] == ["letter 003"]


@BOTH
@pytest.mark.parametrize("code", ["AccessDenied", "KMS.DisabledException", "RequestThrottled"])
def test_a_refusal_of_everything_is_met_once(timed: Account, code: str, *, fifo: bool) -> None:
    queues = two(timed, fifo=fifo)
    queues.write(*texts(30))
    calls = []

    def send(real: Any, asked: dict[str, Any]) -> Any:
        calls.append(asked)
        raise ClientError({"Error": {"Code": code, "Message": "no"}}, "SendMessageBatch")

    sqs = Answers(queues.sqs, send_message_batch=send)
    with queues.hand(sqs) as hand:
        letters = hand.take(30)
        moved = sum(hand.put(letters, queues.to()), MoveResult())
    assert len(calls) == 1
    assert moved.moved == 0
    assert len(moved.failed) == len(letters)
    assert len(queues.left()) == 30


def test_a_copy_with_another_text_is_no_reason_to_delete(timed: Account) -> None:
    queues = two(timed)
    queues.write("dear")

    def send(real: Any, asked: dict[str, Any]) -> Any:
        answer = real(**asked)
        answer["Successful"][0]["MD5OfMessageBody"] = "0" * 32
        return answer

    moved = queues.move(sqs=Answers(queues.sqs, send_message_batch=send))
    assert [each.code for each in moved.failed] == ["unanswered"]
    assert [each.body for each in queues.left()] == ["dear"]


def test_what_was_sent_and_not_deleted_is_deleted_when_it_is_seen_again(timed: Account) -> None:
    queues = two(timed)
    queues.write("once")
    fails = [True, True]

    def delete(real: Any, asked: dict[str, Any]) -> Any:
        if fails and fails.pop():
            raise ClientError({"Error": {"Code": "InternalError", "Message": ""}}, "DeleteMessage")
        return real(**asked)

    with queues.hand(Answers(queues.sqs, delete_message=delete)) as hand:
        moved = sum(hand.put(hand.take(1), queues.to()), MoveResult())
        assert (moved.moved, moved.copied) == (0, 1)
        timed.later(seconds=LONGER_THAN_A_LEASE)
        assert hand.take(1) == []
    assert queues.left() == []
    assert [each.body for each in queues.arrived()] == ["once"]


def test_what_is_held_no_more_is_not_sent(timed: Account) -> None:
    queues = two(timed)
    queues.write("late")
    with queues.hand() as hand:
        letters = hand.take(1)
        timed.later(seconds=LONGER_THAN_A_LEASE)
        moved = sum(hand.put(letters, queues.to()), MoveResult())
    assert [each.code for each in moved.failed] == ["lost"]
    assert queues.arrived() == []
    assert [each.body for each in queues.left()] == ["late"]

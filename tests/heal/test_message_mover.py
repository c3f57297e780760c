"""Messages go on whole, in their order, each is shown once, and none is lost whoever dies.

Whatever does not go is told with its reason, and so is what waits because of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError
from hypothesis import given
from hypothesis import strategies as st

from mendq.redrive.messages import REDRIVE_COUNT, Message, MessageAttribute, hopped
from mendq.redrive.mover import message_of
from mendq.redrive.send_batches import MoveResult
from tests.heal.conftest import Account
from tests.heal.faults import KINDS, Fault, Killed
from tests.heal.messages import BOTH, LONGER_THAN_A_VISIBILITY, Answers, Two, texts, timed, two

__all__ = ["timed"]


@BOTH
def test_a_message_goes_whole_and_bears_the_mark(timed: Account, *, fifo: bool) -> None:
    queues = two(timed, fifo=fifo)
    given = {
        "kind": {"DataType": "String", "StringValue": "é\u2028"},
        "weight": {"DataType": "Number.float", "StringValue": "1.50"},
        "picture": {"DataType": "Binary.png", "BinaryValue": b"\x00\xff"},
    }
    queues.write("hello\r\n", group="g-7", MessageAttributes=given)
    assert queues.move().moved == 1
    (arrived,) = queues.arrived()
    assert arrived.body == "hello\r\n"
    assert arrived.attributes == {
        "kind": MessageAttribute("String", "é\u2028"),
        "weight": MessageAttribute("Number.float", "1.50"),
        "picture": MessageAttribute("Binary.png", b"\x00\xff"),
        REDRIVE_COUNT: MessageAttribute("Number", "1"),
    }
    assert arrived.group_id == ("g-7" if fifo else "")
    assert queues.left() == []


def test_the_redrive_count_goes_up(timed: Account) -> None:
    queues = two(timed)
    redrive_count = {REDRIVE_COUNT: {"DataType": "Number", "StringValue": "2"}}
    queues.write("again", MessageAttributes=redrive_count)
    queues.move()
    assert [each.redrive_count for each in queues.arrived()] == [3]


def test_with_ten_attributes_it_goes_unmarked_and_its_fingerprint_is_reported(
    timed: Account,
) -> None:
    queues = two(timed)
    ten = {f"a{at}": {"DataType": "String", "StringValue": "x"} for at in range(10)}
    queues.write("full", MessageAttributes=ten)
    queues.write("bare")
    moved = queues.move()
    arrived = {each.body: each for each in queues.arrived()}
    assert set(arrived["full"].attributes) == set(ten)
    assert arrived["bare"].redrive_count == 1
    assert moved.unmarked == (arrived["full"].fingerprint,)


def test_ten_attributes_with_the_mark_among_them_are_enough(timed: Account) -> None:
    queues = two(timed)
    nine = {f"a{at}": {"DataType": "String", "StringValue": "x"} for at in range(9)}
    queues.write(
        "full",
        MessageAttributes={**nine, REDRIVE_COUNT: {"DataType": "Number", "StringValue": "1"}},
    )
    moved = queues.move()
    assert (moved.moved, moved.unmarked) == (1, ())
    assert [each.redrive_count for each in queues.arrived()] == [2]


def test_the_largest_message_goes_without_the_mark(timed: Account) -> None:
    queues = two(timed)
    queues.write("x" * 1_048_576, "y" * (1_048_576 - 40))
    moved = queues.move()
    assert moved.moved == 2
    assert sorted((len(each.body), each.redrive_count) for each in queues.arrived()) == [
        (1_048_536, 1),
        (1_048_576, 0),
    ]
    assert len(moved.unmarked) == 1


def test_no_batch_is_larger_than_sqs_takes(timed: Account) -> None:
    queues = two(timed)
    queues.write(*(message * 400_000 for message in "abcde"))
    assert queues.move().moved == 5
    assert sorted(each.body[0] for each in queues.arrived()) == list("abcde")


def test_at_most_so_many_are_moved_and_the_rest_is_visible_at_once(timed: Account) -> None:
    queues = two(timed)
    queues.write(*texts(25))
    assert queues.move(most=13).moved == 13
    assert len(queues.left()) == 12


def test_an_end_in_the_middle_releases_what_is_in_mover(timed: Account) -> None:
    queues = two(timed)
    queues.write(*texts(10))
    with queues.mover() as mover:
        messages = mover.take(10)
        puts = mover.put(messages[:3], queues.to())
        assert next(puts).moved == 3
        mover.release(messages[3:5])
        assert len(queues.read(queues.here)) == 2
    assert len(queues.left()) == 5
    assert len(queues.arrived()) == 3


def test_an_order_within_a_group_is_retained(timed: Account) -> None:
    queues = two(timed, fifo=True)
    for text in texts(40):
        queues.write(text, group=f"g{int(text[-1]) % 3}")
    assert queues.move().moved == 40
    by_group: dict[str, list[str]] = {}
    for each in queues.arrived():
        by_group.setdefault(each.group_id, []).append(each.body)
    assert len(by_group) == 3
    assert all(bodies == sorted(bodies) for bodies in by_group.values())


def test_the_mark_is_what_it_was_said_to_be(timed: Account) -> None:
    queues = two(timed)
    queues.write("plain")
    moved = queues.move(queues.to(mark=lambda message: message))
    assert moved.unmarked == ()
    (arrived,) = queues.arrived()
    assert dict(arrived.attributes) == {}
    assert hopped(arrived).redrive_count == 1


@BOTH
def test_what_is_let_go_of_is_reported_ten_by_ten(timed: Account, *, fifo: bool) -> None:
    queues = two(timed, fifo=fifo)
    for at, text in enumerate(texts(24)):
        queues.write(text, group=f"g{at % 4}")
    with queues.mover() as mover:
        mover.take(24)
        assert list(mover.let_go()) == [0, 10, 20, 24]
        assert (mover.in_flight_here, len(queues.left())) == (0, 24)


def test_whoever_cannot_wait_is_told_how_many_stay_hidden(timed: Account) -> None:
    queues = two(timed)
    queues.write(*texts(24))
    with queues.mover() as mover:
        mover.take(24)
        releases = mover.let_go()
        assert [next(releases), next(releases)] == [0, 10]
        assert mover.abandon() == 14
    assert len(queues.left()) == 10
    timed.later(seconds=LONGER_THAN_A_VISIBILITY)
    assert len(queues.left()) == 14


def test_a_release_that_is_cut_off_counts_as_not_done(timed: Account) -> None:
    queues = two(timed)
    queues.write(*texts(12))

    def cut(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with queues.mover() as mover:
        mover.take(12)
        releases = mover.let_go()
        next(releases)
        events = queues.sqs.meta.events
        events.register("before-call", cut, unique_id="cut")
        with pytest.raises(KeyboardInterrupt):
            next(releases)
        events.unregister("before-call", unique_id="cut")
        assert mover.abandon() == 12


@BOTH
def test_what_is_not_taken_is_visible_at_once_and_looked_at_once(
    timed: Account, *, fifo: bool
) -> None:
    queues = two(timed, fifo=fifo)
    for at, text in enumerate(texts(35)):
        queues.write(text, group=f"g{at % 9}")
    looked: Counter[str] = Counter()

    def takes(message: Message) -> bool:
        looked[message.body] += 1
        return message.body.endswith(("0", "5"))

    moved = queues.move(takes=takes)
    assert moved.moved == 7
    assert set(looked.values()) == {1}
    assert len(looked) == 35
    assert len(queues.left()) == 28
    assert len(queues.arrived()) == 7


def test_copies_that_the_mover_has_sent_are_not_taken_again(timed: Account) -> None:
    """Here and there are one queue: nothing would ever end otherwise."""
    queues = two(timed)
    circle = Two(timed, queues.here, queues.here)
    circle.write(*texts(12))
    assert circle.move().moved == 12
    assert [each.redrive_count for each in circle.left()] == [1] * 12


def test_what_a_group_hides_behind_messages_that_stay_is_seen_up_to_ten(timed: Account) -> None:
    queues = two(timed, fifo=True)
    for group in ("a", "b", "c"):
        queues.write(*(f"{group} {at:02}" for at in range(14)), group=group)
    looked: list[str] = []

    def takes(message: Message) -> bool:
        looked.append(message.body)
        return message.body.endswith(("b 03", "b 10"))

    moved = queues.move(takes=takes)
    assert len(looked) == len(set(looked))
    by_group = {group: [each for each in looked if each[0] == group] for group in "abc"}
    assert {group: len(each) for group, each in by_group.items()} == {"a": 10, "b": 12, "c": 10}
    assert all(each == sorted(each) for each in by_group.values())
    assert moved.moved == 2
    assert [each.body for each in queues.arrived()] == ["b 03", "b 10"]
    assert len(queues.left()) == 40


def test_no_more_are_given_than_asked_for(timed: Account) -> None:
    queues = two(timed, fifo=True)
    for group in range(6):
        queues.write(*(f"{group} {at}" for at in range(6)), group=str(group))
    with queues.mover() as mover:
        given = [len(mover.take(4)) for _ in range(10)]
    assert given == [4] * 9 + [0]
    assert len(queues.left()) == 36


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
        sqs=Answers(queues.sqs, send_message_batch=_refusing("message 004", "message 009"))
    )
    assert moved.moved == 8
    assert [(each.code, each.reason) for each in moved.failed] == [("InternalError", "no")] * 2
    assert sorted(each.body for each in queues.left()) == ["message 004", "message 009"]
    assert len(queues.arrived()) == 8


def test_what_stands_behind_a_fifo_message_that_failed_waits(timed: Account) -> None:
    queues = two(timed, fifo=True)
    queues.write(*texts(5), group="a")
    queues.write("other 1", "other 2", group="b")
    sqs = Answers(queues.sqs, send_message_batch=_refusing("message 001"))
    moved = queues.move(sqs=sqs)
    assert moved.moved == 3
    assert Counter(each.code for each in moved.failed) == {
        "InternalError": 1,
        "waits_for_neighbour": 3,
    }
    assert {each.body for each in queues.arrived()} == {"message 000", "other 1", "other 2"}
    assert [each.body for each in queues.left()] == texts(5)[1:]


def test_a_batch_that_is_refused_whole_is_tried_one_by_one(timed: Account) -> None:
    queues = two(timed)
    queues.write(*texts(10))

    def send(real: Any, asked: dict[str, Any]) -> Any:
        if any(each["MessageBody"] == "message 003" for each in asked["Entries"]):
            raise ClientError(
                {"Error": {"Code": "InvalidMessageContents", "Message": "no such character"}},
                "SendMessageBatch",
            )
        return real(**asked)

    moved = queues.move(sqs=Answers(queues.sqs, send_message_batch=send))
    assert moved.moved == 9
    assert [each.code for each in moved.failed] == ["InvalidMessageContents"]
    assert [each.body for each in queues.left()] == ["message 003"]


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
    with queues.mover(sqs) as mover:
        messages = mover.take(30)
        moved = sum(mover.put(messages, queues.to()), MoveResult())
    assert len(calls) == 1
    assert moved.moved == 0
    assert len(moved.failed) == len(messages)
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

    with queues.mover(Answers(queues.sqs, delete_message=delete)) as mover:
        moved = sum(mover.put(mover.take(1), queues.to()), MoveResult())
        assert (moved.moved, moved.copied) == (0, 1)
        timed.later(seconds=LONGER_THAN_A_VISIBILITY)
        assert mover.take(1) == []
    assert queues.left() == []
    assert [each.body for each in queues.arrived()] == ["once"]


def test_what_is_held_no_more_is_not_sent(timed: Account) -> None:
    queues = two(timed)
    queues.write("late")
    with queues.mover() as mover:
        messages = mover.take(1)
        timed.later(seconds=LONGER_THAN_A_VISIBILITY)
        moved = sum(mover.put(messages, queues.to()), MoveResult())
    assert [each.code for each in moved.failed] == ["lost"]
    assert queues.arrived() == []
    assert [each.body for each in queues.left()] == ["late"]


class Death(Fault):
    """From the call on that it strikes, the process makes none any more."""

    def _come_by(self, event_name: str, **more: Any) -> None:
        if self.struck:
            raise Killed
        super()._come_by(event_name, **more)


def _die_and_go_on(queues: Two, kind: str, strike_at: int) -> bool:
    """Whether the first run came through alive."""
    death = Death(queues.account, kind, strike_at)
    try:
        queues.move()
    except Killed:
        pass
    finally:
        death.leave()
    _go_on(queues)
    return not death.struck


def _go_on(queues: Two) -> None:
    """moto shows a FIFO group whose visibility timeout ran out bit by bit, hence so often."""
    for _ in range(4):
        queues.account.later(seconds=LONGER_THAN_A_VISIBILITY)
        if queues.is_empty():
            return
        queues.move()


@BOTH
@pytest.mark.parametrize("kind", [each for each in KINDS if each.startswith("killed")])
def test_a_death_at_any_call_loses_nothing(timed: Account, kind: str, *, fifo: bool) -> None:
    queues = two(timed, fifo=fifo)
    written = texts(13)
    copies, strike_at, is_alive = 0, 0, False
    while not is_alive:
        strike_at += 1
        for text in written:
            queues.write(text, group=f"g{int(text[-1]) % 2}")
        is_alive = _die_and_go_on(queues, kind, strike_at)
        arrived = [each.body for each in queues.arrived()]
        assert set(arrived) == set(written), strike_at
        assert queues.left() == [], strike_at
        copies = max(copies, len(arrived) - len(written))
        timed.later(minutes=6)
    assert strike_at > 6
    # A FIFO queue knows the second copy by its deduplication id.
    assert copies == (0 if fifo else 10)


@BOTH
def test_an_answer_that_is_lost_anywhere_loses_nothing(timed: Account, *, fifo: bool) -> None:
    queues = two(timed, fifo=fifo)
    written = texts(12)
    for strike_at in range(1, 8):
        queues.write(*written)
        fault = Fault(timed, "answer_lost", strike_at)
        queues.move()
        fault.leave()
        _go_on(queues)
        assert {each.body for each in queues.arrived()} == set(written)
        assert queues.left() == []
        timed.later(minutes=6)


WHOLE = {
    "MessageId": "m-1",
    "ReceiptHandle": "handle",
    "MD5OfBody": "0" * 32,
    "Body": "hello",
    "Attributes": {
        "SenderId": "AIDA",
        "SentTimestamp": "1763726400123",
        "ApproximateReceiveCount": "4",
        "ApproximateFirstReceiveTimestamp": "1763726400124",
        "MessageGroupId": "g",
        "MessageDeduplicationId": "d",
        "SequenceNumber": "18",
        "AWSTraceHeader": "Root=1-5759e988-bd862e3fe1be46a994272793",
        "DeadLetterQueueSourceArn": "arn:aws:sqs:us-east-1:123456789012:orders",
    },
    "MessageAttributes": {
        "weight": {"DataType": "Number.float", "StringValue": "1.5"},
        "picture": {"DataType": "Binary.png", "BinaryValue": b"\x00\xff"},
    },
}
TEXTS = st.text(max_size=20)


def test_everything_that_sqs_says_is_read() -> None:
    assert message_of(WHOLE) == Message(
        message_id="m-1",
        body="hello",
        sent_at=datetime(2025, 11, 21, 12, 0, 0, 123_000, tzinfo=UTC),
        receive_count=4,
        attributes={
            "weight": MessageAttribute("Number.float", "1.5"),
            "picture": MessageAttribute("Binary.png", b"\x00\xff"),
        },
        source_arn="arn:aws:sqs:us-east-1:123456789012:orders",
        group_id="g",
        deduplication_id="d",
        trace_header="Root=1-5759e988-bd862e3fe1be46a994272793",
    )


def test_a_message_that_somebody_sent_here_died_nowhere() -> None:
    message = message_of({"MessageId": "m-1", "Body": "hello"})
    assert message.source_arn is None
    assert message.group_id == ""
    assert dict(message.attributes) == {}


def test_one_that_does_not_say_when_it_was_sent_is_older_than_anything() -> None:
    assert message_of({}).sent_at < datetime(2000, 1, 1, tzinfo=UTC)


@given(
    st.dictionaries(
        st.sampled_from(sorted(WHOLE)),
        TEXTS
        | st.dictionaries(
            st.sampled_from([*WHOLE["Attributes"], "x"]),
            TEXTS,
        ),
    )
)
def test_no_times_and_counts_raise(received: dict[str, object]) -> None:
    attributes = received.get("Attributes")
    received["Attributes"] = attributes if isinstance(attributes, dict) else {}
    received.pop("MessageAttributes", None)
    message = message_of(received)
    assert message.receive_count >= 1
    assert message.sent_at.tzinfo is UTC

"""Messages go on whole, in their order, each is shown once, and none is lost whoever dies.

Whatever does not go is told with its reason, and so is what waits because of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError
from hypothesis import given
from hypothesis import strategies as st

from mendq.redrive.messages import (
    REDRIVE_COUNT,
    Message,
    MessageAttribute,
    MoveResult,
    hopped,
)
from mendq.redrive.send_batches import (
    MOST_BYTES,
    MOST_ENTRIES,
    Destination,
    FifoOrder,
    deduplication_id,
)
from tests.heal.conftest import Account
from tests.redrive.world import LONGER_THAN_A_VISIBILITY, TwoQueues, texts, two_queues

ARN = "arn:aws:sqs:us-east-1:123456789012:orders"
TRACE = "Root=1-5759e988-bd862e3fe1be46a994272793"


@pytest.fixture(params=["standard", "fifo"])
def both(request: pytest.FixtureRequest, timed: Account) -> TwoQueues:
    return two_queues(timed, fifo=request.param == "fifo")


@pytest.fixture
def queues(timed: Account) -> TwoQueues:
    return two_queues(timed)


@pytest.fixture
def fifo(timed: Account) -> TwoQueues:
    return two_queues(timed, fifo=True)


def bodies(messages: list[Message]) -> list[str]:
    return [each.body for each in messages]


def test_a_message_goes_whole_and_bears_the_mark(both: TwoQueues) -> None:
    given = {
        "kind": MessageAttribute("String", "é\u2028"),
        "weight": MessageAttribute("Number.float", "1.50"),
        "picture": MessageAttribute("Binary.png", b"\x00\xff"),
    }
    sent = {name: each.document() for name, each in given.items()}
    both.write("hello\r\n", group="g-7", MessageAttributes=sent)
    assert both.move().moved == 1
    (arrived,) = both.arrived()
    assert arrived.body == "hello\r\n"
    assert arrived.attributes == {**given, REDRIVE_COUNT: MessageAttribute("Number", "1")}
    assert arrived.group_id == ("g-7" if both.is_fifo else "")
    assert both.left() == []


def attributes(number: int, count: str = "") -> dict[str, Any]:
    named = {f"a{at}": MessageAttribute("String", "x") for at in range(number)}
    if count:
        named[REDRIVE_COUNT] = MessageAttribute("Number", count)
    return {name: each.document() for name, each in named.items()}


def test_with_ten_attributes_it_goes_unmarked_and_is_counted(queues: TwoQueues) -> None:
    queues.write("full", MessageAttributes=attributes(10))
    queues.write("again", MessageAttributes=attributes(9, count="2"))
    queues.write("x" * 1_048_576, "y" * (1_048_576 - 40))
    moved = queues.move()
    arrived = {each.body[:5]: each for each in queues.arrived()}
    counts = {body: each.redrive_count for body, each in arrived.items()}
    assert counts == {"full": 0, "again": 3, "xxxxx": 0, "yyyyy": 1}
    assert set(arrived["full"].attributes) == set(attributes(10))
    assert moved.unmarked == 2


def test_an_end_in_the_middle_releases_what_is_held(queues: TwoQueues) -> None:
    queues.write(*texts(10))
    with queues.mover() as mover:
        messages = mover.take(10)
        assert next(mover.put(messages[:3], queues.to())).moved == 3
        mover.release([each.message_id for each in messages[3:5]])
        assert len(queues.left()) == 2
    assert (len(queues.left()), len(queues.arrived())) == (5, 3)


def test_what_is_not_taken_is_visible_at_once_and_looked_at_once(both: TwoQueues) -> None:
    for at, text in enumerate(texts(35)):
        both.write(text, group=f"g{at % 9}")
    looked: Counter[str] = Counter()

    def takes(message: Message) -> bool:
        looked[message.body] += 1
        return message.body.endswith(("0", "5"))

    assert both.move(takes=takes).moved == 7
    assert (set(looked.values()), len(looked)) == ({1}, 35)
    assert (len(both.left()), len(both.arrived())) == (28, 7)


def test_what_a_group_hides_behind_messages_that_stay_is_seen_up_to_ten(fifo: TwoQueues) -> None:
    for group in "abc":
        fifo.write(*(f"{group} {at:02}" for at in range(14)), group=group)
    looked: list[str] = []

    def takes(message: Message) -> bool:
        looked.append(message.body)
        return message.body.endswith(("b 03", "b 10"))

    assert fifo.move(takes=takes).moved == 2
    assert len(looked) == len(set(looked))
    by_group = {group: [each for each in looked if each[0] == group] for group in "abc"}
    assert {group: len(each) for group, each in by_group.items()} == {"a": 10, "b": 12, "c": 10}
    assert all(each == sorted(each) for each in by_group.values())
    assert bodies(fifo.arrived()) == ["b 03", "b 10"]
    assert len(fifo.left()) == 40


def test_no_more_are_given_than_asked_for(fifo: TwoQueues) -> None:
    for group in range(6):
        fifo.write(*(f"{group} {at}" for at in range(6)), group=str(group))
    with fifo.mover() as mover:
        assert [len(mover.take(4)) for _ in range(10)] == [4] * 9 + [0]
    assert len(fifo.left()) == 36


def failing(*wrong: str) -> Callable[[Any, dict[str, Any]], Any]:
    """SendMessageBatch that fails some entries and takes the others."""

    def send(real: Any, asked: dict[str, Any]) -> Any:
        bad = [each for each in asked["Entries"] if each["MessageBody"] in wrong]
        good = [each for each in asked["Entries"] if each not in bad]
        answer = real(**{**asked, "Entries": good}) if good else {"Successful": []}
        of_sqs = {"Code": "InternalError", "Message": "no", "SenderFault": False}
        return {**answer, "Failed": [{"Id": each["Id"], **of_sqs} for each in bad]}

    return send


def refusing(code: str, calls: list[Any]) -> Callable[[Any, dict[str, Any]], Any]:
    """SendMessageBatch that refuses whole batches."""

    def send(_real: Any, asked: dict[str, Any]) -> Any:
        calls.append(asked)
        if code == "lost":
            raise ReadTimeoutError(endpoint_url="sqs")
        raise ClientError({"Error": {"Code": code, "Message": "no"}}, "SendMessageBatch")

    return send


def test_what_stands_behind_a_fifo_message_that_failed_waits(fifo: TwoQueues) -> None:
    fifo.write(*texts(5), group="a")
    fifo.write("other 1", "other 2", group="b")
    fifo.sends = failing("message 001")
    moved = fifo.move()
    assert moved.moved == 3
    assert [each.code for each in moved.failed] == ["InternalError"]
    assert set(bodies(fifo.arrived())) == {"message 000", "other 1", "other 2"}
    assert bodies(fifo.left()) == texts(5)[1:]


@pytest.mark.parametrize(
    ("code", "passes"),
    [("AccessDenied", False), ("RequestThrottled", True), ("lost", True)],
)
def test_a_refusal_of_everything_is_met_once(both: TwoQueues, code: str, *, passes: bool) -> None:
    """What may have arrived is not sent again, nor what would be refused again."""
    calls = list[Any]()
    both.write(*texts(30))
    both.sends = refusing(code, calls)
    with both.mover() as mover:
        moved = sum(mover.put(mover.take(30), both.to()), MoveResult())
    tried = 1 if both.is_fifo else 10
    assert (len(calls), moved.moved, len(moved.failed)) == (1, 0, tried)
    assert {each.passes for each in moved.failed} == {passes}
    assert len(both.left()) == 30


def test_a_copy_with_another_text_is_no_reason_to_delete(queues: TwoQueues) -> None:
    def send(real: Any, asked: dict[str, Any]) -> Any:
        answer = real(**asked)
        answer["Successful"][0]["MD5OfMessageBody"] = "0" * 32
        return answer

    queues.write("dear")
    queues.sends = send
    assert [each.code for each in queues.move().failed] == ["unanswered"]
    assert bodies(queues.left()) == ["dear"]


def test_what_was_sent_and_not_deleted_is_deleted_when_it_is_seen_again(
    queues: TwoQueues,
) -> None:
    queues.write("once")
    fails = [True, True]

    def fail(**_: object) -> None:
        if fails and fails.pop():
            raise ClientError({"Error": {"Code": "InternalError", "Message": ""}}, "DeleteMessage")

    events: Any = queues.account.clients.sqs.meta.events
    events.register_first("before-call.sqs.DeleteMessage", fail)
    with queues.mover() as mover:
        moved = sum(mover.put(mover.take(1), queues.to()), MoveResult())
        assert (moved.moved, moved.copied) == (0, 1)
        queues.account.later(seconds=LONGER_THAN_A_VISIBILITY)
        assert mover.take(1) == []
    assert queues.left() == []
    assert bodies(queues.arrived()) == ["once"]


def test_what_is_held_no_more_is_not_sent(queues: TwoQueues) -> None:
    queues.write("late")
    with queues.mover() as mover:
        messages = mover.take(1)
        queues.account.later(seconds=LONGER_THAN_A_VISIBILITY)
        moved = sum(mover.put(messages, queues.to()), MoveResult())
    assert [each.code for each in moved.failed] == ["lost"]
    assert (queues.arrived(), bodies(queues.left())) == ([], ["late"])


AT = datetime(2026, 11, 21, 12, tzinfo=UTC)
MESSAGES = st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from([1, 300_000, 1_048_576])))


@given(MESSAGES, st.sets(st.integers(0, 20)), st.sampled_from(["", ".fifo"]), st.booleans())
def test_within_a_group_nothing_goes_before_what_stands_in_front(
    drawn: list[tuple[str, int]], failing_at: set[int], ending: str, is_hopeless: bool
) -> None:
    messages = [
        Message(f"m-{at}", "x" * size, AT, group_id=group) for at, (group, size) in enumerate(drawn)
    ]
    to = Destination(f"{ARN}{ending}", "url", "case-1", hopped)
    order, gone, tried = FifoOrder(messages, to), list[Message](), list[str]()
    fails = {f"m-{at}" for at in failing_at}
    while batch := order.next_batch():
        assert len(batch) <= MOST_ENTRIES
        assert sum(to.as_sent(each).size_bytes for each in batch) <= MOST_BYTES
        tried += [each.message_id for each in batch]
        went = [each for each in batch if each.message_id not in fails]
        gone += went
        ends = is_hopeless and len(went) < len(batch)
        order.settle(batch, {each.message_id for each in went}, is_hopeless=ends)
        assert not (ends and order.next_batch())
    assert len(tried) == len(set(tried))
    if not ending and not is_hopeless:
        assert len(tried) == len(messages)
    for group in "abcd" if ending else "":
        of_group = [each for each in messages if each.group_id == group]
        sent = [each for each in gone if each.group_id == group]
        assert sent == of_group[: len(sent)]
        assert is_hopeless or len(sent) == len(of_group) or of_group[len(sent)].message_id in fails


def test_a_fifo_message_sent_again_by_the_same_run_is_one_and_by_another_is_two() -> None:
    ids = {deduplication_id(run, each) for run in ("a", "b") for each in ("m-1", "m-2", "m-1")}
    assert len(ids) == 4
    assert deduplication_id("a", "bc") != deduplication_id("ab", "c")
    assert all(len(each) <= 128 and each.isalnum() for each in ids)

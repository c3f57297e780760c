"""Messages go on whole, in their order, each is shown once, and none is lost whoever dies.

Whatever does not go is told with its reason, and so is what waits because of it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from hashlib import md5
from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError
from hypothesis import given
from hypothesis import strategies as st
from msgspec import to_builtins

from mendq.redrive.messages import (
    REDRIVE_MARK_NAME,
    Message,
    MessageAttribute,
    MoveResult,
    RedriveMark,
    RedriveMarker,
)
from mendq.redrive.mover import (
    MOST_BATCH_BYTES,
    MOST_MESSAGES_PER_SEND,
    Destination,
    MessageMover,
    SendOrder,
    make_deduplication_id,
)
from tests.redrive.world import Redriving, redriving, texts

KEY = b"its key"
ARN = "arn:aws:sqs:us-east-1:123456789012:orders"
# The mover's visibility timeout is over then.
A_VISIBILITY_LATER = 121


@pytest.fixture(params=["orders", "orders.fifo"])
def both(request: pytest.FixtureRequest) -> Iterator[Redriving]:
    with redriving(request.param) as made:
        yield made


def is_fifo(here: Redriving) -> bool:
    return here.dlq.endswith(".fifo")


def left(here: Redriving) -> list[Message]:
    return here.taken_away(here.dlq)


def arrived(here: Redriving) -> list[Message]:
    return here.taken_away(here.source)


def to_source(here: Redriving) -> Destination:
    mark = RedriveMarker(here.source, "case-1", KEY).mark_redriven
    return Destination(here.source, here.account.url(here.source), "case-1", mark)


def mover_of(here: Redriving, **over: Any) -> MessageMover:
    return MessageMover(
        here.account.clients.sqs,
        here.account.url(here.dlq),
        clock=lambda: here.account.now.timestamp(),  # noqa: PLW0108 - `now` moves
        **over,
    )


def move(here: Redriving, takes: Callable[[Message], bool] = lambda _: True) -> MoveResult:
    """Ten by ten, those that `takes` says yes to."""
    done = MoveResult()
    with mover_of(here) as mover:
        while messages := mover.receive_new_messages(10):
            chosen = [message for message in messages if takes(message)]
            done = sum(mover.move_messages(chosen, to_source(here)), done)
    return done


def answers(here: Redriving, change: Callable[[dict[str, Any]], object]) -> None:
    """SQS sends a batch, and says something else of it."""
    events: Any = here.account.clients.sqs.meta.events
    events.register("after-call.sqs.SendMessageBatch", lambda parsed, **_: change(parsed))


def bodies(messages: list[Message]) -> list[str]:
    return [message.body for message in messages]


def test_moved_message_keeps_body_attributes_and_group_and_gets_the_redrive_mark(
    both: Redriving,
) -> None:
    given = {
        "kind": MessageAttribute("String", "é\u2028"),
        "weight": MessageAttribute("Number.float", "1.50"),
        "picture": MessageAttribute("Binary.png", b"\x00\xff"),
    }
    sent = {name: attribute.to_request() for name, attribute in given.items()}
    both.send("hello\r\n", group="g-7", **sent)
    assert move(both).moved_count == 1
    (found,) = arrived(both)
    assert found.body == "hello\r\n"
    mark = json.loads(found.attributes[REDRIVE_MARK_NAME].value)
    assert mark == to_builtins(RedriveMark(both.source, "case-1", 1, mark["seal"]))
    assert found.attributes == {**given, REDRIVE_MARK_NAME: found.attributes[REDRIVE_MARK_NAME]}
    assert found.group_id == ("g-7" if is_fifo(both) else "")
    assert left(both) == []


def test_message_without_room_for_the_redrive_mark_is_moved_unmarked_and_counted(
    here: Redriving,
) -> None:
    given = {f"a{number}": MessageAttribute("String", "x").to_request() for number in range(10)}
    here.send("full", **given)
    here.send("x" * 1_048_576, "y" * (1_048_576 - 200))
    moved = move(here)
    found = {message.body[:5]: message for message in arrived(here)}
    counts = {body: message.redrive_count for body, message in found.items()}
    assert counts == {"full": 0, "xxxxx": 0, "yyyyy": 1}
    assert set(found["full"].attributes) == set(given)
    assert moved.unmarked_count == 2


def test_mover_that_ends_early_makes_unsent_messages_visible_again(here: Redriving) -> None:
    here.send(*texts(10))
    with mover_of(here) as mover:
        messages = mover.receive_new_messages(10)
        assert next(mover.move_messages(messages[:3], to_source(here))).moved_count == 3
        mover.release([message.message_id for message in messages[3:5]])
        assert len(left(here)) == 2
    assert (len(left(here)), len(arrived(here))) == (5, 3)


def test_mover_reads_each_message_once_and_makes_unchosen_messages_visible_at_once(
    both: Redriving,
) -> None:
    for number, text in enumerate(texts(35)):
        both.send(text, group=f"g{number % 9}")
    looked: Counter[str] = Counter()

    def takes(message: Message) -> bool:
        looked[message.body] += 1
        return message.body.endswith(("0", "5"))

    assert move(both, takes).moved_count == 7
    assert (set(looked.values()), len(looked)) == ({1}, 35)
    assert (len(left(both)), len(arrived(both))) == (28, 7)


def test_mover_reads_ten_messages_of_a_fifo_group_behind_messages_that_stay(
    fifo: Redriving,
) -> None:
    for group in "abc":
        fifo.send(*(f"{group} {number:02}" for number in range(14)), group=group)
    looked: list[str] = []

    def takes(message: Message) -> bool:
        looked.append(message.body)
        return message.body.endswith(("b 03", "b 10"))

    assert move(fifo, takes).moved_count == 2
    assert len(looked) == len(set(looked))
    by_group = {group: [body for body in looked if body[0] == group] for group in "abc"}
    assert {group: len(bodies_of_group) for group, bodies_of_group in by_group.items()} == {
        "a": 10,
        "b": 12,
        "c": 10,
    }
    assert all(bodies_of_group == sorted(bodies_of_group) for bodies_of_group in by_group.values())
    assert bodies(arrived(fifo)) == ["b 03", "b 10"]
    assert len(left(fifo)) == 40


def test_mover_without_permission_to_open_fifo_groups_only_receives_each_message_once(
    fifo: Redriving,
) -> None:
    """To open a thousand groups is a thousand receives, of messages that were received before."""
    for group in range(15):
        fifo.send(*texts(12), group=str(group))
    calls = list[str]()
    fifo.refusals.append(lambda call, _: calls.append(call))
    with mover_of(fifo, may_open_groups=lambda: False) as mover:
        seen = mover.receive_new_messages(200)
        assert {message.receive_count for message in seen} == {1}
        assert {message.group_id for message in seen} == {str(number) for number in range(15)}
        assert set(calls) == {"ReceiveMessage"}
    assert len(left(fifo)) == 180


@pytest.mark.parametrize(("remaining", "hidden"), [(60, 0), (5, 30)])
def test_mover_with_no_time_left_does_not_release_held_messages(
    here: Redriving, remaining: int, hidden: int
) -> None:
    here.send(*texts(30))
    with mover_of(here, remaining_seconds=lambda: remaining) as mover:
        mover.receive_new_messages(30)
    assert len(left(here)) == 30 - hidden


def test_mover_returns_at_most_the_requested_number_of_messages(fifo: Redriving) -> None:
    for group in range(6):
        fifo.send(*(f"{group} {number}" for number in range(6)), group=str(group))
    with mover_of(fifo) as mover:
        assert [len(mover.receive_new_messages(4)) for _ in range(10)] == [4] * 9 + [0]
    assert len(left(fifo)) == 36


def test_mover_sends_nothing_behind_a_fifo_message_that_sqs_failed_to_take(fifo: Redriving) -> None:
    fifo.send(*texts(5), group="a")
    fifo.send("other 1", "other 2", group="b")
    digest = md5(b"message 001", usedforsecurity=False).hexdigest()

    def fail(parsed: dict[str, Any]) -> None:
        wrong = [entry for entry in parsed["Successful"] if entry["MD5OfMessageBody"] == digest]
        of_sqs = {"Code": "InternalError", "Message": "no", "SenderFault": False}
        parsed["Failed"] = [{"Id": entry["Id"], **of_sqs} for entry in wrong]
        parsed["Successful"] = [entry for entry in parsed["Successful"] if entry not in wrong]

    answers(fifo, fail)
    moved = move(fifo)
    assert moved.moved_count == 3
    assert [unmoved_message.code for unmoved_message in moved.unmoved_messages] == ["InternalError"]
    assert set(bodies(arrived(fifo))) == {*texts(2), "other 1", "other 2"}
    assert bodies(left(fifo)) == texts(5)[1:]


def test_mover_sends_nothing_behind_a_failed_fifo_message_even_if_received_later(
    fifo: Redriving,
) -> None:
    """SQS shows what stands behind the first ten of a group only after some of those have gone."""
    fifo.configure(fifo.source, MaximumMessageSize="1024")
    fifo.send(*texts(3), "x" * 2_000, *texts(12), group="a")
    fifo.send(*texts(14), group="b")
    moved = move(fifo)
    sent = arrived(fifo)
    assert len(moved.unmoved_messages) == 1
    assert bodies([message for message in sent if message.group_id == "a"]) == texts(3)
    assert bodies([message for message in sent if message.group_id == "b"]) == texts(14)
    assert bodies(left(fifo)) == ["x" * 2_000, *texts(12)]


# Codes of one batch entry that SQS may take later, whoever it says is at fault.
PASSING_CODES = ("InternalError", "KMS.ThrottlingException", "OverLimit", "RequestThrottled")
# Codes that stay as they are if the sender is at fault.
LASTING_CODES = ("AccessDenied", "InvalidMessageContents", "InvalidParameterValue", "MadeUpCode")


@pytest.mark.parametrize("sender_fault", [True, False, None])
@pytest.mark.parametrize("code", [*PASSING_CODES, *LASTING_CODES])
def test_mover_keeps_a_refused_batch_entry_and_tells_temporary_from_lasting_refusals(
    here: Redriving, code: str, *, sender_fault: bool | None
) -> None:
    """Only the other entry is sent. None stands for an answer that leaves SenderFault out."""
    here.send("refused", "taken")
    digest = md5(b"refused", usedforsecurity=False).hexdigest()

    def refuse(parsed: dict[str, Any]) -> None:
        entry: dict[str, Any] = {"Code": code, "Message": "no"}
        if sender_fault is not None:
            entry["SenderFault"] = sender_fault
        taken = parsed.get("Successful", [])
        refused = [
            taken_entry for taken_entry in taken if taken_entry["MD5OfMessageBody"] == digest
        ]
        parsed["Failed"] = [{"Id": refused_entry["Id"], **entry} for refused_entry in refused]
        parsed["Successful"] = [taken_entry for taken_entry in taken if taken_entry not in refused]

    answers(here, refuse)
    moved = move(here)
    assert (moved.moved_count, moved.copied_count, len(moved.unmoved_messages)) == (1, 0, 1)
    assert bodies(left(here)) == ["refused"]
    passes = code in PASSING_CODES or sender_fault is False
    assert moved.unmoved_messages[0].is_temporary is passes


@pytest.mark.parametrize("sender_fault", [True, False])
def test_move_is_refused_for_good_only_if_sqs_blames_the_sender(
    here: Redriving, *, sender_fault: bool
) -> None:
    here.send("refused")

    def refuse(parsed: dict[str, Any]) -> None:
        entry = {"Code": "MadeUpCode", "Message": "no", "SenderFault": sender_fault}
        parsed["Failed"] = [{"Id": taken["Id"], **entry} for taken in parsed.pop("Successful")]

    answers(here, refuse)
    assert move(here).is_refused_for_good is sender_fault
    assert bodies(left(here)) == ["refused"]


@pytest.mark.parametrize(
    ("code", "passes"), [("AccessDenied", False), ("RequestThrottled", True), ("lost", True)]
)
def test_mover_stops_after_one_send_if_sqs_refuses_the_whole_batch(
    both: Redriving, code: str, *, passes: bool
) -> None:
    """What may have arrived is not sent again, nor what would be refused again."""
    calls = list[Any]()
    both.send(*texts(30))

    def refuse(call: str, asked: Any) -> Exception | None:
        if call != "SendMessageBatch":
            return None
        calls.append(asked)
        lost = ReadTimeoutError(endpoint_url="sqs")
        return lost if code == "lost" else ClientError({"Error": {"Code": code}}, call)

    both.refusals.append(refuse)
    with mover_of(both) as mover:
        moved = sum(
            mover.move_messages(mover.receive_new_messages(30), to_source(both)), MoveResult()
        )
    tried = 1 if is_fifo(both) else 10
    assert (len(calls), moved.moved_count, len(moved.unmoved_messages)) == (1, 0, tried)
    assert {unmoved_message.is_temporary for unmoved_message in moved.unmoved_messages} == {passes}
    assert len(left(both)) == 30


def test_mover_keeps_the_original_if_sqs_reports_another_md5_for_the_copy(here: Redriving) -> None:
    here.send("dear")
    answers(here, lambda parsed: parsed["Successful"][0].update(MD5OfMessageBody="0" * 32))
    assert [unmoved_message.code for unmoved_message in move(here).unmoved_messages] == [
        "unanswered"
    ]
    assert bodies(left(here)) == ["dear"]


def test_sent_message_whose_delete_failed_is_deleted_when_received_again(here: Redriving) -> None:
    here.send("once")
    fails = [True, True]

    def fail(**_: object) -> None:
        if fails and fails.pop():
            raise ClientError({"Error": {"Code": "InternalError", "Message": ""}}, "DeleteMessage")

    events: Any = here.account.clients.sqs.meta.events
    events.register_first("before-call.sqs.DeleteMessage", fail)
    with mover_of(here) as mover:
        moved = sum(
            mover.move_messages(mover.receive_new_messages(1), to_source(here)), MoveResult()
        )
        assert (moved.moved_count, moved.copied_count) == (0, 1)
        here.account.later(seconds=A_VISIBILITY_LATER)
        assert mover.receive_new_messages(1) == []
    assert left(here) == []
    assert bodies(arrived(here)) == ["once"]


def test_message_whose_visibility_timeout_ended_is_not_sent(here: Redriving) -> None:
    here.send("late")
    with mover_of(here) as mover:
        messages = mover.receive_new_messages(1)
        here.account.later(seconds=A_VISIBILITY_LATER)
        moved = sum(mover.move_messages(messages, to_source(here)), MoveResult())
    assert [unmoved_message.code for unmoved_message in moved.unmoved_messages] == ["lost"]
    assert (arrived(here), bodies(left(here))) == ([], ["late"])


AT = datetime(2026, 11, 21, 12, tzinfo=UTC)
MESSAGES = st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from([1, 300_000, 1_048_576])))


@given(MESSAGES, st.sets(st.integers(0, 20)), st.sampled_from(["", ".fifo"]), st.booleans())
def test_send_order_never_sends_a_fifo_message_before_earlier_ones_of_its_group(
    drawn: list[tuple[str, int]],
    failing_at: set[int],
    ending: str,
    would_all_messages_be_refused: bool,
) -> None:
    messages = [
        Message(f"m-{number}", "x" * size, AT, group_id=group)
        for number, (group, size) in enumerate(drawn)
    ]
    to = Destination(
        f"{ARN}{ending}", "url", "case-1", RedriveMarker(ARN, "case-1", KEY).mark_redriven
    )
    order = SendOrder(messages, to)
    gone = list[Message]()
    tried = list[str]()
    fails = {f"m-{number}" for number in failing_at}
    while batch := order.choose_next_batch():
        assert len(batch) <= MOST_MESSAGES_PER_SEND
        assert sum(to.mark_if_possible(message).size_bytes for message in batch) <= MOST_BATCH_BYTES
        tried += [message.message_id for message in batch]
        went = [message for message in batch if message.message_id not in fails]
        gone += went
        ends = would_all_messages_be_refused and len(went) < len(batch)
        order.remove_batch(
            batch, {message.message_id for message in went}, would_all_messages_be_refused=ends
        )
        assert not (ends and order.choose_next_batch())
    assert len(tried) == len(set(tried))
    if not ending and not would_all_messages_be_refused:
        assert len(tried) == len(messages)
    for group in "abcd" if ending else "":
        of_group = [message for message in messages if message.group_id == group]
        sent = [message for message in gone if message.group_id == group]
        assert sent == of_group[: len(sent)]
        assert (
            would_all_messages_be_refused
            or len(sent) == len(of_group)
            or of_group[len(sent)].message_id in fails
        )


def test_deduplication_id_is_stable_within_a_run_and_differs_between_runs() -> None:
    ids = {
        make_deduplication_id(run, message_id)
        for run in ("a", "b")
        for message_id in ("m-1", "m-2", "m-1")
    }
    assert len(ids) == 4
    assert make_deduplication_id("a", "bc") != make_deduplication_id("ab", "c")
    assert all(
        len(deduplication_id) <= 128 and deduplication_id.isalnum() for deduplication_id in ids
    )

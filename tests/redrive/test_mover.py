"""The mover sends whole messages in order and loses none, whatever fails.

It reports every message that it did not send, with the reason.
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

from mendq.model.seal import SealKey
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
from tests.redrive.world import RedriveWorld, make_bodies, make_redrive_world

KEY = SealKey(b"its key")
ARN = "arn:aws:sqs:us-east-1:123456789012:orders"
# One second more than the mover's visibility timeout.
A_VISIBILITY_LATER = 121


@pytest.fixture(params=["orders", "orders.fifo"])
def either_world(request: pytest.FixtureRequest) -> Iterator[RedriveWorld]:
    with make_redrive_world(request.param) as made:
        yield made


def is_fifo(world: RedriveWorld) -> bool:
    return world.dlq.endswith(".fifo")


def take_from_dlq(world: RedriveWorld) -> list[Message]:
    return world.take_messages(world.dlq)


def take_from_source(world: RedriveWorld) -> list[Message]:
    return world.take_messages(world.source)


def make_destination(world: RedriveWorld) -> Destination:
    mark = RedriveMarker(world.source, "case-1", KEY).mark_redriven
    return Destination(world.source, world.account.url(world.source), "case-1", mark)


def make_mover(world: RedriveWorld, **over: Any) -> MessageMover:
    return MessageMover(
        world.account.clients.sqs,
        world.account.url(world.dlq),
        clock=lambda: world.account.now.timestamp(),  # noqa: PLW0108 - `now` moves
        **over,
    )


def move_dlq_messages(
    world: RedriveWorld, takes: Callable[[Message], bool] = lambda _: True
) -> MoveResult:
    """Move the DLQ messages for which `takes` returns true, ten at a time."""
    done = MoveResult()
    with make_mover(world) as mover:
        while messages := mover.receive_new_messages(10):
            chosen = [message for message in messages if takes(message)]
            done = sum(mover.move_messages(chosen, make_destination(world)), done)
    return done


def change_send_answers(world: RedriveWorld, change: Callable[[dict[str, Any]], object]) -> None:
    """Let SQS send a batch, and change its answer."""
    events: Any = world.account.clients.sqs.meta.events
    events.register("after-call.sqs.SendMessageBatch", lambda parsed, **_: change(parsed))


def list_bodies(messages: list[Message]) -> list[str]:
    return [message.body for message in messages]


def test_moved_message_keeps_body_attributes_and_group_and_gets_the_redrive_mark(
    either_world: RedriveWorld,
) -> None:
    given = {
        "kind": MessageAttribute("String", "é\u2028"),
        "weight": MessageAttribute("Number.float", "1.50"),
        "picture": MessageAttribute("Binary.png", b"\x00\xff"),
    }
    sent = {name: attribute.to_request() for name, attribute in given.items()}
    either_world.send("hello\r\n", group="g-7", **sent)
    assert move_dlq_messages(either_world).moved_count == 1
    (found,) = take_from_source(either_world)
    assert found.body == "hello\r\n"
    mark = json.loads(found.attributes[REDRIVE_MARK_NAME].value)
    assert mark == to_builtins(RedriveMark(either_world.source, "case-1", 1, mark["seal"]))
    assert found.attributes == {**given, REDRIVE_MARK_NAME: found.attributes[REDRIVE_MARK_NAME]}
    assert found.group_id == ("g-7" if is_fifo(either_world) else "")
    assert take_from_dlq(either_world) == []


def test_message_without_room_for_the_redrive_mark_is_moved_unmarked_and_counted(
    world: RedriveWorld,
) -> None:
    given = {f"a{number}": MessageAttribute("String", "x").to_request() for number in range(10)}
    world.send("full", **given)
    world.send("x" * 1_048_576, "y" * (1_048_576 - 200))
    moved = move_dlq_messages(world)
    found = {message.body[:5]: message for message in take_from_source(world)}
    counts = {body: message.redrive_count for body, message in found.items()}
    assert counts == {"full": 0, "xxxxx": 0, "yyyyy": 1}
    assert set(found["full"].attributes) == set(given)
    assert moved.unmarked_count == 2


def test_mover_makes_released_messages_visible_at_once(world: RedriveWorld) -> None:
    world.send(*make_bodies(10))
    with make_mover(world) as mover:
        released = mover.receive_new_messages(10)[:2]
        mover.release([message.message_id for message in released])
        assert set(list_bodies(take_from_dlq(world))) == set(list_bodies(released))


def test_mover_that_ends_early_makes_only_unsent_messages_visible_again(
    world: RedriveWorld,
) -> None:
    world.send(*make_bodies(10))
    with make_mover(world) as mover:
        messages = mover.receive_new_messages(10)
        assert next(mover.move_messages(messages[:3], make_destination(world))).moved_count == 3
    assert set(list_bodies(take_from_source(world))) == set(list_bodies(messages[:3]))
    assert set(list_bodies(take_from_dlq(world))) == set(list_bodies(messages[3:]))


def test_mover_reads_each_message_once_and_makes_unchosen_messages_visible_at_once(
    either_world: RedriveWorld,
) -> None:
    for number, text in enumerate(make_bodies(35)):
        either_world.send(text, group=f"g{number % 9}")
    looked: Counter[str] = Counter()

    def takes(message: Message) -> bool:
        looked[message.body] += 1
        return message.body.endswith(("0", "5"))

    assert move_dlq_messages(either_world, takes).moved_count == 7
    assert (set(looked.values()), len(looked)) == ({1}, 35)
    assert (len(take_from_dlq(either_world)), len(take_from_source(either_world))) == (28, 7)


def test_mover_reads_ten_messages_of_a_fifo_group_behind_messages_that_stay(
    fifo_world: RedriveWorld,
) -> None:
    for group in "abc":
        fifo_world.send(*(f"{group} {number:02}" for number in range(14)), group=group)
    looked: list[str] = []

    def takes(message: Message) -> bool:
        looked.append(message.body)
        return message.body.endswith(("b 03", "b 10"))

    assert move_dlq_messages(fifo_world, takes).moved_count == 2
    assert len(looked) == len(set(looked))
    assert Counter(body[0] for body in looked) == {"a": 10, "b": 12, "c": 10}
    assert sorted(looked, key=lambda body: body[0]) == sorted(looked)
    assert list_bodies(take_from_source(fifo_world)) == ["b 03", "b 10"]
    assert len(take_from_dlq(fifo_world)) == 40


def test_mover_told_not_to_open_fifo_groups_receives_each_message_once_and_does_no_more(
    fifo_world: RedriveWorld,
) -> None:
    """To open a group is to receive what stands behind its first messages.

    Opening 1,000 groups costs 1,000 receives of messages that were received before.
    """
    for group in range(15):
        fifo_world.send(*make_bodies(12), group=str(group))
    calls = list[str]()
    fifo_world.refusals.append(lambda call, _: calls.append(call))
    with make_mover(fifo_world, may_open_groups=lambda: False) as mover:
        seen = mover.receive_new_messages(200)
        assert {message.receive_count for message in seen} == {1}
        assert {message.group_id for message in seen} == {str(number) for number in range(15)}
        assert set(calls) == {"ReceiveMessage"}
    assert len(take_from_dlq(fifo_world)) == 180


def test_mover_with_time_left_makes_every_unsent_message_visible_again(
    world: RedriveWorld,
) -> None:
    world.send(*make_bodies(30))
    with make_mover(world, remaining_seconds=lambda: 60) as mover:
        assert len(mover.receive_new_messages(30)) == 30
        assert take_from_dlq(world) == []
    assert len(take_from_dlq(world)) == 30


def test_mover_with_five_seconds_left_leaves_unsent_messages_to_their_visibility_timeout(
    world: RedriveWorld,
) -> None:
    world.send(*make_bodies(30))
    with make_mover(world, remaining_seconds=lambda: 5) as mover:
        assert len(mover.receive_new_messages(30)) == 30
    assert take_from_dlq(world) == []
    world.account.later(seconds=A_VISIBILITY_LATER)
    assert len(take_from_dlq(world)) == 30


def test_mover_returns_at_most_the_requested_number_of_messages(fifo_world: RedriveWorld) -> None:
    for group in range(6):
        fifo_world.send(*(f"{group} {number}" for number in range(6)), group=str(group))
    with make_mover(fifo_world) as mover:
        assert [len(mover.receive_new_messages(4)) for _ in range(10)] == [4] * 9 + [0]
    assert len(take_from_dlq(fifo_world)) == 36


def test_mover_sends_nothing_behind_a_fifo_message_that_sqs_failed_to_take(
    fifo_world: RedriveWorld,
) -> None:
    fifo_world.send(*make_bodies(5), group="a")
    fifo_world.send("other 1", "other 2", group="b")
    digest = md5(b"message 001", usedforsecurity=False).hexdigest()

    def fail(parsed: dict[str, Any]) -> None:
        wrong = [entry for entry in parsed["Successful"] if entry["MD5OfMessageBody"] == digest]
        of_sqs = {"Code": "InternalError", "Message": "no", "SenderFault": False}
        parsed["Failed"] = [{"Id": entry["Id"], **of_sqs} for entry in wrong]
        parsed["Successful"] = [entry for entry in parsed["Successful"] if entry not in wrong]

    change_send_answers(fifo_world, fail)
    moved = move_dlq_messages(fifo_world)
    assert moved.moved_count == 3
    assert [unmoved_message.code for unmoved_message in moved.unmoved_messages] == ["InternalError"]
    assert set(list_bodies(take_from_source(fifo_world))) == {*make_bodies(2), "other 1", "other 2"}
    assert list_bodies(take_from_dlq(fifo_world)) == make_bodies(5)[1:]


def test_mover_sends_nothing_behind_a_failed_fifo_message_even_if_received_later(
    fifo_world: RedriveWorld,
) -> None:
    """SQS returns later messages of a group only after the first ten of them are deleted."""
    fifo_world.configure(fifo_world.source, MaximumMessageSize="1024")
    fifo_world.send(*make_bodies(3), "x" * 2_000, *make_bodies(12), group="a")
    fifo_world.send(*make_bodies(14), group="b")
    moved = move_dlq_messages(fifo_world)
    sent = take_from_source(fifo_world)
    assert len(moved.unmoved_messages) == 1
    assert list_bodies([message for message in sent if message.group_id == "a"]) == make_bodies(3)
    assert list_bodies([message for message in sent if message.group_id == "b"]) == make_bodies(14)
    assert list_bodies(take_from_dlq(fifo_world)) == ["x" * 2_000, *make_bodies(12)]


# SQS may accept an entry with these codes later, whatever SenderFault says.
PASSING_CODES = ("InternalError", "KMS.ThrottlingException", "OverLimit", "RequestThrottled")
# SQS never accepts an entry with these codes if SenderFault is true.
LASTING_CODES = ("AccessDenied", "InvalidMessageContents", "InvalidParameterValue", "MadeUpCode")


@pytest.mark.parametrize("sender_fault", [True, False, None])
@pytest.mark.parametrize("code", [*PASSING_CODES, *LASTING_CODES])
def test_mover_keeps_a_refused_batch_entry_and_tells_temporary_from_lasting_refusals(
    world: RedriveWorld, code: str, *, sender_fault: bool | None
) -> None:
    """Only the other entry is sent. `sender_fault` None: the answer has no SenderFault."""
    world.send("refused", "taken")
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

    change_send_answers(world, refuse)
    moved = move_dlq_messages(world)
    assert (moved.moved_count, moved.copied_count, len(moved.unmoved_messages)) == (1, 0, 1)
    assert list_bodies(take_from_dlq(world)) == ["refused"]
    passes = code in PASSING_CODES or sender_fault is False
    assert moved.unmoved_messages[0].is_temporary is passes


@pytest.mark.parametrize("sender_fault", [True, False])
def test_move_is_refused_for_good_only_if_sqs_blames_the_sender(
    world: RedriveWorld, *, sender_fault: bool
) -> None:
    world.send("refused")

    def refuse(parsed: dict[str, Any]) -> None:
        entry = {"Code": "MadeUpCode", "Message": "no", "SenderFault": sender_fault}
        parsed["Failed"] = [{"Id": taken["Id"], **entry} for taken in parsed.pop("Successful")]

    change_send_answers(world, refuse)
    assert move_dlq_messages(world).is_refused_for_good is sender_fault
    assert list_bodies(take_from_dlq(world)) == ["refused"]


@pytest.mark.parametrize(
    ("code", "passes"), [("AccessDenied", False), ("RequestThrottled", True), ("lost", True)]
)
def test_mover_stops_after_one_send_if_sqs_refuses_the_whole_batch_or_its_answer_is_lost(
    either_world: RedriveWorld, code: str, *, passes: bool
) -> None:
    """A message that may have arrived must not be sent twice."""
    calls = list[Any]()
    either_world.send(*make_bodies(30))

    def refuse(call: str, asked: Any) -> Exception | None:
        if call != "SendMessageBatch":
            return None
        calls.append(asked)
        lost = ReadTimeoutError(endpoint_url="sqs")
        return lost if code == "lost" else ClientError({"Error": {"Code": code}}, call)

    either_world.refusals.append(refuse)
    with make_mover(either_world) as mover:
        moved = sum(
            mover.move_messages(mover.receive_new_messages(30), make_destination(either_world)),
            MoveResult(),
        )
    tried = 1 if is_fifo(either_world) else 10
    assert (len(calls), moved.moved_count, len(moved.unmoved_messages)) == (1, 0, tried)
    assert {unmoved_message.is_temporary for unmoved_message in moved.unmoved_messages} == {passes}
    assert len(take_from_dlq(either_world)) == 30


def test_mover_keeps_the_original_if_sqs_reports_another_md5_for_the_copy(
    world: RedriveWorld,
) -> None:
    world.send("dear")
    change_send_answers(
        world, lambda parsed: parsed["Successful"][0].update(MD5OfMessageBody="0" * 32)
    )
    assert [
        unmoved_message.code for unmoved_message in move_dlq_messages(world).unmoved_messages
    ] == ["unanswered"]
    assert list_bodies(take_from_dlq(world)) == ["dear"]


def test_sent_message_whose_delete_failed_is_deleted_when_received_again(
    world: RedriveWorld,
) -> None:
    world.send("once")
    fails = [True, True]

    def fail(**_: object) -> None:
        if fails and fails.pop():
            raise ClientError({"Error": {"Code": "InternalError", "Message": ""}}, "DeleteMessage")

    events: Any = world.account.clients.sqs.meta.events
    events.register_first("before-call.sqs.DeleteMessage", fail)
    with make_mover(world) as mover:
        moved = sum(
            mover.move_messages(mover.receive_new_messages(1), make_destination(world)),
            MoveResult(),
        )
        assert (moved.moved_count, moved.copied_count) == (0, 1)
        world.account.later(seconds=A_VISIBILITY_LATER)
        assert mover.receive_new_messages(1) == []
    assert take_from_dlq(world) == []
    assert list_bodies(take_from_source(world)) == ["once"]


def test_message_whose_visibility_timeout_ended_is_not_sent(world: RedriveWorld) -> None:
    world.send("late")
    with make_mover(world) as mover:
        messages = mover.receive_new_messages(1)
        world.account.later(seconds=A_VISIBILITY_LATER)
        moved = sum(mover.move_messages(messages, make_destination(world)), MoveResult())
    assert [unmoved_message.code for unmoved_message in moved.unmoved_messages] == ["lost"]
    assert (take_from_source(world), list_bodies(take_from_dlq(world))) == ([], ["late"])


AT = datetime(2026, 11, 21, 12, tzinfo=UTC)
MESSAGES = st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from([1, 300_000, 1_048_576])))


@given(MESSAGES, st.sets(st.integers(0, 20)), st.sampled_from(["", ".fifo"]), st.booleans())
def test_send_order_tries_each_message_once_in_batches_sqs_accepts_and_each_fifo_group_in_order(
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
    fails = {f"m-{number}" for number in failing_at}
    tried = send_every_batch(
        order, to, fails, would_all_messages_be_refused=would_all_messages_be_refused
    )
    tried_ids = [message.message_id for message in tried]
    assert len(tried_ids) == len(set(tried_ids))
    if not ending and not would_all_messages_be_refused:
        assert len(tried) == len(messages)
    sent = [message for message in tried if message.message_id not in fails]
    for group in "abcd" if ending else "":
        of_group = list_group(messages, group)
        sent_of_group = list_group(sent, group)
        assert sent_of_group == of_group[: len(sent_of_group)]
        unsent = of_group[len(sent_of_group) :]
        assert would_all_messages_be_refused or not unsent or unsent[0].message_id in fails


def list_group(messages: list[Message], group: str) -> list[Message]:
    return [message for message in messages if message.group_id == group]


def send_every_batch(
    order: SendOrder, to: Destination, fails: set[str], *, would_all_messages_be_refused: bool
) -> list[Message]:
    """Send batch after batch, in which these messages fail, and return every message tried."""
    tried: list[Message] = []
    while batch := order.choose_next_batch():
        assert len(batch) <= MOST_MESSAGES_PER_SEND
        assert sum(to.mark_if_possible(message).size_bytes for message in batch) <= MOST_BATCH_BYTES
        tried += batch
        sent_ids = {message.message_id for message in batch} - fails
        ends = would_all_messages_be_refused and len(sent_ids) < len(batch)
        order.remove_batch(batch, sent_ids, would_all_messages_be_refused=ends)
        assert not (ends and order.choose_next_batch())
    return tried


def test_deduplication_id_of_a_message_is_the_same_each_time_in_a_run() -> None:
    assert make_deduplication_id("a", "m-1") == make_deduplication_id("a", "m-1")


@pytest.mark.parametrize(
    ("run", "message_id"), [("a", "m-2"), ("b", "m-1"), ("am", "-1")], ids=["id", "run", "joined"]
)
def test_deduplication_id_differs_between_messages_and_between_runs(
    run: str, message_id: str
) -> None:
    assert make_deduplication_id(run, message_id) != make_deduplication_id("a", "m-1")


@given(st.text(st.characters(codec="utf-8")), st.text(st.characters(codec="utf-8")))
def test_deduplication_id_is_one_that_sqs_accepts(run: str, message_id: str) -> None:
    """SQS accepts up to 128 letters, digits and punctuation characters."""
    deduplication_id = make_deduplication_id(run, message_id)
    assert 0 < len(deduplication_id) <= 128
    assert deduplication_id.isascii()
    assert deduplication_id.isalnum()

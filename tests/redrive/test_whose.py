"""Messages of other sources in the DLQ, and ticks that end half-way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError

from mendq.heal.owners import make_owner_request
from mendq.model.limits import Bounds
from mendq.model.queue import RedrivePolicy
from mendq.model.state import State
from mendq.redrive.machine import (
    NO_MESSAGE_TO_SEND_REASON,
    OTHERS_HOLD_MESSAGES_SUFFIX,
    TICKS_ENDED_EARLY_REASON,
)
from mendq.redrive.progress import Stage
from mendq.redrive.redrive import redrive
from tests.account.faults import Killed
from tests.redrive.world import DIED_IN, LATE, NOBODY, RedriveWorld, make_bodies

BILLING = "arn:aws:sqs:us-east-1:123456789012:billing"


def make_string_attribute(value: str) -> dict[str, str]:
    return {"DataType": "String", "StringValue": value}


def run_until_verified(world: RedriveWorld) -> None:
    assert world.run_minutes(30).case is not None
    assert world.state is State.VERIFIED, world.progress.because


def send_first_messages_to_dlq(world: RedriveWorld, *, keep_attributes: bool) -> set[str]:
    """Let the consumer send copies of the five messages of the first stage to the DLQ.

    SQS names no source for these new messages. Return their bodies.
    """
    world.begin(*make_bodies(30)).tick()
    messages = world.take_messages(world.source)
    for message in messages:
        attributes = message.attributes if keep_attributes else {}
        given = {name: attribute.to_request() for name, attribute in attributes.items()}
        world.send(message.body, **given, **{DIED_IN: make_string_attribute(NOBODY)})
    world.account.later(minutes=2)
    return {message.body for message in messages}


def test_messages_that_a_consumer_sends_to_the_dlq_with_their_marks_count_as_returned(
    world: RedriveWorld,
) -> None:
    bodies = send_first_messages_to_dlq(world, keep_attributes=True)
    world.tick()
    assert world.state is State.ESCALATED
    assert "of 5 messages that went back 5 came back" in world.progress.because
    assert world.read_bodies(world.quarantine_arn) == bodies
    assert world.read_bodies(world.dlq) == set(make_bodies(30)) - bodies


def test_messages_that_a_consumer_sends_to_the_dlq_without_their_marks_stay_there(
    world: RedriveWorld,
) -> None:
    bodies = send_first_messages_to_dlq(world, keep_attributes=False)
    outcome = world.tick()
    assert (world.progress.returned, outcome.quarantined_count) == (0, 0)
    assert bodies < world.read_bodies(world.dlq)
    assert len(world.read_bodies(world.dlq)) + outcome.sent_back_count == 30


def read_receive_count_of_others(world: RedriveWorld) -> int:
    """Return how often the other source's message was received, this look included."""
    (count,) = [
        message.receive_count
        for message in world.read_messages(world.dlq)
        if message.source_arn == BILLING
    ]
    return count


def test_other_sources_messages_are_not_received_during_a_soak(world: RedriveWorld) -> None:
    """After three receives SQS leaves a message out of the age that their team's alarm watches."""
    world.send("theirs", **{DIED_IN: make_string_attribute(BILLING)})
    world.begin(*make_bodies(9), bounds=Bounds(least_soak_seconds=600)).tick()
    assert world.progress.stage is Stage.SOAK
    world.consume()
    before = read_receive_count_of_others(world)
    for _ in range(9):
        world.account.later(minutes=1)
        world.tick()
    assert read_receive_count_of_others(world) == before + 1, "only this test has looked"
    world.account.later(minutes=2)
    world.tick()
    assert read_receive_count_of_others(world) == before + 3


def test_messages_that_came_back_during_a_soak_are_counted_and_quarantined_only_at_its_end(
    world: RedriveWorld,
) -> None:
    world.begin(*make_bodies(9), bounds=Bounds(least_soak_seconds=600)).tick()
    world.consume(frozenset({"message 000", "message 001", "message 002"}))
    world.account.later(minutes=5)
    world.tick()
    assert (world.progress.returned, world.progress.stage) == (0, Stage.SOAK)
    world.account.later(minutes=6)
    world.tick()
    assert world.progress.returned == world.progress.quarantined == 3
    assert world.state is State.ESCALATED


def test_messages_of_other_sources_stay_in_the_dlq_and_are_reported(world: RedriveWorld) -> None:
    world.send(*make_bodies(20), **{DIED_IN: make_string_attribute(BILLING)})
    world.send("by hand", **{DIED_IN: make_string_attribute(NOBODY)})
    world.begin("own")
    before = list[int]()

    def look(call: str, _: object) -> None:
        if call == "SendMessageBatch":
            before.append(world.count_visible_messages(world.dlq))

    world.refusals.append(look)
    run_until_verified(world)
    assert before == [21]
    assert world.count_visible_messages(world.dlq) == 21
    assert ": 20 of billing, 1 sent there by hand" in world.progress.because


def test_messages_of_the_dlqs_second_source_keep_body_and_attributes_and_are_received_once_a_tick(
    world: RedriveWorld,
) -> None:
    world.account.queue("billing", RedrivePolicy=RedrivePolicy(world.dlq, 3).text)
    of_billing = {DIED_IN: make_string_attribute(BILLING)}
    world.send(*(f"billing {index}" for index in range(20)), **of_billing)
    before = {message.message_id: message for message in world.read_messages(world.dlq)}
    world.begin(*make_bodies(30))
    ticks = 0
    while world.tick().case is None:
        ticks += 1
        world.account.later(minutes=1)
        world.consume()
        if ticks == 1:
            world.send("billing dies still", **of_billing)
    assert (world.state, world.progress.moved) == (State.VERIFIED, 30)
    after = {message.message_id: message for message in world.read_messages(world.dlq)}
    assert before.keys() < after.keys()
    assert {message.body for message in after.values()} - {
        message.body for message in before.values()
    } == {"billing dies still"}
    for message_id, message in before.items():
        assert (after[message_id].body, after[message_id].attributes) == (
            message.body,
            message.attributes,
        )
        # One receive by each tick, and one by this test.
        assert after[message_id].receive_count == message.receive_count + ticks + 2


def test_redrive_halts_if_a_second_source_shares_the_fifo_dlq(fifo_world: RedriveWorld) -> None:
    fifo_world.send("message")
    fifo_world.begin()
    policy = RedrivePolicy(fifo_world.dlq, 3).text
    fifo_world.account.queue("billing.fifo", RedrivePolicy=policy)
    assert fifo_world.tick().case is not None
    assert (fifo_world.state, fifo_world.progress.moved) == (State.ESCALATED, 0)
    assert "it is now the DLQ of 2 queues" in fifo_world.progress.because
    assert fifo_world.count_visible_messages(fifo_world.dlq) == 1


MOST_MESSAGES_IN_SAMPLE = 10
SMALL_SAMPLE = replace(LATE, census=MOST_MESSAGES_IN_SAMPLE)


def test_redrive_halts_if_messages_of_other_sources_fill_the_whole_sample(
    world: RedriveWorld,
) -> None:
    others = make_bodies(2 * MOST_MESSAGES_IN_SAMPLE)
    world.send(*others, **{DIED_IN: make_string_attribute(BILLING)})
    world.begin("own", bounds=SMALL_SAMPLE)
    assert world.run_minutes(30).case is not None
    assert world.state is State.ESCALATED
    assert world.progress.because.startswith(NO_MESSAGE_TO_SEND_REASON)
    assert world.progress.because.endswith(
        "; 10 stay in the DLQ, because they did not fail in this source: 10 of billing"
    )
    assert world.read_bodies(world.dlq) == {*others, "own"}


def test_redrive_finishes_if_messages_of_other_sources_leave_room_in_the_sample(
    world: RedriveWorld,
) -> None:
    others = make_bodies(MOST_MESSAGES_IN_SAMPLE - 1)
    world.send(*others, **{DIED_IN: make_string_attribute(BILLING)})
    world.begin("own", bounds=SMALL_SAMPLE)
    run_until_verified(world)
    assert world.progress.because.endswith(
        "; 9 stay in the DLQ, because they did not fail in this source: 9 of billing"
    )
    assert world.read_bodies(world.dlq) == set(others)


def test_freeze_stops_a_running_tick_after_its_current_batch(world: RedriveWorld) -> None:
    world.begin(*make_bodies(60), bounds=replace(LATE, canary=50))
    batches = list[object]()

    def freeze(call: str, asked: object) -> None:
        if call == "SendMessageBatch":
            batches.append(asked)
            if len(batches) == 2:
                world.freeze()

    world.refusals.append(freeze)
    assert world.tick().sent_back_count == 20
    assert (len(batches), world.count_visible_messages(world.dlq)) == (2, 40)
    world.account.later(minutes=1)
    assert world.tick().sent_back_count == 0
    world.freeze(thaw=True)
    assert world.tick().sent_back_count == 30


def test_redrive_sends_nothing_while_the_freeze_cannot_be_read(world: RedriveWorld) -> None:
    world.begin(*make_bodies(9))

    def fail(params: dict[str, Any], **_: object) -> None:
        if b'"freeze"' in params["body"]:
            raise ReadTimeoutError(endpoint_url="dynamodb")

    events: Any = world.account.clients.dynamodb.meta.events
    events.register("before-call.dynamodb.GetItem", fail)
    assert world.tick().sent_back_count == 0
    events.unregister("before-call.dynamodb.GetItem", fail)
    assert world.count_visible_messages(world.dlq) == 9
    world.account.later(minutes=1)
    assert world.tick().sent_back_count == 5


def test_redrive_escalates_after_three_runs_that_were_killed_while_receiving(
    world: RedriveWorld,
) -> None:
    world.begin(*make_bodies(9))

    def die(call: str, _: object) -> None:
        if call == "ReceiveMessage":
            raise Killed

    world.refusals.append(die)
    for _ in range(3):
        with pytest.raises(Killed):
            redrive(make_owner_request(world.read_newest_case()), world.make_run())
        world.account.later(minutes=2)
    assert world.tick().case is not None
    assert (world.state, world.progress.stage) == (State.ESCALATED, Stage.HALTED)
    assert world.progress.because == TICKS_ENDED_EARLY_REASON
    ((_, page),) = world.notifications
    assert "several runs in a row stopped early" in page
    world.refusals.clear()
    assert world.count_visible_messages(world.dlq) == 9


def begin_while_another_consumer_holds_messages(world: RedriveWorld, *, minutes: int) -> None:
    """Begin a redrive of nine messages, all in flight at another consumer for some minutes."""
    for group in range(9):
        world.send("message", group=str(group))
    world.begin()
    sqs = world.account.clients.sqs
    url = world.account.url(world.dlq)
    sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=60 * minutes)


def test_redrive_waits_until_messages_held_for_two_minutes_are_visible_and_then_moves_them(
    fifo_world: RedriveWorld,
) -> None:
    begin_while_another_consumer_holds_messages(fifo_world, minutes=2)
    run_until_verified(fifo_world)
    assert fifo_world.progress.moved == 9


def test_redrive_escalates_within_20_minutes_if_another_consumer_holds_every_message(
    fifo_world: RedriveWorld,
) -> None:
    begin_while_another_consumer_holds_messages(fifo_world, minutes=60)
    assert fifo_world.run_minutes(20).case is not None
    assert fifo_world.state is State.ESCALATED
    assert fifo_world.progress.moved == 0
    reason = f"{NO_MESSAGE_TO_SEND_REASON}{OTHERS_HOLD_MESSAGES_SUFFIX}"
    assert fifo_world.progress.because == reason

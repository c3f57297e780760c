"""Messages of other sources in the DLQ, and ticks that end half-way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError

from mendq.heal.owners import make_owner_request
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


@pytest.mark.parametrize("keeps", [True, False])
def test_message_that_its_consumer_sends_to_the_dlq_counts_as_returned_if_still_marked(
    world: RedriveWorld, *, keeps: bool
) -> None:
    """SQS names no source for this new message. Without its mark it stays in the DLQ."""
    world.begin(*make_bodies(30)).tick()
    parked = world.take_messages(world.source)
    for message in parked:
        given = {
            name: attribute.to_request() for name, attribute in message.attributes.items() if keeps
        }
        world.send(message.body, **given, **{DIED_IN: make_string_attribute(NOBODY)})
    world.account.later(minutes=2)
    outcome = world.tick()
    bodies = {message.body for message in parked}
    if keeps:
        assert world.state is State.ESCALATED
        assert "of 5 messages that went back 5 came back" in world.progress.because
        assert world.read_bodies(world.quarantine_arn) == bodies
    else:
        assert (world.progress.returned, outcome.quarantined_count) == (0, 0)
        assert bodies < world.read_bodies(world.dlq)
    assert (
        len(world.read_bodies(world.dlq)) + world.progress.quarantined + outcome.sent_back_count
        == 30
    )


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


@pytest.mark.parametrize(("others", "seen", "halts"), [(20, 10, True), (9, 9, False)])
def test_redrive_halts_if_messages_of_other_sources_fill_the_whole_sample(
    world: RedriveWorld, others: int, seen: int, *, halts: bool
) -> None:
    world.send(*make_bodies(others), **{DIED_IN: make_string_attribute(BILLING)})
    world.begin("own", bounds=replace(LATE, census=10))
    assert world.run_minutes(30).case is not None
    because = world.progress.because
    assert (world.state is State.ESCALATED, because.startswith(NO_MESSAGE_TO_SEND_REASON)) == (
        halts,
        halts,
    )
    assert because.endswith(f"; {seen} cannot go back there and stay: {seen} of billing")


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

    def fail(**_: object) -> None:
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
    assert "its run ended on the way" in page
    world.refusals.clear()
    assert world.count_visible_messages(world.dlq) == 9


@pytest.mark.parametrize(("minutes", "goes_on"), [(2, True), (60, False)])
def test_redrive_waits_for_messages_in_flight_elsewhere_and_escalates_after_its_patience(
    fifo_world: RedriveWorld, minutes: int, *, goes_on: bool
) -> None:
    """A run that died holds messages for two minutes."""
    for group in range(9):
        fifo_world.send("message", group=str(group))
    fifo_world.begin()
    sqs = fifo_world.account.clients.sqs
    url = fifo_world.account.url(fifo_world.dlq)
    sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=60 * minutes)
    outcome = fifo_world.run_minutes(20)
    assert outcome.case is not None
    assert fifo_world.state is (State.VERIFIED if goes_on else State.ESCALATED)
    assert fifo_world.progress.moved == (9 if goes_on else 0)
    assert (
        goes_on
        or fifo_world.progress.because
        == f"{NO_MESSAGE_TO_SEND_REASON}{OTHERS_HOLD_MESSAGES_SUFFIX}"
    )

"""Whose a DLQ's messages are, by what SQS and the marks say, and a tick that is ended half-way."""

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
from tests.redrive.world import DIED_IN, LATE, NOBODY, Redriving, texts

BILLING = "arn:aws:sqs:us-east-1:123456789012:billing"


def text(value: str) -> dict[str, str]:
    return {"DataType": "String", "StringValue": value}


def verified(here: Redriving) -> None:
    assert here.minutes(30).case is not None
    assert here.state is State.VERIFIED, here.progress.because


@pytest.mark.parametrize("keeps", [True, False])
def test_message_that_its_consumer_sends_to_the_dlq_counts_as_returned_if_still_marked(
    here: Redriving, *, keeps: bool
) -> None:
    """A new message, of which SQS says no source; without its attributes it is seen, and stays."""
    here.begun(*texts(30)).tick()
    parked = here.taken_away(here.source)
    for message in parked:
        given = {
            name: attribute.to_request() for name, attribute in message.attributes.items() if keeps
        }
        here.send(message.body, **given, **{DIED_IN: text(NOBODY)})
    here.account.later(minutes=2)
    outcome = here.tick()
    bodies = {message.body for message in parked}
    if keeps:
        assert here.state is State.ESCALATED
        assert "of 5 messages that went back 5 came back" in here.progress.because
        assert here.bodies(here.quarantine) == bodies
    else:
        assert (here.progress.returned, outcome.quarantined_count) == (0, 0)
        assert bodies < here.bodies(here.dlq)
    assert len(here.bodies(here.dlq)) + here.progress.quarantined + outcome.sent_back_count == 30


def test_messages_of_other_sources_stay_in_the_dlq_and_are_reported(here: Redriving) -> None:
    here.send(*texts(20), **{DIED_IN: text(BILLING)})
    here.send("by hand", **{DIED_IN: text(NOBODY)})
    here.begun("own")
    before = list[int]()

    def look(call: str, _: object) -> None:
        if call == "SendMessageBatch":
            before.append(here.waiting(here.dlq))

    here.refusals.append(look)
    verified(here)
    assert before == [21]
    assert here.waiting(here.dlq) == 21
    assert ": 20 of billing, 1 sent there by hand" in here.progress.because


@pytest.mark.parametrize(("others", "seen", "halts"), [(20, 10, True), (9, 9, False)])
def test_redrive_halts_if_messages_of_other_sources_fill_the_whole_sample(
    here: Redriving, others: int, seen: int, *, halts: bool
) -> None:
    here.send(*texts(others), **{DIED_IN: text(BILLING)})
    here.begun("own", bounds=replace(LATE, census=10))
    assert here.minutes(30).case is not None
    because = here.progress.because
    assert (here.state is State.ESCALATED, because.startswith(NO_MESSAGE_TO_SEND_REASON)) == (
        halts,
        halts,
    )
    assert because.endswith(f"; {seen} cannot go back there and stay: {seen} of billing")


def test_freeze_stops_a_running_tick_after_its_current_batch(here: Redriving) -> None:
    here.begun(*texts(60), bounds=replace(LATE, canary=50))
    batches = list[object]()

    def freeze(call: str, asked: object) -> None:
        if call == "SendMessageBatch":
            batches.append(asked)
            if len(batches) == 2:
                here.freeze()

    here.refusals.append(freeze)
    assert here.tick().sent_back_count == 20
    assert (len(batches), here.waiting(here.dlq)) == (2, 40)
    here.account.later(minutes=1)
    assert here.tick().sent_back_count == 0
    here.freeze(thaw=True)
    assert here.tick().sent_back_count == 30


def test_redrive_sends_nothing_while_the_freeze_cannot_be_read(here: Redriving) -> None:
    here.begun(*texts(9))

    def fail(**_: object) -> None:
        raise ReadTimeoutError(endpoint_url="dynamodb")

    events: Any = here.account.clients.dynamodb.meta.events
    events.register("before-call.dynamodb.GetItem", fail)
    assert here.tick().sent_back_count == 0
    events.unregister("before-call.dynamodb.GetItem", fail)
    assert here.waiting(here.dlq) == 9
    here.account.later(minutes=1)
    assert here.tick().sent_back_count == 5


def test_redrive_escalates_after_three_runs_that_were_killed_while_receiving(
    here: Redriving,
) -> None:
    here.begun(*texts(9))

    def die(call: str, _: object) -> None:
        if call == "ReceiveMessage":
            raise Killed

    here.refusals.append(die)
    for _ in range(3):
        with pytest.raises(Killed):
            redrive(make_owner_request(here.newest()), here.run())
        here.account.later(minutes=2)
    assert here.tick().case is not None
    assert (here.state, here.progress.stage) == (State.ESCALATED, Stage.HALTED)
    assert here.progress.because == TICKS_ENDED_EARLY_REASON
    ((_, page),) = here.pages
    assert "its run ended on the way" in page
    here.refusals.clear()
    assert here.waiting(here.dlq) == 9


@pytest.mark.parametrize(("minutes", "goes_on"), [(2, True), (60, False)])
def test_redrive_waits_for_messages_in_flight_elsewhere_and_escalates_after_its_patience(
    fifo: Redriving, minutes: int, *, goes_on: bool
) -> None:
    """As a run that died holds them for two minutes."""
    for group in range(9):
        fifo.send("message", group=str(group))
    fifo.begun()
    sqs = fifo.account.clients.sqs
    url = fifo.account.url(fifo.dlq)
    sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=60 * minutes)
    outcome = fifo.minutes(20)
    assert outcome.case is not None
    assert fifo.state is (State.VERIFIED if goes_on else State.ESCALATED)
    assert fifo.progress.moved == (9 if goes_on else 0)
    assert (
        goes_on
        or fifo.progress.because == f"{NO_MESSAGE_TO_SEND_REASON}{OTHERS_HOLD_MESSAGES_SUFFIX}"
    )

"""A redrive waits while the change calendar is closed, and loses nothing."""

from __future__ import annotations

import pytest

from mendq.model.state import State
from mendq.redrive.progress import Stage
from tests.account.change_calendar import CLOSED_BECAUSE, NOT_OPEN, ChangeCalendar
from tests.account.faults import calls_of
from tests.redrive.world import RedriveWorld, make_bodies

MOVES = {"ReceiveMessage", "SendMessageBatch", "SendMessage", "DeleteMessageBatch"}


def count_moved_once_verified(world: RedriveWorld) -> int:
    """Run the redrive until it is verified. Return how many messages it moved."""
    assert world.run_minutes(30).case is not None, world.progress
    assert world.state is State.VERIFIED
    return world.progress.moved


@pytest.mark.parametrize("state", NOT_OPEN)
def test_redrive_receives_and_moves_no_message_before_the_change_calendar_opens(
    world: RedriveWorld, state: str
) -> None:
    world.begin(*make_bodies(9))
    calendar = ChangeCalendar(world.account, state)
    calls = calls_of(world.account)
    answer = world.tick().document()
    assert (answer["moved"], world.progress.moved) == (0, 0)
    assert NOT_OPEN[state] in answer["reason"]
    assert MOVES.isdisjoint(calls), "no message is looked at either: that would hide it"
    assert world.state is State.APPLIED
    assert len(world.read_bodies(world.dlq)) == 9
    calendar.state = "OPEN"
    assert count_moved_once_verified(world) == 9


@pytest.mark.parametrize("state", NOT_OPEN)
def test_running_redrive_waits_without_escalating_while_the_change_calendar_is_closed(
    world: RedriveWorld, state: str
) -> None:
    """The wait is much longer than the redrive's patience, and sends no notification."""
    world.begin(*make_bodies(9)).tick()
    assert world.progress.moved == 5
    world.account.later(minutes=1)
    world.consume()
    calendar = ChangeCalendar(world.account, state)
    calls = calls_of(world.account)
    for _ in range(6):
        outcome = world.tick()
        assert (outcome.case, outcome.sent_back_count, outcome.quarantined_count) == (None, 0, 0)
        world.account.later(minutes=20)
    assert MOVES.isdisjoint(calls)
    assert (world.state, world.progress.moved, world.notifications) == (State.APPLIED, 5, [])
    assert NOT_OPEN[state] in world.progress.because
    assert len(world.read_bodies(world.dlq)) == 4
    calendar.state = "OPEN"
    assert count_moved_once_verified(world) == 9


def test_redrive_in_a_closed_calendar_is_halted_by_cancel_true_but_not_by_the_text_true(
    world: RedriveWorld,
) -> None:
    """Stopping changes no queue, so a closed calendar must not delay it."""
    world.begin(*make_bodies(9)).tick()
    ChangeCalendar(world.account)
    world.tick(cancel="true")
    assert not world.progress.is_over
    assert CLOSED_BECAUSE in world.progress.because
    assert world.tick(cancel=True).refusal is None
    assert (world.progress.stage, world.progress.because) == (
        Stage.HALTED,
        "a person took it back",
    )
    assert len(world.read_bodies(world.dlq)) == 4


def test_redrive_tag_off_on_the_source_escalates_at_once_while_the_calendar_is_closed(
    world: RedriveWorld,
) -> None:
    """A person's refusal counts at once, without waiting for the calendar."""
    world.begin(*make_bodies(9)).tick()
    ChangeCalendar(world.account)
    world.account.tag(world.source, **{"mendq:redrive": "off"})
    assert world.tick().case is not None
    assert world.state is State.ESCALATED
    assert len(world.read_bodies(world.dlq)) == 4

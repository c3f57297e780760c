"""A change calendar that closes while messages go back: the redrive waits, and loses nothing."""

from __future__ import annotations

import pytest

from mendq.model.state import State
from mendq.redrive.progress import Stage
from tests.account.change_calendar import CLOSED_BECAUSE, NOT_OPEN, ChangeCalendar
from tests.account.faults import calls_of
from tests.redrive.world import Redriving, texts

MOVES = {"ReceiveMessage", "SendMessageBatch", "SendMessage", "DeleteMessageBatch"}


def verified(here: Redriving) -> int:
    """How many messages went back once the redrive is over and nothing came back."""
    assert here.minutes(30).case is not None, here.progress
    assert here.state is State.VERIFIED
    return here.progress.moved


@pytest.mark.parametrize("state", NOT_OPEN)
def test_redrive_receives_and_moves_no_message_before_the_change_calendar_opens(
    here: Redriving, state: str
) -> None:
    here.begun(*texts(9))
    calendar = ChangeCalendar(here.account, state)
    calls = calls_of(here.account)
    answer = here.tick().document()
    assert (answer["moved"], here.progress.moved) == (0, 0)
    assert NOT_OPEN[state] in answer["reason"]
    assert MOVES.isdisjoint(calls), "no message is looked at either: that would hide it"
    assert here.state is State.APPLIED
    assert len(here.bodies(here.dlq)) == 9
    calendar.state = "OPEN"
    assert verified(here) == 9


@pytest.mark.parametrize("state", NOT_OPEN)
def test_running_redrive_waits_without_escalating_while_the_change_calendar_is_closed(
    here: Redriving, state: str
) -> None:
    """Much longer than its patience lasts, and nobody is paged for it."""
    here.begun(*texts(9)).tick()
    assert here.progress.moved == 5
    here.account.later(minutes=1)
    here.consume()
    calendar = ChangeCalendar(here.account, state)
    calls = calls_of(here.account)
    for _ in range(6):
        outcome = here.tick()
        assert (outcome.case, outcome.sent_back_count, outcome.quarantined_count) == (None, 0, 0)
        here.account.later(minutes=20)
    assert MOVES.isdisjoint(calls)
    assert (here.state, here.progress.moved, here.pages) == (State.APPLIED, 5, [])
    assert NOT_OPEN[state] in here.progress.because
    assert len(here.bodies(here.dlq)) == 4
    calendar.state = "OPEN"
    assert verified(here) == 9


def test_cancel_true_and_no_other_value_halts_a_redrive_while_the_calendar_is_closed(
    here: Redriving,
) -> None:
    """To stop it changes no queue, so no calendar holds that up."""
    here.begun(*texts(9)).tick()
    ChangeCalendar(here.account)
    here.tick(cancel="true")
    assert not here.progress.is_over
    assert CLOSED_BECAUSE in here.progress.because
    assert here.tick(cancel=True).refusal is None
    assert (here.progress.stage, here.progress.because) == (
        Stage.HALTED,
        "a person took it back",
    )
    assert len(here.bodies(here.dlq)) == 4


def test_redrive_tag_off_on_the_source_escalates_at_once_while_the_calendar_is_closed(
    here: Redriving,
) -> None:
    """A person's no counts at once, and is not put off until the calendar opens."""
    here.begun(*texts(9)).tick()
    ChangeCalendar(here.account)
    here.account.tag(here.source, **{"mendq:redrive": "off"})
    assert here.tick().case is not None
    assert here.state is State.ESCALATED
    assert len(here.bodies(here.dlq)) == 4

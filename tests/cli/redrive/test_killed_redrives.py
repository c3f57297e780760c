"""Killed runs of `mendq redrive` and `mendq quarantine return` lose no message.

`make evidence NAMES=kills` kills them, and Mendq's own redrive, at random calls.
"""

from __future__ import annotations

import pytest

from tests.cli.builders import Operator
from tests.cli.redrive.kills import (
    EVENTS,
    QUARANTINE_RETURN,
    REDRIVE,
    find_faults,
    make_full_dlq,
    make_full_quarantine,
    run_killed,
)
from tests.waiting import replace_sleep

# The calls of SQS at which the process dies.
KILLS = [(event, call) for event in EVENTS for call in (3, 6, 9, 11, 13)]


@pytest.mark.parametrize(("event", "strike_at"), KILLS)
def test_redrive_killed_at_any_call_loses_no_message_and_copies_only_what_it_was_sending(
    operator: Operator, monkeypatch: pytest.MonkeyPatch, event: str, strike_at: int
) -> None:
    replace_sleep(monkeypatch)
    queues = make_full_dlq(operator)
    kill = run_killed(queues, REDRIVE, event, strike_at)
    assert kill.killed_call
    left = queues.count_visible_messages(queues.messages)
    if left:
        assert operator.run_json(*REDRIVE[:-1])["moved"] == left
    assert find_faults(queues, kill) == []


@pytest.mark.parametrize(("event", "strike_at"), KILLS)
def test_quarantine_return_killed_at_any_call_loses_no_message_and_copies_only_its_batch(
    operator: Operator, monkeypatch: pytest.MonkeyPatch, event: str, strike_at: int
) -> None:
    replace_sleep(monkeypatch)
    queues = make_full_quarantine(operator)
    kill = run_killed(queues, QUARANTINE_RETURN, event, strike_at)
    assert kill.killed_call
    left = queues.count_visible_messages(queues.messages)
    if left:
        assert operator.run_json(*QUARANTINE_RETURN[:-1])["moved"] == left
    assert find_faults(queues, kill) == []

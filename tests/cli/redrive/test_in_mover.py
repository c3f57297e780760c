"""Messages are let go of where people see it; whoever cannot wait is told what stays hidden."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mendq.consumer import VisibilityHeartbeat
from mendq.redrive.mover import MessageMover
from tests.cli.conftest import Operator
from tests.cli.redrive.dlq import Dlq, at_once, dlq

__all__ = ["at_once"]
pytestmark = pytest.mark.usefixtures("at_once")
MESSAGES = 35


@pytest.fixture
def queues(operator: Operator) -> Dlq:
    made = dlq(operator)
    for number in range(MESSAGES):
        made.write({"n": number})
    return made


def _press(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGINT)


def _at_release(monkeypatch: pytest.MonkeyPatch, which: int, act: Callable[..., None]) -> None:
    """`act` at that release, counted from 1."""
    release, count = VisibilityHeartbeat.release, iter(range(1, 1_000))

    def pressed(visibility: VisibilityHeartbeat, *ids: str) -> None:
        if next(count) == which:
            act()
        release(visibility, *ids)

    monkeypatch.setattr(VisibilityHeartbeat, "release", pressed)


def test_an_interrupted_look_lets_go_and_says_so_at_once(
    queues: Dlq, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    take = MessageMover.take
    announced: list[str] = []

    def pressed(mover: MessageMover, most: int) -> list[Any]:
        if not announced:
            _press()
            announced.append(capfd.readouterr().err)
        return take(mover, most)

    monkeypatch.setattr(MessageMover, "take", pressed)
    result = queues.operator.mendq("redrive", "orders", "--all", "--yes")
    assert result.exit_code == 1
    assert "Ctrl-C again leaves at once" in announced[0]
    assert "letting go of 10 messages" in result.output
    assert "every message is visible again" in result.output
    assert len(queues.ids(queues.messages)) == MESSAGES


def test_a_second_interrupt_of_a_look_says_what_stays_hidden(
    queues: Dlq, monkeypatch: pytest.MonkeyPatch
) -> None:
    def twice() -> None:
        _press()
        _press()

    _at_release(monkeypatch, 2, twice)
    error = queues.redrive("--all", "--yes", code=1)["error"]
    assert error["code"] == "interrupted"
    assert "25 messages stay hidden for up to 120 seconds" in error["message"]
    assert len(queues.ids(queues.messages)) == MESSAGES - 25
    assert queues.ids(queues.source) == set()


def test_a_second_interrupt_of_a_redrive_says_what_was_done_and_what_stays_hidden(
    queues: Dlq, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = MessageMover.put

    def pressed(mover: MessageMover, messages: Any, to: Any) -> Iterator[Any]:
        yield from put(mover, messages, to)
        _press()
        _at_release(monkeypatch, 2, _press)

    monkeypatch.setattr(MessageMover, "put", pressed)
    result = queues.operator.mendq("redrive", "orders", "--all", "--yes", "--json")
    assert result.exit_code == 1
    assert '"moved": 10,' in result.stdout
    assert '"left": 25,' in result.stdout
    assert "15 messages stay hidden for up to 120 seconds" in result.stderr
    assert len(queues.ids(queues.messages)) == 10
    assert len(queues.ids(queues.source)) == 10


@pytest.mark.parametrize(
    "words",
    [("redrive", "orders"), ("quarantine", "return", "orders"), ("quarantine", "drop", "orders")],
)
def test_where_nobody_can_be_asked_no_message_is_looked_at(
    queues: Dlq, words: tuple[str, ...]
) -> None:
    queues.operator.aws.queue("orders-quarantine", tag=None)
    queues.write("retained", queue=f"{queues.source}-quarantine")
    queues.refused["ReceiveMessage"] = ("AccessDenied", "nobody is to look")
    error = queues.operator.json(*words, "--all", code=2)["error"]
    assert "--yes confirms" in error["message"]

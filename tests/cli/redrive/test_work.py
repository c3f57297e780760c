"""What goes goes no faster than somebody says, is counted once, and is let go of in the end."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from mendq.aws.clients import CallRateLimit
from mendq.aws.errors import FactsUnavailable
from mendq.cli.redrive.choice import MessageChoice
from mendq.cli.redrive.route import Route
from mendq.consumer import VisibilityHeartbeat
from mendq.redrive.message_filter import EVERY_MESSAGE_FILTER
from mendq.redrive.mover import MOST_MESSAGES_PER_SEND, MessageMover
from tests.cli.redrive.builders import OrdersQueues


@pytest.mark.parametrize(
    ("rate", "batch"),
    [(0.5, 1), (3.0, 3), (500.0, MOST_MESSAGES_PER_SEND), (None, MOST_MESSAGES_PER_SEND)],
)
def test_redrive_never_moves_messages_faster_than_the_rate(rate: float | None, batch: int) -> None:
    """Over any while that begins with a batch, at most the rate, and one batch more."""
    now, sent = 0.0, list[float]()

    def wait(seconds: float) -> bool:
        nonlocal now
        now += seconds
        return False

    pace = CallRateLimit(rate, wait, clock=lambda: now)
    assert MessageChoice(EVERY_MESSAGE_FILTER, messages_per_second=rate).batch_size == batch
    for _ in range(50):
        assert pace.wait(batch)
        sent += [now] * batch
    if rate is None:
        assert now == 0
        return
    for begin in range(0, len(sent), batch):
        for end in range(begin, len(sent), batch):
            most = rate * (sent[end] - sent[begin]) + batch + 1e-6
            assert end + batch - begin <= most
    assert now == pytest.approx((50 - 1) * batch / rate)
    # What took long is not made up for.
    now += 1_000
    for late in (0, batch / rate):
        began = now
        assert pace.wait(batch)
        assert now - began == pytest.approx(late)


MESSAGES = 35


@pytest.fixture
def filled(queues: OrdersQueues) -> OrdersQueues:
    for number in range(MESSAGES):
        queues.write({"n": number})
    return queues


def _press(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGINT)


def _at_the_second_release(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C before it."""
    release, presses = VisibilityHeartbeat.release, iter([lambda: None, _press])

    def pressed(visibility: VisibilityHeartbeat, *ids: str) -> None:
        next(presses, lambda: None)()
        release(visibility, *ids)

    monkeypatch.setattr(VisibilityHeartbeat, "release", pressed)


def test_redrive_interrupted_while_reading_releases_every_message_and_says_so_at_once(
    filled: OrdersQueues, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    take, announced = MessageMover.receive_new_messages, list[str]()

    def pressed(mover: MessageMover, *asked: Any) -> list[Any]:
        if not announced:
            _press()
            announced.append(capfd.readouterr().err)
        return take(mover, *asked)

    monkeypatch.setattr(MessageMover, "receive_new_messages", pressed)
    said = filled.said("redrive", "orders", "--all", "--yes", code=1)
    assert "Ctrl-C again leaves at once" in announced[0]
    assert "every message is visible again" in said
    assert len(filled.ids(filled.messages)) == MESSAGES


def test_redrive_interrupted_twice_reports_moved_messages_and_messages_still_hidden(
    filled: OrdersQueues, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = MessageMover.move_messages

    def pressed(*asked: Any) -> Iterator[Any]:
        for moved in put(*asked):
            _press()
            _at_the_second_release(monkeypatch)
            yield moved

    monkeypatch.setattr(MessageMover, "move_messages", pressed)
    result = filled.operator.mendq("redrive", "orders", "--all", "--yes", "--json")
    assert result.exit_code == 1
    assert '"moved": 10,' in result.stdout
    assert '"left": 25,' in result.stdout
    assert "15 messages stay hidden for up to 120 seconds" in result.stderr
    assert len(filled.ids(filled.messages)) == 10
    assert len(filled.ids(filled.source)) == 10


def test_redrive_interrupted_twice_before_the_first_message_moves_nothing(
    filled: OrdersQueues, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once the question was answered, and before the first message is taken."""
    make_mover, made = Route.make_mover, list[int]()

    def pressed(route: Route, *asked: Any) -> MessageMover:
        made.append(1)
        if len(made) == 2:  # the first mover only looks
            _press()
            _press()
        return make_mover(route, *asked)

    monkeypatch.setattr(Route, "make_mover", pressed)
    result = filled.operator.mendq("redrive", "orders", "--all", "--yes", "--json")
    assert len(made) == 2
    assert result.exit_code == 1
    assert '"moved": 0,' in result.stdout
    assert "interrupted: what was in hand is visible again" in result.stderr
    assert len(filled.ids(filled.messages)) == MESSAGES
    assert filled.ids(filled.source) == set()
    assert filled.claimed(), "the DLQ is free for Mendq's own redrives again"


NO_ANSWER = "SQS does not answer"


def test_redrive_says_what_was_moved_if_sqs_stops_answering(
    filled: OrdersQueues, monkeypatch: pytest.MonkeyPatch
) -> None:
    move_messages = MessageMover.move_messages

    def move_one_batch(*arguments: Any) -> Iterator[Any]:
        yield next(iter(move_messages(*arguments)))
        raise FactsUnavailable(NO_ANSWER)

    monkeypatch.setattr(MessageMover, "move_messages", move_one_batch)
    result = filled.operator.mendq("redrive", "orders", "--all", "--yes", "--json")
    assert result.exit_code == 1
    assert '"moved": 10,' in result.stdout
    assert '"left": 25,' in result.stdout
    sentence = " ".join(result.stderr.split())
    assert f"AWS stopped answering: {NO_ANSWER}" in sentence
    assert "run the command again" in sentence
    assert len(filled.ids(filled.source)) == 10


def test_redrive_prints_no_result_if_sqs_does_not_answer_before_the_first_message(
    filled: OrdersQueues, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> Iterator[Any]:
        raise FactsUnavailable(NO_ANSWER)

    monkeypatch.setattr(MessageMover, "move_messages", refuse)
    result = filled.operator.mendq("redrive", "orders", "--all", "--yes", "--json")
    assert result.exit_code != 0
    assert "moved" not in result.stdout
    assert len(filled.ids(filled.messages)) == MESSAGES
    assert filled.ids(filled.source) == set()

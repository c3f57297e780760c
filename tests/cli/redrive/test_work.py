"""Test the rate of a redrive, its interruption by Ctrl-C, and a silent SQS."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from mendq.aws.clients import CallRateLimit
from mendq.aws.errors import FactsUnavailable
from mendq.cli.redrive import work
from mendq.cli.redrive.choice import MessageChoice
from mendq.cli.redrive.route import Route
from mendq.consumer import VisibilityHeartbeat
from mendq.redrive.message_filter import EVERY_MESSAGE_FILTER
from mendq.redrive.mover import MOST_MESSAGES_PER_SEND, MessageMover
from tests.cli.redrive.builders import OrdersQueues


class PacedClock:
    """A clock that only waiting moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def wait(self, seconds: float) -> bool:
        self.now += seconds
        return False

    def make_pace(self, rate: float | None) -> CallRateLimit:
        return CallRateLimit(rate, self.wait, clock=lambda: self.now)


BATCHES = 50
RATES = pytest.mark.parametrize(
    ("rate", "batch"), [(0.5, 1), (3.0, 3), (500.0, MOST_MESSAGES_PER_SEND)]
)


@pytest.mark.parametrize(
    ("rate", "batch"),
    [(0.5, 1), (3.0, 3), (500.0, MOST_MESSAGES_PER_SEND), (None, MOST_MESSAGES_PER_SEND)],
)
def test_redrive_batch_has_the_messages_of_one_second_but_at_least_one_and_at_most_ten(
    rate: float | None, batch: int
) -> None:
    choice = MessageChoice(EVERY_MESSAGE_FILTER, messages_per_second=rate)
    assert choice.batch_size == batch


@RATES
def test_redrive_moves_in_any_period_at_most_the_rate_and_one_batch(
    rate: float, batch: int
) -> None:
    clock = PacedClock()
    pace = clock.make_pace(rate)
    sent: list[float] = []
    for _ in range(BATCHES):
        assert pace.wait(batch)
        sent += [clock.now] * batch
    for begin in range(0, len(sent), batch):
        for end in range(begin, len(sent), batch):
            most = rate * (sent[end] - sent[begin]) + batch + 1e-6
            assert end + batch - begin <= most
    assert clock.now == pytest.approx((BATCHES - 1) * batch / rate)


@RATES
def test_redrive_moves_no_faster_after_a_long_pause(rate: float, batch: int) -> None:
    clock = PacedClock()
    pace = clock.make_pace(rate)
    assert pace.wait(batch)
    clock.now += 1_000
    for expected_wait in (0, batch / rate):
        began = clock.now
        assert pace.wait(batch)
        assert clock.now - began == pytest.approx(expected_wait)


def test_redrive_without_a_rate_never_waits() -> None:
    clock = PacedClock()
    pace = clock.make_pace(None)
    for _ in range(BATCHES):
        assert pace.wait(MOST_MESSAGES_PER_SEND)
    assert clock.now == 0


MESSAGES = 35


@pytest.fixture
def filled_queues(queues: OrdersQueues) -> OrdersQueues:
    for number in range(MESSAGES):
        queues.write({"n": number})
    return queues


def test_redrive_moves_large_messages_before_it_receives_more(
    filled_queues: OrdersQueues, monkeypatch: pytest.MonkeyPatch
) -> None:
    """5,000 messages of 1 MiB would not fit into the memory of a laptop."""
    monkeypatch.setattr(work, "MOST_BYTES_IN_HAND", 50)
    move_messages = MessageMover.move_messages
    held_counts = list[int]()

    def count_held_messages(mover: MessageMover, *arguments: Any) -> Any:
        held_counts.append(mover.held_message_count)
        return move_messages(mover, *arguments)

    monkeypatch.setattr(MessageMover, "move_messages", count_held_messages)
    assert filled_queues.redrive("--all", "--yes")["moved"] == MESSAGES
    assert max(held_counts) == 10, "as many as one receive returns"


def _press_ctrl_c(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGINT)


def _press_ctrl_c_at_second_release(monkeypatch: pytest.MonkeyPatch) -> None:
    """Press Ctrl-C before the second release."""
    release = VisibilityHeartbeat.release
    presses = iter([lambda: None, _press_ctrl_c])

    def interrupt(visibility: VisibilityHeartbeat, *ids: str) -> None:
        next(presses, lambda: None)()
        release(visibility, *ids)

    monkeypatch.setattr(VisibilityHeartbeat, "release", interrupt)


def test_redrive_interrupted_while_reading_releases_every_message_and_says_so_at_once(
    filled_queues: OrdersQueues, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    receive_new_messages = MessageMover.receive_new_messages
    announced: list[str] = []

    def interrupt(mover: MessageMover, *arguments: Any) -> list[Any]:
        if not announced:
            _press_ctrl_c()
            announced.append(capfd.readouterr().err)
        return receive_new_messages(mover, *arguments)

    monkeypatch.setattr(MessageMover, "receive_new_messages", interrupt)
    output = filled_queues.read_output("redrive", "orders", "--all", "--yes", code=1)
    assert "Ctrl-C again leaves at once" in announced[0]
    assert "every message is visible again" in output
    assert len(filled_queues.read_ids(filled_queues.messages)) == MESSAGES


def test_redrive_interrupted_twice_reports_moved_messages_and_messages_still_hidden(
    filled_queues: OrdersQueues, monkeypatch: pytest.MonkeyPatch
) -> None:
    move_messages = MessageMover.move_messages

    def interrupt(*arguments: Any) -> Iterator[Any]:
        for moved in move_messages(*arguments):
            _press_ctrl_c()
            _press_ctrl_c_at_second_release(monkeypatch)
            yield moved

    monkeypatch.setattr(MessageMover, "move_messages", interrupt)
    result = filled_queues.operator.run("redrive", "orders", "--all", "--yes", "--json")
    assert result.exit_code == 1
    assert '"moved": 10,' in result.stdout
    assert '"left": 25,' in result.stdout
    assert "15 messages stay hidden for up to 120 seconds" in result.stderr
    assert len(filled_queues.read_ids(filled_queues.messages)) == 10
    assert len(filled_queues.read_ids(filled_queues.source)) == 10


def test_redrive_interrupted_twice_before_the_first_message_moves_nothing_and_releases_the_dlq(
    filled_queues: OrdersQueues, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The interrupts come after the answer and before the first message is received."""
    make_mover = Route.make_mover
    movers: list[int] = []

    def interrupt(route: Route, *arguments: Any) -> MessageMover:
        movers.append(1)
        if len(movers) == 2:  # the first mover only reads
            _press_ctrl_c()
            _press_ctrl_c()
        return make_mover(route, *arguments)

    monkeypatch.setattr(Route, "make_mover", interrupt)
    result = filled_queues.operator.run("redrive", "orders", "--all", "--yes", "--json")
    assert len(movers) == 2
    assert result.exit_code == 1
    assert '"moved": 0,' in result.stdout
    assert "interrupted: messages still held are visible again" in result.stderr
    assert len(filled_queues.read_ids(filled_queues.messages)) == MESSAGES
    assert filled_queues.read_ids(filled_queues.source) == set()
    assert filled_queues.claim_dlq(), "the DLQ is free for Mendq's own redrives again"


NO_ANSWER = "SQS does not answer"


def test_redrive_says_what_was_moved_if_sqs_stops_answering(
    filled_queues: OrdersQueues, monkeypatch: pytest.MonkeyPatch
) -> None:
    move_messages = MessageMover.move_messages

    def move_one_batch(*arguments: Any) -> Iterator[Any]:
        yield next(iter(move_messages(*arguments)))
        raise FactsUnavailable(NO_ANSWER)

    monkeypatch.setattr(MessageMover, "move_messages", move_one_batch)
    result = filled_queues.operator.run("redrive", "orders", "--all", "--yes", "--json")
    assert result.exit_code == 1
    assert '"moved": 10,' in result.stdout
    assert '"left": 25,' in result.stdout
    sentence = " ".join(result.stderr.split())
    assert f"AWS stopped answering: {NO_ANSWER}" in sentence
    assert "run the command again" in sentence
    assert len(filled_queues.read_ids(filled_queues.source)) == 10


def test_redrive_prints_no_result_if_sqs_does_not_answer_before_the_first_message(
    filled_queues: OrdersQueues, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> Iterator[Any]:
        raise FactsUnavailable(NO_ANSWER)

    monkeypatch.setattr(MessageMover, "move_messages", refuse)
    result = filled_queues.operator.run("redrive", "orders", "--all", "--yes", "--json")
    assert result.exit_code != 0
    assert "moved" not in result.stdout
    assert len(filled_queues.read_ids(filled_queues.messages)) == MESSAGES
    assert filled_queues.read_ids(filled_queues.source) == set()

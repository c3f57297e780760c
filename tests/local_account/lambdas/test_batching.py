"""The batching window: a batch when it is full or its time is over, nothing before."""

from __future__ import annotations

from typing import Any

import pytest

from local_account.lambdas import batching


class Clock:
    """Time that passes when told."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(batching, "time", clock)
    return clock


class Queue:
    """Visible messages; receiving hides them."""

    def __init__(self, count: int = 0) -> None:
        self.visible = [{"id": number} for number in range(count)]

    def receive(self, _url: str, most: int) -> list[dict[str, Any]]:
        assert 0 < most <= 10
        taken, self.visible = self.visible[:most], self.visible[most:]
        return taken


def test_an_empty_queue_opens_no_window(clock: Clock) -> None:
    queue = Queue()
    receive = batching.gathering(queue.receive, lambda _: 5)
    assert receive("q", 10) == []
    clock.now += 60
    queue.visible = [{"id": 1}]
    assert receive("q", 10) == []


def test_a_batch_waits_for_its_window_and_hides_its_messages_at_once(clock: Clock) -> None:
    queue = Queue(3)
    receive = batching.gathering(queue.receive, lambda _: 5)
    assert receive("q", 10) == []
    assert queue.visible == []
    clock.now += 4.9
    queue.visible = [{"id": 3}]
    assert receive("q", 10) == []
    clock.now += 0.1
    assert [each["id"] for each in receive("q", 10)] == [0, 1, 2, 3]
    assert receive("q", 10) == []


def test_a_full_batch_does_not_wait(clock: Clock) -> None:
    queue = Queue(25)
    receive = batching.gathering(queue.receive, lambda _: 5)
    assert len(receive("q", 10)) == 10
    assert len(queue.visible) == 15


def test_a_batch_may_be_larger_than_one_receive(clock: Clock) -> None:
    queue = Queue(25)
    receive = batching.gathering(queue.receive, lambda _: 5)
    assert len(receive("q", 25)) == 25


def test_queues_have_windows_of_their_own(clock: Clock) -> None:
    queue = Queue(1)
    receive = batching.gathering(queue.receive, lambda _: 5)
    assert receive("one", 10) == []
    clock.now += 5
    queue.visible = [{"id": 9}]
    assert receive("two", 10) == []
    assert [each["id"] for each in receive("one", 10)] == [0]


def test_without_a_window_nothing_waits(clock: Clock) -> None:
    receive = batching.gathering(Queue(3).receive, lambda _: 0)
    assert len(receive("q", 10)) == 3

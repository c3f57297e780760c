"""The heartbeat's thread extends what is held, and ends with the block."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import suppress
from time import monotonic
from typing import Any, cast

from mendq.consumer import VisibilityHeartbeat
from tests.consumer.fake_sqs import FakeSqs, make_message

PATIENCE = 10


def holding(sqs: FakeSqs, seconds: int) -> VisibilityHeartbeat:
    """By the true clock, for what a thread does."""
    held = VisibilityHeartbeat(cast("Any", sqs), "url", seconds=seconds)
    held.add(make_message(), received_at=monotonic())
    return held


def _hearts() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == "visibility"]


class Beating(FakeSqs):
    """Tells when it is asked to extend, and answers when it may."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.may_answer = threading.Event(), threading.Event()

    def _write(self, verb: str, asked: Mapping[str, Any]) -> None:
        if asked["VisibilityTimeout"]:
            self.asked.set()
            assert self.may_answer.wait(PATIENCE)
        super()._write(verb, asked)


def test_heartbeat_thread_extends_messages_and_ends_with_the_block_without_deleting() -> None:
    sqs = Beating()
    sqs.may_answer.set()
    held = holding(sqs, 1)
    with suppress(ZeroDivisionError), held:
        (heart,) = _hearts()
        assert heart.daemon
        assert sqs.asked.wait(PATIENCE)
        _ = 1 // 0
    assert not heart.is_alive()
    assert not held.is_lost
    assert {verb for verb, *_ in sqs.written} == {"change"}


def test_leaving_the_block_waits_for_at_most_one_call_of_the_heartbeat_thread() -> None:
    sqs = Beating()
    held = holding(sqs, 1)
    more = [{"MessageId": str(at), "ReceiptHandle": f"{at}"} for at in range(29)]
    held.add(*more, received_at=monotonic())
    with held:
        assert sqs.asked.wait(PATIENCE)

        def answer_once_left() -> None:
            held._end_event.wait(PATIENCE)
            sqs.may_answer.set()

        leaving = threading.Thread(target=answer_once_left)
        leaving.start()
    leaving.join(PATIENCE)
    assert sqs.sizes == [10]


def test_heartbeat_thread_never_extends_a_message_after_its_release() -> None:
    """The heart is in the middle of a call when the message is released."""
    sqs = Beating()
    with holding(sqs, 1) as held:
        assert sqs.asked.wait(PATIENCE)
        releasing = threading.Thread(target=held.release_all)
        releasing.start()
        sqs.may_answer.set()
        releasing.join(PATIENCE)
        sqs.asked.clear()
        assert not sqs.asked.wait(0.3)
    assert sqs.written[-1] == ("change", "handle-a", 0)
    assert [seconds for *_, seconds in sqs.written].count(0) == 1


def test_threads_in_one_block_share_one_heartbeat_thread_until_the_last_thread_leaves() -> None:
    """One consumer object may be used by several threads."""
    sqs = Beating()
    sqs.may_answer.set()
    held = holding(sqs, 1)
    with held:
        (heart,) = _hearts()
        with held:
            assert _hearts() == [heart]
        assert heart.is_alive(), "another thread is still in the block"
        sqs.asked.clear()
        assert sqs.asked.wait(PATIENCE), "it still extends"
    assert not heart.is_alive()
    with held:
        assert len(_hearts()) == 1, "the block can be entered again"
    assert _hearts() == []

"""Test the thread of `VisibilityHeartbeat`.

The clock stands still unless a test advances it, so that a slow machine loses no message.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, cast

from mendq.consumer import VisibilityHeartbeat
from tests.consumer.fake_sqs import FakeClock, FakeSqs, make_message

PATIENCE = 10
SECONDS = 1


def make_heartbeat(sqs: FakeSqs, clock: FakeClock, message_count: int = 1) -> VisibilityHeartbeat:
    """Make a heartbeat that holds messages whose extension is due at once."""
    heartbeat = VisibilityHeartbeat(cast("Any", sqs), "url", seconds=SECONDS, clock=clock)
    messages = [make_message(f"m{number}") for number in range(message_count)]
    heartbeat.add(*messages, received_at=clock() - SECONDS / 2)
    return heartbeat


def list_heartbeat_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "visibility"]


class BlockingSqs(FakeSqs):
    """A fake SQS that sets `asked` when an extension comes, and waits for `may_answer`."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = threading.Event()
        self.may_answer = threading.Event()

    def _write(self, verb: str, asked: Mapping[str, Any]) -> None:
        if asked["VisibilityTimeout"]:
            self.asked.set()
            assert self.may_answer.wait(PATIENCE)
        super()._write(verb, asked)


def test_heartbeat_thread_extends_messages_and_ends_with_the_block_without_deleting() -> None:
    sqs = BlockingSqs()
    sqs.may_answer.set()
    held = make_heartbeat(sqs, FakeClock())
    with suppress(ZeroDivisionError), held:
        (heart,) = list_heartbeat_threads()
        assert heart.daemon
        assert sqs.asked.wait(PATIENCE)
        _ = 1 // 0
    assert not heart.is_alive()
    assert not held.is_lost
    assert {verb for verb, *_ in sqs.written} == {"change"}


def test_leaving_the_block_waits_for_at_most_one_call_of_the_heartbeat_thread() -> None:
    sqs = BlockingSqs()
    held = make_heartbeat(sqs, FakeClock(), message_count=30)
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
    """The message is released while the thread waits for the answer to an extension."""
    sqs = BlockingSqs()
    clock = FakeClock()
    with make_heartbeat(sqs, clock) as held:
        assert sqs.asked.wait(PATIENCE)
        releasing = threading.Thread(target=held.release_all)
        releasing.start()
        sqs.may_answer.set()
        releasing.join(PATIENCE)
        sqs.asked.clear()
        clock.now += SECONDS / 2
        assert not sqs.asked.wait(SECONDS / 2), "four beats of the thread extend nothing"
    assert sqs.written[-1] == ("change", "handle-m0", 0)
    assert [seconds for *_, seconds in sqs.written].count(0) == 1


def test_threads_in_one_block_share_one_heartbeat_thread_until_the_last_thread_leaves() -> None:
    """One consumer object may be used by several threads."""
    sqs = BlockingSqs()
    sqs.may_answer.set()
    clock = FakeClock()
    held = make_heartbeat(sqs, clock)
    with held:
        (heart,) = list_heartbeat_threads()
        with held:
            assert list_heartbeat_threads() == [heart]
        assert heart.is_alive(), "another thread is still in the block"
        assert sqs.asked.wait(PATIENCE)
        sqs.asked.clear()
        clock.now += SECONDS / 2
        assert sqs.asked.wait(PATIENCE), "it still extends"
    assert not heart.is_alive()
    with held:
        assert len(list_heartbeat_threads()) == 1, "the block can be entered again"
    assert list_heartbeat_threads() == []

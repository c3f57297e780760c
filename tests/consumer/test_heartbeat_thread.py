"""Test the thread of `VisibilityHeartbeat`.

The clock stands still unless a test advances it, so that a slow machine loses no message.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, cast

import pytest

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


def test_heartbeat_thread_extends_messages_and_ends_without_deletes_if_its_block_raises() -> None:
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


def test_heartbeat_block_that_was_left_can_be_entered_again_with_a_new_thread() -> None:
    sqs = BlockingSqs()
    sqs.may_answer.set()
    held = make_heartbeat(sqs, FakeClock())
    with held:
        pass
    assert list_heartbeat_threads() == []
    with held:
        assert len(list_heartbeat_threads()) == 1
    assert list_heartbeat_threads() == []


class BrokenSqs(FakeSqs):
    """A fake SQS whose first extensions raise `error`, an error that boto3 does not define.

    It sets `extended` when an extension succeeds.
    """

    def __init__(self, error: BaseException, error_count: int) -> None:
        super().__init__()
        self.error = error
        self.error_count = error_count
        self.failed = threading.Event()
        self.extended = threading.Event()

    def _write(self, verb: str, asked: Mapping[str, Any]) -> None:
        if self.error_count > 0:
            self.error_count -= 1
            self.failed.set()
            raise self.error
        super()._write(verb, asked)
        self.extended.set()


@pytest.mark.parametrize(
    "error", [OSError("proxy"), RuntimeError("hook"), KeyError("Id")], ids=repr
)
def test_heartbeat_thread_logs_an_error_that_is_not_of_boto3_and_extends_at_a_later_beat(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    sqs = BrokenSqs(error, error_count=2)
    with make_heartbeat(sqs, FakeClock()) as heartbeat:
        assert sqs.extended.wait(PATIENCE)
        assert heartbeat.held == {"m0"}
    messages = [record.getMessage() for record in caplog.records]
    assert (
        messages
        == ["extending the visibility timeout failed for 1 message(s); the next beat tries again"]
        * 2
    )
    assert {record.levelno for record in caplog.records} == {logging.ERROR}


def test_message_whose_extensions_all_raise_is_lost_when_its_visibility_timeout_ends() -> None:
    clock = FakeClock()
    sqs = BrokenSqs(RuntimeError("hook"), error_count=1_000_000)
    with make_heartbeat(sqs, clock) as heartbeat:
        assert sqs.failed.wait(PATIENCE)
        assert heartbeat.held == {"m0"}, "the timeout that SQS confirmed is not over"
        clock.now += SECONDS / 2
        assert heartbeat.held == frozenset()
        assert heartbeat.lost == {"m0"}


def test_error_in_one_batch_does_not_keep_the_next_batch_from_its_extension() -> None:
    sqs = BrokenSqs(RuntimeError("hook"), error_count=1)
    heartbeat = make_heartbeat(sqs, FakeClock(), message_count=20)
    heartbeat.keep()
    assert len(sqs.written) == 10


def test_heartbeat_thread_survives_a_clock_that_raises_once() -> None:
    sqs = BrokenSqs(RuntimeError("hook"), error_count=0)
    clock = FakeClock()
    failed = threading.Event()

    def read_clock() -> float:
        is_heartbeat = threading.current_thread().name == "visibility"
        if is_heartbeat and not failed.is_set():
            failed.set()
            raise OSError("clock")
        return clock()

    heartbeat = VisibilityHeartbeat(cast("Any", sqs), "url", seconds=SECONDS, clock=read_clock)
    heartbeat.add(make_message("m0"), received_at=clock() - SECONDS / 2)
    with heartbeat:
        assert sqs.extended.wait(PATIENCE)
        assert failed.is_set()


@pytest.mark.parametrize(
    "error", [SystemExit(1), asyncio.CancelledError(), GeneratorExit()], ids=repr
)
def test_heartbeat_thread_logs_an_error_that_would_end_a_thread_and_extends_at_the_next_beat(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    sqs = BrokenSqs(error, error_count=1)
    with make_heartbeat(sqs, FakeClock()) as heartbeat:
        assert sqs.extended.wait(PATIENCE)
        assert heartbeat.held == {"m0"}
    messages = [record.getMessage() for record in caplog.records]
    assert messages == ["a beat of the heartbeat failed; the next beat tries again"]


def test_heartbeat_thread_survives_a_log_handler_that_raises() -> None:
    class BrokenHandler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise OSError(record.getMessage())

    handler = BrokenHandler()
    logger = logging.getLogger("mendq.consumer")
    logger.addHandler(handler)
    sqs = BrokenSqs(RuntimeError("hook"), error_count=1)
    try:
        with make_heartbeat(sqs, FakeClock()):
            assert sqs.extended.wait(PATIENCE)
    finally:
        logger.removeHandler(handler)
    assert sqs.failed.is_set()

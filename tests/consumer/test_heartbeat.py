"""Test `VisibilityHeartbeat` with a fake clock and without its thread."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pytest

from mendq.consumer import VisibilityHeartbeat
from mendq.consumer.writes import LONGEST_HOLD_SECONDS
from tests.consumer.fake_sqs import FakeClock, FakeSqs, make_message

SECONDS = 60


def make_heartbeat(
    sqs: FakeSqs, clock: FakeClock, *messages: Mapping[str, Any], seconds: int = SECONDS
) -> VisibilityHeartbeat:
    held = VisibilityHeartbeat(cast("Any", sqs), "url", seconds=seconds, clock=clock)
    held.add(*messages, received_at=clock())
    return held


@pytest.fixture
def sqs() -> FakeSqs:
    return FakeSqs()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def test_heartbeat_extends_a_message_only_after_half_of_its_visibility_timeout(
    sqs: FakeSqs, clock: FakeClock
) -> None:
    held = make_heartbeat(sqs, clock, make_message())
    clock.now += SECONDS / 2 - 1
    held.keep()
    assert sqs.written == []
    clock.now += 1
    held.keep()
    held.keep()
    assert sqs.written == [("change", "handle-a", SECONDS)]


def test_heartbeat_extends_a_single_message_with_a_call_that_is_no_batch(
    sqs: FakeSqs, clock: FakeClock
) -> None:
    """CloudTrail records no refusal within a batch."""
    held = make_heartbeat(sqs, clock, make_message())
    clock.now += SECONDS / 2
    held.keep()
    assert sqs.written == [("change", "handle-a", SECONDS)]
    assert sqs.sizes == []


def test_heartbeat_extends_a_message_at_once_if_half_its_timeout_passed_before_it_was_added(
    sqs: FakeSqs, clock: FakeClock
) -> None:
    held = make_heartbeat(sqs, clock)
    held.add(make_message("b"), received_at=clock.now - SECONDS / 2)
    held.keep()
    assert sqs.written == [("change", "handle-b", SECONDS)]


def test_heartbeat_counts_the_visibility_timeout_from_before_the_receive_call(
    sqs: FakeSqs, clock: FakeClock
) -> None:
    """SQS may hide a message at once and answer late."""

    def slow(**asked: Any) -> Mapping[str, Any]:
        assert asked["VisibilityTimeout"] == SECONDS
        clock.now += SECONDS - 1
        return {"Messages": [make_message()]}

    sqs.receive_message = slow  # type: ignore[attr-defined]
    held = make_heartbeat(sqs, clock)
    assert held.receive(WaitTimeSeconds=1) == [make_message()]
    assert held.held == {"a"}
    clock.now += 1
    assert held.held == frozenset()
    assert held.is_lost


@pytest.mark.parametrize(
    "asked", [{}, {"WaitTimeSeconds": 20}], ids=["no WaitTimeSeconds", "20 seconds"]
)
def test_heartbeat_refuses_a_receive_without_wait_time_seconds_below_the_visibility_timeout(
    sqs: FakeSqs, clock: FakeClock, asked: dict[str, int]
) -> None:
    with pytest.raises(ValueError, match="WaitTimeSeconds must be given, and be less than"):
        make_heartbeat(sqs, clock, seconds=20).receive(**asked)


@pytest.mark.parametrize(("seconds", "step"), [(SECONDS, 7.5), (30_000, 2_500)])
def test_heartbeat_never_extends_a_message_beyond_12_hours_after_its_receive(
    sqs: FakeSqs, clock: FakeClock, seconds: int, step: float
) -> None:
    ends = clock.now + LONGEST_HOLD_SECONDS
    held = make_heartbeat(sqs, clock, make_message(), seconds=seconds)
    while not held.is_lost:
        before = len(sqs.written)
        held.keep()
        for *_, extended in sqs.written[before:]:
            assert 0 < (extended or 0) <= min(seconds, ends - clock.now)
        clock.now += step
    assert clock.now == pytest.approx(ends, abs=2 * step)
    assert sqs.written


def test_heartbeat_writes_nothing_for_a_message_whose_visibility_timeout_ran_out(
    sqs: FakeSqs, clock: FakeClock
) -> None:
    held = make_heartbeat(sqs, clock, make_message())
    clock.now += SECONDS
    held.keep()
    held.release_all()
    assert held.delete_all() == frozenset()
    assert held.delete("a") == frozenset()
    assert held.is_lost
    assert held.lost == {"a"}
    assert sqs.written == []


GONE = ("AWS.SimpleQueueService.MessageNotInflight", "InvalidParameterValueException")


@pytest.mark.parametrize("code", GONE)
@pytest.mark.parametrize(
    "others", [(), (make_message("b"),)], ids=["single message", "batch of two"]
)
def test_heartbeat_loses_a_message_and_writes_it_no_more_if_sqs_says_its_handle_is_not_valid(
    sqs: FakeSqs, clock: FakeClock, code: str, others: tuple[Mapping[str, Any], ...]
) -> None:
    sqs.codes["handle-a"] = code
    held = make_heartbeat(sqs, clock, make_message(), *others)
    clock.now += SECONDS / 2
    held.keep()
    assert held.lost == {"a"}
    assert held.held == {message["MessageId"] for message in others}
    sqs.written.clear()
    held.release("a")
    assert held.delete("a") == frozenset()
    assert sqs.written == []


@pytest.mark.parametrize("code", [None, "RequestThrottled", "AccessDenied", "InternalError"])
def test_heartbeat_retries_a_failed_extension_until_the_visibility_timeout_is_over(
    sqs: FakeSqs, clock: FakeClock, code: str | None
) -> None:
    held = make_heartbeat(sqs, clock, make_message())
    for later, answered_code in ((SECONDS / 2, code), (SECONDS / 4, ""), (SECONDS - 1, code)):
        clock.now += later
        assert not held.is_lost
        sqs.codes["handle-a"] = answered_code
        held.keep()
    assert not held.is_lost
    clock.now += 1
    assert held.is_lost


def test_heartbeat_extends_the_other_messages_if_one_entry_of_a_batch_fails(
    sqs: FakeSqs, clock: FakeClock
) -> None:
    names = [f"m{number}" for number in range(25)]
    sqs.codes["handle-m3"] = "InternalError"
    held = make_heartbeat(sqs, clock, *map(make_message, names))
    clock.now += SECONDS / 2
    held.keep()
    clock.now += SECONDS / 2
    assert held.lost == {"m3"}
    assert held.held == {*names} - {"m3"}


def test_heartbeat_extends_25_messages_in_three_batches_and_releases_them_in_their_order(
    sqs: FakeSqs, clock: FakeClock
) -> None:
    names = [f"m{number}" for number in range(25)]
    held = make_heartbeat(sqs, clock, *map(make_message, names))
    clock.now += SECONDS / 2
    held.keep()
    assert sqs.sizes == [10, 10, 5]
    sqs.written.clear()
    held.release_all()
    assert sqs.written == [("change", f"handle-{name}", 0) for name in names]


def test_heartbeat_neither_extends_nor_deletes_a_released_message(
    sqs: FakeSqs, clock: FakeClock
) -> None:
    held = make_heartbeat(sqs, clock, make_message(), make_message("b"))
    held.release("a")
    assert sqs.written == [("change", "handle-a", 0)]
    clock.now += SECONDS / 2
    held.keep()
    assert sqs.written[1:] == [("change", "handle-b", SECONDS)]
    assert not held.is_lost
    assert held.delete("a") == frozenset()
    assert len(sqs.written) == 2


def test_heartbeat_delete_returns_the_deleted_ids_and_retries_an_internal_error_only(
    sqs: FakeSqs, clock: FakeClock
) -> None:
    sqs.codes = {"handle-b": "InternalError", "handle-c": "ReceiptHandleIsInvalid"}
    held = make_heartbeat(sqs, clock, *map(make_message, "abcd"))
    assert held.delete("a", "b", "c", "nobody's") == {"a"}
    assert held.held == {"b", "d"}
    assert held.lost == {"c"}
    deletes = [handle for verb, handle, _ in sqs.written if verb == "delete"]
    assert deletes.count("handle-b") == 2
    assert deletes.count("handle-c") == 1
    assert "handle-d" not in deletes


def test_heartbeat_uses_the_newest_receipt_handle_of_a_message_received_again(
    sqs: FakeSqs, clock: FakeClock
) -> None:
    held = make_heartbeat(sqs, clock, make_message())
    clock.now += SECONDS
    assert held.is_lost
    held.add(make_message("a", "newer"), received_at=clock())
    assert not held.is_lost
    assert held.delete_all() == {"a"}
    assert sqs.written == [("delete", "newer", None)]


def test_heartbeat_keeps_messages_that_the_answer_to_a_delete_does_not_mention(
    clock: FakeClock,
) -> None:
    class ForgetfulSqs(FakeSqs):
        def delete_message_batch(self, **asked: Any) -> Mapping[str, Any]:
            return {"Successful": super().delete_message_batch(**asked)["Successful"][:1]}

    held = make_heartbeat(ForgetfulSqs(), clock, *map(make_message, "abcd"))
    assert held.delete_all() == {"a", "b"}, "one of each attempt"
    assert held.held == {"c", "d"}
    assert not held.is_lost


@pytest.mark.parametrize("verb", ["delete", "release", "stop_extending"])
@pytest.mark.parametrize("given", [(), ("another queue's",)], ids=["no ids", "an unknown id"])
def test_heartbeat_delete_release_and_stop_extending_without_held_ids_write_nothing(
    sqs: FakeSqs, clock: FakeClock, verb: str, given: tuple[str, ...]
) -> None:
    """`delete(*succeeded)` must not delete ten untouched messages if nothing succeeded."""
    names = [f"m{number}" for number in range(10)]
    held = make_heartbeat(sqs, clock, *map(make_message, names))
    gone = getattr(held, verb)(*given)
    assert not gone
    assert sqs.written == []
    assert held.held == {*names}


def test_heartbeat_delete_all_and_release_all_take_held_messages_but_no_lost_message(
    sqs: FakeSqs, clock: FakeClock
) -> None:
    sqs.codes["handle-lost"] = "ReceiptHandleIsInvalid"
    held = make_heartbeat(sqs, clock, *map(make_message, ("a", "lost", "b")))
    clock.now += SECONDS / 2
    held.keep()
    sqs.written.clear()
    assert held.delete_all() == {"a", "b"}
    assert held.delete_all() == frozenset(), "nothing is left"
    assert sqs.written == [("delete", "handle-a", None), ("delete", "handle-b", None)]
    sqs.written.clear()
    held.add(*map(make_message, ("c", "d")), received_at=clock())
    held.release_all()
    held.release_all()
    assert sqs.written == [("change", "handle-c", 0), ("change", "handle-d", 0)]


def test_heartbeat_delete_or_release_with_the_same_id_twice_writes_once(
    sqs: FakeSqs, clock: FakeClock
) -> None:
    held = make_heartbeat(sqs, clock, make_message(), make_message("b"))
    assert held.delete("a", "a") == {"a"}
    held.release("b", "b")
    assert sqs.written == [("delete", "handle-a", None), ("change", "handle-b", 0)]


def test_heartbeat_stop_extending_lets_a_message_time_out_without_counting_it_as_lost(
    sqs: FakeSqs, clock: FakeClock
) -> None:
    held = make_heartbeat(sqs, clock, make_message(), make_message("b"))
    held.stop_extending("a")
    assert held.held == {"b"}
    clock.now += SECONDS / 2
    held.keep()
    assert sqs.written == [("change", "handle-b", SECONDS)]
    assert held.delete("a") == frozenset()
    assert not held.is_lost


LOST_CODES = ["ReceiptHandleIsInvalid", "AWS.SimpleQueueService.MessageNotInflight"]
LOST_CODES += ["InvalidParameterValue", "QueueDoesNotExist"]
PASSING_CODES = ["InternalError", "ServiceUnavailable", "RequestThrottled", "AccessDenied"]
PASSING_CODES += ["KMS.ThrottlingException", "a code of tomorrow", ""]


@pytest.mark.parametrize("is_senders_fault", [True, False, None])
@pytest.mark.parametrize("code", [*LOST_CODES, *PASSING_CODES])
def test_heartbeat_failed_delete_entry_is_lost_or_retried_by_its_error_code(
    clock: FakeClock, code: str, is_senders_fault: bool | None
) -> None:
    """SenderFault says who is to blame. Only the code says if the message is still ours."""
    sqs = FakeSqs({"handle-b": code or "none"}, senders_fault=is_senders_fault, codeless=not code)
    held = make_heartbeat(sqs, clock, *map(make_message, "abc"))
    assert held.delete("a", "b", "c") == {"a", "c"}
    deletes = [handle for _, handle, _ in sqs.written]
    if code in LOST_CODES:
        assert held.lost == {"b"}
        assert held.held == frozenset()
        assert deletes.count("handle-b") == 1, "another consumer has it"
    else:
        assert held.lost == frozenset()
        assert held.held == {"b"}, "it is still ours, and comes again"
        assert deletes.count("handle-b") == 2, "it was tried again"
    assert deletes.count("handle-a") == deletes.count("handle-c") == 1


@pytest.mark.parametrize("is_senders_fault", [True, False, None])
@pytest.mark.parametrize("code", [*LOST_CODES, *PASSING_CODES])
def test_heartbeat_failed_extension_entry_is_lost_or_retried_by_its_error_code(
    clock: FakeClock, code: str, is_senders_fault: bool | None
) -> None:
    sqs = FakeSqs({"handle-b": code or "none"}, senders_fault=is_senders_fault, codeless=not code)
    held = make_heartbeat(sqs, clock, *map(make_message, "abc"))
    clock.now += SECONDS / 2
    held.keep()
    is_lost = code in LOST_CODES
    assert held.lost == ({"b"} if is_lost else frozenset())
    assert held.held == ({"a", "c"} if is_lost else {"a", "b", "c"})
    # The others were extended: only `b` is due at the next beat.
    sqs.written.clear()
    sqs.codes.clear()
    clock.now += SECONDS / 8
    held.keep()
    again = [] if is_lost else [("change", "handle-b", SECONDS)]
    assert sqs.written == again
    clock.now += SECONDS / 2 - 1
    assert held.lost == ({"b"} if is_lost else frozenset())


def test_heartbeat_keeps_a_message_that_the_answer_lists_as_both_successful_and_failed(
    clock: FakeClock,
) -> None:
    class ContradictingSqs(FakeSqs):
        def delete_message_batch(self, **asked: Any) -> Mapping[str, Any]:
            answer = super().delete_message_batch(**asked)
            code = {"Code": "InternalError", "SenderFault": False}
            failed = [{"Id": name, **code} for name in ("0", "1")]
            return {"Successful": answer["Successful"], "Failed": failed}

    held = make_heartbeat(ContradictingSqs(), clock, *map(make_message, "abc"))
    assert held.delete("a", "b", "c") == {"c"}
    assert held.held == {"a", "b"}


@pytest.mark.parametrize("verb", ["delete", "release", "stop_extending"])
@pytest.mark.parametrize(
    "ids",
    [None, 0, False, ["a"], ("a",), {"a"}, (name for name in "a"), make_message("a")],
    ids=lambda ids: type(ids).__name__,
)
def test_heartbeat_refuses_values_that_are_no_message_ids_and_writes_nothing(
    sqs: FakeSqs, clock: FakeClock, verb: str, ids: Any
) -> None:
    held = make_heartbeat(sqs, clock, make_message("a"), make_message("b"))
    with pytest.raises(TypeError, match="message ids are texts"):
        getattr(held, verb)("b", ids)
    assert sqs.written == []
    assert held.held == {"a", "b"}

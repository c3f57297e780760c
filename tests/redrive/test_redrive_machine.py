"""What the machine's table says of one course and one look."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import timedelta
from typing import Any

import pytest

from mendq.model.case import State
from mendq.model.limits import Bounds
from mendq.redrive.machine import (
    FOREIGN,
    TABLE,
    UNREAD,
    Next,
    Put,
    RedriveSituation,
    Rest,
    SendBack,
    SourceState,
    TakeSample,
    decide,
    moved,
    sampled,
    settled,
)
from mendq.redrive.progress import (
    DlqSample,
    RedriveProgress,
    RedriveQueues,
    Stage,
    StageProgress,
    Waits,
)
from tests.model.toy_redrive import DEAD, NOW, SOURCE, message

BOUNDS = Bounds()
EMPTY = DlqSample()
AN_HOUR = timedelta(hours=1)
OF_STAGE = {each.name for each in fields(StageProgress)} - {"began_at", "moved"}
OF_WAITS = {each.name for each in fields(Waits)}
SEEN = SourceState(visibility_timeout=30, receives=3, delay_seconds=5, deletes_per_second=50)


def progress(stage: Stage = Stage.SOAK, **over: Any) -> RedriveProgress:
    """One that has moved a hundred messages, and whose soak is over; `over` of any of its parts."""
    values: dict[str, Any] = {"moved_in_stage": 80, "stage_at": NOW - AN_HOUR, "number": 2}
    values |= {
        "size": 80,
        "soak_ends_at": NOW,
        "expected": 1_000,
        "moved": 100,
        "is_opened": True,
        **over,
    }
    current = StageProgress(
        values.pop("stage_at"),
        moved=values.pop("moved_in_stage"),
        **{name: values.pop(name) for name in OF_STAGE & values.keys()},
    )
    waits = Waits(**{name: values.pop(name) for name in OF_WAITS & values.keys()})
    queues = RedriveQueues(DEAD, SOURCE)
    return RedriveProgress("case", queues, stage, NOW - AN_HOUR, current, waits=waits, **values)


def decided(
    before: RedriveProgress, found: DlqSample | None = EMPTY, bounds: Bounds = BOUNDS, **over: Any
) -> Next:
    seen = RedriveSituation(before, NOW, 1_000, SEEN, bounds, found)
    return decide(replace(seen, **over))


def returned(number: int) -> tuple[Any, ...]:
    return tuple(message(f"back {at}") for at in range(number))


@pytest.mark.parametrize(
    ("moved_so_far", "halts_at"),
    [(0, 1), (20, 1), (21, 2), (100, 5), (101, 6), (180, 9), (199, 10), (200, 10), (9_999, 10)],
)
def test_it_halts_at_five_in_a_hundred_or_at_ten(moved_so_far: int, halts_at: int) -> None:
    assert BOUNDS.halts_at(moved_so_far) == halts_at
    before = progress(moved=moved_so_far, returned=halts_at - 1)
    assert decided(before).progress.stage is not Stage.HALTED
    halted = decided(replace(before, returned=halts_at)).progress
    assert halted.stage is Stage.HALTED
    assert f"{halts_at} came back" in halted.because


def test_a_share_is_reached_and_not_only_passed() -> None:
    """0.05 * 140 is 7.000000000000001."""
    assert Bounds(halt_returned=100).halts_at(140) == 7


def test_what_was_there_before_anything_went_back_does_not_count() -> None:
    found = DlqSample(returned=returned(30), quarantined=30)
    opening = progress(Stage.CANARY, is_opened=False, moved=0, moved_in_stage=0, size=5)
    after = settled(sampled(opening, found), found, 100)
    assert (after.returned, after.quarantined, after.current.expected) == (0, 30, 70)
    assert isinstance(decided(after, found).action, SendBack)


def test_what_could_not_be_quarantined_counts_once_and_still_halts() -> None:
    found = DlqSample(returned=returned(6), quarantined=2)
    after = settled(sampled(progress(), found), found, 1_000)
    assert (after.returned, after.quarantined) == (2, 2)
    assert decided(after, found).progress.stage is Stage.HALTED


def test_new_dlq_halt_it_at_ten_whatever_was_moved() -> None:
    few, many = (DlqSample(newly_dead=number) for number in (9, 10))
    assert decided(progress(moved=5), few).progress.stage is not Stage.HALTED
    assert decided(progress(moved=5), many).progress.stage is Stage.HALTED


def test_of_a_fifo_queue_messages_more_than_there_should_be_came_back_unseen() -> None:
    assert decided(progress(), waiting=1_005).progress.stage is Stage.RAMP
    unseen = decided(progress(), waiting=1_005, is_fifo=True).progress
    assert unseen.stage is Stage.HALTED
    assert "the queue holds 5 more than it should" in unseen.because
    early = decided(progress(soak_ends_at=NOW + AN_HOUR), waiting=1_005, is_fifo=True)
    assert early.progress.stage is Stage.SOAK


@pytest.mark.parametrize("stage", [Stage.CANARY, Stage.SOAK, Stage.RAMP])
def test_a_sample_comes_first_and_not_while_somebody_else_is_at_it(stage: Stage) -> None:
    assert decided(progress(stage), None).action == TakeSample()
    frozen = decided(progress(stage), None, frozen="an incident")
    assert frozen.action == Rest("changes are frozen: an incident")
    foreign = decided(progress(stage), None, has_foreign_task=True)
    assert foreign.action == Rest(FOREIGN)
    assert frozen.progress.stage is foreign.progress.stage is stage
    assert decided(progress(stage), has_foreign_task=True, blocked="no").progress.is_over


@pytest.mark.parametrize(
    ("deletes_per_second", "since", "messages"),
    [
        (50, 60, 300),
        (500, 60, 1_500),
        (0.5, 60, 3),
        (0.05, 58, 1),
        (0.05, 200, 1),
        (0.05, 6, None),
        (50, 6, 30),
    ],
)
def test_messages_go_back_at_a_tenth_of_what_is_deleted_and_one_a_minute(
    deletes_per_second: float, since: int, messages: int | None
) -> None:
    moved_at = NOW - timedelta(seconds=since)
    going = progress(Stage.RAMP, moved_in_stage=1, size=2_000, stage_at=NOW, moved_at=moved_at)
    source = replace(SEEN, deletes_per_second=deletes_per_second)
    action = decided(going, source=source).action
    assert action == (SendBack(messages) if messages else Rest("no message's turn has come"))


def test_what_is_in_flight_is_written_down_before_it_goes() -> None:
    next_ = decided(progress(Stage.CANARY, size=5, moved_in_stage=0, moved=0))
    assert (next_.action, next_.progress.current.in_flight) == (SendBack(5), 5)
    died = decided(next_.progress).progress
    assert (died.stage, died.moved) == (Stage.SOAK, 0)
    assert (died.current.moved, died.current.unsure) == (5, 5)


def test_a_stage_that_proved_nothing_is_followed_by_a_canary() -> None:
    unverified = progress(moved=0, moved_in_stage=5, unsure=5, size=5, number=0)
    assert decided(unverified).progress.current.size == 5
    going = progress(Stage.RAMP, in_flight=3, moved_in_stage=0)
    short = moved(going, Put(3), NOW, is_short=True).current
    assert (short.size, short.left) == (3, 0)


def test_a_soak_lasts_until_a_poison_message_must_be_back() -> None:
    source = replace(SEEN, visible=1_000)
    soaking = decided(progress(Stage.RAMP), source=source).progress
    assert soaking.stage is Stage.SOAK
    length = timedelta(seconds=1.2 * 3 * 30 + 5 + 1_000 / 50)
    assert soaking.current.soak_ends_at == NOW + length
    assert soaking.current.stood == 1_080


def test_no_setting_makes_a_soak_shorter_than_a_fifth_more_than_needed() -> None:
    soak = Bounds(soak_factor=0.1, least_soak_seconds=0).soak(
        receives=10, needed_seconds=100, delay_seconds=0
    )
    assert soak == timedelta(seconds=1_200)


@pytest.mark.parametrize("waiting", [0, 1_000])
@pytest.mark.parametrize("deleted_since", [None, 0, 94])
def test_what_stands_unread_in_the_source_proves_nothing(
    waiting: int, deleted_since: int | None
) -> None:
    """Deletes from before the stage went keep the rate up; 100 stood there when it had gone."""
    soaked = progress(stood=100, returned=5, moved=1_000)
    source = replace(SEEN, visible=80, deleted_since=deleted_since)
    waits = decided(soaked, waiting=waiting, source=source)
    assert (waits.progress.stage, waits.action) == (Stage.SOAK, Rest(UNREAD))
    assert waits.progress.waits.consumers_since == NOW
    long_ago = soaked.with_waits(consumers_since=NOW - AN_HOUR)
    halted = decided(long_ago, waiting=waiting, source=source).progress
    assert (halted.stage, halted.because) == (Stage.HALTED, UNREAD)


@pytest.mark.parametrize(("visible", "deleted_since"), [(0, 0), (80, 95)])
def test_what_was_worked_off_lets_the_next_stage_go(visible: int, deleted_since: int) -> None:
    soaked = progress(stood=100, returned=5, moved=1_000)
    source = replace(SEEN, visible=visible, deleted_since=deleted_since)
    assert decided(soaked, source=source).progress.stage is Stage.RAMP
    assert decided(soaked, waiting=0, source=source).progress.stage is Stage.DONE


def test_a_stage_that_sent_nothing_waits_for_nobody() -> None:
    source = replace(SEEN, visible=80, deleted_since=0)
    assert decided(progress(stood=100, moved_in_stage=0), source=source).progress.stage is (
        Stage.RAMP
    )


@pytest.mark.parametrize("deletes_per_second", [None, 0])
@pytest.mark.parametrize("stage", [Stage.CANARY, Stage.RAMP, Stage.SOAK])
def test_nobody_handles_messages_so_it_waits_and_halts_after_an_hour(
    stage: Stage, deletes_per_second: float | None
) -> None:
    source = replace(SEEN, deletes_per_second=deletes_per_second)
    waits = decided(progress(stage, moved_in_stage=0), source=source)
    assert isinstance(waits.action, Rest)
    assert (waits.progress.stage, waits.progress.waits.consumers_since) == (stage, NOW)
    nearly = waits.progress.with_waits(consumers_since=NOW - AN_HOUR + timedelta(seconds=1))
    assert decided(nearly, source=source).progress.stage is stage
    late = nearly.with_waits(consumers_since=NOW - AN_HOUR)
    assert decided(late, source=source).progress.stage is Stage.HALTED
    assert decided(nearly).progress.stage is not Stage.HALTED


def test_what_cannot_be_seen_waits_and_halts_after_an_hour() -> None:
    blind: dict[str, Any] = {"blocked_for_now": "SQS does not answer"}
    for stage in (Stage.CANARY, Stage.SOAK, Stage.RAMP):
        for found in (None, EMPTY):
            waits = decided(progress(stage), found, **blind)
            assert waits.action == Rest("SQS does not answer")
            assert (waits.progress.stage, waits.progress.waits.blocked_since) == (stage, NOW)
        late = waits.progress.with_waits(blocked_since=NOW - AN_HOUR)
        halted = decided(late, None, **blind).progress
        assert (halted.stage, halted.because) == (Stage.HALTED, "SQS does not answer")
        assert decided(late, None).action == TakeSample()


def test_what_it_finds_no_more_of_soaks_and_ends_it() -> None:
    assert decided(progress(Stage.RAMP), waiting=0).progress.stage is Stage.SOAK
    stuck = DlqSample(stuck=3)
    done = decided(progress(returned=2), stuck, waiting=3).progress
    assert done.stage is Stage.DONE
    assert done.because == (
        "100 messages went back, 2 of them came back and are in orders-quarantine; "
        "3 cannot go back there and stay"
    )
    ended = decide(RedriveSituation(done, NOW, 3, SEEN)).action
    assert ended is not None
    assert getattr(ended, "state", None) is State.VERIFIED


def test_with_nothing_left_its_soak_still_has_to_be_over() -> None:
    soaking = progress(soak_ends_at=NOW + timedelta(seconds=1))
    assert decided(soaking, waiting=0).progress.stage is Stage.SOAK
    assert decided(soaking.with_stage(soak_ends_at=NOW), waiting=0).progress.stage is Stage.DONE


def test_nothing_goes_on_for_longer_than_sqs_keeps_a_message() -> None:
    old = replace(progress(Stage.RAMP), began_at=NOW - timedelta(days=14))
    assert decided(old).progress.stage is Stage.HALTED


def test_sqs_that_takes_nothing_halts_it_after_an_hour() -> None:
    refused = {"refused_since": NOW - AN_HOUR, "is_refused": True, "because": "AccessDenied"}
    going = progress(Stage.RAMP, moved_in_stage=0, stage_at=NOW - 2 * AN_HOUR, **refused)
    halted = decided(going).progress
    assert (halted.stage, halted.because) == (Stage.HALTED, "AccessDenied")
    assert isinstance(decided(going.with_waits(is_refused=False)).action, SendBack)
    nearly = going.with_waits(refused_since=NOW - AN_HOUR + timedelta(seconds=1))
    assert decided(nearly.with_stage(moved=3)).progress.stage is Stage.RAMP


def test_taken_back_it_goes_no_further_and_what_is_over_stays_so() -> None:
    halted = progress().halted(NOW, "a person took it back")
    assert (halted.stage, halted.because) == (Stage.HALTED, "a person took it back")
    assert halted.halted(NOW, "again") == halted


def test_a_progress_comes_back_as_it_was_written() -> None:
    going = progress(Stage.RAMP, fingerprints=("a", "b"), consumers_since=NOW, moved_at=NOW)
    assert RedriveProgress.from_document(going.document()) == going
    newer = going.document() | {"unheard_of": 1}
    assert RedriveProgress.from_document(newer) == going


@pytest.mark.parametrize(
    "damage",
    [
        {"stage": "nowhere"},
        {"case_id": 1},
        {"current": {"began_at": "2026-11-21T12:00:00Z"}},
        {"current": {"began_at": "2026-11-21T12:00:00", "size": 5}},
        {"current": {"began_at": "2026-11-21T12:00:00Z", "size": "5"}},
        {"current": {"began_at": "2026-11-21T12:00:00Z", "size": True}},
        {"current": {"began_at": "2026-11-21T12:00:00Z", "size": -1}},
        {"current": {"began_at": "2026-11-21T12:00:00Z", "size": 5.0}},
        {"current": []},
        {"stage": "soak", "current": {"began_at": "2026-11-21T12:00:00Z", "size": 5}},
        {"moved": 10**400},
        {"rate_per_second": float("nan")},
        {"rate_per_second": float("inf")},
        {"rate_per_second": "1"},
        {"is_opened": 1},
        {"began_at": None},
        {"began_at": "yesterday"},
        {"moved_at": 1},
        {"fingerprints": "abc"},
        {"fingerprints": [1]},
        {"fingerprints": None},
        {"queues": {"source_arn": SOURCE}},
    ],
)
def test_what_is_damaged_is_no_progress(damage: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError)):
        RedriveProgress.from_document(progress(Stage.RAMP).document() | damage)


@pytest.mark.parametrize("name", ["case_id", "queues", "stage", "began_at", "current"])
def test_what_lacks_a_beginning_is_no_progress(name: str) -> None:
    rest = {key: value for key, value in progress().document().items() if key != name}
    with pytest.raises(TypeError):
        RedriveProgress.from_document(rest)


def test_every_row_says_in_words_when_and_what() -> None:
    words = [each.__doc__ for row in TABLE for each in (row.when, row.does)]
    assert all(words)
    for stage in Stage:
        last = [row for row in TABLE if stage in row.out_of][-1]
        assert last.when.__doc__ == "always", stage

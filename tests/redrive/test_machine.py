"""What the machine's table says of one progress and one look."""

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
    Blocked,
    End,
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
from tests.redrive.toy import DEAD, NOW, SOURCE, message

BOUNDS = Bounds()
EMPTY = DlqSample()
AN_HOUR = timedelta(hours=1)
NEARLY = timedelta(minutes=59, seconds=59)
STAGES = pytest.mark.parametrize("stage", [Stage.CANARY, Stage.RAMP, Stage.SOAK])
SEEN = SourceState(visibility_timeout=30, receives=3, delay_seconds=5, deletes_per_second=50)


def progress(stage: Stage = Stage.SOAK, **over: Any) -> RedriveProgress:
    """One that has moved a hundred messages, and whose soak is over; `over` of any of its parts."""
    current = StageProgress(
        NOW - AN_HOUR, size=80, number=2, moved=80, soak_ends_at=NOW, expected=1_000
    )
    queues = RedriveQueues(DEAD, SOURCE)
    made = RedriveProgress("case", queues, stage, NOW - AN_HOUR, current, moved=100, is_opened=True)
    made = replace(made, moved=over.pop("moved", 100))
    of_stage = {"stage_moved": "moved", "stage_at": "began_at"}
    named = {of_stage.get(name, name): value for name, value in over.items()}
    for part in (StageProgress, Waits, RedriveProgress):
        names = {each.name for each in fields(part)} & named.keys()
        values = {name: named.pop(name) for name in names}
        if part is StageProgress:
            made = made.with_stage(**values)
        else:
            made = made.with_waits(**values) if part is Waits else replace(made, **values)
    return made


def decided(
    before: RedriveProgress, found: DlqSample | None = EMPTY, bounds: Bounds = BOUNDS, **over: Any
) -> Next:
    return decide(
        RedriveSituation(
            before,
            NOW,
            over.pop("waiting", 1_000),
            bounds=bounds,
            sample=found,
            **{"source": SEEN, **over},
        )
    )


def stage_of(*asked: Any, **over: Any) -> Stage:
    return decided(*asked, **over).progress.stage


def returned(number: int) -> tuple[Any, ...]:
    return tuple(message(f"back {at}") for at in range(number))


@pytest.mark.parametrize(
    ("moved_so_far", "halts_at"),
    [(0, 1), (20, 1), (21, 2), (100, 5), (101, 6), (199, 10), (200, 10), (9_999, 10)],
)
def test_it_halts_at_five_in_a_hundred_or_at_ten(moved_so_far: int, halts_at: int) -> None:
    assert BOUNDS.halts_at(moved_so_far) == halts_at
    # 0.05 * 140 is 7.000000000000001.
    assert Bounds(halt_returned=100).halts_at(140) == 7
    before = progress(moved=moved_so_far, returned=halts_at - 1)
    assert stage_of(before) is not Stage.HALTED
    halted = decided(replace(before, returned=halts_at)).progress
    assert halted.stage is Stage.HALTED
    assert f"{halts_at} came back" in halted.because


def test_what_was_there_before_anything_went_back_does_not_count() -> None:
    found = DlqSample(returned=returned(30), quarantined=30)
    opening = progress(Stage.CANARY, is_opened=False, moved=0, stage_moved=0, size=5)
    after = settled(sampled(opening, found), found, 100)
    assert (after.returned, after.quarantined, after.current.expected) == (0, 30, 70)
    assert isinstance(decided(after, found).action, SendBack)


def test_what_could_not_be_quarantined_counts_once_and_still_halts() -> None:
    found = DlqSample(returned=returned(6), quarantined=2)
    after = settled(sampled(progress(), found), found, 1_000)
    assert (after.returned, after.quarantined) == (2, 2)
    assert stage_of(after, found) is Stage.HALTED


def test_newly_dead_messages_halt_it_at_ten_whatever_was_moved() -> None:
    assert stage_of(progress(moved=5), DlqSample(newly_dead=9)) is not Stage.HALTED
    assert stage_of(progress(moved=5), DlqSample(newly_dead=10)) is Stage.HALTED


def test_of_a_fifo_queue_messages_more_than_there_should_be_came_back_unseen() -> None:
    assert stage_of(progress(), waiting=1_005) is Stage.RAMP
    unseen = decided(progress(), waiting=1_005, is_fifo=True).progress
    assert unseen.stage is Stage.HALTED
    assert "the queue holds 5 more than it should" in unseen.because
    early = progress(soak_ends_at=NOW + AN_HOUR)
    assert stage_of(early, waiting=1_005, is_fifo=True) is Stage.SOAK


@STAGES
def test_a_sample_comes_first_and_not_while_somebody_else_is_at_it(stage: Stage) -> None:
    assert decided(progress(stage), None).action == TakeSample()
    frozen = decided(progress(stage), None, frozen="an incident")
    assert frozen.action == Rest("changes are frozen: an incident")
    foreign = decided(progress(stage), None, has_foreign_task=True)
    assert foreign.action == Rest(FOREIGN)
    assert frozen.progress.stage is foreign.progress.stage is stage
    blocked = Blocked("no", for_good=True)
    assert decided(progress(stage), has_foreign_task=True, blocked=blocked).progress.is_over


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
    going = progress(Stage.RAMP, stage_moved=1, size=2_000, stage_at=NOW, moved_at=moved_at)
    source = replace(SEEN, deletes_per_second=deletes_per_second)
    expected = SendBack(messages) if messages else Rest("no message's turn has come")
    assert decided(going, source=source).action == expected


def test_what_is_in_flight_is_written_down_before_it_goes() -> None:
    next_ = decided(progress(Stage.CANARY, size=5, stage_moved=0, moved=0))
    assert (next_.action, next_.progress.current.in_flight) == (SendBack(5), 5)
    died = decided(next_.progress).progress
    assert (died.stage, died.moved) == (Stage.SOAK, 0)
    assert (died.current.moved, died.current.unsure) == (5, 5)


def test_a_stage_that_proved_nothing_is_followed_by_a_canary() -> None:
    unverified = progress(moved=0, stage_moved=5, unsure=5, size=5, number=0)
    assert decided(unverified).progress.current.size == 5
    going = progress(Stage.RAMP, in_flight=3, stage_moved=0)
    short = moved(going, Put(3), NOW, is_short=True).current
    assert (short.size, short.left) == (3, 0)


def test_a_soak_lasts_until_a_poison_message_must_be_back() -> None:
    soaking = decided(progress(Stage.RAMP), source=replace(SEEN, visible=1_000)).progress
    assert soaking.stage is Stage.SOAK
    length = timedelta(seconds=1.2 * 3 * 30 + 5 + 1_000 / 50)
    assert soaking.current.soak_ends_at == NOW + length
    assert soaking.current.stood == 1_080
    least = Bounds(soak_factor=0.1, least_soak_seconds=0)
    soak = least.soak(receives=10, needed_seconds=100, delay_seconds=0)
    assert soak == timedelta(seconds=1_200), "no setting makes it shorter than a fifth more"


@pytest.mark.parametrize("waiting", [0, 1_000])
@pytest.mark.parametrize(
    ("visible", "deleted_since", "is_unread"),
    [(80, None, True), (80, 0, True), (80, 94, True), (80, 95, False), (0, 0, False)],
)
def test_what_stands_unread_in_the_source_proves_nothing(
    waiting: int, visible: int, deleted_since: int | None, *, is_unread: bool
) -> None:
    """Deletes from before the stage went keep the rate up; 100 stood there when it had gone."""
    soaked = progress(stood=100, returned=5, moved=1_000)
    source = replace(SEEN, visible=visible, deleted_since=deleted_since)
    seen = decided(soaked, waiting=waiting, source=source)
    if not is_unread:
        assert seen.progress.stage is (Stage.RAMP if waiting else Stage.DONE)
        return
    assert (seen.progress.stage, seen.action) == (Stage.SOAK, Rest(UNREAD))
    assert seen.progress.waits.consumers_since == NOW
    long_ago = soaked.with_waits(consumers_since=NOW - AN_HOUR)
    halted = decided(long_ago, waiting=waiting, source=source).progress
    assert (halted.stage, halted.because) == (Stage.HALTED, UNREAD)
    nothing_went = progress(stood=100, stage_moved=0)
    assert stage_of(nothing_went, source=source) is Stage.RAMP


@STAGES
@pytest.mark.parametrize("deletes_per_second", [None, 0])
def test_nobody_handles_messages_so_it_waits_and_halts_after_an_hour(
    stage: Stage, deletes_per_second: float | None
) -> None:
    source = replace(SEEN, deletes_per_second=deletes_per_second)
    waits = decided(progress(stage, stage_moved=0), source=source)
    assert isinstance(waits.action, Rest)
    assert (waits.progress.stage, waits.progress.waits.consumers_since) == (stage, NOW)
    nearly = waits.progress.with_waits(consumers_since=NOW - NEARLY)
    assert stage_of(nearly, source=source) is stage
    late = nearly.with_waits(consumers_since=NOW - AN_HOUR)
    assert stage_of(late, source=source) is Stage.HALTED
    assert stage_of(late) is not Stage.HALTED


@STAGES
@pytest.mark.parametrize("found", [None, EMPTY])
def test_what_cannot_be_seen_waits_and_halts_after_an_hour(
    stage: Stage, found: DlqSample | None
) -> None:
    blind = Blocked("SQS does not answer")
    waits = decided(progress(stage), found, blocked=blind)
    assert waits.action == Rest("SQS does not answer")
    assert (waits.progress.stage, waits.progress.waits.blocked_since) == (stage, NOW)
    late = waits.progress.with_waits(blocked_since=NOW - AN_HOUR)
    halted = decided(late, found, blocked=blind).progress
    assert (halted.stage, halted.because) == (Stage.HALTED, "SQS does not answer")
    assert decided(late, None).action == TakeSample()


def test_what_lasts_comes_before_what_may_pass() -> None:
    passes, lasts = Blocked("later"), Blocked("never", for_good=True)
    assert Blocked() | passes == passes
    assert passes | Blocked("too") | Blocked() == passes
    assert passes | lasts == lasts | passes == lasts


def test_what_it_finds_no_more_of_soaks_and_ends_it() -> None:
    assert stage_of(progress(Stage.RAMP), waiting=0) is Stage.SOAK
    soaking = progress(soak_ends_at=NOW + timedelta(seconds=1))
    assert stage_of(soaking, waiting=0) is Stage.SOAK, "its soak still has to be over"
    done = decided(progress(returned=2), DlqSample(stuck=3), waiting=3).progress
    assert done.stage is Stage.DONE
    assert done.because == (
        "100 messages went back, 2 of them came back and are in orders-quarantine; "
        "3 cannot go back there and stay"
    )
    assert decided(done).action == End(State.VERIFIED, done.because)


def test_nothing_goes_on_for_longer_than_sqs_keeps_a_message() -> None:
    old = replace(progress(Stage.RAMP), began_at=NOW - timedelta(days=14))
    assert stage_of(old) is Stage.HALTED


def test_sqs_that_takes_nothing_halts_it_after_an_hour() -> None:
    refused = {"refused_since": NOW - AN_HOUR, "is_refused": True, "because": "AccessDenied"}
    going = progress(Stage.RAMP, stage_moved=0, stage_at=NOW - 2 * AN_HOUR, **refused)
    halted = decided(going).progress
    assert (halted.stage, halted.because) == (Stage.HALTED, "AccessDenied")
    assert isinstance(decided(going.with_waits(is_refused=False)).action, SendBack)
    nearly = going.with_waits(refused_since=NOW - NEARLY).with_stage(moved=3)
    assert stage_of(nearly) is Stage.RAMP


def test_taken_back_it_goes_no_further_and_what_is_over_stays_so() -> None:
    halted = progress().halted(NOW, "a person took it back")
    assert (halted.stage, halted.because) == (Stage.HALTED, "a person took it back")
    assert halted.halted(NOW, "again") == halted


def test_a_progress_comes_back_as_it_was_written() -> None:
    going = progress(Stage.RAMP, fingerprints=("a", "b"), consumers_since=NOW, moved_at=NOW)
    newer = going.document() | {"unheard_of": 1}
    assert RedriveProgress.from_document(newer) == going


AT = {"began_at": "2026-11-21T12:00:00Z"}


@pytest.mark.parametrize(
    "damage",
    [
        {"stage": "nowhere"},
        {"case_id": 1},
        {"current": AT},
        {"current": {"began_at": "2026-11-21T12:00:00", "size": 5}},
        *({"current": {**AT, "size": each}} for each in ("5", True, -1, 5.0)),
        {"current": []},
        {"stage": "soak", "current": {**AT, "size": 5}},
        {"moved": 10**400},
        *({"rate_per_second": each} for each in (float("nan"), float("inf"), "1")),
        {"is_opened": 1},
        *({"began_at": each} for each in (None, "yesterday")),
        {"moved_at": 1},
        *({"fingerprints": each} for each in ("abc", [1], None)),
        {"queues": {"source_arn": SOURCE}},
        *({each: ...} for each in ("case_id", "queues", "stage", "began_at", "current")),
    ],
)
def test_what_is_damaged_or_lacks_a_beginning_is_no_progress(damage: dict[str, Any]) -> None:
    document = progress(Stage.RAMP).document() | damage
    document = {name: value for name, value in document.items() if value is not ...}
    with pytest.raises((TypeError, ValueError)):
        RedriveProgress.from_document(document)


def test_every_row_says_in_words_when_and_what() -> None:
    assert all(each.__doc__ for row in TABLE for each in (row.when, row.does))
    for stage in Stage:
        last = [row for row in TABLE if stage in row.out_of][-1]
        assert last.when.__doc__ == "always", stage

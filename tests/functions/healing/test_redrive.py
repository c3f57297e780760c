"""What the machine's table says of one course and one look."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from functions.healing import redrive_deeds as deeds
from functions.healing.redrive import (
    TABLE,
    called_off,
    counted,
    decide,
    moved,
    settled,
    taken_back,
)
from functions.healing.redrive_bounds import Bounds
from functions.healing.redrive_course import Course, Stage
from functions.healing.redrive_look import (
    CancelTask,
    Census,
    End,
    Look,
    MoveByHand,
    MoveTask,
    Rest,
    Source,
    StartTask,
    TakeCensus,
    TaskStatus,
)
from functions.healing.states import State
from tests.functions.healing.toy_redrive import DEAD, NOW, SOURCE

BOUNDS = Bounds()
EMPTY = Census()
AN_HOUR = timedelta(hours=1)


def course(stage: Stage = Stage.SOAK, **over: Any) -> Course:
    """One that has moved a hundred letters, and whose soak is over."""
    before = NOW - AN_HOUR
    values = {"moved": 100, "moved_in_stage": 80, "number": 2, "size": 80, "is_opened": True}
    soaked = {"soak_ends_at": NOW, "expected": 1_000}
    return Course(
        "case",
        DEAD,
        SOURCE,
        stage,
        **{"began_at": before, "stage_at": before, **values, **soaked, **over},
    )


def look(**over: Any) -> Look:
    source = Source(lease_seconds=30, receives=3, delay_seconds=5, deletes_per_second=50)
    return replace(Look(NOW, 1_000, source), **over)


def ramp(status: TaskStatus | None, **over: Any) -> tuple[Course, MoveTask | None]:
    """At a stage of its own task, which was asked for a minute before."""
    asked_at = NOW - timedelta(minutes=1)
    going = course(
        Stage.RAMP,
        **{
            "by_task": True,
            "intent_at": asked_at,
            "task_handle": "ours",
            "stage_at": asked_at,
            "size": 800,
            "moved_in_stage": 0,
            "rate_per_second": 5,
            **over,
        },
    )
    task = MoveTask(status, asked_at, moved=300, handle="ours", per_second=5) if status else None
    return going, task


@pytest.mark.parametrize(
    ("moved_so_far", "halts_at"),
    [
        (0, 1),
        (5, 1),
        (20, 1),
        (21, 2),
        (100, 5),
        (101, 6),
        (180, 9),
        (199, 10),
        (200, 10),
        (9_999, 10),
    ],
)
def test_it_halts_at_five_in_a_hundred_or_at_ten(moved_so_far: int, halts_at: int) -> None:
    assert BOUNDS.halts_at(moved_so_far) == halts_at
    before = course(moved=moved_so_far, returned=halts_at - 1)
    assert decide(before, look(), EMPTY, BOUNDS).course.stage is not Stage.HALTED
    halted = decide(replace(before, returned=halts_at), look(), EMPTY, BOUNDS).course
    assert halted.stage is Stage.HALTED
    assert f"{halts_at} came back" in halted.because


def test_a_share_is_reached_and_not_only_passed() -> None:
    """0.05 * 140 is 7.000000000000001."""
    assert Bounds(halt_returned=100).halts_at(140) == 7


def test_what_was_there_before_anything_went_back_does_not_count() -> None:
    found = Census(seen=50, returned=30, quarantined=30)
    opening = course(Stage.CANARY, is_opened=False, moved=0, moved_in_stage=0, size=5)
    after = settled(counted(opening, found), found, 100)
    assert (after.returned, after.quarantined, after.expected) == (0, 30, 70)
    assert isinstance(decide(after, look(), found, BOUNDS).action, MoveByHand)


def test_what_could_not_be_quarantined_counts_once_and_still_halts() -> None:
    found = Census(seen=50, returned=6, quarantined=2)
    after = settled(counted(course(), found), found, 1_000)
    assert (after.returned, after.quarantined) == (2, 2)
    assert decide(after, look(), found, BOUNDS).course.stage is Stage.HALTED


def test_new_dead_letters_halt_it_at_ten_whatever_was_moved() -> None:
    few, many = (Census(seen=50, newly_dead=number) for number in (9, 10))
    assert decide(course(moved=5), look(), few, BOUNDS).course.stage is not Stage.HALTED
    assert decide(course(moved=5), look(), many, BOUNDS).course.stage is Stage.HALTED


def test_of_a_fifo_queue_letters_more_than_there_should_be_came_back_unseen() -> None:
    at_standard = decide(course(), look(waiting=1_005), EMPTY, BOUNDS)
    assert at_standard.course.stage is Stage.RAMP
    unseen = decide(course(), look(waiting=1_005, is_fifo=True), EMPTY, BOUNDS).course
    assert unseen.stage is Stage.HALTED
    assert "the queue holds 5 more than it should" in unseen.because
    early = course(soak_ends_at=NOW + AN_HOUR)
    assert (
        decide(early, look(waiting=1_005, is_fifo=True), EMPTY, BOUNDS).course.stage is Stage.SOAK
    )


def test_a_census_comes_first_and_not_while_frozen() -> None:
    for stage in (Stage.CANARY, Stage.SOAK, Stage.RAMP):
        assert decide(course(stage), look(), None, BOUNDS).action == TakeCensus()
        frozen = decide(course(stage), look(frozen="an incident"), None, BOUNDS)
        assert frozen.action == Rest("changes are frozen: an incident")
        assert frozen.course.stage is stage


@pytest.mark.parametrize(
    ("deletes_per_second", "since", "letters"),
    [
        (50, 60, 300),
        (500, 60, 600),
        (0.5, 60, 3),
        (0.05, 58, 1),
        (0.05, 200, 1),
        (0.05, 6, None),
        (50, 6, 30),
    ],
)
def test_letters_go_back_at_a_tenth_of_what_is_deleted_and_one_a_minute(
    deletes_per_second: float, since: int, letters: int | None
) -> None:
    going = course(
        Stage.RAMP,
        moved_in_stage=1,
        size=2_000,
        stage_at=NOW,
        moved_at=NOW - timedelta(seconds=since),
    )
    source = replace(look().source, deletes_per_second=deletes_per_second)
    action = decide(going, look(source=source), EMPTY, BOUNDS).action
    assert action == (MoveByHand(letters) if letters else Rest("no letter's turn has come"))


def test_what_is_in_hand_is_written_down_before_it_goes() -> None:
    going = course(Stage.CANARY, size=5, moved_in_stage=0, moved=0)
    decided = decide(going, look(), EMPTY, BOUNDS)
    assert (decided.action, decided.course.in_hand) == (MoveByHand(5), 5)
    died = decide(decided.course, look(), EMPTY, BOUNDS).course
    assert (died.stage, died.moved, died.moved_in_stage, died.unsure_in_stage) == (
        Stage.SOAK,
        0,
        5,
        5,
    )


def test_a_stage_that_proved_nothing_is_followed_by_a_canary() -> None:
    unproven = course(moved=0, moved_in_stage=5, unsure_in_stage=5, size=5, number=0)
    assert decide(unproven, look(), EMPTY, BOUNDS).course.size == 5
    short = moved(course(Stage.RAMP, in_hand=3, moved_in_stage=0), 3, is_short=True)
    assert (short.size, short.left_in_stage) == (3, 0)


def test_a_soak_lasts_until_a_poison_letter_must_be_back() -> None:
    source = replace(look().source, visible=1_000)
    soaking = decide(course(Stage.RAMP), look(source=source), EMPTY, BOUNDS).course
    assert soaking.stage is Stage.SOAK
    assert soaking.soak_ends_at == NOW + timedelta(seconds=1.2 * 3 * 30 + 5 + 1_000 / 50)


def test_no_setting_makes_a_soak_shorter_than_a_fifth_more_than_needed() -> None:
    soak = Bounds(soak_factor=0.1, least_soak_seconds=0).soak(
        receives=10, lease_seconds=100, delay_seconds=0
    )
    assert soak == timedelta(seconds=1_200)


def in_source(visible: int, deleted_since: int | None) -> Source:
    return replace(look().source, visible=visible, deleted_since=deleted_since)


@pytest.mark.parametrize("waiting", [0, 1_000])
@pytest.mark.parametrize("deleted_since", [None, 0, 94])
def test_what_stands_unread_in_the_source_proves_nothing(
    waiting: int, deleted_since: int | None
) -> None:
    """Deletes from before the stage went keep the rate up; 100 stood there when it had gone."""
    soaked = course(stood=100, returned=5, moved=1_000)
    still = look(waiting=waiting, source=in_source(80, deleted_since))
    waits = decide(soaked, still, EMPTY, BOUNDS)
    assert (waits.course.stage, waits.action) == (Stage.SOAK, Rest(deeds.UNREAD))
    assert waits.course.waits_since == NOW
    long_ago = NOW - timedelta(seconds=BOUNDS.patience_seconds)
    halted = decide(replace(soaked, waits_since=long_ago), still, EMPTY, BOUNDS).course
    assert (halted.stage, halted.because) == (Stage.HALTED, deeds.UNREAD)


@pytest.mark.parametrize("source", [in_source(0, 0), in_source(80, 95)])
def test_what_was_worked_off_lets_the_next_stage_go(source: Source) -> None:
    soaked = course(stood=100, returned=5, moved=1_000)
    assert decide(soaked, look(source=source), EMPTY, BOUNDS).course.stage is Stage.RAMP
    done = decide(soaked, look(waiting=0, source=source), EMPTY, BOUNDS).course
    assert done.stage is Stage.DONE


def test_a_stage_that_sent_nothing_waits_for_nobody() -> None:
    empty = course(stood=100, moved_in_stage=0)
    waiting = look(source=in_source(80, 0))
    assert decide(empty, waiting, EMPTY, BOUNDS).course.stage is Stage.RAMP


def test_a_soak_knows_what_stood_in_the_source_when_its_stage_had_gone() -> None:
    sent = course(Stage.RAMP, size=80, moved_in_stage=80)
    soaking = decide(sent, look(source=in_source(20, None)), EMPTY, BOUNDS).course
    assert (soaking.stage, soaking.stood) == (Stage.SOAK, 100)


@pytest.mark.parametrize("deletes_per_second", [None, 0])
@pytest.mark.parametrize("stage", [Stage.CANARY, Stage.RAMP, Stage.SOAK])
def test_nobody_handles_messages_so_it_waits_and_halts_after_an_hour(
    stage: Stage, deletes_per_second: float | None
) -> None:
    source = replace(look().source, deletes_per_second=deletes_per_second)
    going = course(stage, moved_in_stage=0)
    waits = decide(going, look(source=source), EMPTY, BOUNDS)
    assert isinstance(waits.action, Rest)
    assert (waits.course.stage, waits.course.waits_since) == (stage, NOW)
    nearly = replace(waits.course, waits_since=NOW - AN_HOUR + timedelta(seconds=1))
    assert decide(nearly, look(source=source), EMPTY, BOUNDS).course.stage is stage
    halted = decide(replace(nearly, waits_since=NOW - AN_HOUR), look(source=source), EMPTY, BOUNDS)
    assert halted.course.stage is Stage.HALTED
    assert decide(nearly, look(), EMPTY, BOUNDS).course.stage is not Stage.HALTED


def test_a_task_is_started_once_and_slow_enough_for_its_stage() -> None:
    busy = look(source=replace(look().source, deletes_per_second=4_000))
    stage = decide(course(size=500, moved_in_stage=500), busy, EMPTY, BOUNDS).course
    assert (stage.by_task, stage.size) == (True, 2_000)
    decided = decide(stage, busy, EMPTY, BOUNDS)
    # 400 a second would be within a tenth; at 33 a tick of a minute moves one stage.
    assert decided.action == StartTask(33)
    assert decided.course.intent_at == decided.course.first_task_at == NOW
    later = replace(busy, now=NOW + timedelta(minutes=1))
    again = decide(decided.course, later, EMPTY, BOUNDS)
    assert (again.action, again.course.intent_at) == (StartTask(33), NOW)


@pytest.mark.parametrize(
    ("is_fifo", "deletes_per_second", "by_task"),
    [(True, 4_000, False), (False, 99, False), (False, 101, True), (False, 4_000, True)],
)
def test_only_what_the_mover_cannot_do_is_a_task_s(
    is_fifo: bool, deletes_per_second: float, by_task: bool
) -> None:
    seen = look(
        is_fifo=is_fifo, source=replace(look().source, deletes_per_second=deletes_per_second)
    )
    going = course(size=2_000, moved_in_stage=2_000)
    assert decide(going, seen, EMPTY, BOUNDS).course.by_task is by_task


@pytest.mark.parametrize(
    ("over", "halts_for"),
    [
        ({"frozen": "an incident"}, ""),
        ({"forbidden": "it is not managed"}, "it is not managed"),
    ],
)
def test_a_running_task_is_cancelled_at_the_next_tick(over: dict[str, str], halts_for: str) -> None:
    going, task = ramp(TaskStatus.RUNNING)
    decided = decide(going, look(task=task, **over), None, BOUNDS)
    assert decided.action == CancelTask("ours")
    assert (decided.course.stage, decided.course.halts_for) == (Stage.CANCELLING, halts_for)
    assert (decided.course.moved, decided.course.moved_in_stage) == (400, 300)
    over_now = replace(task, status=TaskStatus.CANCELLED, moved=310) if task else None
    after = decide(decided.course, look(task=over_now, **over), None, BOUNDS).course
    assert after.stage is (Stage.HALTED if halts_for else Stage.SOAK)
    assert after.moved == 410


def test_a_task_is_left_running_until_it_has_moved_enough() -> None:
    going, task = ramp(TaskStatus.RUNNING)
    assert decide(going, look(task=task), EMPTY, BOUNDS).action == Rest("its move task runs")
    full, _ = ramp(TaskStatus.RUNNING, size=300)
    assert decide(full, look(task=task), EMPTY, BOUNDS).action == CancelTask("ours")
    slower = look(task=task, source=replace(look().source, deletes_per_second=10))
    assert decide(going, slower, EMPTY, BOUNDS).action == CancelTask("ours")
    late = look(task=task, now=NOW + AN_HOUR)
    assert decide(going, late, EMPTY, BOUNDS).action == CancelTask("ours")


def test_a_task_that_ends_by_itself_is_recounted_and_soaked() -> None:
    going, task = ramp(TaskStatus.COMPLETED)
    done = task and replace(task, handle="")
    after = decide(going, look(task=done), None, BOUNDS).course
    assert (after.stage, after.moved, after.by_task, after.intent_at) == (
        Stage.SOAK,
        400,
        False,
        None,
    )


def test_a_task_that_somebody_else_cancels_is_waited_for() -> None:
    going, task = ramp(TaskStatus.CANCELLING)
    decided = decide(going, look(task=task), EMPTY, BOUNDS)
    assert decided.course.stage is Stage.CANCELLING
    waits = decide(decided.course, look(task=task), EMPTY, BOUNDS)
    assert waits.action == Rest("its move task is being cancelled")


def test_a_failed_task_halts_it_with_sqs_s_reason() -> None:
    going, task = ramp(TaskStatus.FAILED)
    failed = task and replace(task, failure="AWS.SimpleQueueService.NonExistentQueue")
    halted = decide(going, look(task=failed), None, BOUNDS).course
    assert (halted.stage, halted.moved) == (Stage.HALTED, 400)
    assert halted.because == "the move task failed: AWS.SimpleQueueService.NonExistentQueue"


def test_a_cancel_that_sqs_refuses_is_asked_again_for_an_hour() -> None:
    going, task = ramp(TaskStatus.RUNNING)
    cancelling = replace(going, stage=Stage.CANCELLING, stage_at=NOW)
    assert decide(cancelling, look(task=task), None, BOUNDS).action == CancelTask("ours")
    halted = decide(cancelling, look(task=task, now=NOW + AN_HOUR), None, BOUNDS).course
    assert (halted.stage, halted.because) == (
        Stage.HALTED,
        "the move task could not be cancelled, and still runs",
    )


def test_a_task_of_36_hours_is_over_when_sqs_says_so() -> None:
    """Nobody ticked for as long as SQS lets a task run."""
    for status in (TaskStatus.COMPLETED, TaskStatus.CANCELLED, TaskStatus.FAILED):
        going, task = ramp(status)
        after = decide(going, look(task=task, now=NOW + timedelta(hours=37)), None, BOUNDS).course
        assert after.stage is (Stage.HALTED if status is TaskStatus.FAILED else Stage.SOAK)
        assert after.moved == 400


@pytest.mark.parametrize("stage", [Stage.CANARY, Stage.SOAK, Stage.RAMP, Stage.CANCELLING])
@pytest.mark.parametrize(
    "other",
    [
        {"started_at": NOW - timedelta(hours=2), "handle": ""},
        {"handle": "theirs"},
        {"handle": "", "per_second": 500},
        {"handle": "", "per_second": None},
        {"handle": "", "destination_arn": SOURCE},
    ],
)
def test_somebody_else_s_task_halts_it_and_is_left_alone(
    stage: Stage, other: dict[str, Any]
) -> None:
    going, task = ramp(TaskStatus.RUNNING)
    theirs = task and replace(task, **other)
    decided = decide(replace(going, stage=stage), look(task=theirs), None, BOUNDS)
    assert decided.action is None
    assert (decided.course.stage, decided.course.moved) == (Stage.HALTED, 100)


def test_a_task_whose_answer_was_lost_is_known_by_when_it_was_asked_for() -> None:
    going, task = ramp(TaskStatus.RUNNING, task_handle="")
    assert decide(going, look(task=task), EMPTY, BOUNDS).course.task_handle == "ours"


def test_a_task_is_ours_by_its_handle_whenever_sqs_says_that_it_began() -> None:
    going, task = ramp(TaskStatus.RUNNING)
    assert task is not None
    early = replace(task, started_at=task.started_at - timedelta(minutes=1))
    seen = decide(going, look(task=early), EMPTY, BOUNDS).course
    assert (seen.stage, seen.task_started_at) == (Stage.RAMP, early.started_at)
    done = replace(early, status=TaskStatus.COMPLETED, handle="", moved=350)
    after = decide(seen, look(task=done), None, BOUNDS).course
    assert (after.stage, after.moved, after.task_started_at) == (Stage.SOAK, 450, None)
    another = replace(done, started_at=NOW)
    assert decide(seen, look(task=another), None, BOUNDS).course.moved == 400


def test_a_task_did_enough_without_a_census() -> None:
    full, task = ramp(TaskStatus.RUNNING, size=300)
    assert decide(full, look(task=task), None, BOUNDS).action == CancelTask("ours")
    going, _ = ramp(TaskStatus.RUNNING)
    slower = look(task=task, source=replace(look().source, deletes_per_second=10))
    assert decide(going, slower, None, BOUNDS).action == CancelTask("ours")
    assert decide(going, look(task=task, now=NOW + AN_HOUR), None, BOUNDS).action == CancelTask(
        "ours"
    )


def test_what_cannot_be_seen_waits_and_halts_after_an_hour() -> None:
    blind = look(hindered="SQS does not answer")
    for stage in (Stage.CANARY, Stage.SOAK, Stage.RAMP):
        for census in (None, EMPTY):
            waits = decide(course(stage), blind, census, BOUNDS)
            assert waits.action == Rest("SQS does not answer")
            assert (waits.course.stage, waits.course.hindered_since) == (stage, NOW)
        late = replace(waits.course, hindered_since=NOW - AN_HOUR)
        halted = decide(late, blind, None, BOUNDS).course
        assert (halted.stage, halted.because) == (Stage.HALTED, "SQS does not answer")
        assert decide(late, look(), None, BOUNDS).action == TakeCensus()


def test_while_nothing_is_seen_a_task_is_cancelled_and_then_nothing_soaks() -> None:
    going, task = ramp(TaskStatus.RUNNING)
    blind = look(task=task, hindered="SQS does not answer")
    decided = decide(going, blind, None, BOUNDS)
    assert (decided.action, decided.course.halts_for) == (CancelTask("ours"), "")
    over = task and replace(task, status=TaskStatus.CANCELLED)
    waits = decide(decided.course, replace(blind, task=over), None, BOUNDS)
    assert (waits.course.stage, waits.action) == (
        Stage.CANCELLING,
        Rest("SQS does not answer"),
    )
    assert decide(waits.course, look(task=over), None, BOUNDS).course.stage is Stage.SOAK


def test_a_task_of_which_sqs_says_nothing_is_cancelled_until_it_is_seen() -> None:
    going, _ = ramp(TaskStatus.RUNNING)
    blind = look(hindered="SQS does not answer", tasks_unseen=True)
    decided = decide(going, blind, None, BOUNDS)
    assert decided.action == CancelTask("ours")
    assert decide(decided.course, blind, None, BOUNDS).action == CancelTask("ours")
    halted = decide(decided.course, replace(blind, now=NOW + AN_HOUR), None, BOUNDS).course
    assert halted.stage is Stage.HALTED
    assert halted.because.startswith("SQS does not say whether the move task")
    asked_for_none = decide(course(Stage.RAMP), blind, None, BOUNDS)
    assert asked_for_none.action == Rest("SQS does not answer")


def test_what_was_back_before_and_cannot_be_kept_apart_opens_nothing() -> None:
    found = Census(seen=50, returned=30, quarantined=10)
    opening = course(Stage.CANARY, is_opened=False, moved=0, moved_in_stage=0, size=5)
    after = settled(counted(opening, found), found, 100)
    assert (after.is_opened, after.returned, after.quarantined) == (False, 0, 10)
    waits = decide(after, look(hindered="no quarantine"), found, BOUNDS)
    assert isinstance(waits.action, Rest)


def test_what_is_over_only_ends_the_case_again() -> None:
    for stage, state in ((Stage.DONE, State.VERIFIED), (Stage.HALTED, State.ESCALATED)):
        over = course(stage, because="so it is")
        hostile = look(frozen="an incident", forbidden="off", task=ramp(TaskStatus.RUNNING)[1])
        decided = decide(over, hostile, None, BOUNDS)
        assert (decided.course, decided.action) == (over, End(state, "so it is"))


def test_it_is_done_when_nothing_is_left_but_what_cannot_go() -> None:
    stuck = Census(seen=4, stuck=4)
    done = decide(course(returned=2), look(waiting=4), stuck, BOUNDS).course
    assert done.stage is Stage.DONE
    assert done.because == (
        "100 letters went back, 2 of them came back and are in orders-quarantine; "
        "4 cannot go back there and stay"
    )
    held = decide(course(), look(waiting=5), stuck, BOUNDS).course
    assert held.stage is Stage.RAMP


def test_it_is_not_done_before_the_soak_is_over_or_while_nobody_works() -> None:
    soaking = course(soak_ends_at=NOW + timedelta(seconds=1))
    assert isinstance(decide(soaking, look(waiting=0), EMPTY, BOUNDS).action, Rest)
    idle = look(waiting=0, source=replace(look().source, deletes_per_second=0))
    assert decide(course(), idle, EMPTY, BOUNDS).course.stage is Stage.SOAK


def test_sqs_that_takes_nothing_halts_it_after_an_hour() -> None:
    going = course(
        Stage.RAMP,
        moved_in_stage=0,
        stage_at=NOW - 2 * AN_HOUR,
        refused_since=NOW - AN_HOUR,
        is_refused=True,
        because="AccessDenied",
    )
    halted = decide(going, look(), EMPTY, BOUNDS).course
    assert (halted.stage, halted.because) == (Stage.HALTED, "AccessDenied")
    next_stage = replace(going, is_refused=False)
    assert isinstance(decide(next_stage, look(), EMPTY, BOUNDS).action, MoveByHand)
    nearly = replace(going, refused_since=NOW - AN_HOUR + timedelta(seconds=1), moved_in_stage=3)
    assert decide(nearly, look(), EMPTY, BOUNDS).course.stage is Stage.RAMP


def test_taken_back_it_goes_no_further_whatever_is_frozen() -> None:
    going, task = ramp(TaskStatus.RUNNING)
    off = called_off(going, look(task=task, frozen="an incident"), BOUNDS, "a person took it back")
    assert (off.action, off.course.stage, off.course.moved) == (
        CancelTask("ours"),
        Stage.CANCELLING,
        400,
    )
    asked = decide(off.course, look(task=task), None, BOUNDS)
    assert (asked.action, asked.course.stage) == (CancelTask("ours"), Stage.CANCELLING)
    again = called_off(off.course, look(task=task), BOUNDS, "again")
    assert (again.action, again.course.halts_for) == (CancelTask("ours"), "a person took it back")
    taken = taken_back(off.course, NOW)
    assert (taken.stage, taken.because) == (Stage.HALTED, "a person took it back")
    assert called_off(taken, look(task=task), BOUNDS, "").action == CancelTask("ours")
    stopping = task and replace(task, status=TaskStatus.CANCELLING)
    done = called_off(off.course, look(task=stopping), BOUNDS, "again")
    assert (done.action, done.course) == (None, taken)
    idle = called_off(course(), look(), BOUNDS, "a person took it back")
    assert (idle.action, idle.course.stage) == (None, Stage.HALTED)
    theirs = task and replace(task, handle="theirs")
    assert called_off(going, look(task=theirs), BOUNDS, "").action is None


def test_a_course_comes_back_as_it_was_written() -> None:
    going, _ = ramp(None, fingerprints=("a", "b"), waits_since=NOW)
    assert Course.from_document(going.document()) == going
    newer = going.document() | {"unheard_of": 1}
    assert Course.from_document(newer) == going


@pytest.mark.parametrize(
    "damage",
    [
        {"stage": "nowhere"},
        {"stage": "soak", "soak_ends_at": None},
        {"case_id": 1},
        {"size": "5"},
        {"size": True},
        {"size": -1},
        {"size": 5.0},
        {"moved": 10**400},
        {"rate_per_second": float("nan")},
        {"rate_per_second": float("inf")},
        {"rate_per_second": "1"},
        {"by_task": 1},
        {"began_at": None},
        {"began_at": "2026-11-21T12:00:00"},
        {"began_at": "yesterday"},
        {"moved_at": 1},
        {"fingerprints": "abc"},
        {"fingerprints": [1]},
        {"fingerprints": None},
    ],
)
def test_what_is_damaged_is_no_course(damage: dict[str, Any]) -> None:
    going, _ = ramp(None)
    with pytest.raises((TypeError, ValueError)):
        Course.from_document(going.document() | damage)


@pytest.mark.parametrize("name", ["case_id", "dead_letter_arn", "stage", "began_at", "size"])
def test_what_lacks_a_beginning_is_no_course(name: str) -> None:
    rest = {key: value for key, value in course().document().items() if key != name}
    with pytest.raises(TypeError):
        Course.from_document(rest)


def test_every_row_says_in_words_when_and_what() -> None:
    words = [each.__doc__ for row in TABLE for each in (row.when, row.does)]
    assert all(words)
    for stage in Stage:
        last = [row for row in TABLE if stage in row.out_of][-1]
        assert last.when.__doc__ == "always", stage

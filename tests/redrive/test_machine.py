"""Decisions of the redrive machine for one progress and one sample of the DLQ."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec import structs

from mendq.model.limits import Bounds
from mendq.redrive.machine import (
    MESSAGES_STILL_IN_SOURCE_REASON,
    NO_DELETES_REASON,
    OTHER_MOVE_TASK_REASON,
    TICKS_ENDED_EARLY_REASON,
    WAITING_ACTIONS,
    Action,
    Blocker,
    Decision,
    RedriveSituation,
    decide,
)
from mendq.redrive.messages import MoveResult, UnmovedMessage
from mendq.redrive.progress import (
    RUNNING_STAGES,
    DlqSample,
    RedriveProgress,
    RedriveWaits,
    Stage,
    StageProgress,
)
from tests.redrive.toy import DEAD, NOW, SOURCE, begin_progress, message, queue

BOUNDS = Bounds()
EMPTY = DlqSample()
AN_HOUR = timedelta(hours=1)
NEARLY = timedelta(minutes=59, seconds=59)
STAGES = pytest.mark.parametrize("stage", RUNNING_STAGES)


def make_progress(stage: Stage = Stage.SOAK, **over: Any) -> RedriveProgress:
    """Return a progress with 100 moved messages and a finished soak. `over` sets any field."""
    current = StageProgress(
        NOW - AN_HOUR, size=80, number=2, moved=80, soak_ends_at=NOW, expected=1_000
    )
    of_all = {"began_at": NOW - AN_HOUR, "moved": over.pop("moved", 100)}
    made = structs.replace(begin_progress(), stage=stage, current=current, **of_all)
    of_stage = {"stage_moved": "moved", "stage_at": "began_at"}
    named = {of_stage.get(name, name): value for name, value in over.items()}
    parts: dict[Any, Any] = {StageProgress: made.current, RedriveWaits: made.waits}
    for kind, part in parts.items():
        names = {*part.__struct_fields__} & named.keys()
        parts[kind] = structs.replace(part, **{name: named.pop(name) for name in names})
    return structs.replace(made, current=parts[StageProgress], waits=parts[RedriveWaits], **named)


def decide_next(
    before: RedriveProgress,
    found: DlqSample | None = EMPTY,
    bounds: Bounds = BOUNDS,
    *,
    waiting: int = 1_000,
    source: str = SOURCE,
    visible: int = 0,
    rate: float | None = 50,
    **over: Any,
) -> Decision:
    dlq = queue(DEAD, waiting)
    to = queue(source, visible, delay=5)
    return decide(
        RedriveSituation(
            before, NOW, dlq, to, bounds, deletes_per_second=rate, sample=found, **over
        )
    )


def find_next_progress(*asked: Any, **over: Any) -> RedriveProgress:
    return decide_next(*asked, **over)[0]


def find_next_stage(*asked: Any, **over: Any) -> Stage:
    return find_next_progress(*asked, **over).stage


def make_returned_messages(number: int) -> tuple[Any, ...]:
    return tuple(message(f"back {index}") for index in range(number))


@pytest.mark.parametrize(
    ("moved_so_far", "halts_at"),
    [(0, 2), (5, 2), (40, 2), (41, 3), (101, 6), (199, 10), (9_999, 10)],
)
def test_redrive_halts_if_5_percent_of_at_least_35_or_10_messages_returned_to_the_dlq(
    moved_so_far: int, halts_at: int
) -> None:
    before = make_progress(moved=moved_so_far, returned=halts_at - 1)
    assert find_next_stage(before) is not Stage.HALTED
    halted = find_next_progress(structs.replace(before, returned=halts_at))
    assert halted.stage is Stage.HALTED
    assert f"{halts_at} came back" in halted.because
    # 0.05 * 140 is 7.000000000000001.
    assert Bounds(halt_returned=100).halt_threshold(140) == 7


@pytest.mark.parametrize(("moved_so_far", "halts_at"), [(1, 1), (5, 1), (20, 1), (21, 2)])
def test_redrive_with_no_message_left_halts_by_the_share_of_those_that_went(
    moved_so_far: int, halts_at: int
) -> None:
    before = make_progress(moved=moved_so_far, stood=0)
    for returned, stage in ((halts_at - 1, Stage.DONE), (halts_at, Stage.HALTED)):
        assert find_next_stage(structs.replace(before, returned=returned), waiting=0) is stage
    soaking = structs.replace(before, returned=1).change_current_stage(soak_ends_at=NOW + AN_HOUR)
    assert find_next_stage(soaking, waiting=0) is Stage.SOAK, "others may still come back"


def test_one_returned_message_of_a_canary_begins_a_second_canary_of_30() -> None:
    canary = make_progress(moved=5, returned=1, stage_moved=5, size=5, number=0)
    second = find_next_progress(canary)
    assert (second.stage, second.current.size) == (Stage.SECOND_CANARY, 30)
    assert find_next_progress(structs.replace(canary, returned=0)).current.size == 20
    assert find_next_stage(structs.replace(canary, returned=2)) is Stage.HALTED
    proven = make_progress(moved=35, returned=1, stage_moved=30, size=30, number=1)
    ramp = find_next_progress(proven)
    assert (ramp.stage, ramp.current.size) == (Stage.RAMP, 120)
    assert find_next_stage(structs.replace(proven, returned=2)) is Stage.HALTED


def test_canary_of_which_no_message_certainly_went_is_repeated_and_not_enlarged() -> None:
    unsure = make_progress(moved=0, returned=1, stage_moved=5, unsure=5, size=5, number=0)
    again = find_next_progress(unsure)
    assert (again.stage, again.current.size) == (Stage.RAMP, BOUNDS.canary)


def test_second_canary_is_sent_at_the_rate_of_the_consumers() -> None:
    moved_at = NOW - timedelta(minutes=1)
    going = make_progress(
        Stage.SECOND_CANARY, moved=5, returned=1, stage_moved=0, size=30, moved_at=moved_at
    )
    assert decide_next(going, rate=0.5).progress.current.in_flight == 3
    assert decide_next(going, rate=50).progress.current.in_flight == 30


def test_newly_dead_messages_halt_a_canary_if_all_others_of_it_came_back() -> None:
    before = make_progress(moved=5, returned=1)
    assert find_next_stage(before, DlqSample(newly_dead_count=3)) is not Stage.HALTED
    assert find_next_stage(before, DlqSample(newly_dead_count=4)) is Stage.HALTED


def test_redrive_that_cannot_read_the_dlq_does_not_halt_for_one_returned_message() -> None:
    before = make_progress(moved=5, returned=1)
    blind = find_next_progress(before, None, waiting=0, blocker=Blocker("SQS does not answer"))
    assert (blind.stage, blind.because) == (Stage.SOAK, "SQS does not answer")


def test_expected_dlq_depth_is_taken_from_the_depth_before_the_first_message_moved() -> None:
    first = make_progress(Stage.CANARY, moved=0, stage_moved=0, size=5)
    assert find_next_progress(first, waiting=70).current.expected == 70
    assert (
        find_next_progress(structs.replace(first, moved_at=NOW), waiting=70).current.expected
        == 1_000
    )


def test_redrive_halts_after_three_ticks_in_a_row_without_result() -> None:
    """Such a tick was killed while sampling or found no message that it may send."""
    going = make_progress(Stage.CANARY, moved=0, stage_moved=0, size=5)
    for died in range(1, 4):
        going, then = decide_next(going, None, waiting=70)
        assert (then, going.waits.fruitless) == (Action.TAKE_SAMPLE, died)
    halted = find_next_progress(going, None, waiting=70)
    assert (halted.stage, halted.because) == (Stage.HALTED, TICKS_ENDED_EARLY_REASON)
    before = going.change_waits(fruitless=2)
    refused = (UnmovedMessage("m", "AccessDenied", "no"),)
    found_none = before.count_move(MoveResult(), NOW, is_sample_short=False)
    assert find_next_progress(found_none, None).because == TICKS_ENDED_EARLY_REASON
    for put in (MoveResult(moved_count=1), MoveResult(unmoved_messages=refused)):
        assert before.count_move(put, NOW, is_sample_short=False).waits.fruitless == 0
    looked = decide_next(before, None).progress.count_quarantine(EMPTY)
    assert looked.waits.fruitless == 2, "a look that ends is no tick in vain"
    blind = find_next_progress(
        make_progress(fruitless=2), None, blocker=Blocker("SQS does not answer")
    )
    assert (blind.stage, blind.waits.fruitless) == (Stage.SOAK, 0)
    unknown = find_next_progress(make_progress(Stage.RAMP, in_flight=5, fruitless=1))
    assert unknown.waits.fruitless == 2, "nobody knows whether any of the five went"


def test_returned_messages_that_could_not_be_quarantined_still_halt_the_redrive() -> None:
    found = DlqSample(returned_messages=make_returned_messages(6), quarantined_count=2)
    counted = make_progress().count_sample(found).count_quarantine(found)
    assert (counted.returned, counted.quarantined) == (2, 2)
    assert find_next_stage(counted, found) is Stage.HALTED


def test_redrive_halts_if_newly_dead_messages_reach_the_moved_count_or_10() -> None:
    for before, halts_at in ((make_progress(moved=5), 5), (make_progress(moved=500), 10)):
        assert find_next_stage(before, DlqSample(newly_dead_count=halts_at - 1)) is not Stage.HALTED
        assert find_next_stage(before, DlqSample(newly_dead_count=halts_at)) is Stage.HALTED


def test_fifo_redrive_halts_if_the_dlq_holds_more_messages_than_expected() -> None:
    fifo = f"{SOURCE}.fifo"
    assert find_next_stage(make_progress(), waiting=1_005) is Stage.RAMP
    unseen = find_next_progress(make_progress(), waiting=1_005, source=fifo)
    assert unseen.stage is Stage.HALTED
    assert "the queue holds 5 more than it should" in unseen.because
    early = make_progress(soak_ends_at=NOW + AN_HOUR)
    assert find_next_stage(early, waiting=1_005, source=fifo) is Stage.SOAK


@STAGES
def test_tick_samples_the_dlq_first_unless_frozen_or_another_move_task_runs(stage: Stage) -> None:
    before = make_progress(stage)
    no = Blocker("no", is_for_good=True)
    assert decide_next(before, None) == (before.change_waits(fruitless=1), Action.TAKE_SAMPLE)
    for over, why in (
        ({"freeze_reason": "an incident"}, "changes are frozen: an incident"),
        ({"has_other_move_task_running": True}, OTHER_MOVE_TASK_REASON),
    ):
        waits, then = decide_next(before, None, **over)
        assert (waits.stage, waits.because) == (stage, why)
        assert then in WAITING_ACTIONS
        assert find_next_progress(before, blocker=no, **over).is_over


@pytest.mark.parametrize(
    ("rate", "since", "messages"),
    [(50, 60, 300), (500, 60, 1_500), (0.5, 60, 3), (0.05, 58, 1), (0.05, 6, None), (50, 6, 30)],
)
def test_ramp_sends_a_tenth_of_the_delete_rate_and_at_least_one_message_a_minute(
    rate: float, since: int, messages: int | None
) -> None:
    moved_at = NOW - timedelta(seconds=since)
    going = make_progress(Stage.RAMP, stage_moved=1, size=2_000, stage_at=NOW, moved_at=moved_at)
    goes, then = decide_next(going, rate=rate)
    assert then is (Action.SEND if messages else Action.WAIT)
    assert goes.current.in_flight == (messages or 0)


def test_messages_are_recorded_as_in_flight_before_they_are_sent() -> None:
    goes, then = decide_next(make_progress(Stage.CANARY, size=5, stage_moved=0, moved=0))
    assert (then, goes.current.in_flight) == (Action.SEND, 5)
    died = find_next_progress(goes)
    assert (died.stage, died.moved) == (Stage.SOAK, 0)
    assert (died.current.moved, died.current.unsure) == (5, 5)
    unproven = find_next_progress(make_progress(stage_moved=20, size=20, unsure=20))
    assert unproven.current.size == BOUNDS.canary, "what is unsure proves nothing"


@pytest.mark.parametrize(
    ("put", "is_short", "stage_moved", "is_refused"),
    [
        (MoveResult(moved_count=5), False, 5, False),
        (MoveResult(moved_count=3), True, 3, False),
        (MoveResult(moved_count=2, copied_count=1), False, 3, False),
        (MoveResult(unmoved_messages=(UnmovedMessage("m", "AccessDenied", "no"),)), False, 0, True),
        (
            MoveResult(
                unmoved_messages=(UnmovedMessage("m", "unanswered", "", is_temporary=True),)
            ),
            False,
            1,
            True,
        ),
    ],
)
def test_progress_counts_moved_copied_and_refused_messages_of_a_move(
    put: MoveResult, is_short: bool, stage_moved: int, is_refused: bool
) -> None:
    going = make_progress(Stage.CANARY, size=5, stage_moved=0, moved=0, in_flight=5, expected=10)
    went = going.count_move(put, NOW, is_sample_short=is_short)
    assert (went.moved, went.current.moved, went.current.in_flight) == (
        put.moved_count,
        stage_moved,
        0,
    )
    assert went.current.expected == 10 - put.moved_count
    assert (went.current.size == stage_moved) is (is_short or stage_moved == 5)
    assert went.waits.is_refused is is_refused
    assert went.because == (put.first_failure_reason if is_refused else "")


@pytest.mark.parametrize(("expected", "left"), [(3, 1), (2, 0), (1, 0)])
def test_count_move_of_two_messages_expects_the_others_and_never_fewer_than_none(
    expected: int, left: int
) -> None:
    """One message too many would hide a message that failed again in the meantime."""
    going = make_progress(Stage.RAMP, expected=expected)
    went = going.count_move(MoveResult(moved_count=2), NOW, is_sample_short=False)
    assert went.current.expected == left


@pytest.mark.parametrize(("stage_moved", "late"), [(80, NEARLY), (1, AN_HOUR)])
def test_finished_stage_soaks_as_long_as_a_poison_message_needs_to_reach_the_dlq(
    stage_moved: int, late: timedelta
) -> None:
    going = make_progress(Stage.RAMP, stage_moved=stage_moved, stage_at=NOW - late)
    soaks = find_next_progress(going, visible=1_000)
    # 1.2 x 3 receives x 30 s, the delay, and 1,000 messages at 50 a second before it.
    assert soaks.current.soak_ends_at == NOW + timedelta(seconds=108 + 5 + 20)
    assert (soaks.stage, soaks.current.stood) == (Stage.SOAK, 1_000 + stage_moved)
    assert find_next_stage(going.change_current_stage(moved=0)) is Stage.RAMP
    least = Bounds(soak_factor=0.1, least_soak_seconds=0)
    soak = least.soak_duration(receives=10, visibility_seconds=100, delay_seconds=0)
    assert soak == timedelta(seconds=1_200), "no setting makes it shorter than a fifth more"


@pytest.mark.parametrize("waiting", [0, 1_000])
@pytest.mark.parametrize(
    ("visible", "deletes_since_send", "is_unread"),
    [(80, None, True), (80, 94, True), (80, 95, False), (0, 0, False)],
)
def test_redrive_waits_with_patience_while_sent_messages_are_unread_in_the_source(
    waiting: int, visible: int, deletes_since_send: int | None, *, is_unread: bool
) -> None:
    """Deletes before the stage keep the delete rate up. The source then held 100 messages."""
    soaked = make_progress(stood=100, returned=5, moved=1_000)
    seen: dict[str, Any] = {
        "visible": visible,
        "deletes_since_send": deletes_since_send,
        "waiting": waiting,
    }
    if not is_unread:
        assert find_next_stage(soaked, **seen) is (Stage.RAMP if waiting else Stage.DONE)
        return
    _waits_with_patience(soaked, MESSAGES_STILL_IN_SOURCE_REASON, "consumers_since", **seen)
    nothing_went = make_progress(stood=100, stage_moved=0)
    assert find_next_stage(nothing_went, **{**seen, "waiting": 1_000}) is Stage.RAMP


def _waits_with_patience(
    before: RedriveProgress, why: str, since: str, *found: Any, **seen: Any
) -> None:
    """Require that the redrive waits for an hour and then halts."""
    waits, then = decide_next(before, *found, **seen)
    assert (waits.stage, waits.because) == (before.stage, why)
    assert then is Action.WAIT_WITH_PATIENCE
    assert getattr(waits.waits, since) == NOW
    assert (
        find_next_stage(waits.change_waits(**{since: NOW - NEARLY}), *found, **seen) is before.stage
    )
    halted = find_next_progress(waits.change_waits(**{since: NOW - AN_HOUR}), *found, **seen)
    assert (halted.stage, halted.because) == (Stage.HALTED, why)


@STAGES
def test_redrive_halts_after_an_hour_without_deletes_or_blocked(stage: Stage) -> None:
    before = make_progress(stage, stage_moved=0)
    blind = Blocker("SQS does not answer")
    for rate in (None, 0):
        _waits_with_patience(before, NO_DELETES_REASON, "consumers_since", rate=rate)
    for sample in (None, EMPTY):
        _waits_with_patience(before, blind.reason, "blocked_since", sample, blocker=blind)


def test_redrive_of_an_empty_dlq_soaks_then_finishes_with_a_summary() -> None:
    assert find_next_stage(make_progress(Stage.RAMP), waiting=0) is Stage.SOAK
    soaking = make_progress(soak_ends_at=NOW + timedelta(seconds=1))
    assert find_next_stage(soaking, waiting=0) is Stage.SOAK, "its soak still has to be over"
    whose = (f"{SOURCE}-2", None, f"{SOURCE}-2", SOURCE, "")
    stays = tuple(message("one", source_arn=source_arn) for source_arn in whose)
    done = find_next_progress(
        make_progress(returned=2), DlqSample(staying_messages=stays, newly_dead_count=1), waiting=5
    )
    assert done.stage is Stage.DONE
    assert done.because == (
        "100 messages went back, 2 of them came back and are in orders-quarantine; "
        "1 message came to the DLQ without its mark; 5 cannot go back there and stay: "
        "1 of orders, 2 of orders-2, 2 sent there by hand"
    )


def test_redrive_halts_after_14_days() -> None:
    old = structs.replace(make_progress(Stage.RAMP), began_at=NOW - timedelta(days=14))
    assert find_next_stage(old) is Stage.HALTED


def test_redrive_halts_if_sqs_refuses_every_send_for_an_hour() -> None:
    refused = {"refused_since": NOW - AN_HOUR, "is_refused": True, "because": "AccessDenied"}
    going = make_progress(Stage.RAMP, stage_moved=0, stage_at=NOW - 2 * AN_HOUR, **refused)
    halted = find_next_progress(going)
    assert (halted.stage, halted.because) == (Stage.HALTED, "AccessDenied")
    assert decide_next(going.change_waits(is_refused=False))[1] is Action.SEND
    soaked = find_next_progress(make_progress(refused_since=NOW - AN_HOUR, is_refused=True))
    assert decide_next(soaked)[1] is Action.SEND, "in a new stage it is tried once more"
    nearly = going.change_waits(refused_since=NOW - NEARLY).change_current_stage(moved=3)
    assert find_next_stage(nearly) is Stage.RAMP


def test_redrive_progress_round_trips_and_ignores_unknown_fields() -> None:
    going = make_progress(Stage.RAMP, consumers_since=NOW, moved_at=NOW)
    newer = going.document() | {"unheard_of": 1}
    assert RedriveProgress.from_document(newer) == going


AT = {"began_at": "2026-11-21T12:00:00Z"}


@pytest.mark.parametrize(
    "damage",
    [
        {"stage": "nowhere"},
        {"current": AT},
        {"current": {"began_at": "2026-11-21T12:00:00", "size": 5}},
        *({"current": {**AT, "size": size}} for size in ("5", True, -1, 5.0)),
        {"stage": "soak", "current": {**AT, "size": 5}},
        {"moved": 10**400},
        {"rate_per_second": float("nan")},
        {"queues": {"source_arn": SOURCE}},
    ],
)
def test_damaged_redrive_progress_document_is_rejected(damage: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError)):
        RedriveProgress.from_document(make_progress(Stage.RAMP).document() | damage)

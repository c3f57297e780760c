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
FIFO_SOURCE = f"{SOURCE}.fifo"
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
def test_redrive_halts_if_10_messages_or_5_percent_of_at_least_35_returned_to_the_dlq(
    moved_so_far: int, halts_at: int
) -> None:
    before = make_progress(moved=moved_so_far, returned=halts_at - 1)
    assert find_next_stage(before) is not Stage.HALTED
    halted = find_next_progress(structs.replace(before, returned=halts_at))
    assert halted.stage is Stage.HALTED
    assert f"{halts_at} came back" in halted.because


def test_share_of_returned_messages_that_halts_is_not_rounded_up_by_floating_point() -> None:
    """0.05 * 140 is 7.000000000000001."""
    assert Bounds(halt_returned=100).halt_threshold(140) == 7


@pytest.mark.parametrize(("moved_so_far", "halts_at"), [(1, 1), (5, 1), (20, 1), (21, 2)])
def test_redrive_with_no_message_left_halts_if_5_percent_of_its_messages_returned(
    moved_so_far: int, halts_at: int
) -> None:
    before = make_progress(moved=moved_so_far, stood=0, returned=halts_at)
    assert find_next_stage(before, waiting=0) is Stage.HALTED
    one_fewer = structs.replace(before, returned=halts_at - 1)
    assert find_next_stage(one_fewer, waiting=0) is Stage.DONE


def test_redrive_with_no_message_left_does_not_halt_before_its_soak_is_over() -> None:
    soaking = make_progress(moved=20, returned=1, stood=0, soak_ends_at=NOW + AN_HOUR)
    assert find_next_stage(soaking, waiting=0) is Stage.SOAK, "others may still come back"


CANARY_OF_FIVE = make_progress(moved=5, returned=0, stage_moved=5, size=5, number=0)
SECOND_CANARY_OF_THIRTY = make_progress(moved=35, returned=1, stage_moved=30, size=30, number=1)


@pytest.mark.parametrize(
    ("returned", "stage", "size"), [(0, Stage.RAMP, 20), (1, Stage.SECOND_CANARY, 30)]
)
def test_stage_after_a_canary_has_20_messages_or_is_a_second_canary_of_30_if_one_returned(
    returned: int, stage: Stage, size: int
) -> None:
    after = find_next_progress(structs.replace(CANARY_OF_FIVE, returned=returned))
    assert (after.stage, after.current.size) == (stage, size)


def test_redrive_halts_if_two_messages_of_a_canary_returned() -> None:
    assert find_next_stage(structs.replace(CANARY_OF_FIVE, returned=2)) is Stage.HALTED


def test_stage_after_a_second_canary_without_another_returned_message_has_120_messages() -> None:
    ramp = find_next_progress(SECOND_CANARY_OF_THIRTY)
    assert (ramp.stage, ramp.current.size) == (Stage.RAMP, 120)


def test_redrive_halts_if_a_second_message_returned_after_the_second_canary() -> None:
    assert find_next_stage(structs.replace(SECOND_CANARY_OF_THIRTY, returned=2)) is Stage.HALTED


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


def test_canary_halts_if_returned_and_new_messages_in_the_dlq_together_reach_its_size() -> None:
    before = make_progress(moved=5, returned=1)
    assert find_next_stage(before, DlqSample(newly_dead_count=3)) is not Stage.HALTED
    assert find_next_stage(before, DlqSample(newly_dead_count=4)) is Stage.HALTED


def test_redrive_that_cannot_read_the_dlq_does_not_halt_for_one_returned_message() -> None:
    before = make_progress(moved=5, returned=1)
    blind = find_next_progress(before, None, waiting=0, blocker=Blocker("SQS does not answer"))
    assert (blind.stage, blind.because) == (Stage.SOAK, "SQS does not answer")


def test_expected_dlq_depth_is_the_current_depth_until_the_first_message_moved() -> None:
    first = make_progress(Stage.CANARY, moved=0, stage_moved=0, size=5)
    assert find_next_progress(first, waiting=70).current.expected == 70
    has_moved = structs.replace(first, moved_at=NOW)
    assert find_next_progress(has_moved, waiting=70).current.expected == 1_000


MOST_TICKS_WITHOUT_RESULT = 3
REFUSED = (UnmovedMessage("m", "AccessDenied", "no"),)


def test_redrive_halts_after_three_ticks_in_a_row_that_died_while_sampling() -> None:
    going = make_progress(Stage.CANARY, moved=0, stage_moved=0, size=5)
    for died in range(1, MOST_TICKS_WITHOUT_RESULT + 1):
        going, then = decide_next(going, None, waiting=70)
        assert (then, going.waits.fruitless) == (Action.TAKE_SAMPLE, died)
    halted = find_next_progress(going, None, waiting=70)
    assert (halted.stage, halted.because) == (Stage.HALTED, TICKS_ENDED_EARLY_REASON)


def test_redrive_halts_after_three_ticks_in_a_row_that_found_no_message_to_send() -> None:
    before = make_progress(Stage.CANARY, fruitless=MOST_TICKS_WITHOUT_RESULT - 1)
    found_none = before.count_move(MoveResult(), NOW, is_sample_short=False)
    assert find_next_progress(found_none, None).because == TICKS_ENDED_EARLY_REASON


@pytest.mark.parametrize(
    "result",
    [MoveResult(moved_count=1), MoveResult(unmoved_messages=REFUSED)],
    ids=["moved", "refused by SQS"],
)
def test_tick_that_moved_or_tried_a_message_ends_the_count_of_ticks_without_result(
    result: MoveResult,
) -> None:
    before = make_progress(Stage.CANARY, fruitless=MOST_TICKS_WITHOUT_RESULT - 1)
    assert before.count_move(result, NOW, is_sample_short=False).waits.fruitless == 0


def test_tick_that_finished_its_sample_is_not_counted_as_one_without_result() -> None:
    before = make_progress(Stage.CANARY, fruitless=2)
    sampled = decide_next(before, None).progress.count_quarantine(EMPTY)
    assert sampled.waits.fruitless == 2


def test_tick_that_sqs_blocked_ends_the_count_of_ticks_without_result() -> None:
    blind = find_next_progress(
        make_progress(fruitless=2), None, blocker=Blocker("SQS does not answer")
    )
    assert (blind.stage, blind.waits.fruitless) == (Stage.SOAK, 0)


def test_tick_that_died_while_sending_is_counted_as_one_without_result() -> None:
    unknown = find_next_progress(make_progress(Stage.RAMP, in_flight=5, fruitless=1))
    assert unknown.waits.fruitless == 2, "nobody knows whether any of the five was sent"


def test_returned_messages_that_could_not_be_quarantined_still_halt_the_redrive() -> None:
    found = DlqSample(returned_messages=make_returned_messages(6), quarantined_count=2)
    counted = make_progress().count_sample(found).count_quarantine(found)
    assert (counted.returned, counted.quarantined) == (2, 2)
    assert find_next_stage(counted, found) is Stage.HALTED


def test_redrive_halts_if_new_messages_in_the_dlq_reach_the_moved_count_or_10() -> None:
    for before, halts_at in ((make_progress(moved=5), 5), (make_progress(moved=500), 10)):
        assert find_next_stage(before, DlqSample(newly_dead_count=halts_at - 1)) is not Stage.HALTED
        assert find_next_stage(before, DlqSample(newly_dead_count=halts_at)) is Stage.HALTED


@pytest.mark.parametrize("seconds", [1, 3_600])
def test_redrive_takes_no_sample_in_a_soak_that_is_not_over(seconds: int) -> None:
    """A look is a receive, and nothing is sent in a soak."""
    soaking = make_progress(soak_ends_at=NOW + timedelta(seconds=seconds))
    decision = decide_next(soaking, None)
    assert decision.action is Action.WAIT
    assert decision.progress.waits == soaking.waits


def test_redrive_takes_a_sample_as_soon_as_its_soak_is_over() -> None:
    assert decide_next(make_progress(soak_ends_at=NOW), None).action is Action.TAKE_SAMPLE


def test_tick_in_a_soak_that_can_read_the_queues_again_forgets_since_when_it_could_not() -> None:
    """Otherwise an error hours later would halt the redrive for the first one."""
    soaking = make_progress(soak_ends_at=NOW + AN_HOUR, blocked_since=NOW - AN_HOUR)
    blind = decide_next(soaking, None, blocker=Blocker("SQS does not answer"))
    assert blind.progress.stage is Stage.HALTED
    assert decide_next(soaking, None).progress.waits.blocked_since is None


def test_fifo_redrive_halts_after_its_soak_if_the_dlq_holds_more_messages_than_expected() -> None:
    halted = find_next_progress(make_progress(), waiting=1_005, source=FIFO_SOURCE)
    assert halted.stage is Stage.HALTED
    assert "the queue holds 5 more than it should" in halted.because
    soaking = make_progress(soak_ends_at=NOW + AN_HOUR)
    assert find_next_stage(soaking, waiting=1_005, source=FIFO_SOURCE) is Stage.SOAK


def test_standard_redrive_continues_if_the_dlq_holds_more_messages_than_expected() -> None:
    assert find_next_stage(make_progress(), waiting=1_005) is Stage.RAMP


@STAGES
def test_tick_begins_with_a_sample_of_the_dlq(stage: Stage) -> None:
    before = make_progress(stage)
    assert decide_next(before, None) == (before.change_waits(fruitless=1), Action.TAKE_SAMPLE)


FREEZE = {"freeze_reason": "an incident"}
OTHER_MOVE_TASK = {"has_other_move_task_running": True}


@STAGES
@pytest.mark.parametrize(
    ("over", "because"),
    [(FREEZE, "changes are frozen: an incident"), (OTHER_MOVE_TASK, OTHER_MOVE_TASK_REASON)],
    ids=["freeze", "other move task"],
)
def test_tick_waits_without_a_sample_in_a_freeze_or_during_another_move_task(
    stage: Stage, over: dict[str, Any], because: str
) -> None:
    waits, then = decide_next(make_progress(stage), None, **over)
    assert (waits.stage, waits.because) == (stage, because)
    assert then in WAITING_ACTIONS


@STAGES
@pytest.mark.parametrize("over", [FREEZE, OTHER_MOVE_TASK], ids=["freeze", "other move task"])
def test_lasting_blocker_ends_a_redrive_even_in_a_freeze_or_during_another_move_task(
    stage: Stage, over: dict[str, Any]
) -> None:
    blocker = Blocker("no", is_for_good=True)
    assert find_next_progress(make_progress(stage), blocker=blocker, **over).is_over


@pytest.mark.parametrize(
    ("deletes_per_second", "seconds_since_last_move", "messages"),
    [(50, 60, 300), (0.5, 60, 3), (0.05, 58, 1), (50, 6, 30)],
)
def test_ramp_sends_a_tenth_of_the_delete_rate_and_at_least_one_message_a_minute(
    deletes_per_second: float, seconds_since_last_move: int, messages: int
) -> None:
    moved_at = NOW - timedelta(seconds=seconds_since_last_move)
    going = make_progress(Stage.RAMP, stage_moved=1, size=2_000, stage_at=NOW, moved_at=moved_at)
    sends, then = decide_next(going, rate=deletes_per_second)
    assert (then, sends.current.in_flight) == (Action.SEND, messages)


def test_ramp_sends_at_most_1500_messages_a_minute_however_fast_consumers_delete() -> None:
    moved_at = NOW - timedelta(seconds=60)
    going = make_progress(Stage.RAMP, stage_moved=1, size=2_000, stage_at=NOW, moved_at=moved_at)
    sends, then = decide_next(going, rate=500)
    assert (then, sends.current.in_flight) == (Action.SEND, 1_500)


def test_ramp_sends_nothing_before_a_message_is_due_at_the_delete_rate() -> None:
    moved_at = NOW - timedelta(seconds=6)
    going = make_progress(Stage.RAMP, stage_moved=1, size=2_000, stage_at=NOW, moved_at=moved_at)
    waits, then = decide_next(going, rate=0.05)
    assert (then, waits.current.in_flight) == (Action.WAIT, 0)


FIRST_STAGE = make_progress(Stage.CANARY, size=5, stage_moved=0, moved=0)


def test_messages_are_recorded_as_in_flight_before_they_are_sent() -> None:
    sends, then = decide_next(FIRST_STAGE)
    assert (then, sends.current.in_flight) == (Action.SEND, 5)


def test_messages_in_flight_of_a_tick_that_died_count_for_the_stage_but_not_as_moved() -> None:
    sends, _ = decide_next(FIRST_STAGE)
    died = find_next_progress(sends)
    assert (died.stage, died.moved) == (Stage.SOAK, 0)
    assert (died.current.moved, died.current.unsure) == (5, 5)


def test_stage_after_one_whose_messages_may_not_have_been_sent_is_as_small_as_the_first() -> None:
    unproven = find_next_progress(make_progress(stage_moved=20, size=20, unsure=20))
    assert unproven.current.size == BOUNDS.canary


FIVE_IN_FLIGHT = make_progress(
    Stage.CANARY, size=5, stage_moved=0, moved=0, in_flight=5, expected=10
)
UNANSWERED = (UnmovedMessage("m", "unanswered", "", is_temporary=True),)


@pytest.mark.parametrize(
    ("result", "stage_moved"),
    [
        pytest.param(MoveResult(moved_count=5), 5, id="all moved"),
        pytest.param(MoveResult(moved_count=2, copied_count=1), 3, id="one sent but not deleted"),
        pytest.param(MoveResult(unmoved_messages=REFUSED), 0, id="refused"),
        pytest.param(MoveResult(unmoved_messages=UNANSWERED), 1, id="perhaps sent"),
    ],
)
def test_stage_counts_messages_that_were_or_may_have_been_sent(
    result: MoveResult, stage_moved: int
) -> None:
    after = FIVE_IN_FLIGHT.count_move(result, NOW, is_sample_short=False)
    assert (after.current.moved, after.current.in_flight) == (stage_moved, 0)


@pytest.mark.parametrize("moved_count", [5, 2, 0])
def test_redrive_counts_moved_messages_and_expects_the_others_in_the_dlq(moved_count: int) -> None:
    result = MoveResult(moved_count=moved_count, copied_count=1)
    after = FIVE_IN_FLIGHT.count_move(result, NOW, is_sample_short=False)
    assert (after.moved, after.current.expected) == (moved_count, 10 - moved_count)


def test_stage_is_over_with_the_messages_that_a_short_sample_had() -> None:
    result = MoveResult(moved_count=3)
    short = FIVE_IN_FLIGHT.count_move(result, NOW, is_sample_short=True)
    assert short.current.size == short.current.moved == 3
    full = FIVE_IN_FLIGHT.count_move(result, NOW, is_sample_short=False)
    assert full.current.size == 5


@pytest.mark.parametrize("unmoved", [REFUSED, UNANSWERED], ids=["refused", "unanswered"])
def test_move_with_an_unmoved_message_is_recorded_as_refused_with_its_reason(
    unmoved: tuple[UnmovedMessage, ...],
) -> None:
    result = MoveResult(unmoved_messages=unmoved)
    after = FIVE_IN_FLIGHT.count_move(result, NOW, is_sample_short=False)
    assert after.waits.is_refused
    assert after.because == result.first_failure_reason


def test_move_of_every_message_is_not_recorded_as_refused() -> None:
    after = FIVE_IN_FLIGHT.count_move(MoveResult(moved_count=5), NOW, is_sample_short=False)
    assert not after.waits.is_refused
    assert after.because == ""


@pytest.mark.parametrize(("expected", "left"), [(3, 1), (2, 0), (1, 0)])
def test_count_move_of_two_messages_expects_the_others_and_never_fewer_than_none(
    expected: int, left: int
) -> None:
    """One message too many would hide a message that failed again in the meantime."""
    going = make_progress(Stage.RAMP, expected=expected)
    went = going.count_move(MoveResult(moved_count=2), NOW, is_sample_short=False)
    assert went.current.expected == left


WHOLE_STAGE = 80
# 1.2 x 3 receives x 30 s of visibility timeout, and 5 s of delay.
SECONDS_UNTIL_POISON_IS_DEAD = 108 + 5
# 1,000 visible messages at 50 deletes a second.
SECONDS_FOR_MESSAGES_BEFORE_IT = 20


@pytest.mark.parametrize(
    ("stage_moved", "age"),
    [
        pytest.param(WHOLE_STAGE, NEARLY, id="every message is sent"),
        pytest.param(1, AN_HOUR, id="an hour is over"),
    ],
)
def test_finished_stage_soaks_as_long_as_a_poison_message_needs_to_reach_the_dlq(
    stage_moved: int, age: timedelta
) -> None:
    going = make_progress(Stage.RAMP, stage_moved=stage_moved, stage_at=NOW - age)
    soaks = find_next_progress(going, visible=1_000)
    seconds = SECONDS_UNTIL_POISON_IS_DEAD + SECONDS_FOR_MESSAGES_BEFORE_IT
    assert soaks.stage is Stage.SOAK
    assert soaks.current.soak_ends_at == NOW + timedelta(seconds=seconds)
    assert soaks.current.stood == 1_000 + stage_moved


@pytest.mark.parametrize("age", [NEARLY, AN_HOUR])
def test_stage_that_sent_nothing_does_not_soak_however_old(age: timedelta) -> None:
    assert find_next_stage(make_progress(Stage.RAMP, stage_moved=0, stage_at=NOW - age)) is (
        Stage.RAMP
    )


def test_no_setting_makes_a_soak_shorter_than_a_fifth_more_than_all_receives_take() -> None:
    least = Bounds(soak_factor=0.1, least_soak_seconds=0)
    soak = least.soak_duration(receives=10, visibility_seconds=100, delay_seconds=0)
    assert soak == timedelta(seconds=1_200)


# The source held this many messages when the stage was sent.
STOOD = 100
MESSAGES_LEFT_IN_DLQ = pytest.mark.parametrize(
    ("waiting", "next_stage"),
    [(0, Stage.DONE), (1_000, Stage.RAMP)],
    ids=["none left", "some left"],
)
# Five of the hundred messages returned to the DLQ, so that consumers must delete the other 95.
SOAKED = make_progress(stood=STOOD, returned=5, moved=1_000)


@pytest.mark.parametrize("waiting", [0, 1_000])
@pytest.mark.parametrize("deletes_since_send", [None, STOOD - 6])
def test_redrive_waits_an_hour_while_sent_messages_may_be_unread_in_the_source_then_halts(
    waiting: int, deletes_since_send: int | None
) -> None:
    """Deletes before the stage keep the delete rate up."""
    _waits_with_patience(
        SOAKED,
        MESSAGES_STILL_IN_SOURCE_REASON,
        "consumers_since",
        waiting=waiting,
        visible=80,
        deletes_since_send=deletes_since_send,
    )


@MESSAGES_LEFT_IN_DLQ
def test_redrive_continues_once_deletes_match_what_the_source_held_less_what_came_back(
    waiting: int, next_stage: Stage
) -> None:
    """Five of the messages that the source held after the stage came back to the DLQ."""
    after = find_next_stage(SOAKED, waiting=waiting, visible=80, deletes_since_send=STOOD - 5)
    assert after is next_stage


@MESSAGES_LEFT_IN_DLQ
def test_redrive_continues_if_the_source_is_empty_whatever_cloudwatch_counts(
    waiting: int, next_stage: Stage
) -> None:
    after = find_next_stage(SOAKED, waiting=waiting, visible=0, deletes_since_send=0)
    assert after is next_stage


def test_redrive_does_not_wait_for_consumers_if_its_stage_sent_nothing() -> None:
    nothing_sent = make_progress(stood=STOOD, stage_moved=0)
    assert find_next_stage(nothing_sent, visible=80, deletes_since_send=None) is Stage.RAMP


def _waits_with_patience(
    before: RedriveProgress, why: str, since: str, *found: Any, **seen: Any
) -> None:
    """Require that the redrive waits for an hour and then halts."""
    waits, then = decide_next(before, *found, **seen)
    assert (waits.stage, waits.because) == (before.stage, why)
    assert then is Action.WAIT_WITH_PATIENCE
    assert getattr(waits.waits, since) == NOW
    nearly = waits.change_waits(**{since: NOW - NEARLY})
    assert find_next_stage(nearly, *found, **seen) is before.stage
    halted = find_next_progress(waits.change_waits(**{since: NOW - AN_HOUR}), *found, **seen)
    assert (halted.stage, halted.because) == (Stage.HALTED, why)


@STAGES
@pytest.mark.parametrize("rate", [None, 0], ids=["unknown", "zero"])
def test_redrive_waits_an_hour_for_deletes_in_the_source_then_halts(
    stage: Stage, rate: float | None
) -> None:
    before = make_progress(stage, stage_moved=0)
    _waits_with_patience(before, NO_DELETES_REASON, "consumers_since", rate=rate)


@STAGES
@pytest.mark.parametrize("sample", [None, EMPTY], ids=["before the sample", "after the sample"])
def test_redrive_waits_an_hour_for_sqs_to_answer_then_halts(
    stage: Stage, sample: DlqSample | None
) -> None:
    before = make_progress(stage, stage_moved=0)
    blind = Blocker("SQS does not answer")
    _waits_with_patience(before, blind.reason, "blocked_since", sample, blocker=blind)


def test_redrive_of_an_emptied_dlq_is_done_only_after_a_soak() -> None:
    assert find_next_stage(make_progress(Stage.RAMP), waiting=0) is Stage.SOAK
    soaking = make_progress(soak_ends_at=NOW + timedelta(seconds=1))
    assert find_next_stage(soaking, waiting=0) is Stage.SOAK
    assert find_next_stage(make_progress(soak_ends_at=NOW), waiting=0) is Stage.DONE


def test_finished_redrive_summarizes_where_its_messages_are() -> None:
    sources = (f"{SOURCE}-2", None, f"{SOURCE}-2", SOURCE, "")
    stays = tuple(message("one", source_arn=source_arn) for source_arn in sources)
    done = find_next_progress(
        make_progress(returned=2), DlqSample(staying_messages=stays, newly_dead_count=1), waiting=5
    )
    assert done.stage is Stage.DONE
    assert done.because == (
        "100 messages went back, 2 of them came back and are in orders-quarantine; "
        "1 message came to the DLQ without the mark of this redrive; 5 stay in the DLQ, because "
        "they did not fail in this source: "
        "1 of orders, 2 of orders-2, 2 sent there by hand"
    )


def test_redrive_halts_after_14_days() -> None:
    old = structs.replace(make_progress(Stage.RAMP), began_at=NOW - timedelta(days=14))
    assert find_next_stage(old) is Stage.HALTED
    nearly = structs.replace(old, began_at=old.began_at + timedelta(seconds=1))
    assert find_next_stage(nearly) is not Stage.HALTED


REFUSED_FOR_AN_HOUR = make_progress(
    Stage.RAMP,
    stage_moved=0,
    stage_at=NOW - 2 * AN_HOUR,
    refused_since=NOW - AN_HOUR,
    is_refused=True,
    because="AccessDenied",
)


def test_redrive_halts_with_the_reason_if_sqs_refuses_every_send_for_an_hour() -> None:
    halted = find_next_progress(REFUSED_FOR_AN_HOUR)
    assert (halted.stage, halted.because) == (Stage.HALTED, "AccessDenied")


def test_redrive_sends_again_after_an_hour_of_refusals_if_the_last_send_was_accepted() -> None:
    accepted = REFUSED_FOR_AN_HOUR.change_waits(is_refused=False)
    assert decide_next(accepted).action is Action.SEND


def test_redrive_sends_once_more_in_a_new_stage_after_an_hour_of_refusals() -> None:
    soaked = make_progress(refused_since=NOW - AN_HOUR, is_refused=True)
    next_stage = find_next_progress(soaked)
    assert next_stage.stage is Stage.RAMP
    assert decide_next(next_stage).action is Action.SEND


def test_redrive_continues_if_sqs_refused_sends_for_nearly_an_hour() -> None:
    nearly = REFUSED_FOR_AN_HOUR.change_waits(refused_since=NOW - NEARLY)
    assert find_next_stage(nearly.change_current_stage(moved=3)) is Stage.RAMP


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

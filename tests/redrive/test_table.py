"""The machine's table: complete, without gaps, duplicates or rows that nothing reaches."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

import pytest
from msgspec import structs

from mendq.redrive.machine import (
    CHANGE_BY_ACTION,
    CHECK_BY_CONDITION,
    DECISION_TABLE,
    Action,
    Blocker,
    Condition,
    DecisionRow,
    NoDecisionRowError,
    RedriveSituation,
    decide,
)
from mendq.redrive.messages import Message
from mendq.redrive.progress import FINAL_STAGES, RUNNING_STAGES, DlqSample, RedriveProgress, Stage
from tests.redrive.toy import DEAD, NOW, SOURCE, begin_progress, message, queue

AN_HOUR = timedelta(hours=1)

# The table as operators know it: each stage's rows in their order.
CANARY_ROWS = [
    "BLOCKED_FOR_GOOD: HALT -> halted",
    "CHANGES_FROZEN: WAIT_FOR_OTHERS",
    "REDRIVE_OLDER_THAN_RETENTION: HALT -> halted",
    "OTHER_MOVE_TASK: WAIT_FOR_OTHERS",
    "TICKS_WITHOUT_RESULT: HALT -> halted",
    "NO_SAMPLE_YET: TAKE_SAMPLE",
    "TOO_MANY_MESSAGES_RETURNED: HALT -> halted",
    "BLOCKED_FOR_NOW: WAIT_WITH_PATIENCE -> halted",
    "NO_MESSAGE_LEFT: SOAK -> soak",
    "SENDS_REFUSED_FOR_LONG: HALT -> halted",
    "STAGE_OVER: SOAK -> soak",
    "NO_DELETES: WAIT_WITH_PATIENCE -> halted",
    "ALWAYS: SEND",
]
SOAK_ROWS = [
    *CANARY_ROWS[:8],
    "SOAK_NOT_OVER: WAIT",
    "SOURCE_UNREAD: WAIT_WITH_PATIENCE -> halted",
    "NO_DELETES: WAIT_WITH_PATIENCE -> halted",
    "NO_MESSAGE_LEFT: FINISH -> done",
    "TOO_FEW_TO_JUDGE: BEGIN_STAGE -> second_canary",
    "ALWAYS: BEGIN_STAGE -> ramp",
]
RAMP_ROWS = [*CANARY_ROWS[:12], "NO_MESSAGE_DUE: WAIT", "ALWAYS: SEND"]


def describe_row(row: DecisionRow) -> str:
    next_stage = f" -> {row.next_stage}" if row.next_stage else ""
    return f"{row.condition.name}: {row.action.name}{next_stage}"


@pytest.mark.parametrize(
    ("stage", "rows"),
    [
        (Stage.CANARY, CANARY_ROWS),
        (Stage.SECOND_CANARY, RAMP_ROWS),
        (Stage.SOAK, SOAK_ROWS),
        (Stage.RAMP, RAMP_ROWS),
    ],
)
def test_redrive_decision_table_has_exactly_the_listed_rows_for_each_stage(
    stage: Stage, rows: list[str]
) -> None:
    assert [describe_row(row) for row in DECISION_TABLE if stage in row.stages] == rows


def test_redrive_decision_table_has_no_row_for_final_stages() -> None:
    assert not [row for row in DECISION_TABLE if set(row.stages) & set(FINAL_STAGES)]


def test_redrive_decision_table_has_one_row_per_stage_and_condition() -> None:
    pairs = [(stage, row.condition) for row in DECISION_TABLE for stage in row.stages]
    assert len(set(pairs)) == len(pairs)


def test_redrive_decision_table_ends_each_stage_with_a_row_that_always_matches() -> None:
    for stage in RUNNING_STAGES:
        conditions = [row.condition for row in DECISION_TABLE if stage in row.stages]
        assert conditions.index(Condition.ALWAYS) == len(conditions) - 1


def test_redrive_decision_table_reaches_every_stage_from_canary() -> None:
    reached = {Stage.CANARY}
    for _ in Stage:
        for row in DECISION_TABLE:
            if row.next_stage and reached & set(row.stages):
                reached.add(row.next_stage)
    assert reached == set(Stage)


def test_redrive_decision_table_uses_every_condition_and_every_action() -> None:
    assert {row.condition for row in DECISION_TABLE} == set(Condition) == set(CHECK_BY_CONDITION)
    assert {row.action for row in DECISION_TABLE} == set(Action) == set(CHANGE_BY_ACTION)


@pytest.mark.parametrize("stage", FINAL_STAGES)
def test_decide_of_an_ended_redrive_raises_because_no_row_of_the_table_is_for_its_stage(
    stage: Stage,
) -> None:
    progress = begin_progress().enter_stage(stage, NOW)
    with pytest.raises(NoDecisionRowError, match=stage):
        decide(make_situation(progress))


def make_progress(stage: Stage, **over: object) -> RedriveProgress:
    """Return a progress with 100 moved messages and a finished soak."""
    progress = begin_progress(size=80).enter_stage(stage, NOW)
    progress = progress.change_current_stage(moved=20, soak_ends_at=NOW, expected=1_000)
    moved_at = NOW - timedelta(minutes=1)
    return structs.replace(progress, moved=100, moved_at=moved_at, **over)


def make_situation(
    progress: RedriveProgress, sample: DlqSample | None = None, **over: object
) -> RedriveSituation:
    situation = RedriveSituation(
        progress,
        NOW,
        queue(DEAD, 1_000),
        queue(SOURCE),
        deletes_per_second=50,
        sample=sample or DlqSample(),
    )
    return structs.replace(situation, **over)


def make_matching_situation(stage: Stage, condition: Condition) -> RedriveSituation:
    """Return a situation in which this row is the first match."""
    progress = make_progress(stage)
    late = progress.change_waits(is_refused=True, refused_since=NOW - AN_HOUR)
    back: tuple[Message, ...] = tuple(message(f"back {n}") for n in range(10))
    unread = progress.change_current_stage(stood=100)
    soaking = progress.change_current_stage(soak_ends_at=NOW + AN_HOUR)
    just_moved = structs.replace(progress, moved_at=NOW)
    situations: Mapping[Condition, RedriveSituation] = {
        Condition.BLOCKED_FOR_GOOD: make_situation(
            progress, blocker=Blocker("no", is_for_good=True)
        ),
        Condition.CHANGES_FROZEN: make_situation(progress, freeze_reason="an incident"),
        Condition.REDRIVE_OLDER_THAN_RETENTION: make_situation(
            make_progress(stage, began_at=NOW - timedelta(days=14))
        ),
        Condition.OTHER_MOVE_TASK: make_situation(progress, has_other_move_task_running=True),
        Condition.TICKS_WITHOUT_RESULT: make_situation(progress.change_waits(fruitless=3)),
        Condition.NO_SAMPLE_YET: structs.replace(make_situation(progress), sample=None),
        Condition.TOO_MANY_MESSAGES_RETURNED: make_situation(
            progress, DlqSample(returned_messages=back)
        ),
        Condition.BLOCKED_FOR_NOW: make_situation(progress, blocker=Blocker("SQS is silent")),
        Condition.NO_MESSAGE_LEFT: make_situation(progress, dlq=queue(DEAD, 0)),
        Condition.SENDS_REFUSED_FOR_LONG: make_situation(late),
        Condition.STAGE_OVER: make_situation(progress.change_current_stage(moved=80)),
        Condition.SOAK_NOT_OVER: make_situation(soaking),
        Condition.SOURCE_UNREAD: make_situation(unread, source=queue(SOURCE, 50)),
        Condition.TOO_FEW_TO_JUDGE: make_situation(
            structs.replace(progress, moved=5), DlqSample(returned_messages=back[:1])
        ),
        Condition.NO_DELETES: make_situation(progress, deletes_per_second=0),
        Condition.NO_MESSAGE_DUE: make_situation(just_moved),
        Condition.ALWAYS: make_situation(progress),
    }
    return situations[condition]


ROWS_BY_STAGE = [(stage, row) for row in DECISION_TABLE for stage in row.stages]


@pytest.mark.parametrize(
    ("stage", "row"), ROWS_BY_STAGE, ids=[f"{s}-{r.condition.name}" for s, r in ROWS_BY_STAGE]
)
def test_decide_selects_each_decision_row_and_enters_its_next_stage(
    stage: Stage, row: DecisionRow
) -> None:
    situation = make_matching_situation(stage, row.condition)
    matching = [
        other
        for other in DECISION_TABLE
        if stage in other.stages and CHECK_BY_CONDITION[other.condition](situation)
    ]
    assert matching[0] is row
    progress, action = decide(situation)
    assert action is row.action
    if action is Action.WAIT_WITH_PATIENCE:
        assert progress.stage is stage, "its patience is not over yet"
        waited = progress.change_waits(
            consumers_since=NOW - AN_HOUR,
            blocked_since=NOW - AN_HOUR,
        )
        progress = decide(structs.replace(situation, progress=waited)).progress
    assert progress.stage is (row.next_stage or stage)

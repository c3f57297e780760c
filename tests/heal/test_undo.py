"""The plan that undoes a case."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest

from mendq.cases.attribute_record import AttributeRecord
from mendq.cases.view import CaseStoreView
from mendq.heal.undo import (
    Undo,
    UndoOutcome,
    list_stopped_steps,
    list_undo_steps,
    list_writes,
    plan_undos,
)
from mendq.model.case import Case
from mendq.model.facts import Facts
from mendq.model.state import State
from mendq.model.steps import (
    MESSAGES_HELD_IN_DLQ_VALUE,
    AttributeStep,
    RedriveMessages,
    SetKmsDataKeyReusePeriod,
    SetMessageRetention,
    SetVisibilityTimeout,
)

QUEUE = "arn:aws:sqs:eu-west-1:123456789012:orders.fifo"
NOW = datetime(2026, 11, 9, 12, 0, tzinfo=UTC)
RULE = '{"Version": "2012-10-17", "Statement": [{"Sid": "it\'s"}]}'


def case(
    *steps: AttributeStep | Mapping[str, str], n: int = 1, state: State = State.APPLIED
) -> Case:
    documents = (step if isinstance(step, Mapping) else step.document() for step in steps)
    return Case(
        case_id="c-1",
        n=n,
        at=NOW + timedelta(minutes=n),
        came_from=None,
        state=state,
        queue_arn=QUEUE,
        symptom="visibility_timeout_too_short",
        reason="",
        evidence={},
        steps=tuple(documents),
        actor="heal",
    )


def find_undos(
    history: list[Case],
    attributes: Mapping[str, str],
    snapshots: Mapping[int, Mapping[str, str]] | None = None,
    view: CaseStoreView | None = None,
) -> tuple[Undo, ...]:
    facts = Facts(QUEUE, attributes, {})
    return plan_undos(list_writes(history), snapshots or {}, facts, view or CaseStoreView())


def get_only_undo(undone: tuple[Undo, ...]) -> tuple[UndoOutcome, str, str, str | None]:
    (undo,) = undone
    return undo.outcome, undo.before, undo.after, undo.current_value


def make_visibility(seconds: str) -> dict[str, str]:
    return {"VisibilityTimeout": seconds}


FIRST_FIX = SetVisibilityTimeout(30, 45)
SECOND_FIX = SetVisibilityTimeout(45, 68)
TWO_FIXES = [
    case(FIRST_FIX),
    case(FIRST_FIX, n=2, state=State.INEFFECTIVE),
    case(SECOND_FIX, n=3),
]


def test_undo_of_two_fixes_restores_the_value_from_before_the_first() -> None:
    undone = find_undos(TWO_FIXES, make_visibility("68"))
    assert get_only_undo(undone) == (UndoOutcome.UNDONE, "30", "68", "68")
    assert list_undo_steps(undone) == (SetVisibilityTimeout(68, 30),)


def test_undo_of_two_fixes_keeps_the_value_that_a_person_set_back_to_the_first() -> None:
    undone = find_undos(TWO_FIXES, make_visibility("45"))
    assert get_only_undo(undone)[0] is UndoOutcome.VALUE_KEPT
    assert list_undo_steps(undone) == ()


def test_undo_restores_no_value_older_than_a_persons_choice() -> None:
    history = [case(SetVisibilityTimeout(30, 45)), case(SetVisibilityTimeout(60, 90), n=2)]
    assert get_only_undo(find_undos(history, make_visibility("90"))) == (
        UndoOutcome.UNDONE,
        "60",
        "90",
        "90",
    )


OVERRIDDEN = case(SetVisibilityTimeout(45, 68), n=2, state=State.OVERRIDDEN)


def test_undo_keeps_the_value_if_the_case_was_overridden_after_its_fix() -> None:
    history = [case(SetVisibilityTimeout(30, 45)), OVERRIDDEN]
    assert get_only_undo(find_undos(history, make_visibility("45")))[0] is UndoOutcome.VALUE_KEPT


def test_undo_restores_the_value_if_the_fix_came_after_the_case_was_overridden() -> None:
    history = [OVERRIDDEN, case(SetVisibilityTimeout(30, 45), n=3)]
    assert get_only_undo(find_undos(history, make_visibility("45")))[0] is UndoOutcome.UNDONE


@pytest.mark.parametrize(
    ("later_writes", "outcome"), [(["45"], "undone"), ([], "undone"), (["45", "68"], "kept")]
)
def test_undo_keeps_the_value_only_if_a_later_write_of_mendq_was_overwritten(
    later_writes: list[str], outcome: str
) -> None:
    record = AttributeRecord()
    for after in later_writes:
        record = record.add_write("1", after, NOW)
    view = CaseStoreView(record_by_attribute={"VisibilityTimeout": record})
    undone = find_undos([case(SetVisibilityTimeout(30, 45))], make_visibility("45"), view=view)
    assert get_only_undo(undone)[0] == outcome
    assert bool(list_undo_steps(undone)) == (outcome == "undone")


def test_undo_keeps_the_value_of_a_queue_recreated_since() -> None:
    history = [case(SetVisibilityTimeout(30, 45))]
    made = {n: str(int((history[0].at + timedelta(seconds=n)).timestamp())) for n in (0, 1)}
    same = find_undos(history, {**make_visibility("45"), "CreatedTimestamp": made[0]})
    other = find_undos(history, {**make_visibility("45"), "CreatedTimestamp": made[1]})
    assert [get_only_undo(undos)[0] for undos in (same, other)] == [
        UndoOutcome.UNDONE,
        UndoOutcome.VALUE_KEPT,
    ]


def test_undo_sets_an_attribute_that_was_not_set_to_the_default_of_sqs() -> None:
    history = [case(SetKmsDataKeyReusePeriod(300, 3600))]
    reuse = {"KmsDataKeyReusePeriodSeconds": "3600"}
    undone = find_undos(history, reuse, {1: {"VisibilityTimeout": "30"}})
    assert list_undo_steps(undone) == (SetKmsDataKeyReusePeriod(3600, 300),)
    assert get_only_undo(find_undos(history, {}))[0] is UndoOutcome.ALREADY_UNDONE


def test_undo_takes_the_earlier_value_from_the_snapshot() -> None:
    history = [case(SetVisibilityTimeout(30, 45)), case(SetVisibilityTimeout(45, 68), n=3)]
    undone = find_undos(
        history, make_visibility("68"), {1: make_visibility("20"), 3: make_visibility("45")}
    )
    assert list_undo_steps(undone) == (SetVisibilityTimeout(68, 20),)


@pytest.mark.parametrize(
    ("values", "change"),
    [
        (("MessageRetentionPeriod", "345600", "1209600"), "MessageRetentionPeriod=345600"),
        (("Policy", RULE, "{}"), {"Policy": RULE}),
        (("FromALaterMendq", "1", "2"), "FromALaterMendq=1"),
    ],
)
def test_undo_prints_the_command_for_an_attribute_that_it_never_writes(
    values: tuple[str, str, str], change: str | dict[str, str]
) -> None:
    attribute, before, after = values
    history = [case({"attribute": attribute, "before": before, "after": after})]
    (undone,) = find_undos(history, {attribute: after})
    assert undone.outcome is UndoOutcome.COMMAND_PRINTED
    assert list_undo_steps([undone]) == ()
    *command, given = shlex.split(undone.command)
    assert command == [
        *("aws", "sqs", "set-queue-attributes", "--region", "eu-west-1", "--queue-url"),
        "https://sqs.eu-west-1.amazonaws.com/123456789012/orders.fifo",
        "--attributes",
    ]
    assert given == change or json.loads(given) == change
    assert find_undos(history, {attribute: "3"})[0].outcome is UndoOutcome.VALUE_KEPT
    assert find_undos(history, {attribute: before})[0].outcome is UndoOutcome.ALREADY_UNDONE


RETENTION = {"MessageRetentionPeriod": "1209600"}
REDRIVE = RedriveMessages(
    MESSAGES_HELD_IN_DLQ_VALUE, "arn:aws:sqs:eu-west-1:123456789012:source.fifo"
)
RAISED = SetMessageRetention(345_600, 1_209_600)


def test_undo_that_aws_refused_is_left_to_a_person_and_plans_no_write_any_more() -> None:
    step = SetVisibilityTimeout.of("30", "180")
    (planned,) = find_undos([case(step)], {"VisibilityTimeout": "180"})
    assert list_undo_steps([planned]) != ()
    left = planned.leave_to_person(QUEUE)
    assert left.outcome is UndoOutcome.COMMAND_PRINTED
    assert "VisibilityTimeout=30" in left.command
    assert list_undo_steps([left]) == ()


def test_undo_of_a_running_redrive_stops_the_redrive_and_writes_nothing() -> None:
    undone = find_undos([case(REDRIVE, RAISED)], RETENTION)
    messages, retention = undone
    assert get_only_undo((messages,)) == (
        UndoOutcome.UNDONE,
        MESSAGES_HELD_IN_DLQ_VALUE,
        REDRIVE.after,
        REDRIVE.after,
    )
    assert messages.command == ""
    assert retention.outcome is UndoOutcome.COMMAND_PRINTED
    assert list_undo_steps(undone) == ()
    assert list_stopped_steps(undone) == (
        RedriveMessages(REDRIVE.after, REDRIVE.before).document(),
    )


@pytest.mark.parametrize("state", [State.VERIFIED, State.WATCHING, State.ESCALATED, State.CLOSED])
def test_undo_of_a_finished_redrive_does_nothing_and_prints_no_command(state: State) -> None:
    undone = find_undos([case(REDRIVE), case(REDRIVE, n=2, state=state)], {})
    assert get_only_undo(undone) == (
        UndoOutcome.ALREADY_UNDONE,
        MESSAGES_HELD_IN_DLQ_VALUE,
        REDRIVE.after,
        MESSAGES_HELD_IN_DLQ_VALUE,
    )
    assert undone[0].command == ""
    assert (list_stopped_steps(undone), list_undo_steps(undone)) == ((), ())

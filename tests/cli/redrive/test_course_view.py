"""`mendq show` of a redrive's case says how far it has come."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mendq.cli.redrive.hold import course_lines, course_of
from mendq.model.case import Case, State
from mendq.redrive.progress import RedriveProgress, RedriveQueues, Stage, StageProgress
from mendq.redrive.store import CourseStore
from tests.cli.conftest import Operator
from tests.heal.test_guardrails import case

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
SOURCE = "arn:aws:sqs:us-east-1:123456789012:orders"
MESSAGES = f"{SOURCE}-dlq"
STEP = {"attribute": "Dlq", "before": "held", "after": SOURCE}


def _case(case_id: str = "case-7", step: dict[str, str] = STEP) -> Case:
    return replace(case(State.APPLIED), case_id=case_id, queue_arn=MESSAGES, steps=(step,))


def _course(queue_arn: str = MESSAGES, **over: Any) -> RedriveProgress:
    made = RedriveProgress.begun("case-7", RedriveQueues(queue_arn, SOURCE), size=5, now=NOW)
    return replace(made, **over)


def _at(**over: Any) -> StageProgress:
    return StageProgress(**{"began_at": NOW, "size": 5, **over})


def _saved(operator: Operator) -> None:
    case_store = CourseStore(operator.aws.clients.dynamodb, "case_store")
    assert case_store.claim(MESSAGES, "me", NOW)
    case_store.save(_course(moved=5), "me")


def test_a_case_that_redrives_nothing_has_none(operator: Operator) -> None:
    _saved(operator)
    visibility = {"attribute": "VisibilityTimeout", "before": "30", "after": "60"}
    assert course_of(operator.account, _case(step=visibility)) is None
    assert course_of(operator.account, _case("case-8")) is None, "it is another's"


def test_it_is_the_case_s_own(operator: Operator) -> None:
    assert course_of(operator.account, _case()) is None
    _saved(operator)
    found = course_of(operator.account, _case())
    assert found is not None
    assert found.moved == 5


@pytest.mark.parametrize("stage", Stage)
def test_every_stage_can_be_said(stage: Stage) -> None:
    course = _course(
        stage=stage,
        current=_at(soak_ends_at=NOW + timedelta(minutes=3), number=2, moved=80, size=80),
        moved=105,
        returned=3,
        quarantined=2,
        rate_per_second=2.5,
        because="why",
    )
    said = {label: words for label, _, words in course_lines(course)}
    assert said["way"] == "orders-dlq -> orders"
    assert said["stage"].startswith(f"{stage} since 2026-11-21 12:00 UTC")
    assert ("soak" in said) is (stage is Stage.SOAK)
    assert said["sent"] == "105 messages sent back in 3 stages, 80 of at most 80 in this"
    assert said["came back"] == "3, 2 are in quarantine"
    assert said["rate"] == "2.50 a second"
    announced = {Stage.DONE: "ended", Stage.HALTED: "halted"}.get(stage, "stands so")
    assert said[announced] == "because why"


@pytest.mark.parametrize(
    ("course", "says"),
    [
        ({}, "nothing sent yet"),
        ({"stage": Stage.HALTED}, "nothing was sent"),
        ({"moved": 3, "current": _at(moved=3)}, "3 messages sent back in 1 stage, 3 of at most 5"),
        (
            {"moved": 5, "current": _at(number=1, size=20)},
            "5 messages sent back in 1 stage, 0 of at most 20",
        ),
        ({"current": _at(unsure=2, moved=2)}, "0 messages sent back in 1 stage, 2 of at"),
    ],
)
def test_a_stage_counts_once_something_of_it_went(course: dict[str, Any], says: str) -> None:
    said = {label: words for label, _, words in course_lines(_course(**course))}
    assert said["sent"].startswith(says)


def test_it_is_shown_with_its_case(operator: Operator) -> None:
    case_id = operator.applied("orders-dlq.fifo")
    messages = "arn:aws:sqs:us-east-1:123456789012:orders-dlq.fifo"
    client = operator.aws.clients.dynamodb
    for item in client.scan(TableName="case_store")["Items"]:
        if "document" in item and item["pk"]["S"].startswith("case#"):
            document = {**json.loads(item["document"]["S"]), "steps": [STEP]}
            client.put_item(
                TableName="case_store", Item={**item, "document": {"S": json.dumps(document)}}
            )
    assert operator.json("show", case_id)["redrive"] is None
    case_store = CourseStore(client, "case_store")
    assert case_store.claim(messages, "me", NOW)
    course = _course(messages, case_id=case_id, moved=5, current=_at(moved=5), because="it soaks")
    case_store.save(course, "me")
    assert operator.json("show", case_id)["redrive"]["moved"] == 5
    shown = operator.mendq("show", case_id).output
    assert "Redrive\n" in shown
    assert "5 messages sent back in 1 stage" in shown
    assert "stands so  because it soaks" in shown
    assert "planned because" in shown
    assert "Different now" in shown, "somebody changed the queue itself"
    url = operator.aws.url(messages)
    operator.aws.clients.sqs.set_queue_attributes(
        QueueUrl=url, Attributes={"VisibilityTimeout": "30"}
    )
    assert "Different now" not in operator.mendq("show", case_id).output

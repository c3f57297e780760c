"""A redrive that cannot look, count, send or cancel: it stops soon, and somebody is paged."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError

from functions.aws.course_ledger import course_key
from functions.aws.errors import CaseUnreadable
from functions.aws.redrive import redrive
from functions.healing.redrive_course import Stage
from functions.healing.states import State
from tests.functions.aws.conftest import Account
from tests.functions.aws.letters import timed
from tests.functions.aws.ticking import LATE, Redriven, at_its_task, redriven, texts, ticked

__all__ = ["timed"]
BY_THE_QUEUE = (
    "User: arn:aws:sts::123456789012:assumed-role/r/s is not authorized to perform: "
    "sqs:receivemessage with an explicit deny in a resource-based policy"
)
BY_IAM = "no identity-based policy allows it"
AN_HOUR_OF_TICKS = 65


def ticks(here: Redriven, most: int) -> int:
    """How many it took until the case was over."""
    for minute in range(most):
        if here.tick().case is not None:
            return minute + 1
        here.account.later(minutes=1)
    raise AssertionError(here.course)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("AccessDenied", BY_THE_QUEUE),
        ("AccessDenied", BY_IAM),
        ("KmsThrottled", "rate exceeded"),
        ("KmsAccessDenied", "no kms:Decrypt"),
        ("OverLimit", "too many in flight"),
    ],
)
def test_a_task_whose_letters_cannot_be_counted_is_cancelled(
    timed: Account, code: str, message: str
) -> None:
    here = at_its_task(timed)
    here.denies("receive_message", code, message)
    timed.later(minutes=1)
    here.tick()
    assert (here.tasks.calls[-1][0], here.stage) == ("CancelMessageMoveTask", Stage.CANCELLING)
    here.tasks.known[-1]["Status"] = "CANCELLED"
    ticks(here, AN_HOUR_OF_TICKS)
    assert (here.state, here.pages) == (State.ESCALATED, 1)
    assert [name for name, _ in here.tasks.calls].count("StartMessageMoveTask") == 1


@pytest.mark.parametrize("call", ["get_queue_attributes", "list_queue_tags"])
def test_a_task_whose_queues_are_not_shown_is_cancelled(timed: Account, call: str) -> None:
    here = at_its_task(timed)
    here.denies(call, "AccessDenied", BY_IAM)
    timed.later(minutes=1)
    here.tick()
    assert (here.tasks.calls[-1][0], here.state) == ("CancelMessageMoveTask", State.APPLIED)


def test_a_task_that_is_not_shown_is_cancelled_by_its_handle(timed: Account) -> None:
    here = at_its_task(timed)
    here.denies("list_message_move_tasks", "AccessDenied", BY_IAM)
    timed.later(minutes=1)
    here.tick()
    assert here.tasks.calls[-1] == ("CancelMessageMoveTask", {"TaskHandle": "handle 0"})
    assert ticks(here, AN_HOUR_OF_TICKS) > 30
    assert (here.state, here.pages) == (State.ESCALATED, 1)


@pytest.mark.parametrize(
    "call", ["get_queue_attributes", "receive_message", "list_message_move_tasks"]
)
def test_what_cannot_be_looked_at_waits_for_an_hour_and_is_told(timed: Account, call: str) -> None:
    here = redriven(timed, *texts(30))
    here.tick()
    here.denies(call, "AccessDenied", BY_IAM)
    timed.later(minutes=5)
    assert 55 < ticks(here, AN_HOUR_OF_TICKS) < AN_HOUR_OF_TICKS
    assert (here.state, here.pages) == (State.ESCALATED, 1)
    assert BY_IAM in here.course.because
    assert here.course.moved == 5


def test_what_can_be_looked_at_again_goes_on(timed: Account) -> None:
    here = redriven(timed, *texts(10))
    for minute in range(100):
        if minute % 2:
            here.tasks.refuses["ListMessageMoveTasks"] = "no"
        if here.tick().case is not None:
            break
        timed.later(minutes=1)
        here.consume()
    assert here.state is State.VERIFIED


@pytest.mark.parametrize(("message", "is_soon"), [(BY_THE_QUEUE, True), (BY_IAM, False)])
def test_somebody_s_quarantine_halts_it_and_nothing_counts_twice(
    timed: Account, message: str, is_soon: bool
) -> None:
    here = redriven(timed, *texts(60), bounds=LATE)
    here.tick()
    timed.queue("orders-quarantine", tag=None)
    here.denies(
        "get_queue_attributes",
        "AccessDenied",
        message,
        lambda asked: asked["QueueUrl"].endswith("quarantine"),
    )
    timed.later(minutes=2)
    here.consume(frozenset(sorted(here.bodies(here.source))[:3]))
    taken = ticks(here, AN_HOUR_OF_TICKS)
    assert (taken < 5) is is_soon
    assert (here.state, here.pages, here.course.moved) == (State.ESCALATED, 1, 5)
    assert here.course.returned <= 3


@pytest.mark.parametrize("letters", [3, 30])
def test_letters_that_sqs_refuses_are_told_after_an_hour(timed: Account, letters: int) -> None:
    here = redriven(timed, *texts(letters))
    here.denies("send_message_batch", "AccessDenied", "no kms:GenerateDataKey")
    ticks(here, AN_HOUR_OF_TICKS)
    assert (here.state, here.pages, here.course.number) == (State.ESCALATED, 1, 0)
    assert "kms:GenerateDataKey" in here.course.because
    assert len(here.bodies(here.dead)) == letters


def test_one_letter_that_sqs_always_refuses_is_told_soon(timed: Account) -> None:
    here = redriven(timed, *texts(10), "bad")
    here.denies("send_message_batch", "InvalidMessageContents", "U+FFFE", _sends("bad"))
    for _ in range(90):
        if here.tick().case is not None:
            break
        timed.later(minutes=1)
        here.consume()
    assert (here.state, here.course.moved) == (State.ESCALATED, 10)
    assert here.bodies(here.dead) == {"bad"}
    assert "U+FFFE" in here.course.because


def test_answers_that_are_always_lost_are_told(timed: Account) -> None:
    here = redriven(timed, *texts(30))
    for each in ("sqs", "sqs_for_writing"):
        getattr(timed.clients, each).send_message_batch = _loses
    ticks(here, 2 * AN_HOUR_OF_TICKS)
    assert (here.state, here.pages) == (State.ESCALATED, 1)


def test_one_lost_answer_before_a_long_soak_halts_nothing(timed: Account) -> None:
    here = redriven(timed, *texts(30))
    timed.clients.sqs.set_queue_attributes(
        QueueUrl=timed.url(here.source), Attributes={"VisibilityTimeout": "1200"}
    )
    writing: Any = timed.clients.sqs_for_writing
    clients = [timed.clients.sqs, writing]
    for each in clients:
        vars(each)["send_message_batch"] = _loses
    here.tick()
    for each in clients:
        vars(each).pop("send_message_batch", None)
    for _ in range(400):
        if here.tick().case is not None:
            break
        timed.later(minutes=1)
        here.consume()
    assert here.state is State.VERIFIED


def test_a_cancel_that_sqs_refused_is_asked_for_again_until_the_task_is_over(
    timed: Account,
) -> None:
    here = at_its_task(timed)
    here.tasks.refuses["CancelMessageMoveTask"] = "throttled"
    refusal = here.tick(cancel=True).refusal
    assert refusal is not None
    assert (refusal.code, refusal.again, here.stage) == ("not_cancelled", True, Stage.CANCELLING)
    timed.later(minutes=1)
    assert here.tick().case is None
    assert [name for name, _ in here.tasks.calls].count("CancelMessageMoveTask") == 2
    assert here.tasks.known[-1]["Status"] == "CANCELLING"
    here.tasks.known[-1]["Status"] = "CANCELLED"
    timed.later(minutes=1)
    here.tick()
    assert (here.state, here.course.because) == (State.ESCALATED, "a person took it back")


def test_asked_again_it_cancels_again_and_then_it_is_over(timed: Account) -> None:
    here = at_its_task(timed)
    here.tasks.refuses["CancelMessageMoveTask"] = "throttled"
    assert here.tick(cancel=True).refusal is not None
    assert here.tick(cancel=True).refusal is None
    assert (here.stage, here.tasks.known[-1]["Status"]) == (Stage.HALTED, "CANCELLING")
    calls = len(here.tasks.calls)
    assert here.tick(cancel=True).refusal is None
    assert len(here.tasks.calls) == calls, "SQS is at it"


def test_a_person_s_task_of_the_console_is_left_alone(timed: Account) -> None:
    here = at_its_task(timed, refuses="There are already 100 tasks")
    timed.later(minutes=5)
    here.tasks.known.append(
        {
            "SourceArn": here.dead,
            "Status": "RUNNING",
            "TaskHandle": "a person's",
            "StartedTimestamp": int(timed.now.timestamp() * 1_000),
            "ApproximateNumberOfMessagesMoved": 30,
        }
    )
    timed.later(minutes=1)
    here.tick()
    assert (here.stage, here.course.moved) == (Stage.HALTED, 5)
    assert [name for name, _ in here.tasks.calls] == ["StartMessageMoveTask"]


def test_a_task_that_by_sqs_s_clock_began_too_early_is_ours_by_its_handle(timed: Account) -> None:
    here = at_its_task(timed)
    here.tasks.known[-1]["StartedTimestamp"] -= 60_000
    timed.later(minutes=1)
    here.tick()
    here.tasks.known[-1].update(Status="COMPLETED", ApproximateNumberOfMessagesMoved=20)
    here.tasks.known[-1].pop("TaskHandle")
    timed.later(minutes=1)
    here.tick()
    assert (here.stage, here.course.moved) == (Stage.SOAK, 25)
    assert len(here.tasks.calls) == 1


@pytest.mark.parametrize("name", ["orders-dlq", "orders"])
def test_a_queue_that_was_made_again_is_another(timed: Account, name: str) -> None:
    here = redriven(timed, *texts(30))
    here.tick()
    queue_arn = here.dead if name.endswith("dlq") else here.source
    attributes = timed.attributes(queue_arn)
    timed.clients.sqs.delete_queue(QueueUrl=timed.url(queue_arn))
    kept = ("MessageRetentionPeriod", "VisibilityTimeout", "RedrivePolicy")
    timed.queue(name, **{each: attributes[each] for each in kept if each in attributes})
    timed.later(minutes=1)
    here.tick()
    assert (here.state, here.pages) == (State.ESCALATED, 1)
    assert "made again" in here.course.because


def test_of_letters_that_are_all_the_same_no_more_are_back_than_went(timed: Account) -> None:
    here = redriven(timed)
    ten = {f"a{at}": {"DataType": "String", "StringValue": "x"} for at in range(10)}
    timed.now -= timedelta(hours=1)
    for _ in range(30):
        here.write(here.dead, "same", ten)
    timed.now += timedelta(hours=1)
    here.minutes(20)
    assert (here.state, here.course.moved) == (State.VERIFIED, 30)
    assert here.course.returned == 0


@pytest.mark.parametrize(
    "over",
    [
        {"size": "5"},
        {"size": None},
        {"size": True},
        {"moved_in_stage": -(10**9)},
        {"in_hand": -5},
        {"rate_per_second": float("nan")},
        {"fingerprints": "abc"},
        {"fingerprints": [1]},
        {"began_at": "2020-01-01T00:00:00"},
        {"began_at": None},
        {"soak_ends_at": None, "stage": "soak"},
        {"dead_letter_arn": "arn:aws:sqs:us-east-1:123456789012:victim-dlq"},
        {"source_arn": "nope"},
        {"source_arn": "arn:aws:sqs:us-east-1:123456789012:victim"},
        {"case_id": 7},
    ],
)
def test_a_damaged_course_halts_it_with_a_page(timed: Account, over: dict[str, Any]) -> None:
    here = redriven(timed, *texts(60))
    here.tick()
    _rewrite(here, {**here.course.document(), **over})
    timed.later(minutes=1)
    with suppress(AssertionError):
        ticks(here, 3)
    assert (here.state, here.pages, here.stage) == (State.ESCALATED, 1, Stage.HALTED)
    assert "ledger" in here.course.because
    assert len(here.bodies(here.dead)) == 55


@pytest.mark.parametrize("text", ["", "[]", "null", '"x"', "{", '{"case_id": 1}'])
def test_what_is_no_course_at_all_halts_it_with_a_page(timed: Account, text: str) -> None:
    here = redriven(timed, *texts(60))
    here.tick()
    _rewrite(here, text)
    timed.later(minutes=1)
    ticks(here, 3)
    assert (here.state, here.pages) == (State.ESCALATED, 1)
    assert len(here.bodies(here.dead)) == 55


@pytest.mark.parametrize("event", [[], "x", None, 7, {}, [{}], {"cancel": True}])
def test_what_is_no_request_is_nobody_s(timed: Account, event: Any) -> None:
    here = redriven(timed)
    with pytest.raises(CaseUnreadable):
        redrive(event, here.run())


@pytest.mark.parametrize(
    ("code", "status", "passes"),
    [
        ("OverLimit", 400, True),
        ("KmsThrottled", 400, True),
        ("RequestThrottled", 403, True),
        ("SomethingNew", 503, True),
        ("AccessDenied", 403, False),
        ("KmsDisabled", 400, False),
    ],
)
def test_a_quarantine_that_takes_nothing_for_now_halts_nothing_yet(
    timed: Account, code: str, status: int, passes: bool
) -> None:
    here = redriven(timed, *texts(60), bounds=LATE)
    here.tick()
    poison = frozenset(sorted(here.bodies(here.source))[:3])
    here.consume(poison)
    here.denies(
        "send_message_batch",
        code,
        match=lambda asked: asked["QueueUrl"].endswith("quarantine"),
        status=status,
    )
    timed.later(minutes=1)
    ticked(here.tick())
    here.tick()
    assert here.state is (State.APPLIED if passes else State.ESCALATED)
    assert len(here.bodies(here.dead)) == 58


def _sends(body: str) -> Any:
    return lambda asked: any(each["MessageBody"] == body for each in asked["Entries"])


def _loses(**_: Any) -> Any:
    raise ReadTimeoutError(endpoint_url="moto")


def _rewrite(here: Redriven, document: dict[str, Any] | str) -> None:
    text = document if isinstance(document, str) else json.dumps(document)
    here.account.clients.dynamodb.update_item(
        TableName="ledger",
        Key=course_key(here.dead),
        UpdateExpression="SET document = :d",
        ExpressionAttributeValues={":d": {"S": text}},
    )

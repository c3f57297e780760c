"""A redrive that cannot look, count, send or cancel: it stops soon, and somebody is paged."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError

from mendq.aws.errors import CaseUnreadable
from mendq.model.case import State
from mendq.redrive.progress import Stage
from mendq.redrive.redrive import redrive
from mendq.redrive.store import course_key
from tests.heal.conftest import Account
from tests.heal.messages import timed
from tests.heal.ticking import LATE, Redriven, redriven, texts, ticked

__all__ = ["timed"]
BY_THE_QUEUE = (
    "User: arn:aws:sts::123456789012:assumed-role/r/s is not authorized to perform: "
    "sqs:receivemessage with an explicit deny in a resource-based policy"
)
BY_IAM = "no identity-based policy allows it"
TICKS_OF_PATIENCE = 9


def ticks(here: Redriven, most: int) -> int:
    """How many it took until the case was over."""
    for minute in range(most):
        if here.tick().case is not None:
            return minute + 1
        here.account.later(minutes=1)
    raise AssertionError(here.progress)


@pytest.mark.parametrize(
    "call", ["get_queue_attributes", "receive_message", "list_message_move_tasks"]
)
def test_what_cannot_be_looked_at_waits_and_is_reported(timed: Account, call: str) -> None:
    here = redriven(timed, *texts(30))
    here.tick()
    here.denies(call, "AccessDenied", BY_IAM)
    timed.later(minutes=5)
    assert 4 < ticks(here, TICKS_OF_PATIENCE) < TICKS_OF_PATIENCE
    assert (here.state, here.pages) == (State.ESCALATED, 1)
    assert BY_IAM in here.progress.because
    assert here.progress.moved == 5


def test_what_can_be_looked_at_again_goes_on(timed: Account) -> None:
    here = redriven(timed, *texts(10))
    for minute in range(60):
        if minute % 2:
            here.tasks.refuses = "no"
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
    taken = ticks(here, TICKS_OF_PATIENCE)
    assert (taken < 3) is is_soon
    assert (here.state, here.pages, here.progress.moved) == (State.ESCALATED, 1, 5)
    assert here.progress.returned <= 3


@pytest.mark.parametrize("messages", [3, 30])
def test_messages_that_sqs_refuses_are_reported_after_an_hour(
    timed: Account, messages: int
) -> None:
    here = redriven(timed, *texts(messages))
    here.denies("send_message_batch", "AccessDenied", "no kms:GenerateDataKey")
    ticks(here, TICKS_OF_PATIENCE)
    assert (here.state, here.pages, here.progress.current.number) == (State.ESCALATED, 1, 0)
    assert "kms:GenerateDataKey" in here.progress.because
    assert len(here.bodies(here.dead)) == messages


def test_one_message_that_sqs_always_refuses_is_reported_soon(timed: Account) -> None:
    here = redriven(timed, *texts(10), "bad")
    here.denies("send_message_batch", "InvalidMessageContents", "U+FFFE", _sends("bad"))
    for _ in range(30):
        if here.tick().case is not None:
            break
        timed.later(minutes=1)
        here.consume()
    assert (here.state, here.progress.moved) == (State.ESCALATED, 10)
    assert here.bodies(here.dead) == {"bad"}
    assert "U+FFFE" in here.progress.because


def test_answers_that_are_always_lost_are_reported(timed: Account) -> None:
    here = redriven(timed, *texts(30))
    for each in ("sqs", "sqs_for_writing"):
        getattr(timed.clients, each).send_message_batch = _loses
    ticks(here, 20)
    assert (here.state, here.pages) == (State.ESCALATED, 1)


def test_one_lost_answer_before_a_long_soak_halts_nothing(timed: Account) -> None:
    here = redriven(timed, *texts(30))
    timed.clients.sqs.set_queue_attributes(
        QueueUrl=timed.url(here.source), Attributes={"VisibilityTimeout": "300"}
    )
    writing: Any = timed.clients.sqs_for_writing
    clients = [timed.clients.sqs, writing]
    for each in clients:
        vars(each)["send_message_batch"] = _loses
    here.tick()
    for each in clients:
        vars(each).pop("send_message_batch", None)
    for _ in range(120):
        if here.tick().case is not None:
            break
        timed.later(minutes=1)
        here.consume()
    assert here.state is State.VERIFIED


@pytest.mark.parametrize("name", ["orders-dlq", "orders"])
def test_a_queue_that_was_made_again_is_another(timed: Account, name: str) -> None:
    here = redriven(timed, *texts(30))
    here.tick()
    queue_arn = here.dead if name.endswith("dlq") else here.source
    attributes = timed.attributes(queue_arn)
    timed.clients.sqs.delete_queue(QueueUrl=timed.url(queue_arn))
    retained = ("MessageRetentionPeriod", "VisibilityTimeout", "RedrivePolicy")
    timed.queue(name, **{each: attributes[each] for each in retained if each in attributes})
    timed.later(minutes=1)
    here.tick()
    assert (here.state, here.pages) == (State.ESCALATED, 1)
    assert "made again" in here.progress.because


def test_of_messages_that_are_all_the_same_no_more_are_back_than_went(timed: Account) -> None:
    here = redriven(timed)
    ten = {f"a{at}": {"DataType": "String", "StringValue": "x"} for at in range(10)}
    timed.now -= timedelta(hours=1)
    for _ in range(30):
        here.write(here.dead, "same", ten)
    timed.now += timedelta(hours=1)
    here.minutes(20)
    assert (here.state, here.progress.moved) == (State.VERIFIED, 30)
    assert here.progress.returned == 0


@pytest.mark.parametrize(
    "over",
    [
        {"current": {"size": "5"}},
        {"moved": -(10**9)},
        {"began_at": "2020-01-01T00:00:00"},
        {"queues": {"dlq_arn": "arn:aws:sqs:us-east-1:123456789012:victim-dlq"}},
        {"queues": {"source_arn": "nope"}},
        {"queues": {"source_arn": "arn:aws:sqs:us-east-1:123456789012:victim"}},
        {"case_id": 7},
    ],
)
def test_a_damaged_course_halts_it_with_a_page(timed: Account, over: dict[str, Any]) -> None:
    here = redriven(timed, *texts(60))
    here.tick()
    document = here.progress.document()
    for name, value in over.items():
        document[name] = {**document[name], **value} if isinstance(value, dict) else value
    _rewrite(here, document)
    timed.later(minutes=1)
    with suppress(AssertionError):
        ticks(here, 3)
    assert (here.state, here.pages, here.stage) == (State.ESCALATED, 1, Stage.HALTED)
    assert "case store" in here.progress.because
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
        TableName="case_store",
        Key=course_key(here.dead),
        UpdateExpression="SET document = :d",
        ExpressionAttributeValues={":d": {"S": text}},
    )

"""What the redrive Lambda is called for, and who calls it while messages go back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from mendq.aws.errors import CaseUnreadable
from mendq.follow_up.follow_up import Followed, follow_up
from mendq.heal.context import request_about
from mendq.model.case import State
from mendq.redrive.redrive import Ticked, redrive
from tests.heal.operators import OWNERS, context_of, outcomes, undo
from tests.heal.redriving import Redriving, redriving


@pytest.fixture
def world() -> Iterator[Redriving]:
    with redriving() as made:
        yield made


def follow(world: Redriving, **later: float) -> Followed:
    world.account.later(**later)
    return follow_up(context_of(world.account), OWNERS, lambda: 60)


@pytest.mark.parametrize(
    "request_of",
    [
        {},
        {"queue_arn": "orders", "symptom": "dlq_messages_waiting"},
        {"queue_arn": "arn:aws:sqs:us-east-1:123456789012:orders-dlq"},
        {"queue_arn": None, "symptom": None, "case_id": None},
    ],
)
def test_a_request_about_no_case_is_nobody_s(world: Redriving, request_of: dict[str, Any]) -> None:
    with pytest.raises(CaseUnreadable):
        redrive(request_of, world.run())


def test_an_applied_case_is_ticked(world: Redriving) -> None:
    world.send("a", "b")
    case = world.case(State.APPLIED)
    ticked = redrive(request_about(case), world.run())
    assert isinstance(ticked, Ticked)
    assert ticked.progress is not None
    assert ticked.progress.case_id == case.case_id
    assert (world.waiting(world.source), world.waiting(world.dlq)) == (2, 0)


@pytest.mark.parametrize(
    "states",
    [
        (State.PROPOSED,),
        (State.PROPOSED, State.DECLINED),
        (State.APPLIED, State.VERIFIED),
        (State.APPLIED, State.ESCALATED),
        (State.APPLIED, State.ROLLED_BACK),
    ],
)
def test_of_a_case_that_is_not_applied_no_message_goes(
    world: Redriving, states: tuple[State, ...]
) -> None:
    world.send("a")
    case = world.case(*states)
    outcome = redrive(request_about(case), world.run())
    assert outcome.case is None
    assert world.waiting(world.source) == 0
    assert world.newest() == case


def test_an_approved_case_is_taken_up_and_no_message_goes(world: Redriving) -> None:
    """The facts do not bear it here: it comes to nothing, as every approval would."""
    world.send("a")
    case = world.case(State.PROPOSED, State.APPROVED)
    outcome = redrive(request_about(case), world.run())
    assert not isinstance(outcome, Ticked)
    assert outcome.case is not None
    assert outcome.case.state is State.EXPIRED
    assert world.waiting(world.source) == 0


def test_what_is_to_be_stopped_is_stopped_and_no_message_goes(world: Redriving) -> None:
    world.send("a")
    case = world.case(State.APPLIED)
    outcome = redrive({**request_about(case), "cancel": True}, world.run())
    assert isinstance(outcome, Ticked)
    assert outcome.refusal is None
    assert outcome.progress is not None
    assert outcome.progress.is_over
    assert world.waiting(world.source) == 0


@pytest.mark.parametrize("word", ["true", 1, "yes", None, False])
def test_only_true_stops_it(world: Redriving, word: object) -> None:
    case = world.case(State.APPLIED)
    outcome = redrive({**request_about(case), "cancel": word}, world.run())
    assert isinstance(outcome, Ticked)
    assert outcome.progress is not None
    assert not outcome.progress.is_over


def test_each_minute_its_owner_is_called_and_nothing_else_moves_it(world: Redriving) -> None:
    case = world.case(State.APPLIED)
    for minute in range(1, 181):
        followed = follow(world, minutes=1)
        assert (followed.errors, followed.moved) == ({}, [])
        assert len(world.asked) == minute
    assert world.asked[-1] == request_about(case)
    assert world.newest() == case


def test_days_later_it_still_goes_on(world: Redriving) -> None:
    case = world.case(State.APPLIED)
    follow(world, days=20)
    assert len(world.asked) == 1
    assert world.newest() == case


def test_a_page_that_is_held_back_keeps_no_message_waiting(world: Redriving) -> None:
    """Nor does a bucket that takes nothing."""
    world.case(State.APPLIED)
    world.account.clients.s3.meta.events.register("before-call.s3.PutObject", _fail)
    follow(world, minutes=1)
    follow(world, minutes=1)
    assert len(world.asked) == 2


def _fail(**_: Any) -> None:
    raise ConnectionError


@pytest.mark.parametrize("state", [State.VERIFIED, State.ESCALATED, State.WATCHING])
def test_once_it_is_over_nobody_is_called(world: Redriving, state: State) -> None:
    world.case(State.APPLIED, state)
    for _ in range(3):
        follow(world, minutes=1)
    assert world.asked == []


def test_what_its_queue_is_gone_for_is_closed(world: Redriving) -> None:
    world.case(State.APPLIED)
    world.account.clients.sqs.delete_queue(QueueUrl=world.account.url(world.dlq))
    follow(world, minutes=1)
    assert world.asked == []
    assert world.newest().state is State.CLOSED


@pytest.mark.parametrize("tag", ["off", "observe"])
def test_a_queue_that_is_to_be_left_is_its_owner_s_to_leave(world: Redriving, tag: str) -> None:
    case = world.case(State.APPLIED)
    world.account.tag(world.dlq, mendq=tag)
    follow(world, minutes=1)
    assert len(world.asked) == 1
    assert world.newest() == case


def test_taken_back_it_is_stopped_first_and_left_alone_for_a_week(world: Redriving) -> None:
    case = world.case(State.APPLIED)
    answered = undo(world.account, case.case_id)
    assert answered["state"] == "rolled_back"
    assert outcomes(answered) == {"Dlq": "undone"}
    assert world.asked == [{**request_about(case), "cancel": True}]
    assert world.newest().state is State.ROLLED_BACK
    assert undo(world.account, case.case_id) == answered, "done twice it answers the same"
    assert len(world.asked) == 1
    view = context_of(world.account).case_store.look(world.dlq, case.symptom, ("Dlq",))
    until = view.record_of("Dlq").overridden_until
    assert until is not None
    assert (until - world.account.now).days == 7


def test_a_freeze_keeps_nobody_from_stopping_it(world: Redriving) -> None:
    case = world.case(State.APPLIED)
    world.account.clients.dynamodb.put_item(
        TableName=world.account.settings.case_table,
        Item={"pk": {"S": "account"}, "sk": {"S": "freeze"}, "reason": {"S": "drill"}},
    )
    assert undo(world.account, case.case_id)["state"] == "rolled_back"


def test_a_dry_run_says_so_and_stops_nothing(world: Redriving) -> None:
    case = world.case(State.APPLIED)
    answered = undo(world.account, case.case_id, dry_run=True)
    assert outcomes(answered) == {"Dlq": "undone"}
    assert world.asked == []
    assert world.newest() == case


@pytest.mark.parametrize(
    ("answers", "error"),
    [
        ({"state": None, "code": "claimed", "reason": "another run is at work"}, "claimed"),
        ({"state": None, "code": "not_cancelled", "reason": "SQS did not"}, "claimed"),
    ],
)
def test_what_could_not_be_stopped_is_not_said_to_be(
    world: Redriving, answers: dict[str, Any], error: str
) -> None:
    case = world.case(State.APPLIED)
    world.answers = answers
    answered = undo(world.account, case.case_id)
    assert answered["error"] == error
    assert answers["reason"] in answered["reason"]
    assert world.newest() == case


@pytest.mark.parametrize("state", [State.VERIFIED, State.ESCALATED])
def test_of_one_that_is_over_nothing_is_undone(world: Redriving, state: State) -> None:
    case = world.case(State.APPLIED, state)
    answered = undo(world.account, case.case_id)
    assert outcomes(answered) == {"Dlq": "nothing"}
    assert [each["command"] for each in answered["attributes"]] == [""]
    assert world.asked == []
    assert world.newest() == case

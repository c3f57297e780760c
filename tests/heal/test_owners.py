"""Writes that another Lambda owns: heal decides and opens, the owner is called and writes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest

from mendq.aws.clients import Clients
from mendq.aws.errors import OwnerUnavailable
from mendq.follow_up.follow_up import Followed, follow_up
from mendq.heal.apply import write
from mendq.heal.context import Outcome
from mendq.heal.resume import take_up
from mendq.model.facts import Facts
from mendq.model.plan import Refusal
from mendq.model.steps import AttributeStep, Owner, SetVisibilityTimeout
from tests.heal.conftest import Account
from tests.heal.operators import OWNERS, case_of, context_of, fail, say, states

ATTACH = Owner.ATTACH_DLQ


@pytest.fixture(autouse=True)
def _visibilities_are_anothers(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the visibility timeout were the other Lambda's to write."""
    monkeypatch.setattr(SetVisibilityTimeout, "owner", ATTACH)


@dataclass
class MessageMover:
    """The other Lambda's way to write."""

    taken: list[AttributeStep] = field(default_factory=list)

    def write(
        self, clients: Clients, seen: Facts, steps: Sequence[AttributeStep]
    ) -> Refusal | None:
        self.taken += steps
        return write(clients, seen, steps)


@pytest.fixture
def mover() -> MessageMover:
    return MessageMover()


@pytest.fixture
def called(account: Account) -> list[tuple[str, dict[str, str]]]:
    """The functions that were called, and with what; nobody answers."""
    calls: list[tuple[str, dict[str, str]]] = []

    def invoked(params: dict[str, Any], **_: Any) -> tuple[Any, dict[str, Any]]:
        function = params["url_path"].split("/")[-2]
        calls.append((function, json.loads(params["body"])))
        return SimpleNamespace(status_code=202), {"StatusCode": 202}

    account.clients.functions.meta.events.register("before-call.lambda.Invoke", invoked)  # type: ignore[arg-type]
    return calls


def _opened(account: Account, tag: str = "heal") -> str:
    account.later(minutes=-15)
    queue = account.queue(tag=tag, VisibilityTimeout="30")
    account.later(minutes=10)
    fail(account, queue)
    account.later(minutes=1)
    return queue


def _taken_up(account: Account, mover: MessageMover | None) -> Outcome:
    case = case_of(account)
    request = {"case_id": case.case_id, "queue_arn": case.queue_arn, "symptom": case.symptom}
    run = account.run()
    return take_up(request, replace(run, write=mover.write, whose=ATTACH) if mover else run)


def _followed(account: Account, owners: dict[Owner, str] = OWNERS) -> Followed:
    return follow_up(context_of(account), owners, lambda: 60)


def test_heal_writes_nothing_that_another_owns_and_opens_the_case_as_approved(
    account: Account,
) -> None:
    queue = _opened(account)
    assert account.visibility(queue) == 30
    case = case_of(account)
    assert (case.state, case.actor) == ("approved", "heal")
    assert "settings let attach_dlq do it" in case.reason
    assert account.pages() == []
    assert account.attribute_item(queue) == {}


def test_follow_up_calls_the_owner_of_the_steps_within_a_minute(
    account: Account, called: list[tuple[str, dict[str, str]]]
) -> None:
    _opened(account)
    assert len(_followed(account).called) == 1
    ((function, request),) = called
    assert function == OWNERS[ATTACH]
    assert request["case_id"] == case_of(account).case_id


def test_a_deployment_without_the_owner_leaves_the_case_waiting(account: Account) -> None:
    queue = _opened(account)
    (error,) = _followed(account, {Owner.HEAL: "heal"}).errors.values()
    assert isinstance(error, OwnerUnavailable)
    assert states(account) == ["approved"]
    assert account.visibility(queue) == 30


def test_the_owner_writes_by_its_own_mover_and_under_its_name(
    account: Account, mover: MessageMover
) -> None:
    queue = _opened(account)
    outcome = _taken_up(account, mover)
    assert outcome.case is not None
    assert (outcome.case.state, outcome.case.actor) == ("applied", "attach_dlq")
    assert account.visibility(queue) == 45
    assert mover.taken == [SetVisibilityTimeout(30, 45)]


@pytest.mark.parametrize("lowered", ["propose", "observe", "off"])
def test_settings_that_no_longer_let_it_end_it_unwritten(
    account: Account, mover: MessageMover, lowered: str
) -> None:
    queue = _opened(account)
    account.tag(queue, mendq=lowered)
    _taken_up(account, mover)
    assert states(account) == ["approved", "expired"]
    assert account.visibility(queue) == 30


def test_what_a_person_approved_needs_no_mode_heal(account: Account, mover: MessageMover) -> None:
    queue = _opened(account, tag="propose")
    document = say(account, "approve", case_of(account).case_id)
    assert (document["state"], account.visibility(queue)) == ("approved", 30)
    assert states(account) == ["proposed", "approved"]
    _taken_up(account, mover)
    assert states(account)[-1] == "applied"
    assert account.visibility(queue) == 45

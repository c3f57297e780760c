"""approve and rollback as Lambda calls them: an event in, a document or an error out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from functions import approve, rollback
from mendq.aws.clients import Clients
from mendq.model.limits import Mode
from mendq.model.settings import ApproveSettings, CaseSettings, RollbackSettings
from tests.functions.test_heal import Context
from tests.heal.conftest import Account, settings
from tests.heal.operators import ALICE, OWNERS, Heal, case_of, fail, outcomes, states

CONTEXT: Any = Context()


def _of_cases(account: Account) -> dict[str, Any]:
    shared = CaseSettings.__dataclass_fields__
    return {name: getattr(account.settings, name) for name in shared}


@pytest.fixture(autouse=True)
def _lambdas(account: Account, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    both = (
        RollbackSettings(**_of_cases(account)),
        ApproveSettings(**_of_cases(account), owners=OWNERS),
    )
    for each in both:
        for variable, text in each.to_environment().items():
            monkeypatch.setenv(variable, text)
    monkeypatch.setattr(Clients, "of_this_lambda", lambda: account.clients)
    for handler in (approve, rollback):
        handler._cold_start.cache_clear()
    yield
    for handler in (approve, rollback):
        handler._cold_start.cache_clear()


@pytest.mark.parametrize("handler", [approve.handler, rollback.handler])
def test_a_request_without_a_case_is_refused(account: Account, handler: Any) -> None:
    assert handler({"decision": "approve"}, CONTEXT)["error"] == "bad_request"
    assert handler({"case_id": "no-such", "decision": "close"}, CONTEXT)["error"] == "not_found"


@pytest.mark.parametrize("handler", [approve.handler, rollback.handler])
def test_without_the_case_store_nothing_is_done_and_that_is_reported(
    account: Account, handler: Any
) -> None:
    account.clients.dynamodb.delete_table(TableName="case_store")
    answered = handler({"case_id": "c", "decision": "approve", "dry_run": False}, CONTEXT)
    assert answered["error"] == "unavailable"
    assert "ask again in two minutes" in answered["reason"]


def test_it_rolls_back_where_it_is_told_to(account: Account) -> None:
    queue = account.queue(VisibilityTimeout="30")
    fail(account, queue)
    event = {"case_id": case_of(account).case_id, "actor": ALICE}
    for dry in (event, {**event, "dry_run": True}, {**event, "dry_run": "false"}):
        assert outcomes(rollback.handler(dry, CONTEXT)) == {"VisibilityTimeout": "undone"}
        assert account.visibility(queue) == 45
    answered = rollback.handler({**event, "dry_run": False}, CONTEXT)
    assert answered["state"] == "rolled_back"
    assert account.visibility(queue) == 30
    assert case_of(account).actor == ALICE


def test_it_hands_an_approved_case_to_heal(account: Account) -> None:
    account.settings = replace(settings(), tag_may_raise_to=Mode.PROPOSE)
    heal = Heal(account)
    account.later(minutes=-15)
    queue = account.queue(tag="propose", VisibilityTimeout="30")
    account.later(minutes=10)
    fail(account, queue)
    event = {"case_id": case_of(account).case_id, "decision": "approve", "actor": ALICE}
    assert approve.handler(event, CONTEXT)["case_id"] == event["case_id"]
    assert len(heal.asked) == 1
    assert set(states(account)) == {"proposed", "approved", "applied"}

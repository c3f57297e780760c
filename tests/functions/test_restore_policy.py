"""The restore_policy Lambda as Lambda calls it: a case in, what became of it out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from functions import restore_policy
from mendq.aws.clients import Clients
from mendq.aws.errors import CaseUnreadable
from mendq.model.settings import RestorePolicySettings
from tests.functions.test_heal import Context
from tests.heal.conftest import Account
from tests.heal.operators import case_of, fail, move
from tests.heal.restoring import EMPTIED, GRANTS, Analyzer, deny, deploy, pinned_queue, policy_of

CONTEXT: Any = Context()


@pytest.fixture(autouse=True)
def _lambda(account: Account, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    names = RestorePolicySettings.__dataclass_fields__
    settings = RestorePolicySettings(**{each: getattr(account.settings, each) for each in names})
    for variable, text in settings.to_environment().items():
        monkeypatch.setenv(variable, text)
    monkeypatch.setattr(Clients, "of_this_lambda", lambda: account.clients)
    restore_policy._cold_start.cache_clear()
    yield
    restore_policy._cold_start.cache_clear()


def _request(account: Account) -> dict[str, str]:
    case = case_of(account)
    return {"case_id": case.case_id, "queue_arn": case.queue_arn, "symptom": case.symptom}


def test_an_approved_case_gets_its_pinned_policy(account: Account) -> None:
    Analyzer(account)
    account.later(minutes=-27)
    queue = pinned_queue(account)
    account.later(hours=3)
    deploy(account, queue)
    account.later(minutes=25)
    deny(account, queue)
    move(account, case_of(account), "approved")
    answer = restore_policy.handler(_request(account), CONTEXT)
    assert (answer["state"], policy_of(account, queue)) == ("applied", GRANTS)
    again = restore_policy.handler(_request(account), CONTEXT)
    assert (again["state"], again["code"]) == (None, "moved_on")


def test_a_case_that_nobody_approved_is_left_alone(account: Account) -> None:
    analyzer = Analyzer(account)
    queue = pinned_queue(account)
    deploy(account, queue)
    account.later(minutes=25)
    deny(account, queue)
    answer = restore_policy.handler(_request(account), CONTEXT)
    assert (answer["state"], answer["code"]) == (None, "moved_on")
    assert policy_of(account, queue) == EMPTIED
    assert analyzer.asked == []


def test_a_visibility_is_not_its_to_write(account: Account) -> None:
    account.later(minutes=-10)
    queue = account.queue(tag="propose", VisibilityTimeout="30")
    account.later(minutes=25)
    fail(account, queue)
    move(account, case_of(account), "approved")
    answer = restore_policy.handler(_request(account), CONTEXT)
    assert answer["code"] == "another_owner"
    assert account.visibility(queue) == 30


@pytest.mark.parametrize("event", [{}, {"case_id": "x"}, {"Records": []}, {"found": []}])
def test_what_is_no_case_is_reported_to_whoever_sent_it(
    account: Account, event: dict[str, Any]
) -> None:
    # There is nothing to count of it, which Powertools warns of.
    with pytest.warns(UserWarning, match="No application metrics"), pytest.raises(CaseUnreadable):
        restore_policy.handler(event, CONTEXT)
    assert account.transitions() == []

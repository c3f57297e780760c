"""A visibility timeout that did not help is set back if no further step is planned."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mendq.catalogue import SYMPTOM_BY_NAME
from mendq.model.plan import Refuse
from mendq.model.state import State
from tests.account.account import Account
from tests.heal.builders import continue_newest_case, make_approved_case, make_ineffective_case
from tests.heal.operators import list_states, load_newest_case, move_case

SYMPTOM = "visibility_timeout_too_short"


def plan_nothing(monkeypatch: pytest.MonkeyPatch, code: str = "guess_too_far") -> None:
    """Let the symptom refuse any further step with this code."""
    answer = Refuse(code, "no further step is planned")
    entry: Any = replace(SYMPTOM_BY_NAME[SYMPTOM], plan=lambda *_: answer)
    monkeypatch.setitem(SYMPTOM_BY_NAME, SYMPTOM, entry)


def test_unhelpful_timeout_is_set_back_and_people_are_notified_once(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = make_ineffective_case(account)
    plan_nothing(monkeypatch)
    continue_newest_case(account)
    assert account.visibility(queue) == 30
    case = load_newest_case(account)
    assert (case.state, case.code) == (State.ROLLED_BACK, "guess_too_far")
    assert "The change did not help, so it was taken back" in case.reason
    (page,) = account.pages("urgent")
    assert "VisibilityTimeout: 30 s" in str(page)
    assert "holds another value" not in str(page)
    assert "Tag the queue with the longest processing time of one message." in str(page)


def test_unhelpful_timeout_stays_during_a_freeze_and_the_case_escalates(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = make_ineffective_case(account)
    plan_nothing(monkeypatch)
    account.freeze()
    continue_newest_case(account)
    assert account.visibility(queue) == 45
    assert load_newest_case(account).state is State.ESCALATED
    (page,) = account.pages("urgent")
    assert "mendq rollback" in str(page)


def test_unhelpful_timeout_that_a_person_has_changed_stays_and_the_case_escalates(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = make_ineffective_case(account)
    plan_nothing(monkeypatch)
    account.set_visibility(queue, 70)
    continue_newest_case(account)
    assert account.visibility(queue) == 70
    assert load_newest_case(account).state is State.ESCALATED


def test_unhelpful_timeout_that_a_person_approved_stays_and_the_case_escalates(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = make_approved_case(account)
    account.tag(queue, mendq="heal")
    continue_newest_case(account)
    assert account.visibility(queue) == 45
    account.later(hours=1)
    move_case(account, load_newest_case(account), "ineffective")
    plan_nothing(monkeypatch)
    continue_newest_case(account)
    assert account.visibility(queue) == 45
    assert list_states(account)[-2:] == ["ineffective", "escalated"]


@pytest.mark.parametrize("code", ["need_already_met", "tag_unreadable", "over_ceiling"])
def test_unhelpful_timeout_stays_and_the_case_escalates_if_a_longer_one_may_still_be_right(
    account: Account, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    queue = make_ineffective_case(account)
    plan_nothing(monkeypatch, code)
    continue_newest_case(account)
    assert account.visibility(queue) == 45
    assert load_newest_case(account).state is State.ESCALATED


@pytest.mark.parametrize(("max_processing_seconds", "expected"), [("40", 45), ("20", 30)])
def test_unhelpful_timeout_is_set_back_unless_the_old_one_is_below_the_tagged_processing_time(
    account: Account,
    monkeypatch: pytest.MonkeyPatch,
    max_processing_seconds: str,
    expected: int,
) -> None:
    queue = make_ineffective_case(account)
    account.tag(queue, **{"mendq": "heal", "mendq:max-processing-seconds": max_processing_seconds})
    plan_nothing(monkeypatch, "consumer_failing")
    continue_newest_case(account)
    assert account.visibility(queue) == expected


def test_unhelpful_timeout_that_a_person_wrote_again_stays_and_the_case_escalates(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = make_ineffective_case(account)
    plan_nothing(monkeypatch)
    account.set_visibility(queue, 45)
    continue_newest_case(account)
    assert account.visibility(queue) == 45
    assert load_newest_case(account).state is State.ESCALATED

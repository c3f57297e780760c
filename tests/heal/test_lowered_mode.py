"""A change that did not help lowers what Mendq does by itself, until a person says yes again."""

from __future__ import annotations

import pytest

from mendq.model.case import MODE_LOWERED_BY_CASE_KEY
from tests.account.account import Account
from tests.heal.operators import (
    Heal,
    fail_calls,
    list_states,
    load_newest_case,
    make_failing_queue,
    move_case,
    roll_back,
    send_decision,
)


@pytest.fixture
def fixed(account: Account) -> str:
    """A queue that heal has fixed by itself, 30 -> 45."""
    return make_failing_queue(account)


def _rolled_back(account: Account) -> None:
    roll_back(account, load_newest_case(account).case_id)


def _ineffective(account: Account) -> None:
    """Nobody had a further step, and a person closed it."""
    move_case(account, load_newest_case(account), "ineffective")
    move_case(account, load_newest_case(account), "escalated")
    account.later(hours=1)
    send_decision(account, "close", load_newest_case(account).case_id)


def _a_week_later(account: Account, queue: str, word: str) -> None:
    account.later(days=8)
    fail_calls(account, queue, word)


@pytest.mark.parametrize("failed", [_rolled_back, _ineffective])
def test_fix_after_an_ineffective_or_rolled_back_fix_is_only_proposed(
    account: Account, fixed: str, failed: object
) -> None:
    first = load_newest_case(account).case_id
    assert callable(failed)
    failed(account)
    before = account.visibility(fixed)
    _a_week_later(account, fixed, "again-")
    case = load_newest_case(account)
    assert (case.state, account.visibility(fixed)) == ("proposed", before), "and nothing changed"
    assert f"case {first} did not help or was taken back" in case.reason
    assert case.evidence[MODE_LOWERED_BY_CASE_KEY] == first


def test_unanswered_proposals_after_a_rollback_never_lead_back_to_automatic_fixes(
    account: Account, fixed: str
) -> None:
    """However often: each proposal that nobody answers hands the doubt on to the next."""
    first = load_newest_case(account).case_id
    _rolled_back(account)
    for word in ("b-", "c-", "d-"):
        _a_week_later(account, fixed, word)
        assert (load_newest_case(account).state, account.visibility(fixed)) == ("proposed", 30)
        assert load_newest_case(account).evidence[MODE_LOWERED_BY_CASE_KEY] == first
        move_case(account, load_newest_case(account), "expired")


def test_fix_is_automatic_again_once_a_person_approved_a_proposal(
    account: Account, fixed: str
) -> None:
    _rolled_back(account)
    _a_week_later(account, fixed, "b-")
    Heal(account)
    account.later(hours=1)
    send_decision(account, "approve", load_newest_case(account).case_id)
    assert (list_states(account)[-1], account.visibility(fixed)) == ("applied", 45)
    for state in ("verified", "watching", "closed"):
        account.later(hours=1)
        move_case(account, load_newest_case(account), state)
    _a_week_later(account, fixed, "c-")
    assert (list_states(account)[-1], account.visibility(fixed)) == ("applied", 68), "by itself"
    assert MODE_LOWERED_BY_CASE_KEY not in load_newest_case(account).evidence


def test_recreated_queue_is_fixed_automatically_despite_an_earlier_rollback(
    account: Account, fixed: str
) -> None:
    _rolled_back(account)
    account.clients.sqs.delete_queue(QueueUrl=account.url(fixed))
    account.later(days=8)
    queue = account.queue(VisibilityTimeout="30")
    account.later(minutes=5)
    fail_calls(account, queue, "b-")
    assert load_newest_case(account).state == "applied"

"""After a fix that did not help, Mendq only proposes until a person approves again."""

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
def fixed_queue(account: Account) -> str:
    """A queue that heal raised from 30 to 45 automatically."""
    return make_failing_queue(account)


def _roll_back_newest_case(account: Account) -> None:
    roll_back(account, load_newest_case(account).case_id)


def _close_as_ineffective(account: Account) -> None:
    """Escalate the ineffective case and let a person close it."""
    move_case(account, load_newest_case(account), "ineffective")
    move_case(account, load_newest_case(account), "escalated")
    account.later(hours=1)
    send_decision(account, "close", load_newest_case(account).case_id)


def _fail_calls_a_week_later(account: Account, queue: str, word: str) -> None:
    account.later(days=8)
    fail_calls(account, queue, word)


@pytest.mark.parametrize("undo_fix", [_roll_back_newest_case, _close_as_ineffective])
def test_fix_after_an_ineffective_or_rolled_back_fix_is_only_proposed(
    account: Account, fixed_queue: str, undo_fix: object
) -> None:
    first = load_newest_case(account).case_id
    assert callable(undo_fix)
    undo_fix(account)
    before = account.visibility(fixed_queue)
    _fail_calls_a_week_later(account, fixed_queue, "again-")
    case = load_newest_case(account)
    assert (case.state, account.visibility(fixed_queue)) == ("proposed", before), (
        "and nothing changed"
    )
    assert f"case {first} did not help or was taken back" in case.reason
    assert case.evidence[MODE_LOWERED_BY_CASE_KEY] == first


def test_unanswered_proposals_after_a_rollback_never_lead_back_to_automatic_fixes(
    account: Account, fixed_queue: str
) -> None:
    """Each unanswered proposal passes the lowered mode on to the next. Forged calls cannot raise it
    again.
    """
    first = load_newest_case(account).case_id
    _roll_back_newest_case(account)
    for word in ("b-", "c-", "d-"):
        _fail_calls_a_week_later(account, fixed_queue, word)
        assert (load_newest_case(account).state, account.visibility(fixed_queue)) == (
            "proposed",
            30,
        )
        assert load_newest_case(account).evidence[MODE_LOWERED_BY_CASE_KEY] == first
        move_case(account, load_newest_case(account), "expired")


def test_fix_is_automatic_again_once_a_person_approved_a_proposal(
    account: Account, fixed_queue: str
) -> None:
    _roll_back_newest_case(account)
    _fail_calls_a_week_later(account, fixed_queue, "b-")
    Heal(account)
    account.later(hours=1)
    send_decision(account, "approve", load_newest_case(account).case_id)
    assert (list_states(account)[-1], account.visibility(fixed_queue)) == ("applied", 45)
    for state in ("verified", "watching", "closed"):
        account.later(hours=1)
        move_case(account, load_newest_case(account), state)
    _fail_calls_a_week_later(account, fixed_queue, "c-")
    assert (list_states(account)[-1], account.visibility(fixed_queue)) == ("applied", 68), (
        "by itself"
    )
    assert MODE_LOWERED_BY_CASE_KEY not in load_newest_case(account).evidence


def test_recreated_queue_is_fixed_automatically_despite_an_earlier_rollback(
    account: Account, fixed_queue: str
) -> None:
    _roll_back_newest_case(account)
    account.clients.sqs.delete_queue(QueueUrl=account.url(fixed_queue))
    account.later(days=8)
    queue = account.queue(VisibilityTimeout="30")
    account.later(minutes=5)
    fail_calls(account, queue, "b-")
    assert load_newest_case(account).state == "applied"

"""Nobody else ends a case that a run has claimed, and a dead run's write is recorded later."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any
from unittest.mock import patch

import pytest
from msgspec.structs import replace

from mendq.aws.errors import CaseMoved
from mendq.cases.table import CaseStore
from mendq.follow_up.follow_up import FollowUpResult, follow_up
from mendq.heal.owners import make_owner_request
from mendq.heal.resume import continue_case
from mendq.model.case import Case
from tests.account.account import Account
from tests.account.faults import Killed
from tests.heal.operators import (
    OWNERS,
    Heal,
    list_states,
    load_newest_case,
    make_context,
    make_failing_queue,
    move_case,
    roll_back,
    send_decision,
)


@pytest.fixture
def approved_case(account: Account) -> Case:
    """A case with an approved raise from 30 to 45 that heal has not written yet."""
    make_failing_queue(account, "propose")
    heal = Heal(account)
    heal.fails = True
    send_decision(account, "approve", load_newest_case(account).case_id)
    heal.fails = False
    account.later(minutes=6)
    return load_newest_case(account)


@contextmanager
def _act_at_write(
    account: Account, act: Callable[[], object], when: str = "after"
) -> Iterator[None]:
    """Call `act` once just before or after the next SetQueueAttributes."""
    events: Any = account.clients.sqs_for_writing.meta.events
    event = f"{when}-call.sqs.SetQueueAttributes"

    def once(**_: Any) -> None:
        events.unregister(event, unique_id="once")
        act()

    events.register(event, once, "once")
    yield


def _die() -> None:
    raise Killed


def _continue_case(account: Account, case: Case) -> None:
    with suppress(Killed):
        continue_case(make_owner_request(case), account.run())


def _follow(account: Account) -> FollowUpResult:
    result = follow_up(make_context(account), OWNERS, lambda: 60)
    assert result.errors == {}
    return result


def _is_claimed(account: Account, queue_arn: str) -> bool:
    return "claim_owner" in account.attribute_item(queue_arn)


@pytest.mark.parametrize("word", ["decline", "close"])
def test_decline_or_close_between_a_write_and_its_record_is_refused(
    account: Account, approved_case: Case, word: str
) -> None:
    said: list[Any] = []
    with _act_at_write(
        account, lambda: said.append(send_decision(account, word, approved_case.case_id))
    ):
        _continue_case(account, approved_case)
    assert said[0]["error"] == ("claimed" if word == "decline" else "wrong_state")
    assert list_states(account)[-1] == "applied"
    assert account.visibility(approved_case.queue_arn) == 45


def test_decline_that_read_the_case_before_heals_claim_is_not_recorded(
    account: Account, approved_case: Case
) -> None:
    refused: list[object] = []

    def decline() -> None:
        with pytest.raises(CaseMoved) as moved:
            move_case(account, approved_case, "declined")
        refused.append(moved.value)

    with _act_at_write(account, decline):
        _continue_case(account, approved_case)
    assert refused
    assert list_states(account)[-1] == "applied"


def test_write_of_a_run_that_died_is_recorded_before_a_person_can_decline_the_case(
    account: Account, approved_case: Case
) -> None:
    with _act_at_write(account, _die):
        _continue_case(account, approved_case)
    before = account.case_store_items()
    account.later(seconds=30)
    assert send_decision(account, "decline", approved_case.case_id)["error"] == "claimed"
    account.later(seconds=90)
    assert send_decision(account, "decline", approved_case.case_id)["error"] == "claimed"
    assert account.case_store_items() == before
    _follow(account)
    assert send_decision(account, "decline", approved_case.case_id)["error"] == "wrong_state"
    assert list_states(account)[-1] == "applied"
    assert not _is_claimed(account, approved_case.queue_arn)


def test_follow_up_records_a_rollback_of_a_closed_case_whose_run_died(account: Account) -> None:
    queue = make_failing_queue(account)
    case = load_newest_case(account)
    move_case(account, case, "closed")
    assert make_context(account).open_cases.list_unsettled_cases() == []
    with _act_at_write(account, _die), suppress(Killed):
        roll_back(account, case.case_id)
    assert list_states(account) == ["applied", "closed"]
    account.later(minutes=3)
    _follow(account)
    assert account.visibility(queue) == 30
    assert list_states(account) == ["applied", "closed", "rolled_back"]
    assert not _is_claimed(account, queue)
    account.later(minutes=3)
    _follow(account)
    assert make_context(account).open_cases.list_unsettled_cases() == []


def _follow_up_with_clock_forward(account: Account, **by: float) -> FollowUpResult:
    """Run follow_up with its clock put forward while the real time stays."""
    context = make_context(account)
    later = replace(context, now=account.now + timedelta(**by), real_now=account.now)
    return follow_up(later, OWNERS, lambda: 60)


@pytest.mark.parametrize("days", [0.1, 1.5, 14])
def test_follow_up_with_its_clock_put_forward_ends_no_valid_claim(
    account: Account, approved_case: Case, days: float
) -> None:
    """Otherwise the case would expire between heal's claim and its write, and nobody would record
    the write.
    """
    found: list[object] = []

    def snapshots() -> list[tuple[str, str]]:
        return [key for key in account.case_store_items() if key[1].startswith("snapshot#")]

    def follow() -> None:
        before = snapshots()
        result = _follow_up_with_clock_forward(account, days=days)
        found.append((result.moved_cases, result.errors, snapshots() == before != []))

    with _act_at_write(account, follow, "before"):
        _continue_case(account, approved_case)
    assert found == [([], {}, True)]
    assert list_states(account)[-1] == "applied"
    assert account.visibility(approved_case.queue_arn) == 45
    assert not _is_claimed(account, approved_case.queue_arn)


def test_follow_up_with_a_fast_clock_records_nothing_after_a_newer_claim(
    account: Account, approved_case: Case
) -> None:
    """follow_up reads the case, heal claims it, and follow_up tries to record that the approval
    expired.
    """
    looked: list[bool] = []
    real = CaseStore.look

    def slow(*asked: Any) -> Any:
        view = real(*asked)
        if not looked:
            looked.append(True)
            with _act_at_write(account, _die):
                _continue_case(account, approved_case)
        return view

    with patch.object(CaseStore, "look", slow):
        result = _follow_up_with_clock_forward(account, days=1.5)
    assert looked
    assert (result.moved_cases, result.errors) == ([], {})
    assert list_states(account)[-1] == "approved"
    assert _is_claimed(account, approved_case.queue_arn)

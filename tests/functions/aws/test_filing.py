"""The case bucket holds each transition once, as the ledger does, whoever dies when."""

from __future__ import annotations

from contextlib import suppress

import pytest
from botocore.stub import Stubber

from functions.aws.follow_up import follow_up
from functions.healing import ledger_index
from tests.functions.aws.conftest import Account
from tests.functions.aws.faults import KINDS, Fault, Killed
from tests.functions.aws.operators import OWNERS, case_of, desk_of, fail, move, states, undo

# Beyond the last call of a fix, so that every one is struck.
MOST_CALLS = 14


def _just_before_midnight(account: Account) -> str:
    account.now = account.now.replace(hour=23, minute=50, second=0)
    queue = account.queue(VisibilityTimeout="30")
    account.later(minutes=8)
    return queue


def _as_in_the_ledger(account: Account) -> None:
    """Every transition lies in the bucket once, under the key that its own time gives."""
    listed = account.clients.s3.list_objects_v2(Bucket="cases").get("Contents", [])
    case_id = case_of(account).case_id
    kept = desk_of(account).open_cases.transitions(case_id)
    assert sorted(each["Key"] for each in listed) == sorted(each.key() for each in kept)
    assert [each.document() for each in kept] == account.transitions()


def _followed(account: Account) -> None:
    assert follow_up(desk_of(account), OWNERS, lambda: 60).errors == {}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("strike_at", range(1, MOST_CALLS))
def test_a_retry_after_midnight_leaves_one_object(
    account: Account, kind: str, strike_at: int
) -> None:
    queue = _just_before_midnight(account)
    bodies = account.late_deletes(queue, "1", "2", "3")
    fault = Fault(account, kind, strike_at)
    with suppress(Killed):
        account.heal(bodies)
    fault.leave()
    account.later(minutes=7)
    account.heal(bodies)
    assert states(account) == ["applied"]
    _as_in_the_ledger(account)


@pytest.mark.parametrize("kind", KINDS)
def test_a_rollback_asked_for_again_after_midnight_leaves_one_object(
    account: Account, kind: str
) -> None:
    queue = _just_before_midnight(account)
    fail(account, queue)
    account.later(minutes=1)
    case_id, before = case_of(account).case_id, account.now
    for strike_at in range(1, MOST_CALLS):
        fault = Fault(account, kind, strike_at)
        with suppress(Killed):
            undo(account, case_id)
        fault.leave()
        account.later(minutes=3)
    assert account.now.date() > before.date()
    assert undo(account, case_id)["state"] == "rolled_back"
    _as_in_the_ledger(account)


def _dies_before_it_is_filed(account: Account, queue: str) -> None:
    account.clients.s3.meta.events.register("before-call.s3.PutObject", _killed, "strike")
    with suppress(Killed):
        fail(account, queue)
    account.clients.s3.meta.events.unregister("before-call.s3.PutObject", unique_id="strike")


def _killed(**_: object) -> None:
    raise Killed


def test_what_has_ended_and_was_not_filed_is_filed_by_the_follow_up(account: Account) -> None:
    queue = account.queue(VisibilityTimeout="800")
    _dies_before_it_is_filed(account, queue)
    assert account.transitions() == []
    assert desk_of(account).open_cases.by_due() == []
    account.later(minutes=1)
    _followed(account)
    assert account.transitions() == []
    account.later(minutes=2)
    _followed(account)
    assert states(account) == ["refused"]
    _as_in_the_ledger(account)
    item = account.ledger_items()[queue, "case#lease_expired"]
    assert not {"unfiled", ledger_index.PARTITION, ledger_index.SORT} & item.keys()


def test_the_next_transition_files_the_one_before(account: Account) -> None:
    queue = account.queue(VisibilityTimeout="30")
    _dies_before_it_is_filed(account, queue)
    (applied,) = (each for each in desk_of(account).open_cases.listed() if each.queue_arn == queue)
    newest = desk_of(account).open_cases.transitions(applied.case_id)[-1]
    account.later(days=1)
    move(account, newest, "verified")
    assert states(account) == ["applied", "verified"]
    _as_in_the_ledger(account)


def test_a_bucket_that_cannot_be_written_costs_nobody_a_page(account: Account) -> None:
    queue = account.queue(tag="propose", VisibilityTimeout="30")
    account.later(minutes=5)
    with Stubber(account.clients.s3) as s3:
        s3.add_client_error("put_object", "SlowDown")
        fail(account, queue)
    assert len(account.pages("info")) == 1
    assert account.transitions() == []
    account.later(minutes=3)
    _followed(account)
    assert states(account) == ["proposed"]
    _as_in_the_ledger(account)


def test_a_case_that_was_filed_is_looked_at_when_it_is_due(account: Account) -> None:
    queue = account.queue(VisibilityTimeout="30")
    fail(account, queue)
    (case,) = desk_of(account).open_cases.by_due()
    assert (case.due_at - account.now).total_seconds() == 105 + 15 * 60
    assert "unfiled" not in account.ledger_items()[queue, "case#lease_expired"]

"""Batches of failed calls, and queues whose case waits for heal."""

from __future__ import annotations

from typing import Any

from mendq.heal.batch import BatchResult
from mendq.heal.outcome import Outcome
from mendq.heal.owners import make_owner_request
from mendq.heal.resume import continue_case
from tests.account.account import Account
from tests.heal.operators import load_newest_case, make_failing_queue, make_owner_run, move_case


def list_refusal_codes(result: BatchResult) -> list[str]:
    """Return the code of each refusal, in the order of the batch."""
    return [outcome.refusal.code for outcome in result.outcome_by_group.values() if outcome.refusal]


def make_late_deletes(account: Account, queues: list[str], **record: Any) -> dict[str, str]:
    """Make three records of late deletes for every queue. `record` replaces fields of a record."""
    bodies: dict[str, str] = {}
    for number, queue in enumerate(queues):
        event_ids = (f"{number}a", f"{number}b", f"{number}c")
        bodies |= account.late_deletes(queue, *event_ids, **record)
    return bodies


def fail_calls_before_each_rewrite(
    account: Account, queue: str, times: int, **pause: float
) -> list[str]:
    """Write the visibility timeout's own value `times` times, each time just after calls failed.

    Return the codes of the refusals.
    """
    codes = []
    for number in range(times):
        account.later(**pause)
        event_ids = [f"{account.now:%d-%H-%M}-{number}-{letter}" for letter in "abc"]
        bodies = account.late_deletes(queue, *event_ids)
        account.later(seconds=1)
        account.set_visibility(queue, account.visibility(queue))
        codes += list_refusal_codes(account.heal(bodies))
    return codes


def move_to_start_of_hour(account: Account) -> None:
    """Set the account's clock to minute 1, so that a test stays within one hour."""
    account.now = account.now.replace(minute=1, second=0)


def make_approved_case(account: Account) -> str:
    """Make a queue with an approved raise from 30 to 45."""
    queue = make_failing_queue(account, "propose")
    move_case(account, load_newest_case(account), "approved")
    account.later(minutes=5)
    return queue


def make_ineffective_case(account: Account) -> str:
    """Make a queue that heal raised from 30 to 45 without effect."""
    queue = make_failing_queue(account)
    account.later(hours=1)
    move_case(account, load_newest_case(account), "ineffective")
    account.later(minutes=5)
    return queue


def continue_newest_case(account: Account) -> Outcome:
    case = load_newest_case(account)
    return continue_case(make_owner_request(case), make_owner_run(case.symptom, account))

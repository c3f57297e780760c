"""The AWS calls that heal makes for one queue, in order."""

from __future__ import annotations

from tests.account.account import Account
from tests.account.faults import calls_of

# Read the tags, the case store and the attributes. Heal stores a failed call only after it saw the
# symptom. Otherwise a storm of calls to one queue would write with every batch.
CALLS_TO_READ_A_QUEUE = ("ListQueueTags", "TransactGetItems", "GetQueueAttributes")


def make_queue_with_failed_calls(
    account: Account, name: str = "orders.fifo"
) -> tuple[str, dict[str, str]]:
    """Make a queue and enough failed calls for a fix, five minutes after its creation."""
    queue = account.queue(name, VisibilityTimeout="30")
    account.later(minutes=5)
    return queue, account.late_deletes(queue, *(f"{name}-{n}" for n in range(3)))


def test_fix_of_one_queue_makes_ten_aws_calls_in_order(account: Account) -> None:
    queue, bodies = make_queue_with_failed_calls(account)
    calls = calls_of(account)
    account.heal(bodies)
    assert calls == [
        *CALLS_TO_READ_A_QUEUE,
        "ListEventSourceMappings",
        "UpdateItem",
        "TransactWriteItems",  # the claim, with the snapshot, the budget and the kill switch
        "GetQueueAttributes",  # what the claim was taken for still stands there
        "SetQueueAttributes",
        "TransactWriteItems",  # the record
        "PutObject",
    ]
    assert account.visibility(queue) == 45


def test_heal_of_a_queue_with_an_open_case_makes_two_reads(account: Account) -> None:
    _, bodies = make_queue_with_failed_calls(account)
    account.heal(bodies)
    calls = calls_of(account)
    account.heal(bodies)
    assert calls == ["ListQueueTags", "TransactGetItems"]


def test_heal_of_a_queue_changed_since_its_failed_calls_makes_four_aws_calls_and_no_fix(
    account: Account,
) -> None:
    queue = account.queue(VisibilityTimeout="30")
    bodies = account.late_deletes(queue, "1", "2", "3")
    account.later(minutes=5)
    account.set_visibility(queue, 45)
    account.later(minutes=5)
    calls = calls_of(account)
    account.heal(bodies)
    assert calls == [*CALLS_TO_READ_A_QUEUE, "UpdateItem"], "that it was changed since is noted"
    assert account.visibility(queue) == 45


def test_heal_of_two_queues_in_a_batch_reads_and_notes_once_which_queues_show_the_symptom(
    account: Account,
) -> None:
    _, bodies = make_queue_with_failed_calls(account)
    _, others = make_queue_with_failed_calls(account, "other.fifo")
    calls = calls_of(account)
    account.heal(bodies | others)
    assert calls.count("TransactGetItems") == calls.count("SetQueueAttributes") == 2
    assert calls.count("GetItem") == calls.count("UpdateItem") == 1

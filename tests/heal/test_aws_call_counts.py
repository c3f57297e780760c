"""What one queue costs heal in AWS calls, in order: what none of these needs, nobody pays for."""

from __future__ import annotations

from tests.account.account import Account
from tests.account.faults import calls_of

# Whose it is, what the case store says of it and of who else shows it, what stands there. That it
# shows it is seen before it is noted: a storm of one queue would else write with every batch.
LOOKED_AT = ("ListQueueTags", "TransactGetItems", "GetQueueAttributes")


def failing(account: Account, name: str = "orders.fifo") -> tuple[str, dict[str, str]]:
    """A queue that has stood for long, and enough failed calls of it."""
    queue = account.queue(name, VisibilityTimeout="30")
    account.later(minutes=5)
    return queue, account.late_deletes(queue, *(f"{name}-{n}" for n in range(3)))


def test_fix_of_one_queue_makes_ten_aws_calls_in_order(account: Account) -> None:
    queue, bodies = failing(account)
    made = calls_of(account)
    account.heal(bodies)
    assert made == [
        *LOOKED_AT,
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
    _, bodies = failing(account)
    account.heal(bodies)
    made = calls_of(account)
    account.heal(bodies)
    assert made == ["ListQueueTags", "TransactGetItems"]


def test_heal_of_a_queue_changed_since_its_failed_calls_makes_four_aws_calls(
    account: Account,
) -> None:
    """What failed is from before it became what it is."""
    queue = account.queue(VisibilityTimeout="30")
    bodies = account.late_deletes(queue, "1", "2", "3")
    account.later(minutes=5)
    account.set_visibility(queue, 45)
    account.later(minutes=5)
    made = calls_of(account)
    account.heal(bodies)
    assert made == [*LOOKED_AT, "UpdateItem"], "that it was changed since is noted"
    assert account.visibility(queue) == 45


def test_heal_reads_the_spread_of_a_symptom_once_for_two_queues(account: Account) -> None:
    _, bodies = failing(account)
    _, others = failing(account, "other.fifo")
    made = calls_of(account)
    account.heal(bodies | others)
    assert made.count("TransactGetItems") == made.count("SetQueueAttributes") == 2
    assert made.count("GetItem") == made.count("UpdateItem") == 1

"""What one queue costs heal in AWS calls, in order: what none of these needs, nobody pays for."""

from __future__ import annotations

from tests.account.faults import calls_of
from tests.heal.conftest import Account

# Whose it is, what the case store says of it, who else shows it, what stands there. That others
# show it is asked before it is noted: a storm of one queue would else write with every batch.
LOOKED_AT = ("ListQueueTags", "TransactGetItems", "GetItem", "UpdateItem", "GetQueueAttributes")
FILED = ("PutObject", "PutEvents", "UpdateItem")


def failing(account: Account, name: str = "orders.fifo") -> tuple[str, dict[str, str]]:
    """A queue that has stood for long, and enough failed calls of it."""
    queue = account.queue(name, VisibilityTimeout="30")
    account.later(minutes=5)
    return queue, account.late_deletes(queue, *(f"{name}-{n}" for n in range(3)))


def test_a_queue_is_fixed_in_thirteen_calls(account: Account) -> None:
    queue, bodies = failing(account)
    made = calls_of(account)
    account.heal(bodies)
    assert made == [
        *LOOKED_AT,
        "ListEventSourceMappings",
        "TransactWriteItems",  # the claim, with the snapshot, the budget and the kill switch
        "GetQueueAttributes",  # what the claim was taken for still stands there
        "SetQueueAttributes",
        "TransactWriteItems",  # the record
        *FILED,
    ]
    assert account.visibility(queue) == 45


def test_a_case_that_is_open_costs_two_reads(account: Account) -> None:
    _, bodies = failing(account)
    account.heal(bodies)
    made = calls_of(account)
    account.heal(bodies)
    assert made == ["ListQueueTags", "TransactGetItems"]

"""What one queue costs heal in AWS calls, in order: what none of these needs, nobody pays for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.heal.conftest import Account, every_client

# Whose it is, what the case store says of it, who else shows it, what stands there. That others
# show it is asked before it is noted: a storm of one queue would else write with every batch.
LOOKED_AT = ("ListQueueTags", "TransactGetItems", "GetItem", "UpdateItem", "GetQueueAttributes")
FILED = ("PutObject", "UpdateItem")


@contextmanager
def calls_of(account: Account) -> Iterator[list[str]]:
    """The operations that are asked for meanwhile."""
    made: list[str] = []

    def note(model: Any, **_: Any) -> None:
        made.append(model.name)

    emitters = [each.meta.events for each in every_client(account.clients)]
    for each in emitters:
        each.register_first("before-call", note)
    yield made
    for each in emitters:
        each.unregister("before-call", note)


def failing(account: Account, name: str = "orders.fifo") -> tuple[str, dict[str, str]]:
    """A queue that has stood for long, and enough failed calls of it."""
    queue = account.queue(name, VisibilityTimeout="30")
    account.later(minutes=5)
    return queue, account.late_deletes(queue, *(f"{name}-{n}" for n in range(3)))


def test_a_queue_is_fixed_in_twelve_calls(account: Account) -> None:
    queue, bodies = failing(account)
    with calls_of(account) as made:
        account.heal(bodies)
    assert account.visibility(queue) == 45
    assert made == [
        *LOOKED_AT,
        "ListEventSourceMappings",
        "TransactWriteItems",  # the claim, with the snapshot, the budget and the kill switch
        "GetQueueAttributes",  # what the claim was taken for still stands there
        "SetQueueAttributes",
        "TransactWriteItems",  # the record
        *FILED,
    ]


def test_a_case_that_is_open_costs_two_reads(account: Account) -> None:
    _, bodies = failing(account)
    account.heal(bodies)
    with calls_of(account) as made:
        account.heal(bodies)
    assert made == ["ListQueueTags", "TransactGetItems"]

"""What one queue costs heal in AWS calls, in order: what none of these needs, nobody pays for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from functions.aws.ledger_items import spread_key
from functions.healing.spread import MOST_OUTDATED, MOST_QUEUES
from tests.functions.aws.conftest import Account, every_client
from tests.functions.aws.test_mending import codes

SYMPTOM = "lease_expired"
# Whose it is, what the ledger says of it, who else shows it, what stands there.
LOOKED_AT = ("ListQueueTags", "TransactGetItems", "UpdateItem", "GetQueueAttributes")
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


def test_a_queue_is_mended_in_eleven_calls(account: Account) -> None:
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


def test_a_queue_changed_since_it_failed_is_looked_at_and_left_alone(account: Account) -> None:
    queue, bodies = failing(account)
    account.later(minutes=1)
    account.set_visibility(queue, 300)
    account.later(minutes=3)
    with calls_of(account) as made:
        assert codes(account.heal(bodies)) == ["before_last_change"]
    assert made == list(LOOKED_AT)


def test_a_case_that_is_open_costs_two_looks(account: Account) -> None:
    _, bodies = failing(account)
    account.heal(bodies)
    with calls_of(account) as made:
        account.heal(bodies)
    assert made == ["ListQueueTags", "TransactGetItems"]


def test_queues_that_show_it_together_are_noted_together(account: Account) -> None:
    batch: dict[str, str] = {}
    for name in ("a", "b", "c"):
        batch |= failing(account, name)[1]
    with calls_of(account) as made:
        account.heal(batch)
    assert made.count("SetQueueAttributes") == 3
    assert made[:7] == ["ListQueueTags", "TransactGetItems"] * 3 + ["UpdateItem"]


def _notes(account: Account) -> set[str]:
    key = spread_key(SYMPTOM)
    item = account.ledger_items()[key["pk"]["S"], key["sk"]["S"]]
    return set(item["queues"]["SS"])


def _spread(account: Account, *queues: str) -> frozenset[str]:
    return account.run().ledger.spread_to(queues, SYMPTOM, account.now)


def test_a_note_is_answered_with_what_others_have_noted(account: Account) -> None:
    assert _spread(account, "a") == {"a"}
    with calls_of(account) as made:
        assert _spread(account, "b") == {"a", "b"}
    assert made == ["UpdateItem"]


def test_with_nothing_to_note_nothing_is_noted(account: Account) -> None:
    _spread(account, "a")
    before = account.ledger_items()
    with calls_of(account) as made:
        assert _spread(account) == {"a"}
    assert made == ["GetItem"]
    assert account.ledger_items() == before


def test_a_few_notes_that_mean_nothing_any_more_are_left_and_count_for_nothing(
    account: Account,
) -> None:
    _spread(account, "old", "again")
    account.later(minutes=30)
    assert _spread(account, "again") == {"old", "again"}
    account.later(minutes=45)
    with calls_of(account) as made:
        assert _spread(account, "new") == {"again", "new"}
    assert made == ["UpdateItem"]


def test_more_than_a_few_are_taken_away(account: Account) -> None:
    _spread(account, *(f"q{n}" for n in range(MOST_OUTDATED + 1)))
    account.later(minutes=75)
    assert _spread(account, "new") == {"new"}
    assert [each.partition(" ")[2] for each in _notes(account)] == ["new"]


def test_full_notes_make_room_for_what_is_new_and_never_grow(account: Account) -> None:
    _spread(account, *(f"q{n}" for n in range(MOST_QUEUES)))
    assert "late" not in _spread(account, "late"), "there is no room while all of them count"
    assert len(_notes(account)) == MOST_QUEUES
    account.now += timedelta(hours=2)
    assert _spread(account, "late") == {"late"}
    assert len(_notes(account)) == 1

"""One seed of the simulation that `make prove` plays for longer."""

from __future__ import annotations

from mendq.catalogue import CATALOGUE
from tests.prove.false_alarms import INDISTINCT, MARKED, PAGE, SHORT, false_alarms
from tests.prove.look_alikes import HEALTHY
from tests.prove.proof import Proving
from tests.prove.simulated_queues import DELETED, RECEIVED, Consumer, Queue, World


def test_nothing_healthy_is_told_of_and_what_is_ill_is_found() -> None:
    proving = Proving()
    heard = false_alarms(proving, SHORT)
    assert not proving.failures
    assert heard.measured > len(HEALTHY), "most of them are suspect, and told apart by measuring"


def test_a_late_delete_is_counted_and_deletes_only_what_nobody_holds() -> None:
    world = World("late", hours=1)
    queue = Queue(world, "orders", visibility_seconds=30)
    Consumer(queue, lambda: 45, lambda _: 2)
    queue.send()
    world.run(60)
    assert (queue.counted[RECEIVED].total(), queue.counted[DELETED].total()) == (2, 1)
    assert queue.tally["in_flight"] == 1, "the second consumer has it"
    world.run(76)
    assert queue.counted[DELETED].total() == 2


def test_a_group_is_held_until_its_head_is_deleted_or_visible_again() -> None:
    world = World("held", hours=1)
    queue = Queue(world, "orders.fifo", visibility_seconds=30)
    for group in ("a", "a", "b"):
        queue.send(group)
    (first, handle), (second, _) = (queue.receive(1)[0] for _ in range(2))
    assert (first.group, second.group) == ("a", "b")
    assert queue.receive(10) == [], "to its readers a held group looks like an empty queue"
    world.run(31)
    queue.delete(first, handle)
    assert queue.counted[DELETED].total() == 0, "the receipt handle has expired"
    assert [message.order for message, _ in queue.receive(2)] == [first.order, first.order + 1]


def test_the_page_names_every_symptom_and_what_is_indistinct() -> None:
    text = PAGE.read_text()
    assert MARKED.search(text)
    assert [each.name for each in CATALOGUE if f"`{each.name}`" not in text] == []
    assert [name for name, _ in INDISTINCT if f"*{name}*" not in text] == []

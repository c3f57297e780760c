"""Taking up a redrive: what has to fit, and that nothing is moved or changed where it does not."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from mendq.aws.dead_letter_queues import source_arns_of
from mendq.model.facts import Facts
from mendq.model.plan import Refusal
from mendq.model.queue import Redrive
from mendq.model.steps import HELD, AttributeStep, RedriveMessages, SetMessageRetention
from mendq.redrive.reads import RedriveStart
from tests.heal.redriving import LONGEST, Redriving, redriving

DAYS_4 = 345_600


@pytest.fixture(params=["orders", "orders.fifo"])
def world(request: pytest.FixtureRequest) -> Iterator[Redriving]:
    with redriving(request.param, MessageRetentionPeriod=str(DAYS_4)) as made:
        yield made


def seen(world: Redriving) -> Facts:
    tags = world.account.clients.sqs.list_queue_tags(QueueUrl=world.account.url(world.dlq))
    return Facts(world.dlq, world.account.attributes(world.dlq), tags["Tags"])


def start(world: Redriving, *steps: AttributeStep, at: Facts | None = None) -> Refusal | None:
    write = RedriveStart(world.account.settings.consent).write
    return write(world.account.clients, at or seen(world), steps or (world.back(),))


def with_retention(world: Redriving) -> tuple[AttributeStep, ...]:
    return (world.back(), SetMessageRetention(DAYS_4, LONGEST))


def retention(world: Redriving) -> int:
    return int(world.account.attributes(world.dlq)["MessageRetentionPeriod"])


def test_what_fits_is_taken_up_and_no_message_is_moved(world: Redriving) -> None:
    before = {each: world.account.attributes(each) for each in (world.source, world.dlq)}
    assert start(world) is None
    assert {each: world.account.attributes(each) for each in before} == before


def test_the_retention_is_raised_where_the_plan_says_so(world: Redriving) -> None:
    assert start(world, *with_retention(world)) is None
    assert retention(world) == LONGEST


def _task(world: Redriving, status: str) -> None:
    world.tasks.append({"Status": status, "StartedTimestamp": 1})


def _of_another_type(world: Redriving) -> None:
    other = "payments.fifo" if world.source.endswith("orders") else "payments"
    world.source = world.account.queue(other)


def _set(world: Redriving, queue_arn: str, **attributes: str) -> None:
    world.account.clients.sqs.set_queue_attributes(
        QueueUrl=world.account.url(queue_arn),
        Attributes=attributes,  # type: ignore[arg-type]
    )


def _shared(world: Redriving) -> None:
    ending = ".fifo" * world.source.endswith(".fifo")
    policy = Redrive(world.dlq, 3).text
    world.account.queue(f"second{ending}", RedrivePolicy=policy)
    assert len(source_arns_of(world.account.clients, world.dlq)) == 2


def _behind_another(world: Redriving) -> None:
    ending = ".fifo" * world.source.endswith(".fifo")
    target = world.account.queue(f"last{ending}")
    _set(world, world.dlq, RedrivePolicy=Redrive(target, 3).text)


def _gone(world: Redriving) -> None:
    world.account.clients.sqs.delete_queue(QueueUrl=world.account.url(world.source))


FAULTS: dict[str, Callable[[Redriving], object]] = {
    "does not name it": lambda w: _set(w, w.source, RedrivePolicy=""),
    "DLQ of 2 queues": _shared,
    "has a DLQ itself": _behind_another,
    "no queue": _gone,
    "does not name it as": _of_another_type,
    "not managed": lambda w: w.account.tag(w.source, mendq="off"),
    "only observed": lambda w: w.account.tag(w.source, mendq="observe"),
    "mendq:redrive of": lambda w: w.account.tag(w.source, **{"mendq:redrive": "off"}),
    "mendq:redrive of arn": lambda w: w.account.tag(w.dlq, **{"mendq:redrive": "off"}),
    "a message movement task runs": lambda w: _task(w, "RUNNING"),
    "a message movement task runs on": lambda w: _task(w, "CANCELLING"),
    "a message movement task runs on it": lambda w: _task(w, "WHATEVER-COMES-NEXT"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_does_not_fit_is_refused_and_nothing_is_changed(world: Redriving, fault: str) -> None:
    steps = with_retention(world)
    FAULTS[fault](world)
    refusal = start(world, RedriveMessages(HELD, world.source), *steps[1:])
    assert refusal is not None
    assert refusal.code == "redrive_unfit"
    assert fault in refusal.reason
    assert retention(world) == DAYS_4


@pytest.mark.parametrize("status", ["COMPLETED", "CANCELLED", "FAILED"])
def test_a_task_that_is_over_is_in_nobody_s_way(world: Redriving, status: str) -> None:
    _task(world, status)
    assert start(world) is None


def test_a_queue_that_changed_meanwhile_is_left(world: Redriving) -> None:
    looked = seen(world)
    _set(world, world.dlq, MessageRetentionPeriod="1000000")
    refusal = start(world, *with_retention(world), at=looked)
    assert refusal is not None
    assert refusal.code == "changed_meanwhile"
    assert retention(world) == 1_000_000


def test_a_plan_that_sends_nothing_back_is_none_of_its(world: Redriving) -> None:
    refusal = start(world, SetMessageRetention(DAYS_4, LONGEST))
    assert refusal is not None
    assert retention(world) == DAYS_4

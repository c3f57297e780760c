"""Letters that are moved back arrive unsent: while they may have come, no race is found."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from botocore.exceptions import ClientError

from functions.healing.dead_letters import Redrive
from tests.functions.aws.sweeping import Sweeping, an_hour_on, sweeping

RACE = "lease_expired"
LEASE = "30"


@pytest.fixture
def swept() -> Iterator[Sweeping]:
    with sweeping() as made:
        yield made


def racing(swept: Sweeping) -> tuple[str, str]:
    """A queue that may be healed and counts more deletes than messages; its dead-letter queue."""
    account = swept.account
    dead = account.queue("orders-dlq", tag=None)
    policy = Redrive(dead, 5).text
    queue = account.queue("orders", VisibilityTimeout=LEASE, RedrivePolicy=policy)
    account.tag(queue, **{"mendq": "heal", "mendq:max-processing-seconds": "40"})
    account.clients.sqs.send_message(QueueUrl=account.url(queue), MessageBody="x")
    account.later(days=2)
    counted(swept, queue)
    return queue, dead


def counted(swept: Sweeping, queue: str) -> None:
    for minutes in range(60, 10, -1):
        at = swept.account.now - timedelta(minutes=minutes)
        swept.count(queue, at, sent=30, received=40, deleted=40, visible=5)


def moving(swept: Sweeping, source: str, status: str, age: timedelta, **more: object) -> None:
    started = int((swept.account.now - age).timestamp() * 1000)
    task = {"Status": status, "SourceArn": source, "StartedTimestamp": started, **more}
    swept.moved[source] = [task]


def found(swept: Sweeping) -> bool:
    done = swept.sweep()
    assert done is not None
    assert done.failed == {}
    for healed in swept.heal():
        assert healed.errors == {}
    return any(each.symptom == RACE for each in done.findings)


def lease(swept: Sweeping, queue: str) -> str:
    return swept.account.attributes(queue)["VisibilityTimeout"]


def test_the_race_itself_is_found_and_mended(swept: Sweeping) -> None:
    queue, dead = racing(swept)
    moving(swept, dead, "COMPLETED", timedelta(hours=43), ApproximateNumberOfMessagesMoved=9)
    assert found(swept)
    assert lease(swept, queue) == "60"


@pytest.mark.parametrize(
    ("status", "hours"),
    [("COMPLETED", 6.03), ("COMPLETED", 6.5), ("CANCELLED", 42), ("FAILED", 30), ("RUNNING", 35)],
)
def test_a_task_may_have_moved_until_long_after_it_began(
    swept: Sweeping, status: str, hours: float
) -> None:
    queue, dead = racing(swept)
    moving(swept, dead, status, timedelta(hours=hours), ApproximateNumberOfMessagesMoved=700)
    assert not found(swept)
    assert lease(swept, queue) == LEASE


def elsewhere(swept: Sweeping, queue: str, into: str) -> str:
    """Another managed queue, whose letters are being moved into the queue that is named."""
    dead = swept.account.queue("billing-dlq", tag=None)
    swept.account.queue("billing", tag="observe", RedrivePolicy=Redrive(dead, 5).text)
    moving(swept, dead, "RUNNING", timedelta(hours=2), DestinationArn=into)
    return dead


def test_letters_of_another_queue_may_be_moved_into_this_one(swept: Sweeping) -> None:
    queue, _ = racing(swept)
    elsewhere(swept, queue, into=queue)
    assert not found(swept)
    assert lease(swept, queue) == LEASE


def test_letters_of_another_queue_that_go_elsewhere_explain_nothing(swept: Sweeping) -> None:
    queue, _ = racing(swept)
    elsewhere(swept, queue, into=f"{queue}-other")
    assert found(swept)
    assert lease(swept, queue) == "60"


def test_heal_knows_what_the_sweep_saw_and_forgets_it_with_the_round(swept: Sweeping) -> None:
    """Whoever names the queue to heal, a forged request among them, moves nothing."""
    queue, _ = racing(swept)
    dead = elsewhere(swept, queue, into=queue)
    swept.sweep()
    swept.told = [{"found": [{"queue_arn": queue, "symptom": RACE}]}]
    (healed,) = swept.heal()
    assert [each.refusal.code for each in healed.mended.values() if each.refusal] == ["not_found"]
    swept.moved.pop(dead)
    for _ in range(2):
        an_hour_on(swept.account)
    counted(swept, queue)
    assert found(swept)
    assert lease(swept, queue) == "60"


@pytest.mark.parametrize("code", ["AccessDenied", "InternalError"])
def test_where_tasks_cannot_be_listed_one_may_be_running(swept: Sweeping, code: str) -> None:
    queue, _ = racing(swept)

    def refuse(**_: object) -> None:
        raise ClientError({"Error": {"Code": code, "Message": ""}}, "ListMessageMoveTasks")

    events = swept.account.clients.sqs.meta.events
    events.register_first("before-call.sqs.ListMessageMoveTasks", refuse)
    done = swept.sweep()
    assert done is not None
    assert queue in done.failed, "it is told"
    assert RACE not in done.by_symptom()
    swept.told = [{"found": [{"queue_arn": queue, "symptom": RACE}]}]
    (healed,) = swept.heal()
    assert len(healed.errors) == 1
    assert lease(swept, queue) == LEASE
    assert swept.account.transitions() == []

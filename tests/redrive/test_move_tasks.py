"""Messages that are moved back arrive unsent: while they may have come, no race is found."""

from __future__ import annotations

from datetime import timedelta

from botocore.exceptions import ClientError

from mendq.model.queue import Redrive
from tests.scan.scanning import Scanning, an_hour_on

RACE = "visibility_timeout_too_short"
VISIBILITY = "30"


def racing(scanned: Scanning) -> tuple[str, str]:
    """A queue that may be healed and counts more deletes than messages; its DLQ."""
    account = scanned.account
    dead = account.queue("orders-dlq", tag=None)
    policy = Redrive(dead, 5).text
    queue = account.queue("orders", VisibilityTimeout=VISIBILITY, RedrivePolicy=policy)
    account.tag(queue, **{"mendq": "heal", "mendq:max-processing-seconds": "40"})
    account.clients.sqs.send_message(QueueUrl=account.url(queue), MessageBody="x")
    account.later(days=2)
    counted(scanned, queue)
    return queue, dead


def counted(scanned: Scanning, queue: str) -> None:
    for minutes in range(60, 10, -1):
        at = scanned.account.now - timedelta(minutes=minutes)
        scanned.count(queue, at, sent=30, received=40, deleted=40, visible=5)


def found(scanned: Scanning) -> bool:
    done = scanned.scan()
    assert done is not None
    assert done.failed == {}
    for healed in scanned.heal():
        assert healed.errors == {}
    return any(each.symptom == RACE for each in done.findings)


def visibility(scanned: Scanning, queue: str) -> str:
    return scanned.account.attributes(queue)["VisibilityTimeout"]


def test_heal_knows_what_the_scan_saw_and_forgets_it_with_the_round(scanned: Scanning) -> None:
    """Whoever names the queue to heal, a forged request among them, moves nothing."""
    queue, _ = racing(scanned)
    # Of another managed queue, whose messages are moved into this one.
    dead = scanned.account.queue("billing-dlq", tag=None)
    scanned.account.queue("billing", tag="observe", RedrivePolicy=Redrive(dead, 5).text)
    started = int((scanned.account.now - timedelta(hours=2)).timestamp() * 1000)
    task = {"Status": "RUNNING", "SourceArn": dead, "StartedTimestamp": started}
    scanned.moved[dead] = [{**task, "DestinationArn": queue}]
    scanned.scan()
    scanned.announced = [{"found": [{"queue_arn": queue, "symptom": RACE}]}]
    (healed,) = scanned.heal()
    assert [each.refusal.code for each in healed.fixed.values() if each.refusal] == ["not_found"]
    scanned.moved.pop(dead)
    for _ in range(2):
        an_hour_on(scanned.account)
    counted(scanned, queue)
    assert found(scanned)
    assert visibility(scanned, queue) == "60"


def test_where_tasks_cannot_be_listed_one_may_be_running(scanned: Scanning) -> None:
    queue, _ = racing(scanned)

    def refuse(**_: object) -> None:
        raise ClientError(
            {"Error": {"Code": "AccessDenied", "Message": ""}}, "ListMessageMoveTasks"
        )

    events = scanned.account.clients.sqs.meta.events
    events.register_first("before-call.sqs.ListMessageMoveTasks", refuse)
    done = scanned.scan()
    assert done is not None
    assert queue in done.failed, "it is told"
    assert RACE not in done.by_symptom()
    scanned.announced = [{"found": [{"queue_arn": queue, "symptom": RACE}]}]
    (healed,) = scanned.heal()
    assert len(healed.errors) == 1
    assert visibility(scanned, queue) == VISIBILITY
    assert scanned.account.transitions() == []

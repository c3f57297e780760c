"""Many queues name one DLQ that is gone: people are asked for it once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

import pytest

from mendq.heal.batch import heal_findings
from mendq.model.queue import Redrive
from tests.scan.scanning import Scanning, an_hour_on, scanning

SYMPTOM = "dlq_missing"


@pytest.fixture
def scanned() -> Iterator[Scanning]:
    with scanning() as made:
        yield made


def sharing(scanned: Scanning, tags: Mapping[str, str]) -> tuple[list[str], str]:
    """Queues by name and tag, and the one queue that all of them name, which is gone."""
    queues = [naming(scanned, name, tag) for name, tag in tags.items()]
    scanned.account.later(days=1)
    return queues, gone(scanned, "orders-dlq")


def gone(scanned: Scanning, name: str) -> str:
    """The ARN of a queue that is deleted, whether it was there or not."""
    made = scanned.account.queue(name, tag=None)
    scanned.account.clients.sqs.delete_queue(QueueUrl=scanned.account.url(made))
    return made


def naming(scanned: Scanning, name: str, tag: str = "heal", dlq: str = "orders-dlq") -> str:
    """A queue whose RedrivePolicy names one that is gone."""
    dead = scanned.account.queue(dlq, tag=None)
    queue = scanned.account.queue(name, tag=tag, RedrivePolicy=Redrive(dead, 5).text)
    gone(scanned, dlq)
    return queue


def cases(scanned: Scanning) -> list[dict[str, Any]]:
    for healed in scanned.heal():
        assert healed.errors == {}
    return [each for each in scanned.account.transitions() if each["symptom"] == SYMPTOM]


def test_twenty_sources_make_one_proposal_and_one_page(scanned: Scanning) -> None:
    queues, dead = sharing(scanned, {f"orders-{n:02}": "heal" for n in range(20)})
    scanned.scan()
    found = [e for e in scanned.findings()["findings"] if e["symptom"] == SYMPTOM]
    assert [each["queue_arn"] for each in found] == queues, "each is reported"
    (case,) = cases(scanned)
    assert (case["to"], case["queue_arn"]) == ("proposed", queues[0])
    assert case["steps"] == [{"attribute": "DeadLetterQueue", "before": "", "after": dead}]
    said = "19 other queues name it too: orders-01, orders-02, orders-03 and 16 more"
    assert said in case["reason"]
    assert len(scanned.account.pages()) == 1
    an_hour_on(scanned.account)
    scanned.scan()
    assert len(cases(scanned)) == 1


def test_each_missing_queue_is_asked_for(scanned: Scanning) -> None:
    for name in ("a", "b"):
        naming(scanned, name, dlq=f"{name}-dlq")
    scanned.account.later(days=1)
    scanned.scan()
    assert len(cases(scanned)) == 2


def test_the_queue_whose_mode_goes_furthest_speaks_for_all(scanned: Scanning) -> None:
    queues, _ = sharing(scanned, {"a": "observe", "b": "propose", "c": "propose"})
    scanned.scan()
    (case,) = cases(scanned)
    assert (case["to"], case["queue_arn"]) == ("proposed", queues[1])


def test_it_waits_where_the_consumers_of_any_of_them_fail(scanned: Scanning) -> None:
    """The queue would take in the whole backlog of that one."""
    queues, _ = sharing(scanned, {"a": "heal", "b": "heal"})
    account = scanned.account
    account.clients.sqs.send_message(QueueUrl=account.url(queues[1]), MessageBody="x")
    account.later(days=1)
    for minutes in (60, 90, 120):
        at = account.now - timedelta(minutes=minutes)
        scanned.count(queues[1], at, received=1_000, visible=200, sent=200)
    scanned.scan()
    assert scanned.named() == [(queues[1], "consumer_failing")]


def test_a_source_that_comes_later_is_told_of_the_open_case(scanned: Scanning) -> None:
    queues, _ = sharing(scanned, {"b": "heal"})
    scanned.scan()
    (first,) = cases(scanned)
    later = naming(scanned, "a")
    scanned.account.later(minutes=120)
    request = {"found": [{"queue_arn": later, "symptom": SYMPTOM, "open_at": queues}]}
    healed = heal_findings(request, scanned.account.run())
    (outcome,) = healed.fixed.values()
    assert outcome.refusal is not None
    assert outcome.refusal.code == "said_of_another"
    assert first["case_id"] in outcome.refusal.reason
    assert len(cases(scanned)) == 1
    assert len(scanned.account.pages()) == 1


def test_an_open_case_about_another_missing_queue_says_nothing_of_this_one(
    scanned: Scanning,
) -> None:
    queues, _ = sharing(scanned, {"b": "heal"})
    scanned.scan()
    assert len(cases(scanned)) == 1
    queue = naming(scanned, "a", dlq="others")
    scanned.account.later(minutes=120)
    request = {"found": [{"queue_arn": queue, "symptom": SYMPTOM, "open_at": queues}]}
    assert heal_findings(request, scanned.account.run()).errors == {}
    assert {each["queue_arn"] for each in cases(scanned)} == {queue, *queues}


def test_the_queue_with_the_open_case_goes_on_speaking(scanned: Scanning) -> None:
    queues, _ = sharing(scanned, {"b": "heal"})
    scanned.scan()
    assert len(cases(scanned)) == 1
    naming(scanned, "a")
    scanned.account.later(days=1)
    scanned.scan()
    named = [arn for arn, symptom in scanned.named() if symptom == SYMPTOM]
    assert named in ([], queues), "never the other"
    cases(scanned)

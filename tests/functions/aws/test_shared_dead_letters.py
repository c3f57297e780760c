"""Many queues name one dead-letter queue that is gone: people are asked for it once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

import pytest

from functions.aws.heal_batch import heal_findings
from functions.healing.dead_letters import Redrive
from tests.functions.aws.sweeping import Sweeping, an_hour_on, sweeping

SYMPTOM = "dead_letter_queue_missing"


@pytest.fixture
def swept() -> Iterator[Sweeping]:
    with sweeping() as made:
        yield made


def sharing(swept: Sweeping, tags: Mapping[str, str]) -> tuple[list[str], str]:
    """Queues by name and tag, and the one queue that all of them name, which is gone."""
    queues = [naming(swept, name, tag) for name, tag in tags.items()]
    swept.account.later(days=1)
    return queues, gone(swept, "letters")


def gone(swept: Sweeping, name: str) -> str:
    """The ARN of a queue that is deleted, whether it was there or not."""
    made = swept.account.queue(name, tag=None)
    swept.account.clients.sqs.delete_queue(QueueUrl=swept.account.url(made))
    return made


def naming(swept: Sweeping, name: str, tag: str = "heal", letters: str = "letters") -> str:
    """A queue whose RedrivePolicy names one that is gone."""
    dead = swept.account.queue(letters, tag=None)
    queue = swept.account.queue(name, tag=tag, RedrivePolicy=Redrive(dead, 5).text)
    gone(swept, letters)
    return queue


def cases(swept: Sweeping) -> list[dict[str, Any]]:
    for healed in swept.heal():
        assert healed.errors == {}
    return [each for each in swept.account.transitions() if each["symptom"] == SYMPTOM]


def test_twenty_sources_make_one_proposal_and_one_page(swept: Sweeping) -> None:
    queues, dead = sharing(swept, {f"orders-{n:02}": "heal" for n in range(20)})
    swept.sweep()
    found = [e for e in swept.findings()["findings"] if e["symptom"] == SYMPTOM]
    assert [each["queue_arn"] for each in found] == queues, "each is reported"
    (case,) = cases(swept)
    assert (case["to"], case["queue_arn"]) == ("proposed", queues[0])
    assert case["steps"] == [{"attribute": "DeadLetterQueue", "before": "", "after": dead}]
    said = "19 other queues name it too: orders-01, orders-02, orders-03 and 16 more"
    assert said in case["reason"]
    assert len(swept.account.pages()) == 1
    an_hour_on(swept.account)
    swept.sweep()
    assert len(cases(swept)) == 1


def test_each_missing_queue_is_asked_for(swept: Sweeping) -> None:
    for name in ("a", "b"):
        naming(swept, name, letters=f"{name}-letters")
    swept.account.later(days=1)
    swept.sweep()
    assert len(cases(swept)) == 2


def test_the_queue_whose_mode_goes_furthest_speaks_for_all(swept: Sweeping) -> None:
    queues, _ = sharing(swept, {"a": "observe", "b": "propose", "c": "propose"})
    swept.sweep()
    (case,) = cases(swept)
    assert (case["to"], case["queue_arn"]) == ("proposed", queues[1])


def test_it_waits_where_the_consumers_of_any_of_them_fail(swept: Sweeping) -> None:
    """The queue would take in the whole backlog of that one."""
    queues, _ = sharing(swept, {"a": "heal", "b": "heal"})
    account = swept.account
    account.clients.sqs.send_message(QueueUrl=account.url(queues[1]), MessageBody="x")
    account.later(days=1)
    for minutes in (60, 90, 120):
        at = account.now - timedelta(minutes=minutes)
        swept.count(queues[1], at, received=1_000, visible=200, sent=200)
    swept.sweep()
    assert swept.named() == [(queues[1], "consumer_failing")]


def test_a_source_that_comes_later_is_said_of_the_open_case(swept: Sweeping) -> None:
    queues, _ = sharing(swept, {"b": "heal"})
    swept.sweep()
    (first,) = cases(swept)
    later = naming(swept, "a")
    swept.account.later(minutes=120)
    request = {"found": [{"queue_arn": later, "symptom": SYMPTOM, "open_at": queues}]}
    healed = heal_findings(request, swept.account.run())
    (outcome,) = healed.mended.values()
    assert outcome.refusal is not None
    assert outcome.refusal.code == "said_of_another"
    assert first["case_id"] in outcome.refusal.reason
    assert len(cases(swept)) == 1
    assert len(swept.account.pages()) == 1


def test_an_open_case_about_another_missing_queue_says_nothing_of_this_one(swept: Sweeping) -> None:
    queues, _ = sharing(swept, {"b": "heal"})
    swept.sweep()
    assert len(cases(swept)) == 1
    queue = naming(swept, "a", letters="others")
    swept.account.later(minutes=120)
    request = {"found": [{"queue_arn": queue, "symptom": SYMPTOM, "open_at": queues}]}
    assert heal_findings(request, swept.account.run()).errors == {}
    assert {each["queue_arn"] for each in cases(swept)} == {queue, *queues}


def test_the_queue_with_the_open_case_goes_on_speaking(swept: Sweeping) -> None:
    queues, _ = sharing(swept, {"b": "heal"})
    swept.sweep()
    assert len(cases(swept)) == 1
    naming(swept, "a")
    swept.account.later(days=1)
    swept.sweep()
    named = [arn for arn, symptom in swept.named() if symptom == SYMPTOM]
    assert named in ([], queues), "never the other"
    cases(swept)

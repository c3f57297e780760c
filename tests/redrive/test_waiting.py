"""Messages that could go back, from what SQS, CloudWatch and the case store say to the case."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from mendq.cases.transactions import Entry
from mendq.cases.view import CaseStoreView
from mendq.catalogue.examples import case
from mendq.heal.resume import take_up
from mendq.model.case import Case, State
from mendq.model.limits import Mode
from mendq.model.queue import Redrive
from tests.heal.operators import run_of
from tests.scan.scanning import Scanning, an_hour_on

WAITING = "dlq_messages_waiting"
A_DAY = 86_400


def messages(scanned: Scanning, name: str = "orders", days: int = 14) -> tuple[str, str]:
    """A queue and its DLQ, in which two messages lie."""
    retained = str(days * A_DAY)
    dead = scanned.account.queue(f"{name}-dlq", tag="heal", MessageRetentionPeriod=retained)
    redrive = Redrive(dead, 5).text
    source = scanned.account.queue(name, tag="heal", RedrivePolicy=redrive)
    for body in ("one", "two"):
        sqs = scanned.account.clients.sqs
        sqs.send_message(QueueUrl=scanned.account.url(dead), MessageBody=body)
    return source, dead


def lies_there(scanned: Scanning, dead: str, hours_old: float = 5, source: str = "") -> None:
    """What CloudWatch measured of the messages, and how many were deleted at their source."""
    for minutes in (330, 90, 10):
        at = scanned.account.now - timedelta(minutes=minutes)
        age = int(3600 * hours_old - 60 * minutes)
        scanned.count(dead, at, visible=2, age=max(age, 0))
        if source:
            scanned.count(source, at, deleted=3_600)


def is_fixed(
    scanned: Scanning, source: str, *states: State, symptom: str = "visibility_timeout_too_short"
) -> Case:
    """A case about the source, as the case store keeps it."""
    made = case(symptom, *(states or (State.APPLIED, State.WATCHING)), queue_arn=source)
    made = replace(made, at=scanned.account.now, opened_at=scanned.account.now)
    entry = Entry(made, CaseStoreView(), "o", "o", {}, {}, scanned.account.now + timedelta(days=2))
    scanned.account.run().case_store.record(entry)
    return made


def waiting(scanned: Scanning, days: int = 14) -> tuple[str, str]:
    """All that it takes to be found, after a day."""
    source, dead = messages(scanned, days=days)
    scanned.account.later(days=1)
    is_fixed(scanned, source)
    lies_there(scanned, dead, source=source)
    return source, dead


def opened(scanned: Scanning) -> list[dict[str, Any]]:
    """What is written down of it, after a scan and what heal makes of it."""
    scanned.scan()
    for healed in scanned.heal():
        assert healed.errors == {}
    return [each for each in scanned.account.transitions() if each["symptom"] == WAITING]


def let_it(scanned: Scanning) -> None:
    settings = replace(scanned.account.settings, autonomy={WAITING: Mode.HEAL})
    scanned.account.settings = settings


def test_messages_whose_cause_is_fixed_are_proposed_to_go_back(scanned: Scanning) -> None:
    source, dead = waiting(scanned)
    (made,) = opened(scanned)
    an_hour_on(scanned.account)
    lies_there(scanned, dead)
    assert opened(scanned) == [made], "an hour later it is the same case"
    assert (made["to"], made["queue_arn"]) == ("proposed", dead)
    assert made["steps"] == [{"attribute": "Dlq", "before": "held", "after": source}]
    assert "2 DLQ messages wait" in made["reason"]
    assert "visibility_timeout_too_short at orders is fixed" in made["reason"]
    assert "(1.00 a second)" in made["reason"]
    visible = scanned.account.attributes(dead)["ApproximateNumberOfMessages"]
    assert visible == "2", "nothing is moved by saying so"


def test_a_cause_that_is_found_in_the_same_round_goes_first(scanned: Scanning) -> None:
    source, dead = messages(scanned)
    scanned.account.later(days=1)
    is_fixed(scanned, source, symptom="kms_throttled")
    lies_there(scanned, dead)
    sqs = scanned.account.clients.sqs
    sqs.send_message(QueueUrl=scanned.account.url(source), MessageBody="poison")
    for minutes in (30, 60, 90):
        at = scanned.account.now - timedelta(minutes=minutes)
        scanned.count(source, at, received=1_000, visible=200, sent=200)
    scanned.scan()
    found = {(each["queue_arn"], each["symptom"]) for each in scanned.findings()["findings"]}
    assert {(source, "consumer_failing"), (dead, WAITING)} <= found
    assert (dead, WAITING) not in scanned.named()


def test_heal_hears_of_the_most_urgent_first_and_the_round_says_how_urgent(
    scanned: Scanning,
) -> None:
    hours = {"a": 3, "b": 5, "c": 4}
    made = {name: messages(scanned, name) for name in hours}
    scanned.account.later(days=1)
    for name, (source, dead) in made.items():
        is_fixed(scanned, source)
        lies_there(scanned, dead, hours_old=hours[name])
    scanned.scan()
    announced = [arn for arn, symptom in scanned.named() if symptom == WAITING]
    assert announced == [made[name][1] for name in ("b", "c", "a")]
    left = {
        each["queue_arn"]: each["seconds_left"]
        for each in scanned.findings()["findings"]
        if each["symptom"] == WAITING
    }
    assert sorted(announced, key=left.__getitem__) == announced
    assert all(0 < each < 14 * A_DAY for each in left.values())
    others = [each for each in scanned.findings()["findings"] if each["symptom"] != WAITING]
    assert others
    assert not any("seconds_left" in each for each in others)


def test_the_redrive_finds_the_same_plan_when_it_takes_the_case_up(scanned: Scanning) -> None:
    """Else every approval would end as another plan."""
    waiting(scanned, days=5)
    let_it(scanned)
    (made,) = opened(scanned)
    assert made["to"] == "approved", "settings let it be done without a person"
    scanned.account.later(minutes=1)
    dead, now = made["queue_arn"], scanned.account.now
    scanned.count(dead, now - timedelta(minutes=5), deleted=1, visible=2)
    request = {"case_id": made["case_id"], "queue_arn": dead, "symptom": WAITING}
    outcome = take_up(request, run_of(WAITING, scanned.account))
    assert outcome.refusal is not None
    assert (outcome.refusal.code, outcome.case) == ("messages_are_taken", None), "it waits"
    scanned.account.later(minutes=16)
    outcome = take_up(request, run_of(WAITING, scanned.account))
    assert outcome.refusal is None
    assert outcome.case is not None
    assert outcome.case.state is State.APPLIED
    assert [each["attribute"] for each in made["steps"]] == ["Dlq", "MessageRetentionPeriod"]
    assert list(outcome.case.steps) == made["steps"]
    attributes = scanned.account.attributes(made["queue_arn"])
    assert attributes["MessageRetentionPeriod"] == "1209600"
    assert attributes["ApproximateNumberOfMessages"] == "2", "taking it up moves nothing"

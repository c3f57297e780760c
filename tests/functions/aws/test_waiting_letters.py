"""Letters that could go back, from what SQS, CloudWatch and the ledger say to the case."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from functions.aws.ledger_writes import Entry
from functions.aws.take_up import take_up
from functions.healing.case import Case
from functions.healing.dead_letters import Redrive
from functions.healing.examples import case
from functions.healing.ledger_view import LedgerView
from functions.healing.mode import Mode
from functions.healing.states import State
from tests.functions.aws.operators import run_of
from tests.functions.aws.sweeping import Sweeping, an_hour_on, consumed, sweeping

WAITING = "dead_letters_waiting"
A_DAY = 86_400


@pytest.fixture
def swept() -> Iterator[Sweeping]:
    with sweeping() as made:
        yield made


def letters(
    swept: Sweeping,
    name: str = "orders",
    days: int = 14,
    tag: str | None = "heal",
    source_tag: str | None = "heal",
) -> tuple[str, str]:
    """A queue and its dead-letter queue, in which two letters lie."""
    kept = str(days * A_DAY)
    dead = swept.account.queue(f"{name}-dlq", tag=tag, MessageRetentionPeriod=kept)
    redrive = Redrive(dead, 5).text
    source = swept.account.queue(name, tag=source_tag, RedrivePolicy=redrive)
    for body in ("one", "two"):
        sqs = swept.account.clients.sqs
        sqs.send_message(QueueUrl=swept.account.url(dead), MessageBody=body)
    return source, dead


def lies_there(swept: Sweeping, dead: str, hours_old: float = 5, source: str = "") -> None:
    """What CloudWatch measured of the letters, and how many were deleted at their source."""
    for minutes in (330, 90, 10):
        at = swept.account.now - timedelta(minutes=minutes)
        age = int(3600 * hours_old - 60 * minutes)
        swept.count(dead, at, visible=2, age=max(age, 0))
        if source:
            swept.count(source, at, deleted=3_600)


def is_mended(swept: Sweeping, source: str, *states: State, symptom: str = "lease_expired") -> Case:
    """A case about the source, as the ledger keeps it."""
    made = case(symptom, *(states or (State.APPLIED, State.WATCHING)), queue_arn=source)
    made = replace(made, at=swept.account.now, opened_at=swept.account.now)
    entry = Entry(made, LedgerView(), "o", "o", {}, {}, swept.account.now + timedelta(days=2))
    swept.account.run().ledger.record(entry)
    return made


def waiting(swept: Sweeping, **over: Any) -> tuple[str, str]:
    """All that it takes to be found, after a day."""
    source, dead = letters(swept, **over)
    swept.account.later(days=1)
    is_mended(swept, source)
    lies_there(swept, dead, source=source)
    return source, dead


def opened(swept: Sweeping) -> list[dict[str, Any]]:
    """What is written down of it, after a sweep and what heal makes of it."""
    swept.sweep()
    for healed in swept.heal():
        assert healed.errors == {}
    return [each for each in swept.account.transitions() if each["symptom"] == WAITING]


def let_it(swept: Sweeping) -> None:
    settings = replace(swept.account.settings, autonomy={WAITING: Mode.HEAL})
    swept.account.settings = settings


def test_letters_whose_cause_is_mended_are_proposed_to_go_back(swept: Sweeping) -> None:
    source, dead = waiting(swept)
    (made,) = opened(swept)
    assert (made["to"], made["queue_arn"]) == ("proposed", dead)
    assert made["steps"] == [{"attribute": "DeadLetters", "before": "held", "after": source}]
    assert "2 dead letters wait" in made["reason"]
    assert "lease_expired at orders is mended" in made["reason"]
    assert "(1.00 a second)" in made["reason"]
    visible = swept.account.attributes(dead)["ApproximateNumberOfMessages"]
    assert visible == "2", "nothing is moved by saying so"


def test_the_soak_that_is_told_is_the_account_s(swept: Sweeping) -> None:
    """`timing.soakFactor`: 10 times five receives of 30 seconds."""
    settings = swept.account.settings
    swept.account.settings = replace(settings, timing=replace(settings.timing, soak_factor=10))
    waiting(swept)
    (made,) = opened(swept)
    assert "after each soak of 25 min;" in made["reason"]


def test_settings_let_it_be_done_without_a_person(swept: Sweeping) -> None:
    waiting(swept)
    let_it(swept)
    (made,) = opened(swept)
    assert made["to"] == "approved"
    assert "settings let redrive do it" in made["reason"]


def test_they_are_kept_longer_first_where_they_could_expire(swept: Sweeping) -> None:
    source, dead = waiting(swept, days=5)
    (made,) = opened(swept)
    assert [each["attribute"] for each in made["steps"]] == [
        "DeadLetters",
        "MessageRetentionPeriod",
    ]
    assert made["steps"][1]["after"] == "1209600"
    assert swept.account.attributes(dead)["MessageRetentionPeriod"] == str(5 * A_DAY)
    assert source


def test_without_a_case_nothing_is_found(swept: Sweeping) -> None:
    _, dead = letters(swept)
    swept.account.later(days=1)
    lies_there(swept, dead)
    assert opened(swept) == []
    assert swept.told == []


def test_letters_that_came_after_it_was_mended_are_not_found(swept: Sweeping) -> None:
    source, dead = letters(swept)
    swept.account.later(days=1)
    is_mended(swept, source)
    swept.account.later(hours=7)
    lies_there(swept, dead, hours_old=6)
    assert opened(swept) == []


@pytest.mark.parametrize("states", [(State.APPLIED,), (State.PROPOSED, State.EXPIRED)])
def test_what_is_not_mended_sends_nothing_back(swept: Sweeping, states: tuple[State, ...]) -> None:
    source, dead = letters(swept)
    swept.account.later(days=1)
    is_mended(swept, source, *states)
    lies_there(swept, dead)
    assert opened(swept) == []


def test_a_dead_letter_queue_that_is_not_managed_is_never_found(swept: Sweeping) -> None:
    waiting(swept, tag=None)
    assert opened(swept) == []


def test_a_source_that_is_not_managed_is_sent_nothing(swept: Sweeping) -> None:
    waiting(swept, source_tag=None)
    swept.sweep()
    (healed,) = swept.heal()
    (outcome,) = healed.mended.values()
    assert outcome.refusal is not None
    assert outcome.refusal.code == "source_not_managed"
    assert swept.account.transitions() == []


def test_of_a_shared_one_people_are_told_how_to_take_one_source_s(swept: Sweeping) -> None:
    _, dead = waiting(swept)
    swept.account.queue("second", tag=None, RedrivePolicy=Redrive(dead, 5).text)
    (made,) = opened(swept)
    assert (made["to"], made["steps"]) == ("refused", [])
    assert "takes the letters of 2 queues" in made["reason"]


def test_a_cause_that_is_found_in_the_same_round_goes_first(swept: Sweeping) -> None:
    source, dead = letters(swept)
    swept.account.later(days=1)
    is_mended(swept, source, symptom="kms_throttled")
    lies_there(swept, dead)
    sqs = swept.account.clients.sqs
    sqs.send_message(QueueUrl=swept.account.url(source), MessageBody="poison")
    for minutes in (30, 60, 90):
        at = swept.account.now - timedelta(minutes=minutes)
        swept.count(source, at, received=1_000, visible=200, sent=200)
    swept.sweep()
    found = {(each["queue_arn"], each["symptom"]) for each in swept.findings()["findings"]}
    assert {(source, "consumer_failing"), (dead, WAITING)} <= found
    assert (dead, WAITING) not in swept.named()


def test_heal_hears_of_the_most_urgent_first_and_the_round_says_how_urgent(
    swept: Sweeping,
) -> None:
    hours = {"a": 3, "b": 5, "c": 4}
    made = {name: letters(swept, name) for name in hours}
    swept.account.later(days=1)
    for name, (source, dead) in made.items():
        is_mended(swept, source)
        lies_there(swept, dead, hours_old=hours[name])
    swept.sweep()
    told = [arn for arn, symptom in swept.named() if symptom == WAITING]
    assert told == [made[name][1] for name in ("b", "c", "a")]
    left = {
        each["queue_arn"]: each["seconds_left"]
        for each in swept.findings()["findings"]
        if each["symptom"] == WAITING
    }
    assert sorted(told, key=left.__getitem__) == told
    assert all(0 < each < 14 * A_DAY for each in left.values())
    others = [each for each in swept.findings()["findings"] if each["symptom"] != WAITING]
    assert others
    assert not any("seconds_left" in each for each in others)


def test_an_hour_later_it_is_the_same_case(swept: Sweeping) -> None:
    _, dead = waiting(swept)
    assert len(opened(swept)) == 1
    an_hour_on(swept.account)
    lies_there(swept, dead)
    assert len(opened(swept)) == 1


def test_the_redrive_finds_the_same_plan_when_it_takes_the_case_up(swept: Sweeping) -> None:
    """Else every approval would end as another plan."""
    waiting(swept, days=5)
    let_it(swept)
    (made,) = opened(swept)
    swept.account.later(minutes=1)
    request = {"case_id": made["case_id"], "queue_arn": made["queue_arn"], "symptom": WAITING}
    outcome = take_up(request, run_of(WAITING, swept.account))
    assert outcome.refusal is None
    assert outcome.case is not None
    assert outcome.case.state is State.APPLIED
    assert list(outcome.case.steps) == made["steps"]
    attributes = swept.account.attributes(made["queue_arn"])
    assert attributes["MessageRetentionPeriod"] == "1209600"
    assert attributes["ApproximateNumberOfMessages"] == "2", "taking it up moves nothing"


def approved(swept: Sweeping) -> tuple[dict[str, Any], str]:
    """What is asked of the redrive once a person has approved it, and the letters' queue."""
    _, dead = waiting(swept)
    let_it(swept)
    (made,) = opened(swept)
    swept.account.later(minutes=20)
    return {"case_id": made["case_id"], "queue_arn": dead, "symptom": WAITING}, dead


def test_however_often_people_look_at_the_letters_the_approval_stands(swept: Sweeping) -> None:
    """A look reads every letter: `--dry-run` does, and so does a sweep's census."""
    request, dead = approved(swept)
    for minutes in (15, 10, 5):
        at = swept.account.now - timedelta(minutes=minutes)
        swept.count(dead, at, received=2_000, empty=200, visible=2)
    outcome = take_up(request, run_of(WAITING, swept.account))
    assert outcome.refusal is None
    assert outcome.case is not None
    assert outcome.case.state is State.APPLIED


def test_while_somebody_takes_letters_an_approval_waits_and_then_goes_on(swept: Sweeping) -> None:
    """As `mendq redrive --limit 1` does, before one believes in the rest."""
    request, dead = approved(swept)
    swept.count(dead, swept.account.now - timedelta(minutes=5), deleted=1, visible=2)
    outcome = take_up(request, run_of(WAITING, swept.account))
    assert outcome.refusal is not None
    assert (outcome.refusal.code, outcome.case) == ("letters_are_taken", None)
    kept = swept.account.run().ledger.look(dead, WAITING, ("DeadLetters",))
    assert kept.case is not None
    assert kept.case.state is State.APPROVED, "it has not expired"
    assert kept.hold_up is not None
    assert kept.hold_up.code == "letters_are_taken"
    swept.account.later(minutes=16)
    outcome = take_up(request, run_of(WAITING, swept.account))
    assert outcome.case is not None
    assert outcome.case.state is State.APPLIED


def test_a_function_that_reads_them_ends_the_approval(swept: Sweeping) -> None:
    request, dead = approved(swept)
    consumed(swept, dead)
    outcome = take_up(request, run_of(WAITING, swept.account))
    assert outcome.case is not None
    assert (outcome.case.state, outcome.case.code) == (State.EXPIRED, "letters_are_read")

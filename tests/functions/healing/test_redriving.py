"""Letters go back only where what killed them is mended, and as far as a person let it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from functions.healing import examples
from functions.healing.facts import Facts
from functions.healing.mode import Mode
from functions.healing.plan import Plan, Refusal
from functions.healing.queue_names import parts_of
from functions.healing.redriving import send_back
from functions.healing.steps import SetMessageRetention
from tests.functions.healing.dead_letters import (
    BY_A_PERSON,
    DAY,
    SHORT,
    WATCHED,
    fifo,
    with_source,
)


def planned(facts: Facts) -> Plan:
    found = send_back(facts, "200 dead letters wait")
    assert isinstance(found, Plan)
    return found


def with_deletes(facts: Facts, per_second: float) -> Facts:
    assert facts.sole_source is not None
    return replace(facts, sole_source=replace(facts.sole_source, deletes_per_second=per_second))


def test_only_what_is_proven_mended_goes_without_a_person() -> None:
    assert planned(WATCHED).at_most is Mode.HEAL
    assert planned(BY_A_PERSON).at_most is Mode.PROPOSE


def test_a_second_cause_that_a_person_closed_lowers_it_too() -> None:
    both = (*WATCHED.source_cases, *BY_A_PERSON.source_cases)
    assert planned(replace(WATCHED, source_cases=both)).at_most is Mode.PROPOSE


@pytest.mark.parametrize("mode", [Mode.OBSERVE, Mode.PROPOSE, Mode.HEAL])
def test_it_goes_no_further_than_its_source_lets_it(mode: Mode) -> None:
    assert WATCHED.sole_source is not None
    facts = replace(WATCHED, sole_source=replace(WATCHED.sole_source, mode=mode))
    assert planned(facts).at_most is mode


def test_fifo_is_proposed_with_the_numbers() -> None:
    found = planned(fifo())
    assert found.at_most is Mode.PROPOSE
    assert "Order will mix: 200 go in" in found.reason
    assert "20.0 a second" in found.reason


def test_without_a_measurement_a_person_decides_and_the_letters_are_kept() -> None:
    """As when somebody changed the queue within the hour, and an approval waits."""
    found = planned(replace(SHORT, measured=None))
    assert found.at_most is Mode.PROPOSE
    assert found.steps == planned(SHORT).steps


def test_where_sqs_says_no_age_a_person_decides() -> None:
    assert WATCHED.measured is not None
    facts = replace(WATCHED, measured=replace(WATCHED.measured, oldest_age_seconds_now=0))
    found = planned(facts)
    assert found.at_most is Mode.PROPOSE
    assert "since when" in found.reason
    assert found.steps == planned(WATCHED).steps


def test_nearly_four_days_are_enough_for_fifo_letters_that_began_anew() -> None:
    kept = {**fifo().attributes, "MessageRetentionPeriod": str(4 * DAY)}
    assert len(planned(replace(fifo(), attributes=kept)).steps) == 1


@pytest.mark.parametrize(
    ("kept_days", "source_days", "raised"),
    [(4, 4, True), (7, 4, True), (13, 4, False), (14, 14, False)],
)
def test_the_retention_is_raised_where_letters_could_expire(
    kept_days: int, source_days: int, *, raised: bool
) -> None:
    facts = replace(
        with_source(WATCHED, MessageRetentionPeriod=str(source_days * DAY)),
        attributes={**WATCHED.attributes, "MessageRetentionPeriod": str(kept_days * DAY)},
    )
    steps = planned(facts).steps[1:]
    assert steps == ((SetMessageRetention(kept_days * DAY, 14 * DAY),) if raised else ())


def test_a_slow_consumer_makes_it_long_and_the_letters_are_kept_for_it() -> None:
    """6,000 at one a minute, which is the least, take more than four days."""
    kept = {"MessageRetentionPeriod": str(12 * DAY), "ApproximateNumberOfMessages": "6000"}
    facts = replace(with_deletes(WATCHED, 0.005), attributes={**WATCHED.attributes, **kept})
    assert len(planned(facts).steps) == 2
    assert len(planned(with_deletes(facts, 20)).steps) == 1


@pytest.mark.parametrize("per_second", [0.005, 0.1])
def test_what_could_not_end_before_they_expire_is_refused_with_its_figures(
    per_second: float,
) -> None:
    attributes = {**WATCHED.attributes, "ApproximateNumberOfMessages": "30000"}
    slow = replace(with_deletes(WATCHED, per_second), attributes=attributes)
    refusal = send_back(slow, "30,000 dead letters wait")
    assert isinstance(refusal, Refusal)
    assert refusal.code == "redrive_too_slow"
    assert "30,000 messages would take 23 d 6 h" in refusal.reason
    assert "at 0.02 a second" in refusal.reason
    assert "the first expires" in refusal.reason
    assert refusal.next_command.startswith("mendq redrive orders --all --dry-run")
    assert isinstance(send_back(with_deletes(slow, 10), "they wait"), Plan)
    assert isinstance(send_back(with_deletes(slow, 0), "nobody is known to delete"), Plan)


def test_the_account_s_soak_factor_counts_in_what_is_said_and_in_what_is_lost() -> None:
    """5 receives of 60 seconds each, in five stages."""
    assert WATCHED.sole_source is not None
    patient = replace(WATCHED, sole_source=replace(WATCHED.sole_source, soak_factor=10))
    assert "after each soak of 6 min;" in planned(WATCHED).reason
    assert "after each soak of 50 min;" in planned(patient).reason
    kept = {**WATCHED.attributes, "MessageRetentionPeriod": str(9 * DAY)}
    held = {"VisibilityTimeout": "1800"}
    assert len(planned(with_source(replace(WATCHED, attributes=kept), **held)).steps) == 1
    assert len(planned(with_source(replace(patient, attributes=kept), **held)).steps) == 2


def test_a_source_that_nobody_handles_is_waited_for() -> None:
    found = planned(with_deletes(WATCHED, 0))
    assert "waits until something is" in found.reason


def test_the_plan_names_the_grants_that_encrypted_queues_need() -> None:
    assert "kms:" not in planned(WATCHED).reason
    keyed = with_source(WATCHED, KmsMasterKeyId="alias/orders")
    assert "kms:Decrypt and kms:GenerateDataKey on alias/orders" in planned(keyed).reason


@pytest.mark.parametrize("facts", [WATCHED, SHORT, BY_A_PERSON])
def test_the_reason_fits_a_page_and_ends_without_a_stop(facts: Facts) -> None:
    long = with_source(facts, KmsMasterKeyId="alias/" + "k" * 60)
    found = send_back(long, "f" * 200)
    assert isinstance(found, Plan)
    assert len(found.reason) <= 1_000
    assert not found.reason.endswith(".")
    assert parts_of(examples.STANDARD_ARN).name in found.reason


def test_what_is_spoken_against_is_no_plan() -> None:
    found = send_back(replace(WATCHED, move_task_running=True), "200 dead letters wait")
    assert isinstance(found, Refusal)
    assert found.code == "move_task_running"

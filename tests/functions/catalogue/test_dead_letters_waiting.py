"""Letters go back only where what killed them is mended, and as far as a person let it."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from functions.catalogue import CATALOGUE
from functions.catalogue.dead_letters_waiting import DEAD_LETTERS_WAITING, detect, plan
from functions.healing import examples
from functions.healing.causes import CAUSES
from functions.healing.examples import AT, case
from functions.healing.facts import Facts, SourceQueue
from functions.healing.limits import Limits
from functions.healing.mode import Mode
from functions.healing.plan import Plan, Refusal
from functions.healing.queue_names import parts_of
from functions.healing.states import State
from functions.healing.steps import SetMessageRetention

DAY = 86_400
WATCHED, SHORT, BY_A_PERSON = (each.facts for each in DEAD_LETTERS_WAITING.detected)


def planned(facts: Facts) -> Plan:
    found = plan(facts, Limits())
    assert isinstance(found, Plan)
    return found


def refused(facts: Facts) -> Refusal:
    found = plan(facts, Limits())
    assert isinstance(found, Refusal)
    return found


def with_source(facts: Facts, **attributes: str) -> Facts:
    (source,) = facts.dead_letter_sources or ()
    changed = SourceQueue(source.queue_arn, {**source.attributes, **attributes})
    return replace(facts, dead_letter_sources=(changed,))


def with_deletes(facts: Facts, per_second: float) -> Facts:
    assert facts.sole_source is not None
    return replace(facts, sole_source=replace(facts.sole_source, deletes_per_second=per_second))


def fifo() -> Facts:
    source = f"{examples.STANDARD_ARN}.fifo"
    assert WATCHED.sole_source is not None
    return replace(
        WATCHED,
        queue_arn=f"{examples.DEAD_LETTER_ARN}.fifo",
        dead_letter_sources=(
            SourceQueue(source, (WATCHED.dead_letter_sources or ())[0].attributes),
        ),
        sole_source=replace(WATCHED.sole_source, queue_arn=source),
        source_cases=(case("lease_expired", State.WATCHING, queue_arn=source),),
    )


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


def test_on_fifo_the_time_begins_at_the_move() -> None:
    facts = replace(
        fifo(), attributes={**fifo().attributes, "MessageRetentionPeriod": str(4 * DAY)}
    )
    found = detect(facts)
    assert found is not None
    assert found.seconds_left == 4 * DAY - 7_200
    assert len(planned(facts).steps) == 1, "nearly four days are enough"


def test_without_a_measurement_a_person_decides_and_the_letters_are_kept() -> None:
    """As when somebody changed the queue within the hour, and an approval waits."""
    found = planned(replace(SHORT, measured=None))
    assert found.at_most is Mode.PROPOSE
    assert found.steps == planned(SHORT).steps


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
    """200 letters at 0.0005 a second take more than four days."""
    facts = replace(
        with_deletes(WATCHED, 0.005),
        attributes={**WATCHED.attributes, "MessageRetentionPeriod": str(12 * DAY)},
    )
    assert len(planned(facts).steps) == 2
    assert len(planned(with_deletes(facts, 20)).steps) == 1


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


@pytest.mark.parametrize("cause", sorted(CAUSES))
def test_every_cause_that_is_mended_lets_letters_go_back(cause: str) -> None:
    facts = replace(WATCHED, source_cases=(case(cause, State.WATCHING),))
    assert detect(facts) is not None
    assert planned(facts)


@pytest.mark.parametrize("entry", CATALOGUE, ids=lambda each: each.name)
@pytest.mark.parametrize("state", [State.PROPOSED, State.APPLIED, State.ESCALATED])
def test_any_open_case_of_the_source_holds_it_up(entry: object, state: State) -> None:
    name = entry.name  # type: ignore[attr-defined]
    facts = replace(WATCHED, source_cases=(*WATCHED.source_cases, case(name, state)))
    assert refused(facts).code == "cause_first"


def test_letters_that_began_to_come_after_it_was_mended_are_another_matter() -> None:
    """To the minute: the age is measured within the last one."""
    age = timedelta(seconds=7_200)
    for late, explained in ((timedelta(minutes=1), True), (timedelta(minutes=1, seconds=1), False)):
        assert WATCHED.measured is not None
        facts = replace(WATCHED, measured=replace(WATCHED.measured, until=AT + age + late))
        assert (detect(facts) is not None) is explained


def test_letters_that_lay_there_all_the_while_are_no_younger_than_that() -> None:
    """SQS leaves what was received often out of the age of the oldest."""
    assert WATCHED.measured is not None
    over = replace(WATCHED.measured, oldest_age_seconds_now=60, least_visible=200)
    mended_at = over.since + timedelta(seconds=1)
    facts = replace(
        WATCHED,
        measured=over,
        source_cases=tuple(replace(each, at=mended_at) for each in WATCHED.source_cases),
    )
    assert detect(facts) is not None
    for unsure in (replace(over, least_visible=0), replace(over, deleted=1)):
        assert detect(replace(facts, measured=unsure)) is None


def test_where_sqs_says_no_age_a_person_decides_and_any_cause_of_that_time_may_explain() -> None:
    """No letter is older than the queue keeps one."""
    assert WATCHED.measured is not None
    facts = replace(WATCHED, measured=replace(WATCHED.measured, oldest_age_seconds_now=0))
    found = planned(facts)
    assert found.at_most is Mode.PROPOSE
    assert "since when" in found.reason
    assert found.steps == planned(WATCHED).steps
    detected = detect(facts)
    assert detected is not None
    assert detected.seconds_left == 0
    long_ago = tuple(replace(each, at=AT - timedelta(days=14)) for each in facts.source_cases)
    assert detect(replace(facts, source_cases=long_ago)) is not None
    longer_ago = tuple(replace(each, at=AT - timedelta(days=15)) for each in facts.source_cases)
    assert detect(replace(facts, source_cases=longer_ago)) is None


def test_a_shared_queue_is_told_of_and_shows_how_one_source_goes_back() -> None:
    sources = (WATCHED.dead_letter_sources or ())[0]
    second = SourceQueue(f"{examples.STANDARD_ARN}-2", sources.attributes)
    found = refused(replace(WATCHED, dead_letter_sources=(second, sources), sole_source=None))
    assert found.becomes is State.REFUSED
    assert found.next_command.startswith("mendq redrive orders --all --dry-run")


@pytest.mark.parametrize("of_source", [True, False])
def test_a_network_s_policy_is_refused_with_the_cure(*, of_source: bool) -> None:
    deny = {
        "Effect": "Deny",
        "Principal": "*",
        "Action": "sqs:*",
        "Resource": "*",
        "Condition": {"StringNotEquals": {"aws:SourceVpc": "vpc-0abc"}},
    }
    text = json.dumps({"Statement": deny})
    letters = replace(WATCHED, attributes={**WATCHED.attributes, "Policy": text})
    found = refused(with_source(WATCHED, Policy=text) if of_source else letters)
    assert found.code == "network_only_policy"
    assert '"aws:CalledViaLast": "sqs.amazonaws.com"' in found.reason
    assert "aws:ViaAWSService" in found.reason
    deny["Condition"] |= {"BoolIfExists": {"aws:ViaAWSService": "false"}}  # type: ignore[operator]
    excepted = json.dumps({"Statement": deny})
    assert planned(with_source(WATCHED, Policy=excepted))


@pytest.mark.parametrize("facts", [WATCHED, SHORT, BY_A_PERSON])
def test_the_reason_fits_a_page_and_ends_without_a_stop(facts: Facts) -> None:
    long = replace(with_source(facts, KmsMasterKeyId="alias/" + "k" * 60), found="f" * 200)
    found = planned(long)
    assert len(found.reason) <= 1_000
    assert not found.reason.endswith(".")
    assert parts_of(examples.STANDARD_ARN).name in found.reason

"""Dead-letter messages go back only where what killed them is fixed, and as far as a person let it.

What speaks against it is told: one thing is enough, with its remedy.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from mendq.catalogue import CATALOGUE, examples
from mendq.catalogue._redrive import first_against, send_back, who_reads, who_takes
from mendq.catalogue.examples import AT, DLQ_ARN, case, measured, queue, recounted
from mendq.model.case import State
from mendq.model.facts import Facts, LambdaConsumer, SourceQueue
from mendq.model.limits import Mode
from mendq.model.metrics import LATELY, Window
from mendq.model.metrics import measured as measured_in
from mendq.model.plan import Plan, Refusal
from mendq.model.queue import parts_of
from mendq.model.steps import SetMessageRetention
from tests.model.dlq import BY_A_PERSON, DAY, SHORT, WATCHED, fifo, with_source


def planned(facts: Facts) -> Plan:
    found = send_back(facts, "200 DLQ messages wait")
    assert isinstance(found, Plan)
    return found


def with_deletes(facts: Facts, per_second: float) -> Facts:
    assert facts.sole_source is not None
    return replace(facts, sole_source=replace(facts.sole_source, deletes_per_second=per_second))


def test_only_what_is_proven_fixed_goes_without_a_person() -> None:
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


def test_without_a_measurement_a_person_decides_and_the_messages_are_retained() -> None:
    """As when somebody changed the queue within the hour, and an approval waits."""
    found = planned(replace(SHORT, measured=None))
    assert found.at_most is Mode.PROPOSE
    assert found.steps == planned(SHORT).steps


def test_where_sqs_says_no_age_a_person_decides() -> None:
    assert WATCHED.measured is not None
    facts = replace(WATCHED, measured=recounted(WATCHED.measured, oldest_age_seconds_now=0))
    found = planned(facts)
    assert found.at_most is Mode.PROPOSE
    assert "since when" in found.reason
    assert found.steps == planned(WATCHED).steps


def test_nearly_four_days_are_enough_for_fifo_messages_that_began_anew() -> None:
    retained = {**fifo().attributes, "MessageRetentionPeriod": str(4 * DAY)}
    assert len(planned(replace(fifo(), attributes=retained)).steps) == 1


@pytest.mark.parametrize(
    ("retained_days", "source_days", "raised"),
    [(4, 4, True), (7, 4, True), (13, 4, False), (14, 14, False)],
)
def test_the_retention_is_raised_where_messages_could_expire(
    retained_days: int, source_days: int, *, raised: bool
) -> None:
    facts = replace(
        with_source(WATCHED, MessageRetentionPeriod=str(source_days * DAY)),
        attributes={**WATCHED.attributes, "MessageRetentionPeriod": str(retained_days * DAY)},
    )
    steps = planned(facts).steps[1:]
    assert steps == ((SetMessageRetention(retained_days * DAY, 14 * DAY),) if raised else ())


def test_a_slow_consumer_makes_it_long_and_the_messages_are_retained_for_it() -> None:
    """6,000 at one a minute, which is the least, take more than four days."""
    retained = {"MessageRetentionPeriod": str(12 * DAY), "ApproximateNumberOfMessages": "6000"}
    facts = replace(with_deletes(WATCHED, 0.005), attributes={**WATCHED.attributes, **retained})
    assert len(planned(facts).steps) == 2
    assert len(planned(with_deletes(facts, 20)).steps) == 1


@pytest.mark.parametrize("per_second", [0.005, 0.1])
def test_what_could_not_end_before_they_expire_is_refused_with_its_figures(
    per_second: float,
) -> None:
    attributes = {**WATCHED.attributes, "ApproximateNumberOfMessages": "30000"}
    slow = replace(with_deletes(WATCHED, per_second), attributes=attributes)
    refusal = send_back(slow, "30,000 DLQ messages wait")
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
    retained = {**WATCHED.attributes, "MessageRetentionPeriod": str(9 * DAY)}
    held = {"VisibilityTimeout": "1800"}
    assert len(planned(with_source(replace(WATCHED, attributes=retained), **held)).steps) == 1
    assert len(planned(with_source(replace(patient, attributes=retained), **held)).steps) == 2


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
    found = send_back(replace(WATCHED, move_task_running=True), "200 DLQ messages wait")
    assert isinstance(found, Refusal)
    assert found.code == "move_task_running"


def refused(facts: Facts) -> Refusal:
    found = first_against(facts)
    assert isinstance(found, Refusal)
    return found


def test_nothing_speaks_against_what_is_fixed_and_watched() -> None:
    assert first_against(WATCHED) is None


@pytest.mark.parametrize("entry", CATALOGUE, ids=lambda each: each.name)
@pytest.mark.parametrize("state", [State.PROPOSED, State.APPLIED, State.ESCALATED])
def test_any_open_case_of_the_source_holds_it_up(entry: object, state: State) -> None:
    name = entry.name  # type: ignore[attr-defined]
    facts = replace(WATCHED, source_cases=(*WATCHED.source_cases, case(name, state)))
    assert refused(facts).code == "cause_first"


def test_a_shared_queue_is_said_of_and_shows_how_one_source_goes_back() -> None:
    sources = (WATCHED.dlq_sources or ())[0]
    second = SourceQueue(f"{examples.STANDARD_ARN}-2", sources.attributes)
    found = refused(replace(WATCHED, dlq_sources=(second, sources), sole_source=None))
    assert found.becomes is State.REFUSED
    assert found.next_command.startswith("mendq redrive orders --all --dry-run")


@pytest.mark.parametrize("of_source", [True, False])
def test_a_network_s_policy_is_refused_with_the_remedy(*, of_source: bool) -> None:
    deny = {
        "Effect": "Deny",
        "Principal": "*",
        "Action": "sqs:*",
        "Resource": "*",
        "Condition": {"StringNotEquals": {"aws:SourceVpc": "vpc-0abc"}},
    }
    text = json.dumps({"Statement": deny})
    messages = replace(WATCHED, attributes={**WATCHED.attributes, "Policy": text})
    found = refused(with_source(WATCHED, Policy=text) if of_source else messages)
    assert found.code == "network_only_policy"
    assert '"ArnNotEquals": {"aws:PrincipalArn": "ROLE_ARN"}' in found.reason
    role = "arn:aws:iam::123456789012:role/mendq-redrive-us-east-1"
    deny["Condition"] |= {"ArnNotEquals": {"aws:PrincipalArn": role}}  # type: ignore[operator]
    excepted = json.dumps({"Statement": deny})
    assert first_against(with_source(WATCHED, Policy=excepted)) is None


MESSAGES = queue(queue_arn=DLQ_ARN)
HANDLER = LambdaConsumer("arn:aws:lambda:us-east-1:123456789012:function:messages", 30, 0)
WINDOW = Window(AT - timedelta(hours=6), AT)


def taken(*minutes_ago: int) -> str | None:
    """Who takes messages where so many minutes ago some were deleted."""
    series = {
        "visible": [(AT - timedelta(minutes=each), 200.0) for each in range(1, 360)],
        "received": [(AT - timedelta(minutes=each), 200.0) for each in range(1, 360)],
        "deleted": [(AT - timedelta(minutes=each), 5.0) for each in minutes_ago],
    }
    return who_takes(replace(MESSAGES, measured=measured_in(series, WINDOW)))


def test_a_lambda_consumer_reads_it_whatever_was_measured() -> None:
    assert HANDLER.function_arn in str(who_reads(replace(MESSAGES, lambda_consumers=(HANDLER,))))
    assert who_reads(MESSAGES) is None


@pytest.mark.parametrize(
    "counted",
    [
        {"received": 200, "visible_now": 200},
        {"received": 5 * 200, "visible_now": 200, "empty_receives": 60},
        {"received": 100_000, "visible_now": 4_000},
        {"empty_receives": 2_160},
    ],
)
def test_however_often_messages_are_looked_at_nobody_takes_them(counted: dict[str, int]) -> None:
    """A preview, a census and a scan read every message each time."""
    assert who_takes(replace(MESSAGES, measured=measured(**counted))) is None


def test_a_person_s_mover_is_over_after_a_while() -> None:
    quiet = int(LATELY.total_seconds()) // 60 + 1
    assert taken() is None
    assert taken(quiet) is None
    assert taken(200, quiet) is None
    assert "5 messages were deleted in the last 15 minutes" in str(taken(quiet - 2))


def test_who_comes_back_hour_after_hour_is_at_work_between_two_visits_too() -> None:
    assert taken(30, 45, 55) is None, "one hour"
    assert taken(30, 90) is None
    said = str(taken(30, 90, 150))
    assert "15 messages were deleted in 3 different hours" in said


def test_nobody_is_known_where_nothing_was_measured() -> None:
    assert who_takes(MESSAGES) is None

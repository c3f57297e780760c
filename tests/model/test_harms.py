"""Test the table of harms that a step can do: each row, and faults that no step caused."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from mendq.catalogue import SYMPTOM_BY_NAME
from mendq.catalogue.examples import (
    DLQ_ARN,
    EXAMPLE_TIME,
    STANDARD_ARN,
    measurement,
    queue,
    replace_values,
    source,
)
from mendq.heal.undo import MANUAL_ATTRIBUTES
from mendq.model.case import Case, start_case
from mendq.model.evidence import Evidence, Sighting
from mendq.model.facts import Facts, QueueFacts
from mendq.model.harms import (
    HARM_BY_STEP_CLASS,
    MANUAL_UNDO_INTRODUCTION,
    ROLLBACK_INTRODUCTION,
    STOP_REDRIVE_INTRODUCTION,
    HarmMeasurements,
    HarmSign,
    describe_measured_harm,
    find_causing_change,
    find_harm,
    find_harm_sign,
)
from mendq.model.limits import Timing
from mendq.model.metrics import RecentCounts
from mendq.model.own_change import OwnChange
from mendq.model.queue import RedriveAllowPolicy, RedrivePolicy
from mendq.model.state import State
from mendq.model.steps import (
    STEP_CLASSES,
    AllowRedriveFrom,
    AttachDlq,
    AttributeStep,
    CreateDlq,
    DeduplicateByContent,
    DeduplicateByGroup,
    LimitThroughputByGroup,
    LowerVisibilityTimeout,
    RedriveMessages,
    RestorePolicy,
    SetKmsDataKeyReusePeriod,
    SetMaximumMessageSize,
    SetMessageRetention,
    SetReceiveWaitTime,
    SetVisibilityTimeout,
)
from mendq.notifications.own_change import describe_own_change

TIMING = Timing()
FIVE_MINUTES = timedelta(minutes=5)
CREATE = CreateDlq("", DLQ_ARN)
ATTACH = AttachDlq("", RedrivePolicy(DLQ_ARN, 5).text)
OTHER_ARN = f"{STANDARD_ARN}-2"
# One step of each kind as a plan has it.
EXAMPLES: dict[type[AttributeStep], AttributeStep] = {
    SetVisibilityTimeout: SetVisibilityTimeout(30, 180),
    LowerVisibilityTimeout: LowerVisibilityTimeout(14_400, 180),
    SetKmsDataKeyReusePeriod: SetKmsDataKeyReusePeriod(300, 3_600),
    SetMaximumMessageSize: SetMaximumMessageSize(1_024, 1_048_576),
    SetMessageRetention: SetMessageRetention(345_600, 1_209_600),
    SetReceiveWaitTime: SetReceiveWaitTime(0, 20),
    DeduplicateByContent: DeduplicateByContent("false", "true"),
    DeduplicateByGroup: DeduplicateByGroup("queue", "messageGroup"),
    LimitThroughputByGroup: LimitThroughputByGroup("perQueue", "perMessageGroupId"),
    CreateDlq: CREATE,
    AttachDlq: ATTACH,
    AllowRedriveFrom: AllowRedriveFrom(
        RedriveAllowPolicy("byQueue", (OTHER_ARN,)).text,
        RedriveAllowPolicy("byQueue", (STANDARD_ARN, OTHER_ARN)).text,
    ),
    RestorePolicy: RestorePolicy("", '{"Statement": []}'),
    RedriveMessages: RedriveMessages("held", STANDARD_ARN),
}
# Counts that show each sign of harm, and counts that only look like it.
BEFORE_GROWTH = {"in_flight_before": 10, "oldest_age_seconds_before": 20}
SIGN_EXAMPLES: dict[HarmSign, list[tuple[str, dict[str, Any], bool]]] = {
    HarmSign.DLQ_ARRIVALS: [
        ("three arrived", {"backlog_now": 3, "visible_now": 3}, True),
        ("one arrived", {"backlog_now": 1, "visible_now": 1}, True),
        ("the DLQ was empty, and nothing arrived", {}, False),
        ("all messages were there before", {"backlog_before": 3, "backlog_now": 3}, False),
        ("a producer sends straight to the DLQ", {"backlog_now": 3, "sent": 3}, False),
        ("counters that are not exact", {"backlog_now": 22, "sent": 3}, False),
    ],
    HarmSign.HELD_LONGER: [
        ("half the quota", {"in_flight_now": 60_000}, True),
        (
            "more, and older",
            {**BEFORE_GROWTH, "in_flight_now": 900, "oldest_age_seconds_now": 900},
            True,
        ),
        ("just below half the quota", {"in_flight_now": 59_999}, False),
        (
            "more, and as old",
            {**BEFORE_GROWTH, "in_flight_now": 900, "oldest_age_seconds_now": 40},
            False,
        ),
        (
            "a quiet queue, and much older",
            {"in_flight_before": 2, "in_flight_now": 15, "oldest_age_seconds_now": 20_000},
            True,
        ),
        (
            "a quiet queue, a few more",
            {"in_flight_before": 2, "in_flight_now": 14, "oldest_age_seconds_now": 20_000},
            False,
        ),
        (
            "as many, and older",
            {**BEFORE_GROWTH, "in_flight_now": 12, "oldest_age_seconds_now": 900},
            False,
        ),
    ],
    HarmSign.HANDLED_TWICE: [
        ("200 deletes too many", {"sent": 1_000, "received": 1_250, "deleted": 1_200}, True),
        (
            "counters that are not exact",
            {"sent": 1_000, "received": 1_100, "deleted": 1_050},
            False,
        ),
        ("each message once", {"sent": 1_000, "received": 1_000, "deleted": 1_000}, False),
    ],
    HarmSign.NOTHING_FINISHED: [
        ("received and never deleted", {"sent": 60, "received": 60}, True),
        ("one delete", {"sent": 60, "received": 60, "deleted": 1}, False),
        ("five receives on a quiet queue", {"sent": 5, "received": 5}, True),
        ("too few receives to tell", {"sent": 4, "received": 4}, False),
        ("nothing came", {}, False),
    ],
    HarmSign.SENDS_DROPPED: [
        ("a send was dropped", {"recent": RecentCounts(deduplicated=1)}, True),
        ("none was", {"sent": 100}, False),
    ],
}


def make_case_with_steps(
    *steps: AttributeStep, symptom: str = "dlq_missing", queue_arn: str = STANDARD_ARN
) -> Case:
    """Make a case that has just written these steps."""
    return start_case(
        State.APPLIED,
        queue_arn=queue_arn,
        symptom=symptom,
        reason="made up",
        evidence=Evidence((Sighting.from_scan(EXAMPLE_TIME),)),
        steps=steps,
        now=EXAMPLE_TIME,
        actor="heal",
    )


@pytest.mark.parametrize(("age_seconds", "is_shown"), [(3_601, True), (3_600, False)])
def test_raised_timeout_of_12_hours_is_reported_as_harm_as_soon_as_a_message_is_over_an_hour_old(
    age_seconds: int, *, is_shown: bool
) -> None:
    """With a timeout of 12 hours, people need not wait 12 hours for the report."""
    case = make_case_with_steps(SetVisibilityTimeout(30, 43_200))
    measured = measurement(in_flight_now=40, oldest_age_seconds_now=age_seconds)
    assert bool(describe_measured_harm(case, HarmMeasurements(queue=measured))) is is_shown


def make_step_document(kind: type[AttributeStep]) -> dict[str, str]:
    return EXAMPLES[kind].document()


@pytest.mark.parametrize(
    "kind", [*STEP_CLASSES, LowerVisibilityTimeout], ids=lambda kind: kind.__name__
)
def test_every_step_class_has_a_harm_and_find_harm_returns_it_for_a_stored_step(
    kind: type[AttributeStep],
) -> None:
    assert kind in HARM_BY_STEP_CLASS, (
        f"say in mendq/model/harms.py what harm {kind.__name__} can do"
    )
    assert find_harm(make_step_document(kind)) is HARM_BY_STEP_CLASS[kind]


@pytest.mark.parametrize("kind", HARM_BY_STEP_CLASS, ids=lambda kind: kind.__name__)
def test_row_of_harms_has_known_symptoms_or_says_why_there_are_none(
    kind: type[AttributeStep],
) -> None:
    harm = HARM_BY_STEP_CLASS[kind]
    assert bool(harm.symptoms) != bool(harm.why_no_symptom)
    assert harm.symptoms <= SYMPTOM_BY_NAME.keys()


@pytest.mark.parametrize("kind", HARM_BY_STEP_CLASS, ids=lambda kind: kind.__name__)
def test_row_of_harms_has_a_sign_in_the_metrics_or_says_why_there_is_none(
    kind: type[AttributeStep],
) -> None:
    harm = HARM_BY_STEP_CLASS[kind]
    assert (harm.sign is not None) != bool(harm.why_no_sign)


@pytest.mark.parametrize("kind", HARM_BY_STEP_CLASS, ids=lambda kind: kind.__name__)
def test_row_of_harms_offers_mendq_rollback_only_for_steps_that_mendq_rollback_can_undo(
    kind: type[AttributeStep],
) -> None:
    expected = ROLLBACK_INTRODUCTION
    if kind.is_permanent or kind.attribute in MANUAL_ATTRIBUTES:
        expected = (
            MANUAL_UNDO_INTRODUCTION if kind is not RedriveMessages else STOP_REDRIVE_INTRODUCTION
        )
    assert HARM_BY_STEP_CLASS[kind].rollback_introduction == expected


def test_no_step_lists_the_symptom_it_fixes_as_its_own_harm() -> None:
    """Both visibility timeout steps write one attribute: each causes what the other fixes."""
    fixes = {
        (entry.name, kind)
        for entry in SYMPTOM_BY_NAME.values()
        for kind in entry.steps
        if kind is not SetVisibilityTimeout
    }
    assert not [
        (name, kind)
        for name, kind in fixes
        if name in HARM_BY_STEP_CLASS[kind].symptoms_on_changed_queue
    ]
    assert (
        "visibility_timeout_too_short"
        not in HARM_BY_STEP_CLASS[SetVisibilityTimeout].symptoms_on_changed_queue
    )
    assert (
        "visibility_timeout_too_long"
        not in HARM_BY_STEP_CLASS[LowerVisibilityTimeout].symptoms_on_changed_queue
    )


PLACES = ("symptoms_on_changed_queue", "symptoms_at_dlq", "symptoms_at_redrive_target")
HARM_CASES = [
    (kind, place, symptom)
    for kind, harm in HARM_BY_STEP_CLASS.items()
    for place in PLACES
    for symptom in sorted(getattr(harm, place))
]


def make_harmed_queue(kind: type[AttributeStep], place: str) -> tuple[Case, Facts]:
    """Make a case with that step, and the facts of the queue that its harm shows on."""
    step = EXAMPLES[kind]
    fixed = [entry.name for entry in SYMPTOM_BY_NAME.values() if kind in entry.steps]
    symptom = fixed[0] if fixed else "visibility_timeout_too_long"
    written = (
        {step.attribute: str(step.after)}
        if step.has_value_in_queue and not step.is_permanent
        else {}
    )
    if place == "symptoms_at_dlq":
        sources = (source(**written),)
        return make_case_with_steps(step, symptom=symptom), queue(
            queue_arn=DLQ_ARN, dlq_sources=sources
        )
    if place == "symptoms_at_redrive_target":
        case = make_case_with_steps(step, symptom=symptom, queue_arn=DLQ_ARN)
        policy = RedrivePolicy(DLQ_ARN, 5).text
        return case, queue(queue_arn=STANDARD_ARN, RedrivePolicy=policy)
    return make_case_with_steps(step, symptom=symptom), replace_values(
        queue(queue_arn=STANDARD_ARN), **written
    )


def find_change_before(
    symptom: str, facts: Facts, *history: Case, after: timedelta = FIVE_MINUTES
) -> OwnChange | None:
    return find_causing_change(symptom, facts, [history], EXAMPLE_TIME + after, TIMING)


@pytest.mark.parametrize(
    ("kind", "place", "symptom"),
    HARM_CASES,
    ids=[f"{k.__name__} {p} {s}" for k, p, s in HARM_CASES],
)
def test_fault_that_a_step_can_cause_names_the_case_of_that_step_and_its_rollback_command(
    kind: type[AttributeStep], place: str, symptom: str
) -> None:
    case, facts = make_harmed_queue(kind, place)
    if case.symptom == symptom and case.queue_arn == facts.queue_arn:
        case = replace(case, symptom="another")
    change = find_change_before(symptom, facts, case)
    assert change is not None
    sentence = describe_own_change(change, EXAMPLE_TIME + FIVE_MINUTES)
    assert sentence.startswith("Mendq ")
    assert f"5 min ago (case {case.case_id}): " in sentence
    assert sentence.endswith(f": mendq rollback {case.case_id} --region us-east-1")
    assert "{" not in sentence


@pytest.mark.parametrize("kind", HARM_BY_STEP_CLASS, ids=lambda kind: kind.__name__)
def test_fault_that_a_step_cannot_cause_does_not_blame_that_step(kind: type[AttributeStep]) -> None:
    for place in PLACES:
        case, facts = make_harmed_queue(kind, place)
        for symptom in SYMPTOM_BY_NAME.keys() - HARM_BY_STEP_CLASS[kind].symptoms:
            assert find_change_before(symptom, facts, case) is None, symptom


ATTACHED = make_case_with_steps(CREATE, ATTACH)
ARRIVING = "dlq_messages_arriving"


def make_dlq_facts(*sources: QueueFacts, **over: Any) -> Facts:
    """Make the facts of a DLQ with these source queues."""
    return queue(queue_arn=DLQ_ARN, dlq_sources=sources or (source(),), **over)


def test_dlq_attached_five_minutes_ago_is_described_in_one_sentence_with_its_rollback() -> None:
    change = find_change_before(ARRIVING, make_dlq_facts(), ATTACHED)
    assert change is not None
    assert describe_own_change(change, EXAMPLE_TIME + FIVE_MINUTES) == (
        f"Mendq attached the DLQ orders-dlq to orders 5 min ago (case {ATTACHED.case_id}): "
        "messages that had been received 5 times move there. To take the change back: "
        f"mendq rollback {ATTACHED.case_id} --region us-east-1"
    )


def test_approved_change_is_blamed_for_a_fault_only_after_it_was_written() -> None:
    proposed = replace(ATTACHED, state=State.PROPOSED)
    approved = proposed.move_to(State.APPROVED, "a person approved the plan", EXAMPLE_TIME)
    applied = approved.move_to(State.APPLIED, "made up", EXAMPLE_TIME, actor="attach_dlq")
    assert find_change_before(ARRIVING, make_dlq_facts(), proposed, approved, applied) is not None
    assert find_change_before(ARRIVING, make_dlq_facts(), proposed, approved) is None, (
        "nothing was written yet"
    )


WATCHING = ATTACHED.move_to(State.VERIFIED, "", EXAMPLE_TIME).move_to(
    State.WATCHING, "", EXAMPLE_TIME
)
CLOSED = WATCHING.move_to(State.CLOSED, "it stayed away", EXAMPLE_TIME)


@pytest.mark.parametrize(
    "history",
    [
        pytest.param((ATTACHED,), id="applied"),
        pytest.param((ATTACHED, WATCHING), id="watching"),
        pytest.param((ATTACHED, WATCHING, CLOSED), id="closed"),
    ],
)
def test_change_is_blamed_for_a_fault_only_until_the_watch_time_after_its_write_ends(
    history: tuple[Case, ...],
) -> None:
    watch_time = timedelta(hours=TIMING.watch_hours)
    facts = make_dlq_facts()
    assert find_change_before(ARRIVING, facts, *history, after=watch_time) is not None
    beyond = watch_time + timedelta(seconds=1)
    assert find_change_before(ARRIVING, facts, *history, after=beyond) is None


def test_change_is_not_blamed_for_a_fault_from_before_its_write() -> None:
    earlier = -timedelta(seconds=1)
    assert find_change_before(ARRIVING, make_dlq_facts(), ATTACHED, after=earlier) is None


@pytest.mark.parametrize("state", [State.ROLLED_BACK, State.OVERRIDDEN])
def test_rolled_back_or_overridden_change_is_not_named_as_the_cause(state: State) -> None:
    ended = ATTACHED.move_to(state, "made up", EXAMPLE_TIME)
    assert find_change_before(ARRIVING, make_dlq_facts(), ATTACHED, ended) is None
    closed = ended.move_to(State.CLOSED, "it stayed away", EXAMPLE_TIME)
    assert find_change_before(ARRIVING, make_dlq_facts(), ATTACHED, ended, closed) is None


LATER = str(EXAMPLE_TIME.timestamp() + 60)


@pytest.mark.parametrize(
    "facts",
    [
        pytest.param(
            make_dlq_facts(source(RedrivePolicy=RedrivePolicy(DLQ_ARN, 50).text)),
            id="a person set another maxReceiveCount",
        ),
        pytest.param(make_dlq_facts(source(CreatedTimestamp=LATER)), id="the source was recreated"),
        pytest.param(make_dlq_facts(CreatedTimestamp=LATER), id="the DLQ was recreated"),
    ],
)
def test_change_whose_value_or_queue_was_replaced_is_not_named_as_the_cause(facts: Facts) -> None:
    assert find_change_before(ARRIVING, facts, ATTACHED) is None


def test_attached_dlq_is_blamed_for_arriving_messages_only_if_its_queue_is_a_source() -> None:
    changed_source = source()
    other_source = QueueFacts(OTHER_ARN, changed_source.attributes)
    assert find_change_before(ARRIVING, make_dlq_facts(other_source), ATTACHED) is None
    both = make_dlq_facts(changed_source, other_source)
    assert find_change_before(ARRIVING, both, ATTACHED) is not None


def test_newest_of_several_changes_is_named_as_the_cause() -> None:
    later = EXAMPLE_TIME + timedelta(minutes=2)
    lower = LowerVisibilityTimeout(14_400, 180)
    lowered = replace(make_case_with_steps(lower, symptom="visibility_timeout_too_long"), at=later)
    facts = make_dlq_facts(source(VisibilityTimeout="180"))
    change = find_causing_change(
        ARRIVING, facts, [[lowered], [ATTACHED]], EXAMPLE_TIME + FIVE_MINUTES, TIMING
    )
    assert change is not None
    assert change.case_id == lowered.case_id


def test_causing_change_is_marked_as_reported_if_its_case_escalated_its_own_harm() -> None:
    told = ATTACHED.move_to(State.ESCALATED, "it may do harm", EXAMPLE_TIME, code="own_change")
    change = find_change_before(ARRIVING, make_dlq_facts(), ATTACHED, told)
    assert change is not None
    assert change.is_reported


SIGN_CASES = [
    (kind, title, counts, is_shown)
    for kind, harm in HARM_BY_STEP_CLASS.items()
    if harm.sign is not None
    for title, counts, is_shown in SIGN_EXAMPLES[harm.sign]
]


@pytest.mark.parametrize(
    ("kind", "title", "counts", "is_shown"),
    SIGN_CASES,
    ids=[f"{kind.__name__}: {title}" for kind, title, _, _ in SIGN_CASES],
)
def test_measured_harm_is_described_only_if_the_counts_show_the_steps_sign_of_harm(
    kind: type[AttributeStep], title: str, counts: dict[str, Any], is_shown: bool
) -> None:
    case = make_case_with_steps(EXAMPLES[kind])
    since = measurement(**counts)
    is_at_dlq = HARM_BY_STEP_CLASS[kind].sign is HarmSign.DLQ_ARRIVALS
    signs = HarmMeasurements(dlq=since) if is_at_dlq else HarmMeasurements(queue=since)
    assert find_harm_sign(case) is HARM_BY_STEP_CLASS[kind].sign
    assert bool(describe_measured_harm(case, signs)) is is_shown, title


@pytest.mark.parametrize("kind", HARM_BY_STEP_CLASS, ids=lambda kind: kind.__name__)
def test_measured_harm_is_empty_without_measurements(kind: type[AttributeStep]) -> None:
    assert describe_measured_harm(make_case_with_steps(EXAMPLES[kind]), HarmMeasurements()) == ""


def test_messages_in_a_dlq_that_mendq_created_count_as_arrivals_without_cloudwatch() -> None:
    harm = describe_measured_harm(ATTACHED, HarmMeasurements(dlq_message_count=60))
    assert harm == "60 messages moved to the DLQ orders-dlq"


def test_messages_in_a_dlq_that_existed_before_are_no_harm_without_cloudwatch() -> None:
    attached_only = make_case_with_steps(ATTACH)
    assert describe_measured_harm(attached_only, HarmMeasurements(dlq_message_count=60)) == ""

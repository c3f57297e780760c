"""The table of harms: every step has a row, every row is tried, and near misses name nothing."""

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
MAKE, ATTACH = CreateDlq("", DLQ_ARN), AttachDlq("", RedrivePolicy(DLQ_ARN, 5).text)
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
    CreateDlq: MAKE,
    AttachDlq: ATTACH,
    AllowRedriveFrom: AllowRedriveFrom(
        RedriveAllowPolicy("byQueue", (OTHER_ARN,)).text,
        RedriveAllowPolicy("byQueue", (STANDARD_ARN, OTHER_ARN)).text,
    ),
    RestorePolicy: RestorePolicy("", '{"Statement": []}'),
    RedriveMessages: RedriveMessages("held", STANDARD_ARN),
}
# What each step's sign looks like, and what only resembles it.
LONGER, SHOWN = {"in_flight_before": 10, "oldest_age_seconds_before": 20}, "shown"
SHOWS: dict[HarmSign, list[tuple[str, dict[str, Any], bool]]] = {
    HarmSign.DLQ_ARRIVALS: [
        ("three arrived", {"backlog_now": 3, "visible_now": 3}, True),
        ("one arrived", {"backlog_now": 1, "visible_now": 1}, True),
        ("it was empty, and nothing came", {}, False),
        ("the only ones were there before", {"backlog_before": 3, "backlog_now": 3}, False),
        ("somebody sends straight to it", {"backlog_now": 3, "sent": 3}, False),
        ("counters that are not exact", {"backlog_now": 22, "sent": 3}, False),
    ],
    HarmSign.HELD_LONGER: [
        ("half the quota", {"in_flight_now": 60_000}, True),
        ("more, and older", {**LONGER, "in_flight_now": 900, "oldest_age_seconds_now": 900}, True),
        ("just below half the quota", {"in_flight_now": 59_999}, False),
        ("more, and as old", {**LONGER, "in_flight_now": 900, "oldest_age_seconds_now": 40}, False),
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
            {**LONGER, "in_flight_now": 12, "oldest_age_seconds_now": 900},
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


def case_with(
    *steps: AttributeStep, symptom: str = "dlq_missing", queue_arn: str = STANDARD_ARN
) -> Case:
    """A case that has just written these steps."""
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
def test_a_long_timeout_hides_no_message_that_grows_older(
    age_seconds: int, *, is_shown: bool
) -> None:
    """The oldest message need not be older than twelve hours before a person hears of it."""
    case = case_with(SetVisibilityTimeout(30, 43_200))
    seen = measurement(in_flight_now=40, oldest_age_seconds_now=age_seconds)
    assert bool(describe_measured_harm(case, HarmMeasurements(queue=seen))) is is_shown


def document_of(kind: type[AttributeStep]) -> dict[str, str]:
    return EXAMPLES[kind].document()


@pytest.mark.parametrize(
    "kind", [*STEP_CLASSES, LowerVisibilityTimeout], ids=lambda kind: kind.__name__
)
def test_every_step_has_a_row_of_its_own(kind: type[AttributeStep]) -> None:
    assert kind in HARM_BY_STEP_CLASS, (
        f"say in mendq/model/harms.py what harm {kind.__name__} can do"
    )
    assert find_harm(document_of(kind)) is HARM_BY_STEP_CLASS[kind]


@pytest.mark.parametrize("kind", HARM_BY_STEP_CLASS, ids=lambda kind: kind.__name__)
def test_a_row_without_symptom_or_sign_says_why(kind: type[AttributeStep]) -> None:
    harm = HARM_BY_STEP_CLASS[kind]
    assert bool(harm.symptoms) != bool(harm.why_no_symptom)
    assert (harm.sign is not None) != bool(harm.why_no_sign)
    assert harm.symptoms <= SYMPTOM_BY_NAME.keys()


@pytest.mark.parametrize("kind", HARM_BY_STEP_CLASS, ids=lambda kind: kind.__name__)
def test_a_row_offers_what_rollback_does(kind: type[AttributeStep]) -> None:
    expected = ROLLBACK_INTRODUCTION
    if kind.is_permanent or kind.attribute in MANUAL_ATTRIBUTES:
        expected = (
            MANUAL_UNDO_INTRODUCTION if kind is not RedriveMessages else STOP_REDRIVE_INTRODUCTION
        )
    assert HARM_BY_STEP_CLASS[kind].rollback_introduction == expected


def test_no_step_causes_on_its_queue_what_it_fixes() -> None:
    """Both visibility timeout steps write one attribute: each causes what the other fixes."""
    fixes = {
        (entry.name, kind)
        for entry in SYMPTOM_BY_NAME.values()
        for kind in entry.steps
        if kind is not SetVisibilityTimeout
    }
    assert not [(name, kind) for name, kind in fixes if name in HARM_BY_STEP_CLASS[kind].here]
    assert "visibility_timeout_too_short" not in HARM_BY_STEP_CLASS[SetVisibilityTimeout].here
    assert "visibility_timeout_too_long" not in HARM_BY_STEP_CLASS[LowerVisibilityTimeout].here


CAUSED = [
    (kind, place, symptom)
    for kind, harm in HARM_BY_STEP_CLASS.items()
    for place in ("here", "symptoms_at_dlq", "symptoms_at_redrive_target")
    for symptom in sorted(getattr(harm, place))
]


def faulty(kind: type[AttributeStep], place: str) -> tuple[Case, Facts]:
    """A case with that step and the queue that its harm shows on, as both stand then."""
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
        return case_with(step, symptom=symptom), queue(queue_arn=DLQ_ARN, dlq_sources=sources)
    if place == "symptoms_at_redrive_target":
        named = RedrivePolicy(DLQ_ARN, 5).text
        at = case_with(step, symptom=symptom, queue_arn=DLQ_ARN)
        return at, queue(queue_arn=STANDARD_ARN, RedrivePolicy=named)
    return case_with(step, symptom=symptom), replace_values(
        queue(queue_arn=STANDARD_ARN), **written
    )


def named(
    symptom: str, facts: Facts, *history: Case, after: timedelta = FIVE_MINUTES
) -> OwnChange | None:
    return find_causing_change(symptom, facts, [history], EXAMPLE_TIME + after, TIMING)


@pytest.mark.parametrize(
    ("kind", "place", "symptom"), CAUSED, ids=[f"{k.__name__} {p} {s}" for k, p, s in CAUSED]
)
def test_a_fault_that_a_step_can_cause_names_its_case_and_rollback(
    kind: type[AttributeStep], place: str, symptom: str
) -> None:
    case, facts = faulty(kind, place)
    if case.symptom == symptom and case.queue_arn == facts.queue_arn:
        case = replace(case, symptom="another")
    change = named(symptom, facts, case)
    assert change is not None
    sentence = describe_own_change(change, EXAMPLE_TIME + FIVE_MINUTES)
    assert sentence.startswith("Mendq ")
    assert f"5 min ago (case {case.case_id}): " in sentence
    assert sentence.endswith(f": mendq rollback {case.case_id} --region us-east-1")
    assert "{" not in sentence


@pytest.mark.parametrize("kind", HARM_BY_STEP_CLASS, ids=lambda kind: kind.__name__)
def test_a_fault_that_a_step_cannot_cause_names_nothing(kind: type[AttributeStep]) -> None:
    for place in ("here", "symptoms_at_dlq", "symptoms_at_redrive_target"):
        case, facts = faulty(kind, place)
        for symptom in SYMPTOM_BY_NAME.keys() - HARM_BY_STEP_CLASS[kind].symptoms:
            assert named(symptom, facts, case) is None, symptom


ATTACHED = case_with(MAKE, ATTACH)
ARRIVING = "dlq_messages_arriving"


def taking(*sources: QueueFacts, **over: Any) -> Facts:
    """Facts of a DLQ with these source queues."""
    return queue(queue_arn=DLQ_ARN, dlq_sources=sources or (source(),), **over)


def test_a_dlq_that_was_attached_five_minutes_ago_is_named_in_one_sentence() -> None:
    change = named(ARRIVING, taking(), ATTACHED)
    assert change is not None
    assert describe_own_change(change, EXAMPLE_TIME + FIVE_MINUTES) == (
        f"Mendq attached the DLQ orders-dlq to orders 5 min ago (case {ATTACHED.case_id}): "
        "messages that had been received 5 times move there. To take the change back: "
        f"mendq rollback {ATTACHED.case_id} --region us-east-1"
    )


def test_a_change_that_a_person_approved_is_named_all_the_same() -> None:
    proposed = replace(ATTACHED, state=State.PROPOSED)
    approved = proposed.move_to(State.APPROVED, "a person approved the plan", EXAMPLE_TIME)
    applied = approved.move_to(State.APPLIED, "made up", EXAMPLE_TIME, actor="attach_dlq")
    assert named(ARRIVING, taking(), proposed, approved, applied) is not None
    assert named(ARRIVING, taking(), proposed, approved) is None, "nothing was written yet"


def test_a_change_is_named_for_the_watch_time_after_its_write() -> None:
    watching = ATTACHED.move_to(State.VERIFIED, "", EXAMPLE_TIME).move_to(
        State.WATCHING, "", EXAMPLE_TIME
    )
    closed = watching.move_to(State.CLOSED, "it stayed away", EXAMPLE_TIME)
    watch_time = timedelta(hours=TIMING.watch_hours)
    beyond = watch_time + timedelta(seconds=1)
    for history in ((ATTACHED,), (ATTACHED, watching), (ATTACHED, watching, closed)):
        assert named(ARRIVING, taking(), *history, after=watch_time) is not None
        assert named(ARRIVING, taking(), *history, after=beyond) is None
    assert named(ARRIVING, taking(), ATTACHED, after=-timedelta(seconds=1)) is None, "it is later"


@pytest.mark.parametrize("state", [State.ROLLED_BACK, State.OVERRIDDEN])
def test_a_change_that_was_taken_back_or_overruled_is_not_named(state: State) -> None:
    ended = ATTACHED.move_to(state, "made up", EXAMPLE_TIME)
    assert named(ARRIVING, taking(), ATTACHED, ended) is None
    closed = ended.move_to(State.CLOSED, "it stayed away", EXAMPLE_TIME)
    assert named(ARRIVING, taking(), ATTACHED, ended, closed) is None


def test_a_change_that_does_not_stand_any_more_is_not_named() -> None:
    """A person has set another maxReceiveCount, or made the queue anew, before Mendq noticed."""
    theirs = source(RedrivePolicy=RedrivePolicy(DLQ_ARN, 50).text)
    assert named(ARRIVING, taking(theirs), ATTACHED) is None
    anew = source(CreatedTimestamp=str(EXAMPLE_TIME.timestamp() + 60))
    assert named(ARRIVING, taking(anew), ATTACHED) is None
    made_anew = taking(CreatedTimestamp=str(EXAMPLE_TIME.timestamp() + 60))
    assert named(ARRIVING, made_anew, ATTACHED) is None


def test_a_case_about_a_queue_that_is_no_source_is_not_named() -> None:
    other = source()
    strange = QueueFacts(OTHER_ARN, other.attributes)
    assert named(ARRIVING, taking(strange), ATTACHED) is None
    assert named(ARRIVING, taking(other, strange), ATTACHED) is not None, "one of two sources"


def test_the_newest_of_several_changes_is_named() -> None:
    later = EXAMPLE_TIME + timedelta(minutes=2)
    lower = LowerVisibilityTimeout(14_400, 180)
    lowered = replace(case_with(lower, symptom="visibility_timeout_too_long"), at=later)
    facts = taking(source(VisibilityTimeout="180"))
    change = find_causing_change(
        ARRIVING, facts, [[lowered], [ATTACHED]], EXAMPLE_TIME + FIVE_MINUTES, TIMING
    )
    assert change is not None
    assert change.case_id == lowered.case_id


def test_a_case_that_reported_its_own_harm_says_so() -> None:
    told = ATTACHED.move_to(State.ESCALATED, "it may do harm", EXAMPLE_TIME, code="own_change")
    change = named(ARRIVING, taking(), ATTACHED, told)
    assert change is not None
    assert change.is_reported


SIGNS = [
    (kind, title, counts, shows)
    for kind, harm in HARM_BY_STEP_CLASS.items()
    if harm.sign is not None
    for title, counts, shows in SHOWS[harm.sign]
]


@pytest.mark.parametrize(
    ("kind", "title", "counts", "shows"), SIGNS, ids=[f"{k.__name__}: {t}" for k, t, *_ in SIGNS]
)
def test_verification_sees_the_sign_of_a_step(
    kind: type[AttributeStep], title: str, counts: dict[str, Any], shows: bool
) -> None:
    case, since = case_with(EXAMPLES[kind]), measurement(**counts)
    is_at_dlq = HARM_BY_STEP_CLASS[kind].sign is HarmSign.DLQ_ARRIVALS
    signs = HarmMeasurements(dlq=since) if is_at_dlq else HarmMeasurements(queue=since)
    assert find_harm_sign(case) is HARM_BY_STEP_CLASS[kind].sign
    assert bool(describe_measured_harm(case, signs)) is shows, title


@pytest.mark.parametrize("kind", HARM_BY_STEP_CLASS, ids=lambda kind: kind.__name__)
def test_what_was_not_measured_shows_nothing(kind: type[AttributeStep]) -> None:
    assert describe_measured_harm(case_with(EXAMPLES[kind]), HarmMeasurements()) == ""


def test_messages_in_a_dlq_that_was_made_are_arrivals_before_cloudwatch_counts_them() -> None:
    assert (
        describe_measured_harm(ATTACHED, HarmMeasurements(dlq_message_count=60))
        == "60 messages moved to the DLQ orders-dlq"
    )
    assert (
        describe_measured_harm(case_with(ATTACH), HarmMeasurements(dlq_message_count=60)) == ""
    ), "they may be from before"

"""DLQ messages go back only where what killed them is fixed, and as far as a person let it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mendq.catalogue import CATALOGUE
from mendq.catalogue.dlq.dlq_messages_waiting import DLQ_MESSAGES_WAITING as ENTRY
from mendq.catalogue.dlq.redrive_causes import (
    CAUSE_SYMPTOMS,
    REDRIVE_TAG,
    describe_needed_grants,
    find_cause_cases,
    find_move_objection,
    is_case_unresolved,
    is_redrive_off,
)
from mendq.catalogue.dlq.redrive_plan import (
    describe_deletes,
    estimate_time_left,
    find_causes,
    find_first_redrive_objection,
    is_message_age_known,
)
from mendq.catalogue.examples import (
    CLOSED_KMS_CASE,
    DAY_SECONDS,
    DLQ_ARN,
    EXAMPLE_TIME,
    LAMBDA_FUNCTION,
    ONE_NETWORK_POLICY,
    SOLE_SOURCE,
    STANDARD_ARN,
    WATCHED_VISIBILITY_CASE,
    case,
    dlq,
    dlq_with_messages,
    replace_values,
    source,
    sources,
)
from mendq.model.case import Case
from mendq.model.consent import Consent
from mendq.model.facts import Facts, QueueFacts
from mendq.model.metrics import RECENT_DELETES_PERIOD, Window
from mendq.model.metrics import summarize_series as measured_in
from mendq.model.mode import Mode
from mendq.model.plan import Ignore, Plan, Refuse
from mendq.model.state import FINAL_STATES, State
from mendq.model.steps import RedriveMessages, SetMessageRetention
from tests.catalogue.asking import (
    answer_to,
    detect_fault,
    expect_plan,
    expect_refusal,
    read_test_data,
)

TOO_SHORT = "visibility_timeout_too_short"
ADA = "arn:aws:iam::123456789012:user/ada"
BEFORE = EXAMPLE_TIME - timedelta(hours=1)
CLOSED = case("consumer_failing", State.ESCALATED, State.CLOSED, reason="rolled the release back")


def kind(*states: State, **over: Any) -> str:
    """What becomes of the cause of messages that came an hour before its case."""
    found = find_cause_cases([replace(case(TOO_SHORT, *states), **over)], BEFORE)
    (name,) = [
        each for each in ("proven", "unproven", "unfixed") if getattr(found, f"{each}_cases")
    ]
    return name


@pytest.mark.parametrize(("named", "over", "became"), read_test_data("tables")["causes"])
def test_what_has_become_of_a_cause(named: list[str], over: dict[str, Any], became: str) -> None:
    states = [State(each) for each in named]
    assert kind(*states, **over) == became
    open_states = set(State) - FINAL_STATES - {State.VERIFIED, State.WATCHING}
    assert is_case_unresolved(case(TOO_SHORT, *states)) == (states[-1] in open_states)


def test_what_was_over_before_the_first_message_came_did_not_kill_it() -> None:
    over = [CLOSED_KMS_CASE, case("kms_denied", State.DECLINED)]
    assert find_cause_cases(over, EXAMPLE_TIME).fixed_cases == (CLOSED_KMS_CASE,)
    assert find_cause_cases(over, EXAMPLE_TIME + timedelta(seconds=1)) == find_cause_cases(
        [], EXAMPLE_TIME
    )
    still_open = case("consumer_failing", State.ESCALATED)
    assert find_cause_cases([still_open], EXAMPLE_TIME + timedelta(days=13)).unfixed_cases == (
        still_open,
    )
    others = [case("message_too_long", State.WATCHING), case("empty_receives", State.PROPOSED)]
    assert find_cause_cases(others, BEFORE) == find_cause_cases([], BEFORE)


@pytest.mark.parametrize("cause", sorted(CAUSE_SYMPTOMS))
def test_every_cause_that_is_fixed_lets_messages_go_back(cause: str) -> None:
    assert expect_plan(ENTRY, dlq_with_messages(case(cause, State.WATCHING)))


@pytest.mark.parametrize(("over", "is_explained"), read_test_data("tables")["since when"])
def test_since_when_messages_wait_decides_what_explains_them(
    over: dict[str, Any], *, is_explained: bool
) -> None:
    over = dict(over)
    fixed_at = EXAMPLE_TIME - timedelta(hours=over.pop("fixed_hours_ago", 0))
    if after := over.pop("until_after_seconds", 0):
        over["until"] = EXAMPLE_TIME + timedelta(seconds=after)
    facts = dlq_with_messages(replace(WATCHED_VISIBILITY_CASE, at=fixed_at), **over)
    assert bool(find_causes(facts).fixed_cases) is is_explained
    if not is_message_age_known(facts):
        assert estimate_time_left(facts).lower_bound == timedelta(0), "one may expire at once"


def fifo(**over: Any) -> Facts:
    arn = f"{STANDARD_ARN}.fifo"
    return dlq_with_messages(
        case(TOO_SHORT, State.WATCHING, queue_arn=arn),
        queue_arn=f"{DLQ_ARN}.fifo",
        dlq_sources=(QueueFacts(arn, source().attributes),),
        sole_source=replace(SOLE_SOURCE, queue_arn=arn),
        **over,
    )


def deleting(per_second: float, waiting: int, days: int = 14, **source_over: str) -> Facts:
    """Messages that are kept so long, of a source where so many are deleted."""
    return dlq_with_messages(
        MessageRetentionPeriod=days * DAY_SECONDS,
        ApproximateNumberOfMessages=waiting,
        dlq_sources=(source(**source_over),),
        sole_source=replace(SOLE_SOURCE, deletes_per_second=per_second),
    )


@pytest.mark.parametrize(
    ("facts", "at_most", "says"),
    [
        (dlq_with_messages(), Mode.HEAL, "after each soak of 6 min;"),
        (dlq_with_messages(CLOSED), Mode.PROPOSE, "Nothing proves consumer_failing fixed"),
        (
            dlq_with_messages(WATCHED_VISIBILITY_CASE, CLOSED),
            Mode.PROPOSE,
            "a person has to see this first",
        ),
        (dlq_with_messages(sole_source=replace(SOLE_SOURCE, mode=Mode.PROPOSE)), Mode.PROPOSE, ""),
        (dlq_with_messages(sole_source=replace(SOLE_SOURCE, mode=Mode.OBSERVE)), Mode.OBSERVE, ""),
        (
            dlq_with_messages(sole_source=replace(SOLE_SOURCE, soak_factor=10)),
            Mode.HEAL,
            "soak of 50 min;",
        ),
        (fifo(), Mode.PROPOSE, "Order will mix: 200 go in behind and among others, of which 20.0"),
        (dlq_with_messages(measurement=None), Mode.PROPOSE, "since when"),
        (dlq_with_messages(oldest_age_seconds_now=0), Mode.PROPOSE, "since when"),
        (deleting(0, 200), Mode.HEAL, "waits until something is"),
        (
            dlq_with_messages(found="200 wait"),
            Mode.HEAL,
            "200 wait. They go back to orders, 5 first",
        ),
        (
            dlq_with_messages(dlq_sources=(source(KmsMasterKeyId="alias/orders"),)),
            Mode.HEAL,
            "kms:Decrypt and kms:GenerateDataKey on alias/orders",
        ),
    ],
)
def test_how_far_it_goes_and_what_is_said(facts: Facts, at_most: Mode, says: str) -> None:
    answer = expect_plan(ENTRY, facts)
    assert answer.at_most is at_most
    assert says in answer.reason
    assert not answer.reason.endswith(".")
    assert len(answer.reason) <= 800


@pytest.mark.parametrize(
    ("facts", "raised"),
    [
        (deleting(20, 200, 4), True),
        (deleting(20, 200, 7), True),
        (deleting(20, 200, 13), False),
        (deleting(20, 200, 14, MessageRetentionPeriod=str(14 * DAY_SECONDS)), False),
        (
            dlq_with_messages(
                CLOSED_KMS_CASE, measurement=None, MessageRetentionPeriod=4 * DAY_SECONDS
            ),
            True,
        ),
        # Their time began anew when they were moved.
        (fifo(MessageRetentionPeriod=4 * DAY_SECONDS), False),
        # 6,000 at one a minute, which is the least, take more than four days.
        (deleting(0.005, 6_000, 12), True),
        (deleting(20, 6_000, 12), False),
        (deleting(20, 200, 9, VisibilityTimeout="1800"), False),
    ],
)
def test_the_retention_is_raised_where_messages_could_expire(facts: Facts, *, raised: bool) -> None:
    steps = expect_plan(ENTRY, facts).steps[1:]
    longest = SetMessageRetention(facts.retention_seconds, 14 * DAY_SECONDS)
    assert steps == ((longest,) if raised else ())


@pytest.mark.parametrize("per_second", [0.005, 0.1])
def test_what_could_not_end_before_they_expire_is_refused(per_second: float) -> None:
    refusal = expect_refusal(ENTRY, deleting(per_second, 30_000))
    assert isinstance(refusal, Refuse)
    assert refusal.code == "redrive_too_slow"
    assert "30,000 messages would take 23 d 6 h at 0.02 a second" in refusal.reason
    assert all(expect_plan(ENTRY, deleting(rate, 30_000)) for rate in (10, 0))


@pytest.mark.parametrize("entry", CATALOGUE, ids=lambda entry: entry.name)
@pytest.mark.parametrize("state", [State.PROPOSED, State.APPLIED, State.ESCALATED])
def test_any_open_case_of_the_source_holds_it_up(entry: Any, state: State) -> None:
    against = find_first_redrive_objection(
        dlq_with_messages(WATCHED_VISIBILITY_CASE, case(entry.name, state))
    )
    assert against is not None
    assert against.code == "cause_first"


def test_a_network_s_policy_of_the_dlq_is_refused_too() -> None:
    text = ONE_NETWORK_POLICY.replace(STANDARD_ARN, "*").replace("sqs:SendMessage", "sqs:*")
    against = find_first_redrive_objection(dlq_with_messages(Policy=text))
    assert against is not None
    assert '"ArnNotEquals": {"aws:PrincipalArn": "ROLE_ARN"}' in against.reason
    assert find_first_redrive_objection(dlq_with_messages()) is None


def taken(*minutes_ago: int) -> str | None:
    """Who takes messages where so many minutes ago some were deleted."""
    always = [(EXAMPLE_TIME - timedelta(minutes=each), 200.0) for each in range(1, 360)]
    deleted = [(EXAMPLE_TIME - timedelta(minutes=each), 5.0) for each in minutes_ago]
    window = Window(EXAMPLE_TIME - timedelta(hours=6), EXAMPLE_TIME)
    series = {"visible": always, "received": always, "deleted": deleted}
    return describe_deletes(dlq(measurement=measured_in(series, window)))


def test_who_deletes_lately_or_hour_after_hour_is_at_work_on_them() -> None:
    quiet = int(RECENT_DELETES_PERIOD.total_seconds()) // 60 + 1
    assert [taken(), taken(quiet), taken(200, quiet), taken(30, 45, 55)] == [None] * 4
    assert "5 messages were deleted in the last 15 minutes" in str(taken(quiet - 2))
    assert "15 messages were deleted in 3 different hours" in str(taken(30, 90, 150))


@pytest.mark.parametrize(
    ("word", "is_off"),
    [("on", False), *((word, True) for word in ("OFF", "ON", " on", "false", "", "0", "onn"))],
)
def test_what_is_not_on_is_off(word: str, *, is_off: bool) -> None:
    assert is_redrive_off({REDRIVE_TAG: word}) is is_off


@pytest.mark.parametrize(("tags", "name", "consent", "said"), read_test_data("tables")["consents"])
def test_where_messages_may_be_moved(
    tags: dict[str, str], name: str, consent: Any, said: str | None
) -> None:
    account, raised, queues = consent
    given = Consent([*Mode][account], [*Mode][raised], tuple(queues))
    why = find_move_objection(Facts(f"{STANDARD_ARN}-{name}", {}, tags), given)
    assert (said in why) if said and why else why is said


@pytest.mark.parametrize(("of_dlq", "of_source", "needed"), read_test_data("tables")["keys needed"])
def test_with_which_keys(of_dlq: str, of_source: str, needed: str) -> None:
    arns = {DLQ_ARN: of_dlq, STANDARD_ARN: of_source}
    queues = (QueueFacts(arn, {"KmsMasterKeyId": key}) for arn, key in arns.items())
    said = describe_needed_grants("Mendq", *queues).partition(": in the key's policy")[0]
    assert said == (f"Mendq needs {needed}" if needed else "")


FIXED = st.sampled_from(
    [
        [State.APPLIED, State.WATCHING],
        [State.WATCHING, State.CLOSED],
        [State.ESCALATED, State.CLOSED],
    ]
)
STATES = FIXED | FIXED | st.lists(st.sampled_from(list(State)), min_size=1, max_size=3)
NAMES = st.sampled_from(sorted(CAUSE_SYMPTOMS)) | st.sampled_from(
    [entry.name for entry in CATALOGUE]
)
AGES = st.timedeltas(timedelta(0), timedelta(hours=1)) | st.timedeltas(
    timedelta(0), timedelta(days=20)
)
ODD = st.integers(0, 19).map(lambda number: number == 7)
TAGS = st.sampled_from([*[{}] * 6, *[{REDRIVE_TAG: "on"}] * 5, {REDRIVE_TAG: "off"}])
MOSTLY_TRUE = [*Mode, *Mode, *Mode, None]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    made = case(draw(NAMES), *draw(STATES))
    return replace(
        made, at=EXAMPLE_TIME - draw(AGES), actor=draw(st.sampled_from(["follow_up", ADA]))
    )


@st.composite
def anything(draw: st.DrawFn) -> Facts:
    """Mostly as it should be: else nothing would ever be planned."""
    facts = dlq_with_messages(
        tags=draw(TAGS),
        MessageRetentionPeriod=draw(st.sampled_from([60, 345_600, 1_209_600])),
        oldest_age_seconds_now=draw(st.sampled_from([0, 60, 7_200, 86_400, 900_000])),
        deleted=int(draw(ODD)),
        visible_before=draw(st.sampled_from([0, 200])),
        fewest_visible_messages=draw(st.sampled_from([0, 200])),
        sole_source=replace(SOLE_SOURCE, tags=draw(TAGS), mode=draw(st.sampled_from(MOSTLY_TRUE))),
        source_cases=tuple(draw(st.lists(cases(), max_size=3))),
    )
    second = QueueFacts(f"{STANDARD_ARN}-2", source().attributes)
    odd = {
        "measured": None,
        "sole_source": None,
        "dlq_sources": (source(), second),
        "lambda_consumers": (LAMBDA_FUNCTION,),
        "move_task_running": True,
        "open_symptoms": draw(st.frozensets(NAMES, max_size=1)),
    }
    return replace_values(facts, **{name: value for name, value in odd.items() if draw(ODD)})


@settings(max_examples=400)
@given(anything())
@example(dlq_with_messages(CLOSED_KMS_CASE, MessageRetentionPeriod=4 * DAY_SECONDS))
def test_what_is_planned_has_nothing_against_it(facts: Facts) -> None:
    found = detect_fault(ENTRY, facts)
    assert found is None or any(each.symptom in CAUSE_SYMPTOMS for each in facts.source_cases)
    answer = answer_to(ENTRY, facts)
    if not isinstance(answer, Plan):
        assert isinstance(answer, Ignore | Refuse)
        return
    proven, causes = (State.VERIFIED, State.WATCHING), facts.source_cases
    assert all(each.state in FINAL_STATES or each.state in proven for each in causes)
    of_messages = [each for each in causes if each.symptom in CAUSE_SYMPTOMS]
    assert any(each.state in (*proven, State.CLOSED) for each in of_messages)
    sole = facts.sole_source
    assert sole is not None
    assert len(facts.dlq_sources or ()) == 1
    assert {tags.get(REDRIVE_TAG, "on") for tags in (facts.tags, sole.tags)} == {"on"}
    assert not facts.lambda_consumers
    assert not facts.move_task_running
    first, *retained = expect_plan(ENTRY, facts).steps
    assert first == RedriveMessages("held", STANDARD_ARN)
    assert all(isinstance(step, SetMessageRetention) for step in retained)
    assert sole.mode is not None
    assert answer.at_most <= sole.mode
    if answer.at_most is Mode.HEAL:
        measured = facts.measurement
        assert measured is not None
        assert measured.now.oldest_age_seconds
        began_at = EXAMPLE_TIME - timedelta(seconds=measured.now.oldest_age_seconds)
        closed = [each for each in of_messages if each.state is State.CLOSED]
        of_then = [each for each in closed if each.at >= began_at]
        assert all((e.came_from, e.actor) == (State.WATCHING, "follow_up") for e in of_then)


def test_a_dlq_of_another_source_too_is_a_person_s_whoever_is_its_sole_managed_one() -> None:
    named_by = sources(SOLE_SOURCE.queue_arn, f"{SOLE_SOURCE.queue_arn}-2")
    assert expect_refusal(ENTRY, dlq_with_messages(dlq_sources=named_by)).code == "shared_dlq"

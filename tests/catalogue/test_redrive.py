"""Test the plan of a redrive: only after the cause is fixed, and only as far as people allow."""

from __future__ import annotations

import json
from collections.abc import Mapping
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
    REDRIVE_SOURCE,
    STANDARD_ARN,
    WATCHED_VISIBILITY_CASE,
    case,
    dlq,
    dlq_with_messages,
    replace_values,
    source,
)
from mendq.model.case import Case
from mendq.model.dlq import find_outsider_access_to_messages
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
from tests.model.builders import make_consent

TOO_SHORT = "visibility_timeout_too_short"
ADA = "arn:aws:iam::123456789012:user/ada"
BEFORE = EXAMPLE_TIME - timedelta(hours=1)
ARRIVALS: Mapping[str, Any] = {
    "visible_before": 190,
    "backlog_before": 190,
    "oldest_age_seconds_now": DAY_SECONDS,
}
CLOSED = case("consumer_failing", State.ESCALATED, State.CLOSED, reason="rolled the release back")


def classify_cause(*states: State, **over: Any) -> str:
    """Classify the case of messages that arrived an hour before: proven, unproven or unfixed."""
    causes = find_cause_cases([replace(case(TOO_SHORT, *states), **over)], BEFORE)
    cases_by_kind = {
        "proven": causes.proven_cases,
        "unproven": causes.unproven_cases,
        "unfixed": causes.unfixed_cases,
    }
    (kind,) = [kind for kind, kind_cases in cases_by_kind.items() if kind_cases]
    return kind


@pytest.mark.parametrize(("state_names", "over", "kind"), read_test_data("tables")["causes"])
def test_fix_of_a_cause_is_proven_unproven_or_missing_by_its_cases_states_actor_and_reason(
    state_names: list[str], over: dict[str, Any], kind: str
) -> None:
    states = [State(name) for name in state_names]
    assert classify_cause(*states, **over) == kind


@pytest.mark.parametrize("state", list(State))
def test_case_is_unresolved_in_every_open_state_in_which_no_fix_is_verified(state: State) -> None:
    resolved = {*FINAL_STATES, State.VERIFIED, State.WATCHING}
    assert is_case_unresolved(case(TOO_SHORT, state)) == (state not in resolved)


def test_case_that_ended_before_the_first_dlq_message_is_no_cause() -> None:
    ended = [CLOSED_KMS_CASE, case("kms_denied", State.DECLINED)]
    no_causes = find_cause_cases([], EXAMPLE_TIME)
    assert find_cause_cases(ended, EXAMPLE_TIME).fixed_cases == (CLOSED_KMS_CASE,)
    assert find_cause_cases(ended, EXAMPLE_TIME + timedelta(seconds=1)) == no_causes


def test_open_case_is_an_unfixed_cause_even_of_messages_that_arrived_long_after_it() -> None:
    still_open = case("consumer_failing", State.ESCALATED)
    causes = find_cause_cases([still_open], EXAMPLE_TIME + timedelta(days=13))
    assert causes.unfixed_cases == (still_open,)


def test_case_of_a_symptom_that_fills_no_dlq_is_no_cause() -> None:
    others = [case("message_too_long", State.WATCHING), case("empty_receives", State.PROPOSED)]
    assert find_cause_cases(others, BEFORE) == find_cause_cases([], BEFORE)


@pytest.mark.parametrize("cause", sorted(CAUSE_SYMPTOMS))
def test_redrive_is_planned_after_the_fix_of_each_cause(cause: str) -> None:
    assert expect_plan(ENTRY, dlq_with_messages(case(cause, State.WATCHING)))


def make_dlq_after_fix(over: dict[str, Any]) -> Facts:
    """Make a DLQ with messages whose cause was fixed, as a row of the table says."""
    over = dict(over)
    fixed_at = EXAMPLE_TIME - timedelta(hours=over.pop("fixed_hours_ago", 0))
    if seconds_later := over.pop("until_after_seconds", 0):
        over["until"] = EXAMPLE_TIME + timedelta(seconds=seconds_later)
    return dlq_with_messages(replace(WATCHED_VISIBILITY_CASE, at=fixed_at), **over)


@pytest.mark.parametrize(("over", "is_explained"), read_test_data("tables")["since when"])
def test_fixed_case_explains_dlq_messages_only_if_they_arrived_before_the_fix(
    over: dict[str, Any], *, is_explained: bool
) -> None:
    assert bool(find_causes(make_dlq_after_fix(over)).fixed_cases) is is_explained


def test_dlq_message_of_unknown_age_may_expire_at_once() -> None:
    facts = make_dlq_after_fix({"measurement": None, "fixed_hours_ago": 360})
    assert not is_message_age_known(facts)
    assert estimate_time_left(facts).lower_bound == timedelta(0)


def make_fifo_dlq(**over: Any) -> Facts:
    arn = f"{STANDARD_ARN}.fifo"
    return dlq_with_messages(
        case(TOO_SHORT, State.WATCHING, queue_arn=arn),
        queue_arn=f"{DLQ_ARN}.fifo",
        dlq_sources=(QueueFacts(arn, source().attributes),),
        redrive_sources=(replace(REDRIVE_SOURCE, queue_arn=arn),),
        **over,
    )


def make_dlq_with_rate(
    per_second: float, waiting: int, days: int = 14, **source_over: str
) -> Facts:
    """Make a DLQ with this retention, whose source deletes this many messages a second."""
    return dlq_with_messages(
        MessageRetentionPeriod=days * DAY_SECONDS,
        ApproximateNumberOfMessages=waiting,
        dlq_sources=(source(**source_over),),
        redrive_sources=(replace(REDRIVE_SOURCE, deletes_per_second=per_second),),
    )


def expect_redrive_plan(facts: Facts, highest_mode: Mode) -> str:
    """Return the reason of a plan with this highest mode."""
    answer = expect_plan(ENTRY, facts)
    assert answer.highest_mode is highest_mode
    assert not answer.reason.endswith(".")
    assert len(answer.reason) <= 800
    return answer.reason


@pytest.mark.parametrize(
    ("facts", "says"),
    [
        (dlq_with_messages(CLOSED), "Nothing proves consumer_failing fixed"),
        (dlq_with_messages(WATCHED_VISIBILITY_CASE, CLOSED), "a person has to see this first"),
        (make_fifo_dlq(), "Order will mix: 200 go in behind and among others, of which 20.0"),
        (dlq_with_messages(measurement=None), "since when"),
        (dlq_with_messages(oldest_age_seconds_now=0), "since when"),
    ],
)
def test_redrive_is_only_proposed_for_an_unproven_fix_a_fifo_dlq_or_an_unknown_age(
    facts: Facts, says: str
) -> None:
    assert says in expect_redrive_plan(facts, Mode.PROPOSE)


def make_source_policy(principal: Any, action: str, effect: str = "Allow") -> str:
    statement = {"Effect": effect, "Principal": principal, "Action": action, "Resource": "*"}
    return json.dumps({"Statement": [statement]})


OTHER_ROLE = {"AWS": "arn:aws:iam::999999999999:role/reader"}
OWN_ROLE = {"AWS": "arn:aws:iam::123456789012:role/orders"}


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        (make_source_policy(OTHER_ROLE, "sqs:ReceiveMessage"), "lets in arn:aws:iam::999999999999"),
        (make_source_policy(OTHER_ROLE, "sqs:*"), "lets in arn:aws:iam::999999999999"),
        (make_source_policy("*", "sqs:Receive*"), "lets everybody in"),
    ],
)
def test_redrive_is_only_proposed_and_names_outsiders_who_may_receive_from_the_source(
    policy: str, says: str
) -> None:
    reason = expect_redrive_plan(
        dlq_with_messages(dlq_sources=(source(Policy=policy),)), Mode.PROPOSE
    )
    assert "may read every message that goes back to orders" in reason
    assert says in reason


def test_unreadable_policy_of_a_queue_counts_as_access_by_outsiders() -> None:
    assert find_outsider_access_to_messages(source(Policy="{"))
    assert find_outsider_access_to_messages(source()) is None


@pytest.mark.parametrize(
    "policy",
    [
        make_source_policy(OTHER_ROLE, "sqs:SendMessage"),
        make_source_policy(OWN_ROLE, "sqs:*"),
        make_source_policy(OTHER_ROLE, "sqs:ReceiveMessage", "Deny"),
    ],
)
def test_redrive_is_planned_alone_if_no_outsider_may_receive_from_the_source(policy: str) -> None:
    expect_redrive_plan(dlq_with_messages(dlq_sources=(source(Policy=policy),)), Mode.HEAL)


@pytest.mark.parametrize("mode", [Mode.PROPOSE, Mode.OBSERVE])
def test_redrive_goes_no_further_than_the_mode_of_its_source_queue(mode: Mode) -> None:
    redrive_source = replace(REDRIVE_SOURCE, mode=mode)
    expect_redrive_plan(dlq_with_messages(redrive_sources=(redrive_source,)), mode)


@pytest.mark.parametrize(
    ("facts", "says"),
    [
        (dlq_with_messages(), "after each soak of 6 min;"),
        (
            dlq_with_messages(redrive_sources=(replace(REDRIVE_SOURCE, soak_factor=10),)),
            "soak of 50 min;",
        ),
        (make_dlq_with_rate(0, 200), "waits until something is"),
        (dlq_with_messages(found="200 wait"), "200 wait. They go back to orders, 5 first"),
        (
            dlq_with_messages(dlq_sources=(source(KmsMasterKeyId="alias/orders"),)),
            "kms:Decrypt and kms:GenerateDataKey on alias/orders",
        ),
    ],
)
def test_automatic_redrive_plan_says_its_first_stage_soak_pause_and_needed_key_grants(
    facts: Facts, says: str
) -> None:
    assert says in expect_redrive_plan(facts, Mode.HEAL)


@pytest.mark.parametrize(
    ("facts", "raised"),
    [
        (make_dlq_with_rate(20, 200, 4), True),
        (make_dlq_with_rate(20, 200, 7), True),
        (make_dlq_with_rate(20, 200, 13), False),
        (make_dlq_with_rate(20, 200, 14, MessageRetentionPeriod=str(14 * DAY_SECONDS)), False),
        (
            dlq_with_messages(
                CLOSED_KMS_CASE, measurement=None, MessageRetentionPeriod=4 * DAY_SECONDS
            ),
            True,
        ),
        # SQS restarts the retention of FIFO messages when they move to a DLQ.
        (make_fifo_dlq(MessageRetentionPeriod=4 * DAY_SECONDS), False),
        # 6,000 messages at the lowest rate, one a minute, take more than four days.
        (make_dlq_with_rate(0.005, 6_000, 12), True),
        (make_dlq_with_rate(20, 6_000, 12), False),
        (make_dlq_with_rate(20, 200, 9, VisibilityTimeout="1800"), False),
    ],
)
def test_redrive_plan_raises_the_dlq_retention_to_14_days_only_if_messages_could_expire_first(
    facts: Facts, *, raised: bool
) -> None:
    steps = expect_plan(ENTRY, facts).steps[1:]
    longest = SetMessageRetention(facts.retention_seconds, 14 * DAY_SECONDS)
    assert steps == ((longest,) if raised else ())


@pytest.mark.parametrize("per_second", [0.005, 0.1])
def test_redrive_that_cannot_end_before_messages_expire_is_refused(per_second: float) -> None:
    refusal = expect_refusal(ENTRY, make_dlq_with_rate(per_second, 30_000))
    assert isinstance(refusal, Refuse)
    assert refusal.code == "redrive_too_slow"
    assert "30,000 messages would take 23 d 6 h at 0.02 a second" in refusal.reason


@pytest.mark.parametrize("per_second", [10, 0])
def test_redrive_that_is_fast_enough_or_whose_rate_is_unknown_is_planned(per_second: float) -> None:
    assert expect_plan(ENTRY, make_dlq_with_rate(per_second, 30_000))


@pytest.mark.parametrize("entry", CATALOGUE, ids=lambda entry: entry.name)
@pytest.mark.parametrize("state", [State.PROPOSED, State.APPLIED, State.ESCALATED])
def test_redrive_is_refused_while_any_case_of_the_source_queue_is_open(
    entry: Any, state: State
) -> None:
    against = find_first_redrive_objection(
        dlq_with_messages(WATCHED_VISIBILITY_CASE, case(entry.name, state))
    )
    assert against is not None
    assert against.code == "cause_first"


def test_redrive_is_refused_if_the_dlqs_policy_allows_only_one_network() -> None:
    text = ONE_NETWORK_POLICY.replace(STANDARD_ARN, "*").replace("sqs:SendMessage", "sqs:*")
    against = find_first_redrive_objection(dlq_with_messages(Policy=text))
    assert against is not None
    assert '"ArnNotEquals": {"aws:PrincipalArn": "ROLE_ARN"}' in against.reason
    assert find_first_redrive_objection(dlq_with_messages()) is None


def describe_deletes_at(*minutes_ago: int) -> str | None:
    """Describe the deletes of a DLQ with 5 deletes at each of these minutes."""
    always = [(EXAMPLE_TIME - timedelta(minutes=n), 200.0) for n in range(1, 360)]
    deleted = [(EXAMPLE_TIME - timedelta(minutes=n), 5.0) for n in minutes_ago]
    window = Window(EXAMPLE_TIME - timedelta(hours=6), EXAMPLE_TIME)
    series = {"visible": always, "received": always, "deleted": deleted}
    return describe_deletes(dlq(measurement=measured_in(series, window)))


QUIET_MINUTES = int(RECENT_DELETES_PERIOD.total_seconds()) // 60 + 1


@pytest.mark.parametrize(
    "minutes_ago",
    [
        pytest.param((), id="no delete"),
        pytest.param((QUIET_MINUTES,), id="one delete a while ago"),
        pytest.param((200, QUIET_MINUTES), id="deletes in two hours"),
        pytest.param((30, 45, 55), id="several deletes in one hour"),
    ],
)
def test_rare_deletes_in_the_dlq_some_time_ago_show_no_consumer(
    minutes_ago: tuple[int, ...],
) -> None:
    assert describe_deletes_at(*minutes_ago) is None


def test_recent_deletes_in_the_dlq_show_a_consumer_at_work() -> None:
    sentence = str(describe_deletes_at(QUIET_MINUTES - 2))
    assert "5 messages were deleted in the last 15 minutes" in sentence


def test_deletes_in_the_dlq_in_three_hours_show_a_consumer_at_work() -> None:
    sentence = str(describe_deletes_at(30, 90, 150))
    assert "15 messages were deleted in 3 different hours" in sentence


@pytest.mark.parametrize(
    ("word", "is_off"),
    [("on", False), *((word, True) for word in ("OFF", "ON", " on", "false", "", "0", "onn"))],
)
def test_redrive_tag_with_any_value_but_on_turns_redrives_off(word: str, *, is_off: bool) -> None:
    assert is_redrive_off({REDRIVE_TAG: word}) is is_off


CONSENT_ROWS = read_test_data("tables")["consents"]
ALLOWED_ROWS = [row[:3] for row in CONSENT_ROWS if row[3] is None]
OBJECTED_ROWS = [row for row in CONSENT_ROWS if row[3] is not None]


def find_objection(tags: dict[str, str], name: str, consent: Any) -> str | None:
    return find_move_objection(Facts(f"{STANDARD_ARN}-{name}", {}, tags), make_consent(consent))


@pytest.mark.parametrize(("tags", "name", "consent"), ALLOWED_ROWS)
def test_redrive_is_allowed_on_a_queue_that_settings_or_tags_let_mendq_manage(
    tags: dict[str, str], name: str, consent: Any
) -> None:
    assert find_objection(tags, name, consent) is None


@pytest.mark.parametrize(("tags", "name", "consent", "said"), OBJECTED_ROWS)
def test_redrive_objection_says_if_a_queue_is_unmanaged_only_observed_or_tagged_off(
    tags: dict[str, str], name: str, consent: Any, said: str
) -> None:
    assert said in str(find_objection(tags, name, consent))


@pytest.mark.parametrize(("of_dlq", "of_source", "needed"), read_test_data("tables")["keys needed"])
def test_redrive_names_the_grants_it_needs_on_the_keys_of_dlq_and_source(
    of_dlq: str, of_source: str, needed: str
) -> None:
    arns = {DLQ_ARN: of_dlq, STANDARD_ARN: of_source}
    queues = [QueueFacts(arn, {"KmsMasterKeyId": key}) for arn, key in arns.items()]
    sentence, _, _ = describe_needed_grants("Mendq", *queues).partition(": in the key's policy")
    assert sentence == (f"Mendq needs {needed}" if needed else "")


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
def draw_case(draw: st.DrawFn) -> Case:
    made = case(draw(NAMES), *draw(STATES))
    return replace(
        made, at=EXAMPLE_TIME - draw(AGES), actor=draw(st.sampled_from(["follow_up", ADA]))
    )


@st.composite
def draw_dlq(draw: st.DrawFn) -> Facts:
    """Draw a DLQ that mostly allows a redrive. Otherwise no redrive would ever be planned."""
    facts = dlq_with_messages(
        tags=draw(TAGS),
        MessageRetentionPeriod=draw(st.sampled_from([60, 345_600, 1_209_600])),
        oldest_age_seconds_now=draw(st.sampled_from([0, 60, 7_200, 86_400, 900_000])),
        deleted=int(draw(ODD)),
        visible_before=draw(st.sampled_from([0, 200])),
        fewest_visible_messages=draw(st.sampled_from([0, 200])),
        redrive_sources=(
            replace(REDRIVE_SOURCE, tags=draw(TAGS), mode=draw(st.sampled_from(MOSTLY_TRUE))),
        ),
        source_cases=tuple(draw(st.lists(draw_case(), max_size=3))),
    )
    second = QueueFacts(f"{STANDARD_ARN}-2", source().attributes)
    odd = {
        "measurement": None,
        "redrive_sources": (),
        "dlq_sources": (source(), second),
        "lambda_consumers": (LAMBDA_FUNCTION,),
        "move_task_running": True,
        "open_symptoms": draw(st.frozensets(NAMES, max_size=1)),
    }
    return replace_values(facts, **{name: value for name, value in odd.items() if draw(ODD)})


def assert_causes_are_fixed(facts: Facts, causes: list[Case]) -> None:
    """Assert that no case is open, and that a fix of a cause is verified or closed."""
    fixed = {State.VERIFIED, State.WATCHING}
    assert all(source_case.state in FINAL_STATES | fixed for source_case in facts.source_cases)
    assert any(cause.state in fixed | {State.CLOSED} for cause in causes)


def assert_dlq_may_be_redriven(facts: Facts) -> None:
    """Assert that one source, no consumer, no running move and no tag forbid the redrive."""
    (redrive_source,) = facts.redrive_sources
    assert len(facts.dlq_sources or ()) == 1
    assert facts.tags.get(REDRIVE_TAG, "on") == "on"
    assert redrive_source.tags.get(REDRIVE_TAG, "on") == "on"
    assert not facts.lambda_consumers
    assert not facts.move_task_running


@settings(max_examples=400)
@given(draw_dlq())
@example(dlq_with_messages(CLOSED_KMS_CASE, MessageRetentionPeriod=4 * DAY_SECONDS))
def test_redrive_of_any_dlq_is_planned_only_after_a_fix_and_only_as_far_as_people_allow(
    facts: Facts,
) -> None:
    causes = [cause for cause in facts.source_cases if cause.symptom in CAUSE_SYMPTOMS]
    assert detect_fault(ENTRY, facts) is None or causes
    answer = answer_to(ENTRY, facts)
    if not isinstance(answer, Plan):
        assert isinstance(answer, Ignore | Refuse)
        return
    assert_causes_are_fixed(facts, causes)
    assert_dlq_may_be_redriven(facts)
    (sole,) = facts.redrive_sources
    first, *retained = expect_plan(ENTRY, facts).steps
    assert first == RedriveMessages("held", STANDARD_ARN)
    assert all(isinstance(step, SetMessageRetention) for step in retained)
    assert sole.mode is not None
    assert answer.highest_mode <= sole.mode
    if answer.highest_mode is Mode.HEAL:
        measured = facts.measurement
        assert measured is not None
        assert measured.now.oldest_age_seconds
        first_arrival = EXAMPLE_TIME - timedelta(seconds=measured.now.oldest_age_seconds)
        for cause in causes:
            if cause.state is State.CLOSED and cause.at >= first_arrival:
                assert (cause.came_from, cause.actor) == (State.WATCHING, "follow_up")


BILLING_ARN = f"{STANDARD_ARN}-2"
BILLING_FAILS = case("consumer_failing", State.ESCALATED, queue_arn=BILLING_ARN)


def make_shared_dlq(*cases: Case, fifo_ending: str = "", **over: Any) -> Facts:
    """Make a DLQ of the queues orders and orders-2."""
    arns = (STANDARD_ARN + fifo_ending, BILLING_ARN + fifo_ending)
    values: dict[str, Any] = {
        "queue_arn": DLQ_ARN + fifo_ending,
        "dlq_sources": tuple(QueueFacts(arn, source().attributes) for arn in arns),
        "redrive_sources": tuple(replace(REDRIVE_SOURCE, queue_arn=arn) for arn in arns),
    }
    return dlq_with_messages(*cases, **{**values, **over})


def make_redrive_case(source_arn: str, *states: State, opened: timedelta) -> Case:
    """Make a case that sends messages back to this queue."""
    step = {"attribute": RedriveMessages.attribute, "before": "held", "after": source_arn}
    made = case(ENTRY.name, *states, queue_arn=DLQ_ARN)
    return replace(made, steps=(step,), opened_at=EXAMPLE_TIME + opened)


def test_redrive_of_a_shared_dlq_goes_to_the_source_whose_cause_is_fixed() -> None:
    fixed_at_billing = case(TOO_SHORT, State.WATCHING, queue_arn=BILLING_ARN)
    orders_fails = case("consumer_failing", State.ESCALATED)
    for cases, destination in (
        ((WATCHED_VISIBILITY_CASE,), STANDARD_ARN),
        ((WATCHED_VISIBILITY_CASE, BILLING_FAILS), STANDARD_ARN),
        ((fixed_at_billing, orders_fails), BILLING_ARN),
        ((CLOSED, fixed_at_billing), BILLING_ARN),
    ):
        plan = expect_plan(ENTRY, make_shared_dlq(*cases))
        assert plan.steps == (RedriveMessages("held", destination),)
        assert plan.highest_mode is Mode.HEAL


def test_redrive_plan_of_a_shared_dlq_says_whose_messages_stay_and_what_a_look_does() -> None:
    reason = expect_plan(ENTRY, make_shared_dlq(WATCHED_VISIBILITY_CASE)).reason
    assert "Those that died there go back to orders, 5 first" in reason
    assert (
        "Messages of orders-2 stay; each look, once a minute, raises their receive count" in reason
    )
    assert len(reason) <= 800


@pytest.mark.parametrize(
    ("facts", "says"),
    [
        (make_shared_dlq(redrive_sources=(REDRIVE_SOURCE,)), "which keeps Mendq out"),
        (
            make_shared_dlq(dlq_sources=(source(),)),
            "it takes the messages of another queue too, which keeps Mendq out",
        ),
        (make_shared_dlq(ApproximateNumberOfMessages=5_001), "one look sees 5,000 of 5,001"),
        (
            make_shared_dlq(
                case(TOO_SHORT, State.WATCHING, queue_arn=f"{STANDARD_ARN}.fifo"),
                fifo_ending=".fifo",
            ),
            "2 FIFO queues, and SQS shows only the first messages of a group",
        ),
    ],
)
def test_redrive_of_a_shared_dlq_is_refused_if_messages_cannot_be_told_apart(
    facts: Facts, says: str
) -> None:
    refusal = expect_refusal(ENTRY, facts)
    assert refusal.code == "shared_dlq"
    assert says in refusal.reason


def test_redrive_of_a_shared_dlq_is_planned_for_as_many_messages_as_one_look_sees() -> None:
    assert expect_plan(ENTRY, make_shared_dlq(ApproximateNumberOfMessages=5_000))


def test_redrive_of_a_shared_dlq_waits_for_open_cases_of_its_own_source() -> None:
    for cases in (
        (WATCHED_VISIBILITY_CASE, case("consumer_failing", State.ESCALATED)),
        (case(TOO_SHORT, State.WATCHING, queue_arn=BILLING_ARN), BILLING_FAILS),
    ):
        open_symptoms = frozenset({"consumer_failing"})
        facts = make_shared_dlq(*cases, open_symptoms=open_symptoms)
        assert expect_refusal(ENTRY, facts).code == "cause_first"


def test_open_symptom_of_another_source_does_not_stop_the_redrive_of_the_fixed_one() -> None:
    cases = (WATCHED_VISIBILITY_CASE, BILLING_FAILS)
    facts = make_shared_dlq(*cases, open_symptoms=frozenset({"consumer_failing", TOO_SHORT}))
    assert expect_plan(ENTRY, facts)


def test_open_symptom_of_the_shared_dlq_itself_stops_the_redrive_of_a_fixed_source() -> None:
    open_symptoms = frozenset({"dlq_messages_arriving"})
    facts = make_shared_dlq(WATCHED_VISIBILITY_CASE, BILLING_FAILS, open_symptoms=open_symptoms)
    assert expect_refusal(ENTRY, facts).code == "cause_first"


def test_tag_and_mode_of_the_fixed_source_alone_decide_about_its_redrive() -> None:
    billing = replace(REDRIVE_SOURCE, queue_arn=BILLING_ARN)
    off = {REDRIVE_TAG: "off"}
    both = (REDRIVE_SOURCE, replace(billing, tags=off, mode=None))
    assert expect_plan(ENTRY, make_shared_dlq(redrive_sources=both)).highest_mode is Mode.HEAL
    both = (replace(REDRIVE_SOURCE, tags=off), billing)
    assert expect_refusal(ENTRY, make_shared_dlq(redrive_sources=both)).code == "redrive_off"


def test_new_messages_in_a_shared_dlq_need_a_person_if_another_source_still_fails() -> None:
    plan = expect_plan(ENTRY, make_shared_dlq(_fixed_long_ago(), BILLING_FAILS, **ARRIVALS))
    assert plan.highest_mode is Mode.PROPOSE
    assert "nothing shows in which queue they died" in plan.reason


def test_new_messages_in_a_shared_dlq_stop_the_redrive_if_no_other_source_fails() -> None:
    alone = make_shared_dlq(_fixed_long_ago(), **ARRIVALS)
    assert expect_refusal(ENTRY, alone).code == "messages_arrive"


FIXED_BEFORE_REDRIVE = replace(WATCHED_VISIBILITY_CASE, opened_at=EXAMPLE_TIME - timedelta(hours=3))
VERIFIED_REDRIVE = (State.APPLIED, State.VERIFIED)
CLOSED_REDRIVE = (*VERIFIED_REDRIVE, State.WATCHING, State.CLOSED)


@pytest.mark.parametrize("states", [VERIFIED_REDRIVE, CLOSED_REDRIVE])
def test_shared_dlq_is_not_redriven_again_for_a_source_whose_messages_all_went_back(
    states: tuple[State, ...],
) -> None:
    over = make_redrive_case(STANDARD_ARN, *states, opened=-timedelta(hours=2))
    facts = make_shared_dlq(FIXED_BEFORE_REDRIVE, redrive_case=over)
    assert detect_fault(ENTRY, facts) is None


def test_shared_dlq_is_redriven_again_for_a_cause_that_was_found_after_its_redrive() -> None:
    over = make_redrive_case(STANDARD_ARN, *VERIFIED_REDRIVE, opened=-timedelta(hours=2))
    later = replace(FIXED_BEFORE_REDRIVE, opened_at=EXAMPLE_TIME - timedelta(hours=1))
    assert expect_plan(ENTRY, make_shared_dlq(later, redrive_case=over))


def test_shared_dlq_is_redriven_for_a_source_after_the_redrive_of_the_other_is_closed() -> None:
    of_billing = make_redrive_case(BILLING_ARN, *CLOSED_REDRIVE, opened=-timedelta(hours=2))
    assert expect_plan(ENTRY, make_shared_dlq(FIXED_BEFORE_REDRIVE, redrive_case=of_billing))


def test_second_source_of_a_dlq_waits_while_the_redrive_of_the_first_is_watched() -> None:
    for last_state, is_found in ((State.WATCHING, False), (State.CLOSED, True)):
        states = [State.APPLIED, State.VERIFIED, State.WATCHING, State.CLOSED]
        until_last = states[: states.index(last_state) + 1]
        of_billing = make_redrive_case(BILLING_ARN, *until_last, opened=-timedelta(hours=2))
        facts = make_shared_dlq(WATCHED_VISIBILITY_CASE, redrive_case=of_billing)
        fault = detect_fault(ENTRY, facts)
        assert (fault is not None) is is_found


def test_finding_of_a_shared_dlq_names_the_fixed_source_alone() -> None:
    """So a symptom that shows on the other source does not make the finding wait."""
    assert ENTRY.detection is not None
    fault = ENTRY.detection.detect(make_shared_dlq(WATCHED_VISIBILITY_CASE, BILLING_FAILS))
    assert fault is not None
    assert fault.source_arns == (STANDARD_ARN,)


def test_approved_redrive_of_a_shared_dlq_stays_with_its_source_when_planned_again() -> None:
    fixed_at_billing = case(TOO_SHORT, State.WATCHING, queue_arn=BILLING_ARN)
    cases = (WATCHED_VISIBILITY_CASE, fixed_at_billing)
    assert expect_plan(ENTRY, make_shared_dlq(*cases)).steps[0].after == STANDARD_ARN
    proposed = make_redrive_case(BILLING_ARN, State.PROPOSED, opened=timedelta(0))
    again = expect_plan(ENTRY, make_shared_dlq(*cases, redrive_case=proposed))
    assert again.steps[0].after == BILLING_ARN


def _fixed_long_ago() -> Case:
    measurement = dlq_with_messages().measurement
    assert measurement is not None
    return replace(CLOSED_KMS_CASE, at=measurement.since)

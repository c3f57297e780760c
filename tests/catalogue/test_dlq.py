"""Test the plans for a DLQ: attach one, let source queues in, and keep messages long enough."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mendq.catalogue import CATALOGUE
from mendq.catalogue.dlq.attach import (
    SYMPTOMS_TO_FIX_FIRST,
    find_missing_dlq,
    has_no_dlq,
    plan_named_dlq,
    plan_new_dlq,
)
from mendq.catalogue.dlq.dlq_missing import DLQ_MISSING
from mendq.catalogue.dlq.dlq_retention_too_short import DLQ_RETENTION_TOO_SHORT
from mendq.catalogue.dlq.dlq_source_not_allowed import DLQ_SOURCE_NOT_ALLOWED
from mendq.catalogue.examples import (
    DLQ_ARN,
    FAILING_FUNCTION,
    LAMBDA_FUNCTION,
    QUEUE_ARN,
    STANDARD_ARN,
    dlq,
    queue,
    replace_values,
    sources,
    standard_queue,
)
from mendq.model.dlq import make_dlq_attributes
from mendq.model.facts import Facts, QueueFacts
from mendq.model.plan import Escalate, Ignore, Plan, Refusal
from mendq.model.queue import (
    MOST_SOURCES_IN_ALLOW_POLICY,
    RedriveAllowPolicy,
    RedrivePolicy,
    parse_redrive_allow_policy,
)
from mendq.model.steps import Owner
from tests.catalogue.asking import (
    answer_to,
    detect_fault,
    expect_plan,
    expect_refusal,
    only_step_of,
    queue_examples_of,
    read_test_data,
)
from tests.model.tables import any_json

QUEUE_WITHOUT_DLQ = standard_queue(
    KmsMasterKeyId="alias/orders", dlq_namesake=QueueFacts(DLQ_ARN, {})
)
NEW_DLQ_ATTRIBUTES = make_dlq_attributes(QUEUE_WITHOUT_DLQ, DLQ_ARN)
QUEUE_WITH_TRAFFIC = replace_values(
    QUEUE_WITHOUT_DLQ, ApproximateNumberOfMessages=1, sent=60, received=60, deleted=60
)


def add_namesake(facts: Facts, **attributes: str) -> Facts:
    """Add a queue with the DLQ's name, as Mendq creates it except for these attributes."""
    namesake_attributes = {"QueueArn": DLQ_ARN, **NEW_DLQ_ATTRIBUTES, **attributes}
    namesake = QueueFacts(DLQ_ARN, namesake_attributes)
    return replace_values(facts, dlq_namesake=namesake, dlq_namesake_objection="")


def list_steps(answer: Plan | Refusal) -> list[tuple[str, str]]:
    assert isinstance(answer, Plan)
    assert {step.owner for step in answer.steps} == {Owner.ATTACH_DLQ}
    assert all(step.find_bounds_fault() is None for step in answer.steps)
    return [(step.attribute, str(step.after)) for step in answer.steps]


def test_plan_for_a_new_dlq_stays_the_same_after_the_dlq_was_created() -> None:
    """A run that died after creating the DLQ is continued, and a rollback keeps the DLQ."""
    with_namesake = add_namesake(QUEUE_WITHOUT_DLQ)
    assert plan_new_dlq(with_namesake, "because") == plan_new_dlq(QUEUE_WITHOUT_DLQ, "because")


def test_queue_like_a_new_dlq_is_not_attached_if_the_case_store_does_not_record_it() -> None:
    """Another principal may have made it, to read the messages."""
    facts = replace_values(
        add_namesake(QUEUE_WITHOUT_DLQ), dlq_namesake_objection="nothing records that Mendq made it"
    )
    answer = plan_new_dlq(facts, "because")
    assert isinstance(answer, Escalate)
    assert answer.code == "receiver_unconfirmed"
    assert answer.next_command == "mendq confirm orders-dlq --region us-east-1"


@pytest.mark.parametrize("attributes", read_test_data("tables")["others"])
def test_queue_of_another_owner_with_the_dlqs_name_is_never_attached(
    attributes: dict[str, str],
) -> None:
    answer = plan_new_dlq(add_namesake(QUEUE_WITHOUT_DLQ, **attributes), "because")
    assert isinstance(answer, Escalate)
    assert answer.code == "name_taken"


@pytest.mark.parametrize(
    "over",
    [
        {"RedrivePolicy": RedrivePolicy(STANDARD_ARN, 3).text},
        {"dlq_sources": sources(QUEUE_ARN)},
        {"dlq_sources": None},
    ],
    ids=["has one", "is one", "may be one"],
)
def test_no_dlq_is_planned_for_a_queue_that_has_one_is_one_or_may_be_one(
    over: dict[str, Any],
) -> None:
    answer = plan_new_dlq(replace_values(QUEUE_WITHOUT_DLQ, **over), "because")
    assert isinstance(answer, Ignore)
    assert answer.code == "need_already_met"


def test_no_dlq_is_planned_before_it_was_checked_that_its_name_is_free() -> None:
    unchecked = replace_values(QUEUE_WITHOUT_DLQ, dlq_namesake=QueueFacts(STANDARD_ARN, {}))
    answer = plan_new_dlq(unchecked, "because")
    assert isinstance(answer, Ignore)
    assert answer.code == "name_not_known"


def assert_no_dlq_is_attached(facts: Facts, code: str) -> None:
    for answer in (plan_new_dlq(facts, "it"), plan_named_dlq(facts, DLQ_ARN, "it")):
        assert isinstance(answer, Ignore)
        assert answer.code == code


@pytest.mark.parametrize(
    "facts",
    [
        *(
            replace_values(QUEUE_WITHOUT_DLQ, open_symptoms=frozenset({cause}))
            for cause in SYMPTOMS_TO_FIX_FIRST
        ),
        # Without an open case: none was opened yet, or a person closed it.
        replace_values(QUEUE_WITH_TRAFFIC, lambda_consumers=(FAILING_FUNCTION,)),
        replace_values(QUEUE_WITH_TRAFFIC, sent=200, received=400, deleted=0, backlog_now=200),
        replace_values(QUEUE_WITH_TRAFFIC, sent=200, received=300, deleted=300),
    ],
)
def test_no_dlq_is_attached_while_failing_consumers_or_a_short_timeout_could_fill_it(
    facts: Facts,
) -> None:
    assert_no_dlq_is_attached(facts, "cause_first")


@pytest.mark.parametrize(
    "facts",
    [
        replace_values(QUEUE_WITHOUT_DLQ, lambda_consumers=(LAMBDA_FUNCTION,)),
        replace_values(QUEUE_WITH_TRAFFIC, measurement=None),
        replace_values(QUEUE_WITH_TRAFFIC, move_task_running=True),
    ],
)
def test_no_dlq_is_attached_to_a_queue_in_use_without_metrics_or_during_a_move_task(
    facts: Facts,
) -> None:
    assert_no_dlq_is_attached(facts, "not_measured")


def assert_new_dlq_is_planned(facts: Facts) -> None:
    attached = ("RedrivePolicy", RedrivePolicy(DLQ_ARN, 5).text)
    assert list_steps(plan_new_dlq(facts, "it")) == [("DeadLetterQueue", DLQ_ARN), attached]


@pytest.mark.parametrize("facts", [QUEUE_WITHOUT_DLQ, QUEUE_WITH_TRAFFIC])
def test_new_dlq_is_planned_for_an_idle_queue_or_one_that_handles_its_traffic(facts: Facts) -> None:
    assert_new_dlq_is_planned(facts)


def test_new_dlq_is_planned_while_a_case_of_a_symptom_that_fills_no_dlq_is_open() -> None:
    assert_new_dlq_is_planned(
        replace_values(QUEUE_WITHOUT_DLQ, open_symptoms=frozenset({"kms_throttled"}))
    )


@pytest.mark.parametrize(("dlq_arn", "attributes", "is_gone"), read_test_data("tables")["gone"])
def test_dlq_is_missing_only_if_its_arn_is_valid_here_and_the_queue_does_not_exist(
    dlq_arn: str, attributes: dict[str, str], *, is_gone: bool
) -> None:
    facts = replace_values(QUEUE_WITHOUT_DLQ, dlq=QueueFacts(dlq_arn, attributes))
    assert find_missing_dlq(facts) == (dlq_arn if is_gone else None)


def test_queue_with_any_redrive_policy_text_does_not_count_as_without_dlq() -> None:
    assert has_no_dlq(QUEUE_WITHOUT_DLQ)
    assert not has_no_dlq(replace_values(QUEUE_WITHOUT_DLQ, RedrivePolicy="{"))


def test_queue_without_a_redrive_policy_has_no_missing_dlq() -> None:
    assert find_missing_dlq(QUEUE_WITHOUT_DLQ) is None


(QUEUE_WITH_DELETED_DLQ,) = (
    example.facts for example in queue_examples_of(DLQ_MISSING) if example.facts.dlq
)


def test_deleted_dlq_is_detected_also_on_a_queue_that_is_itself_a_dlq() -> None:
    is_a_dlq_too = replace_values(QUEUE_WITH_DELETED_DLQ, dlq_sources=sources(QUEUE_ARN))
    assert detect_fault(DLQ_MISSING, is_a_dlq_too)


def test_dlq_is_not_created_again_if_it_exists_meanwhile() -> None:
    exists = replace_values(QUEUE_WITH_DELETED_DLQ, dlq=QueueFacts(DLQ_ARN, {"QueueArn": "x"}))
    assert expect_refusal(DLQ_MISSING, exists).code == "need_already_met"


NAMES = st.integers(0, 24).map(lambda n: f"{STANDARD_ARN}-{n:02}")


def make_dlq_allowing(allowed: str, source_arns: set[str]) -> Facts:
    return dlq(RedriveAllowPolicy=allowed, dlq_sources=sources(*source_arns))


def make_dlq_naming(allowed: set[str], source_arns: set[str]) -> Facts:
    """Return a DLQ whose RedriveAllowPolicy names some queues, and which is the DLQ of others."""
    policy = RedriveAllowPolicy("byQueue", tuple(sorted(allowed)))
    return make_dlq_allowing(policy.text, source_arns)


@given(st.sets(NAMES, max_size=MOST_SOURCES_IN_ALLOW_POLICY - 1), st.sets(NAMES, max_size=15))
def test_redrive_allow_policy_gains_the_sources_that_fit_loses_none_and_says_if_some_stay_out(
    allowed: set[str], source_arns: set[str]
) -> None:
    assume(not source_arns <= allowed)
    facts = make_dlq_naming(allowed, source_arns)
    answer = expect_plan(DLQ_SOURCE_NOT_ALLOWED, facts)
    step = only_step_of(answer)
    wanted = parse_redrive_allow_policy(str(step.after))
    assert wanted is not None
    assert wanted.permission == "byQueue"
    added = set(wanted.sources) - allowed
    assert allowed < set(wanted.sources) <= allowed | source_arns
    assert len(added) == min(
        len(source_arns - allowed), MOST_SOURCES_IN_ALLOW_POLICY - len(allowed)
    )
    left = source_arns - allowed - added
    assert ("would stay out" in answer.reason) is bool(left)
    after = replace_values(facts, RedriveAllowPolicy=step.after)
    assert bool(detect_fault(DLQ_SOURCE_NOT_ALLOWED, after)) is bool(left)


@given(
    st.sets(NAMES, min_size=MOST_SOURCES_IN_ALLOW_POLICY, max_size=MOST_SOURCES_IN_ALLOW_POLICY),
    st.sets(NAMES, max_size=15),
    st.integers(0, MOST_SOURCES_IN_ALLOW_POLICY),
)
def test_redrive_allow_policy_that_is_full_or_has_all_sources_is_not_changed(
    allowed: set[str], source_arns: set[str], named_source_count: int
) -> None:
    code = "need_already_met" if source_arns <= allowed else "too_many_sources"
    full = make_dlq_naming(allowed, source_arns)
    assert expect_refusal(DLQ_SOURCE_NOT_ALLOWED, full).code == code
    named_sources = set(sorted(allowed)[:named_source_count])
    complete = make_dlq_naming(allowed, named_sources)
    assert expect_refusal(DLQ_SOURCE_NOT_ALLOWED, complete).code == "need_already_met"


def test_redrive_allow_policy_with_an_unknown_permission_is_not_changed() -> None:
    facts = make_dlq_allowing('{"redrivePermission":"byAccount"}', {STANDARD_ARN})
    assert expect_refusal(DLQ_SOURCE_NOT_ALLOWED, facts).code == "denied_to_all"


DAYS_4 = 345_600


def make_dlq_with_retention(own_seconds: int, *sources_seconds: int) -> Facts:
    source_queues = (
        QueueFacts(f"{STANDARD_ARN}-{n}", {"MessageRetentionPeriod": str(seconds)})
        for n, seconds in enumerate(sources_seconds)
    )
    return dlq(MessageRetentionPeriod=own_seconds, dlq_sources=tuple(source_queues))


def test_dlq_retention_equal_to_its_sources_is_too_short() -> None:
    """A message keeps its age when it moves, so it would expire soon after."""
    assert detect_fault(DLQ_RETENTION_TOO_SHORT, make_dlq_with_retention(DAYS_4, DAYS_4))


def test_dlq_retention_fault_names_the_source_queue_with_the_longest_retention() -> None:
    facts = make_dlq_with_retention(DAYS_4, DAYS_4, 2 * DAYS_4, 60)
    found = detect_fault(DLQ_RETENTION_TOO_SHORT, facts)
    assert found is not None
    assert f"{STANDARD_ARN}-1" in found.found


ARNS = st.sampled_from([QUEUE_ARN, STANDARD_ARN, DLQ_ARN])
POLICY_WORDS = [
    *["Statement", "Effect", "Allow", "Deny", "Principal", "NotPrincipal", "Service", "AWS", "*"],
    *["Action", "sqs:*", "sqs:SendMessage", "Resource", "sns.amazonaws.com", "Condition", "Bool"],
    *["aws:SecureTransport", "false", "ArnEquals", "aws:SourceArn"],
]
REDRIVE_WORDS = [
    *["redrivePermission", "byQueue", "denyAll", "allowAll", "sourceQueueArns"],
    *["deadLetterTargetArn", "maxReceiveCount", "5"],
]
WORDS = [*POLICY_WORDS, *REDRIVE_WORDS, QUEUE_ARN, STANDARD_ARN, DLQ_ARN]
JSON = any_json(*WORDS, max_leaves=16)
TEXTS = st.text(max_size=40) | JSON.map(json.dumps) | st.just("[" * 20_000)
TYPED_ATTRIBUTES = st.dictionaries(
    st.sampled_from(["Policy", "RedrivePolicy", "RedriveAllowPolicy", "KmsMasterKeyId"]), TEXTS
)
QUEUES = st.none() | st.builds(QueueFacts, ARNS | st.sampled_from(WORDS), TYPED_ATTRIBUTES)
TYPED_BY_PEOPLE = st.builds(
    lambda arn, attributes, **over: queue(queue_arn=arn, **attributes, **over),
    ARNS,
    TYPED_ATTRIBUTES,
    lambda_consumers=st.sampled_from([(), (LAMBDA_FUNCTION,)]),
    dlq=QUEUES,
    dlq_namesake=QUEUES,
    dlq_sources=st.lists(st.builds(QueueFacts, ARNS, TYPED_ATTRIBUTES), max_size=3).map(tuple),
)
CONFIGURATIONS = [entry for entry in CATALOGUE if entry.is_of_configuration]


@given(facts=TYPED_BY_PEOPLE)
def test_configuration_faults_are_planned_or_refused_for_any_text_in_policies_and_keys(
    facts: Facts,
) -> None:
    for entry in CONFIGURATIONS:
        faulty = detect_fault(entry, facts) or facts
        if entry.plan is None:
            continue
        if isinstance(answer_to(entry, faulty), Plan):
            expect_plan(entry, faulty)
        else:
            expect_refusal(entry, faulty)

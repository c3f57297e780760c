"""Plans for a DLQ, and when none is made although it is missing; whatever people have typed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
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

NONE = standard_queue(KmsMasterKeyId="alias/orders", dlq_namesake=QueueFacts(DLQ_ARN, {}))
AS_MADE = make_dlq_attributes(NONE, DLQ_ARN)
WAITING = replace_values(NONE, ApproximateNumberOfMessages=1, sent=60, received=60, deleted=60)


def named_by(facts: Facts, **attributes: str) -> Facts:
    there = {"QueueArn": DLQ_ARN, **AS_MADE, **attributes}
    return replace_values(facts, dlq_namesake=QueueFacts(DLQ_ARN, there))


def steps_of(answer: Plan | Refusal) -> list[tuple[str, str]]:
    assert isinstance(answer, Plan)
    assert {step.owner for step in answer.steps} == {Owner.ATTACH_DLQ}
    assert all(step.find_bounds_fault() is None for step in answer.steps)
    return [(step.attribute, str(step.after)) for step in answer.steps]


def test_the_plan_stays_the_same_once_its_queue_is_made() -> None:
    """A run that died between the two is taken up again; and after an undo the queue is kept."""
    assert plan_new_dlq(named_by(NONE), "because") == plan_new_dlq(NONE, "because")


@pytest.mark.parametrize("attributes", read_test_data("tables")["others"])
def test_somebody_else_s_queue_of_that_name_is_never_attached(attributes: dict[str, str]) -> None:
    answer = plan_new_dlq(named_by(NONE, **attributes), "because")
    assert isinstance(answer, Escalate)
    assert answer.code == "name_taken"


@pytest.mark.parametrize(
    ("over", "code"),
    [
        ({"RedrivePolicy": RedrivePolicy(STANDARD_ARN, 3).text}, "need_already_met"),
        ({"dlq_sources": sources(QUEUE_ARN)}, "need_already_met"),
        ({"dlq_sources": None}, "need_already_met"),
        ({"dlq_namesake": QueueFacts(STANDARD_ARN, {})}, "name_not_known"),
    ],
)
def test_what_has_one_by_now_or_may_have_gets_none(over: dict[str, Any], code: str) -> None:
    answer = plan_new_dlq(replace_values(NONE, **over), "because")
    assert isinstance(answer, Ignore)
    assert answer.code == code


@pytest.mark.parametrize(
    ("facts", "code"),
    [
        *(
            (replace_values(NONE, open_symptoms=frozenset({cause})), "cause_first")
            for cause in SYMPTOMS_TO_FIX_FIRST
        ),
        # Nobody has opened a case yet, or a person has closed it.
        (replace_values(WAITING, lambda_consumers=(FAILING_FUNCTION,)), "cause_first"),
        (
            replace_values(WAITING, sent=200, received=400, deleted=0, backlog_now=200),
            "cause_first",
        ),
        (replace_values(WAITING, sent=200, received=300, deleted=300), "cause_first"),
        (replace_values(NONE, lambda_consumers=(LAMBDA_FUNCTION,)), "not_measured"),
        (replace_values(WAITING, measurement=None), "not_measured"),
        (replace_values(WAITING, move_task_running=True), "not_measured"),
    ],
)
def test_no_backlog_is_dumped(facts: Facts, code: str) -> None:
    for answer in (plan_new_dlq(facts, "it"), plan_named_dlq(facts, DLQ_ARN, "it")):
        assert isinstance(answer, Ignore)
        assert answer.code == code


@pytest.mark.parametrize(
    "facts", [NONE, WAITING, replace_values(NONE, open_symptoms=frozenset({"kms_throttled"}))]
)
def test_what_is_measured_or_idle_gets_one(facts: Facts) -> None:
    attached = ("RedrivePolicy", RedrivePolicy(DLQ_ARN, 5).text)
    assert steps_of(plan_new_dlq(facts, "it")) == [("DeadLetterQueue", DLQ_ARN), attached]


@pytest.mark.parametrize(("dlq_arn", "attributes", "is_gone"), read_test_data("tables")["gone"])
def test_gone_is_what_could_stand_there_and_does_not(
    dlq_arn: str, attributes: dict[str, str], *, is_gone: bool
) -> None:
    facts = replace_values(NONE, dlq=QueueFacts(dlq_arn, attributes))
    assert find_missing_dlq(facts) == (dlq_arn if is_gone else None)


def test_who_has_none() -> None:
    assert has_no_dlq(NONE)
    assert not has_no_dlq(replace_values(NONE, RedrivePolicy="{")), "whatever it says"
    assert find_missing_dlq(NONE) is None


def test_a_queue_that_is_gone_is_found_although_others_send_messages_here() -> None:
    (names_it,) = (each.facts for each in queue_examples_of(DLQ_MISSING) if each.facts.dlq)
    assert detect_fault(DLQ_MISSING, replace_values(names_it, dlq_sources=sources(QUEUE_ARN)))
    there = replace_values(names_it, dlq=QueueFacts(DLQ_ARN, {"QueueArn": "x"}))
    assert expect_refusal(DLQ_MISSING, there).code == "need_already_met"


NAMES = st.integers(0, 24).map(lambda n: f"{STANDARD_ARN}-{n:02}")


def allowing(allowed: str, named_by: set[str]) -> Facts:
    return dlq(RedriveAllowPolicy=allowed, dlq_sources=sources(*named_by))


@given(st.sets(NAMES, max_size=MOST_SOURCES_IN_ALLOW_POLICY), st.sets(NAMES, max_size=15))
def test_as_many_are_let_in_as_fit_and_nobody_is_put_out(
    allowed: set[str], named_by: set[str]
) -> None:
    facts = allowing(RedriveAllowPolicy("byQueue", tuple(sorted(allowed))).text, named_by)
    answer = answer_to(DLQ_SOURCE_NOT_ALLOWED, facts)
    if not isinstance(answer, Plan):
        assert answer.code == ("need_already_met" if named_by <= allowed else "too_many_sources")
        assert named_by <= allowed or len(allowed) == MOST_SOURCES_IN_ALLOW_POLICY
        return
    step = only_step_of(expect_plan(DLQ_SOURCE_NOT_ALLOWED, facts))
    wanted = parse_redrive_allow_policy(str(step.after))
    assert wanted is not None
    assert wanted.permission == "byQueue"
    added = set(wanted.sources) - allowed
    assert allowed < set(wanted.sources) <= allowed | named_by
    assert len(added) == min(len(named_by - allowed), MOST_SOURCES_IN_ALLOW_POLICY - len(allowed))
    left = named_by - allowed - added
    assert ("would stay out" in answer.reason) is bool(left)
    after = replace_values(facts, RedriveAllowPolicy=step.after)
    assert bool(detect_fault(DLQ_SOURCE_NOT_ALLOWED, after)) is bool(left)


def test_a_word_that_sqs_may_learn_is_nobody_s_to_change() -> None:
    facts = allowing('{"redrivePermission":"byAccount"}', {STANDARD_ARN})
    assert expect_refusal(DLQ_SOURCE_NOT_ALLOWED, facts).code == "denied_to_all"


DAYS_4 = 345_600


def retained(own_seconds: int, *sources_seconds: int) -> Facts:
    named_by = (
        QueueFacts(f"{STANDARD_ARN}-{n}", {"MessageRetentionPeriod": str(seconds)})
        for n, seconds in enumerate(sources_seconds)
    )
    return dlq(MessageRetentionPeriod=own_seconds, dlq_sources=tuple(named_by))


def test_the_source_that_keeps_longest_is_named() -> None:
    assert detect_fault(DLQ_RETENTION_TOO_SHORT, retained(DAYS_4, DAYS_4)), "it keeps no longer"
    found = detect_fault(DLQ_RETENTION_TOO_SHORT, retained(DAYS_4, DAYS_4, 2 * DAYS_4, 60))
    assert found is not None
    assert f"{STANDARD_ARN}-1" in found.found


ARNS = st.sampled_from([QUEUE_ARN, STANDARD_ARN, DLQ_ARN])
WORDS = (
    *("Statement", "Effect", "Allow", "Deny", "Principal", "NotPrincipal", "Service", "AWS", "*"),
    *("Action", "sqs:*", "sqs:SendMessage", "Resource", "sns.amazonaws.com", "Condition", "Bool"),
    *("aws:SecureTransport", "false", "ArnEquals", "aws:SourceArn", "redrivePermission"),
    *("byQueue", "denyAll", "allowAll", "sourceQueueArns", "deadLetterTargetArn"),
    *("maxReceiveCount", "5", QUEUE_ARN, STANDARD_ARN, DLQ_ARN),
)
JSON = any_json(*WORDS, max_leaves=16)
TEXTS = st.text(max_size=40) | JSON.map(json.dumps) | st.just("[" * 20_000)
TYPED = st.dictionaries(
    st.sampled_from(["Policy", "RedrivePolicy", "RedriveAllowPolicy", "KmsMasterKeyId"]), TEXTS
)
QUEUES = st.none() | st.builds(QueueFacts, ARNS | st.sampled_from(WORDS), TYPED)
TYPED_BY_PEOPLE = st.builds(
    lambda arn, attributes, **over: queue(queue_arn=arn, **attributes, **over),
    ARNS,
    TYPED,
    lambda_consumers=st.sampled_from([(), (LAMBDA_FUNCTION,)]),
    dlq=QUEUES,
    dlq_namesake=QUEUES,
    dlq_sources=st.lists(st.builds(QueueFacts, ARNS, TYPED), max_size=3).map(tuple),
)
CONFIGURATIONS = [entry for entry in CATALOGUE if entry.is_of_configuration]


@given(facts=TYPED_BY_PEOPLE)
def test_no_text_that_people_typed_makes_a_detection_fail(facts: Facts) -> None:
    for entry in CONFIGURATIONS:
        found = detect_fault(entry, facts) or facts
        if entry.plan is None:
            continue
        if isinstance(answer_to(entry, found), Plan):
            expect_plan(entry, found)
        else:
            expect_refusal(entry, found)

"""Every symptom and refusal code that can occur together has a next step, and a true one."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from types import FunctionType, ModuleType
from typing import Any

import pytest

from mendq.aws import dlqs, queue
from mendq.catalogue import CATALOGUE
from mendq.catalogue.dlq import unconfirmed_receiver
from mendq.catalogue.symptom import CallExample, QueueExample, RefusalExample, Symptom
from mendq.heal import apply, decide, guardrails, restore_policy
from mendq.model.facts import Facts
from mendq.model.harms import OWN_CHANGE_CODE
from mendq.model.plan import AWS_REFUSED, Refusal
from mendq.model.state import State
from mendq.model.steps import Owner
from mendq.model.tags import MAX_PROCESSING, MAX_VISIBILITY
from mendq.notifications.next_steps import (
    GUARANTEED_TRAITS_BY_CODE,
    GUARANTEED_TRAITS_BY_CODE_ALONE,
    GUARANTEED_TRAITS_BY_SYMPTOM,
    NEXT_STEP_BY_REFUSAL_CODE,
    NEXT_STEP_BY_SYMPTOM_AND_CODE,
    QueueTrait,
    choose_next_step,
    find_next_step,
)
from mendq.redrive import reads
from tests.architecture.refusal_codes import codes_spelled_out
from tests.catalogue.asking import answer_to
from tests.notifications.pages import CASE

# The kinds of refusal whose code a case can have. A waiting case can end with an `Ignore`, too.
KINDS = dict.fromkeys(("Ignore", "Refuse", "Escalate", "Override"), 0)
PLANNED = [symptom for symptom in CATALOGUE if symptom.plan is not None]
# These codes open no case, and a waiting case never ends with one of them.
CODES_WITHOUT_CASE = frozenset(
    {"before_last_change", "case_already_open", "count_only", "said_already", "stale_or_future"}
    | {"too_little_evidence"}
)


def list_called_functions(function: FunctionType) -> Iterator[FunctionType]:
    """Yield the functions of Mendq that the function's source names."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    for node in ast.walk(tree):
        value: Any = None
        if isinstance(node, ast.Name):
            value = function.__globals__.get(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = function.__globals__.get(node.value.id)
            value = getattr(module, node.attr, None) if isinstance(module, ModuleType) else None
        if isinstance(value, FunctionType) and value.__module__.startswith("mendq."):
            yield value


@cache
def list_reachable_codes(function: FunctionType) -> frozenset[str]:
    """Return the codes that the function, and those that it calls, spell out."""
    seen: set[FunctionType] = set()
    left = [function]
    codes: set[str] = set()
    while left:
        next_function = left.pop()
        if next_function in seen:
            continue
        seen.add(next_function)
        source = textwrap.dedent(inspect.getsource(next_function))
        codes.update(codes_spelled_out(source, KINDS))
        left.extend(list_called_functions(next_function))
    return frozenset(codes)


def list_codes_of_any_symptom() -> frozenset[str]:
    """Return the codes that a case of any symptom with a plan can have."""
    codes = {AWS_REFUSED, OWN_CHANGE_CODE}
    for module in (guardrails, decide):
        codes.update(codes_spelled_out(inspect.getsource(module), KINDS))
    return frozenset(codes - CODES_WITHOUT_CASE)


# The modules whose refusals can end a write, by the Lambda that makes the change.
WRITING_MODULES: Mapping[Owner, tuple[ModuleType, ...]] = {
    Owner.HEAL: (apply,),
    Owner.RESTORE_POLICY: (apply, restore_policy),
    Owner.ATTACH_DLQ: (apply, dlqs, queue, unconfirmed_receiver),
    Owner.REDRIVE: (apply, reads, dlqs, queue, unconfirmed_receiver),
}
# These codes are given to a case when it ends, not by a refusal.
REDRIVE_END_CODES = frozenset({"redrive_halted"})


def list_codes_at_write(symptom: Symptom) -> frozenset[str]:
    """Return the codes with which the write of a plan of the symptom can be refused."""
    owners = {step.owner for step in symptom.steps}
    codes = {
        code
        for owner in owners
        for module in WRITING_MODULES[owner]
        for code in codes_spelled_out(inspect.getsource(module), KINDS)
    }
    if Owner.REDRIVE in owners:
        codes |= REDRIVE_END_CODES
    return frozenset(codes)


def list_guaranteed_traits(symptom_name: str, code: str) -> frozenset[QueueTrait]:
    return (
        GUARANTEED_TRAITS_BY_SYMPTOM.get(symptom_name, frozenset())
        | GUARANTEED_TRAITS_BY_CODE.get((symptom_name, code), frozenset())
        | GUARANTEED_TRAITS_BY_CODE_ALONE.get(code, frozenset())
    )


def list_examples(symptom: Symptom) -> Iterator[tuple[Facts, str]]:
    """Yield the queues of the symptom's examples, each with the code of the plan's refusal."""
    for example in symptom.examples():
        facts = getattr(example, "facts", None)
        is_of_symptom = isinstance(example, CallExample | QueueExample | RefusalExample)
        if facts is None or not is_of_symptom:
            continue
        outcome = getattr(example, "code", "") or getattr(example, "expected_outcome", "")
        yield facts, outcome if isinstance(outcome, str) else ""


def has_trait(facts: Facts, trait: QueueTrait) -> bool:
    """Return True if the queue has what the sentence takes for granted."""
    match trait:
        case QueueTrait.LAMBDA_MAPPING:
            return bool(facts.lambda_consumers or facts.stopped_consumers)
        case QueueTrait.FAILING_FUNCTION:
            return any(consumer.is_failing_fast for consumer in facts.lambda_consumers)
        case QueueTrait.FIFO:
            return facts.is_fifo
        case QueueTrait.HAS_DLQ:
            return facts.dlq_arn is not None
        case QueueTrait.NO_DLQ:
            return facts.dlq_arn is None
        case QueueTrait.IS_DLQ:
            return bool(facts.dlq_sources or facts.unconfirmed_sources)
        case QueueTrait.HAS_KEY:
            return facts.kms_key is not None
        case QueueTrait.NO_KEY:
            return facts.kms_key is None
        case QueueTrait.NO_NAMED_TIME:
            return MAX_PROCESSING.key not in facts.tags
        case QueueTrait.UNREADABLE_TAG:
            return bool(facts.tags.keys() & {MAX_PROCESSING.key, MAX_VISIBILITY.key})


@pytest.mark.parametrize("symptom", PLANNED, ids=lambda symptom: symptom.name)
def test_every_code_of_a_symptom_has_a_next_step_whose_needs_are_guaranteed(
    symptom: Symptom,
) -> None:
    assert isinstance(symptom.plan, FunctionType)
    examples = {code for _, code in list_examples(symptom) if code}
    codes = list_reachable_codes(symptom.plan) | examples | list_codes_of_any_symptom()
    codes |= list_codes_at_write(symptom)
    for code in codes - CODES_WITHOUT_CASE:
        pair = (symptom.name, code)
        guaranteed = list_guaranteed_traits(symptom.name, code)
        # A waiting case that ends has one of these states. A code without a step of its own, which
        # opens no case, takes the state's step.
        for state in (State.EXPIRED, State.ESCALATED):
            next_step = find_next_step(symptom.name, code, state)
            assert next_step.sentence, f"{pair} has no next step"
            missing = next_step.needs - guaranteed
            assert not missing, f"{pair}: {next_step.sentence!r} needs {missing}"


@pytest.mark.parametrize("symptom", PLANNED, ids=lambda symptom: symptom.name)
def test_guaranteed_traits_are_true_of_every_example_of_the_symptom(symptom: Symptom) -> None:
    for facts, code in list_examples(symptom):
        for trait in list_guaranteed_traits(symptom.name, code):
            assert has_trait(facts, trait), (symptom.name, code, trait)


@pytest.mark.parametrize("pair", NEXT_STEP_BY_SYMPTOM_AND_CODE)
def test_next_step_of_a_symptom_and_code_comes_before_the_codes_own_step(
    pair: tuple[str, str],
) -> None:
    next_step = find_next_step(*pair, State.ESCALATED)
    assert next_step == NEXT_STEP_BY_SYMPTOM_AND_CODE[pair]
    assert next_step.sentence != find_next_step("another", pair[1], State.ESCALATED).sentence


def test_next_step_tables_name_only_symptoms_and_codes_that_can_occur_together() -> None:
    reachable = {
        (symptom.name, code)
        for symptom in PLANNED
        if isinstance(symptom.plan, FunctionType)
        for code in list_reachable_codes(symptom.plan)
    }
    pairs = NEXT_STEP_BY_SYMPTOM_AND_CODE.keys() | GUARANTEED_TRAITS_BY_CODE.keys()
    assert pairs <= reachable
    assert GUARANTEED_TRAITS_BY_SYMPTOM.keys() <= {symptom.name for symptom in CATALOGUE}


# What a sentence takes for granted if it has these words. Only a queue with one of the traits may
# get it. A sentence that says in the same breath when it holds is true of every queue.
TRAITS_BY_WORDS: Mapping[str, frozenset[QueueTrait]] = {
    r"\bthe tag\b": frozenset({QueueTrait.UNREADABLE_TAG}),
    r"\btag its\b|^Tag the queue\b": frozenset({QueueTrait.NO_NAMED_TIME}),
    r"\bfunction\b|\bevent source mapping\b": frozenset(
        {QueueTrait.LAMBDA_MAPPING, QueueTrait.FAILING_FUNCTION}
    ),
    r"\bFIFO\b|\bthis group\b": frozenset({QueueTrait.FIFO}),
}


@pytest.mark.parametrize("words", TRAITS_BY_WORDS)
def test_next_step_whose_words_take_a_queue_trait_for_granted_declares_it(words: str) -> None:
    steps = [*NEXT_STEP_BY_REFUSAL_CODE.items(), *NEXT_STEP_BY_SYMPTOM_AND_CODE.items()]
    for place, next_step in steps:
        if re.search(words, next_step.sentence):
            assert next_step.needs & TRAITS_BY_WORDS[words], f"{place}: {next_step.sentence!r}"


def test_processing_time_that_needs_more_than_sqs_allows_gets_no_command_to_raise_the_ceiling() -> (
    None
):
    (symptom,) = [entry for entry in CATALOGUE if entry.name == "visibility_timeout_too_short"]
    for tagged_seconds, has_tag_command in ((28_800, True), (30_000, False)):
        facts = Facts(
            "arn:aws:sqs:us-east-1:123456789012:orders",
            {"VisibilityTimeout": "30"},
            tags={MAX_PROCESSING.key: str(tagged_seconds)},
        )
        answer = answer_to(symptom, facts)
        assert isinstance(answer, Refusal)
        assert answer.code == "over_ceiling"
        case = replace(CASE, symptom=symptom.name, state=State.REFUSED, code=answer.code)
        command = choose_next_step(case, answer.next_command)["command"]
        assert (MAX_VISIBILITY.key in command) is has_tag_command
        assert ("SQS takes 43,200 s at most" in answer.reason) is not has_tag_command


def test_next_step_of_over_retention_says_that_sqs_keeps_messages_14_days_at_most() -> None:
    """The queue may keep its messages that long already."""
    over_retention = find_next_step("", "over_retention", State.REFUSED)
    assert "14 days at most" in over_retention.sentence


def test_next_step_of_over_in_flight_advises_to_receive_fewer_messages_at_a_time() -> None:
    """More consumers would hold more messages."""
    over_in_flight = find_next_step("", "over_in_flight", State.REFUSED)
    assert "Receive fewer messages at a time" in over_in_flight.sentence


def test_refusal_for_a_fifo_queue_with_nothing_in_flight_says_consumers_may_have_stopped() -> None:
    (symptom,) = [entry for entry in CATALOGUE if entry.name == "fifo_group_blocked"]
    stopped = Facts(
        "arn:aws:sqs:us-east-1:123456789012:orders.fifo", {"ApproximateNumberOfMessages": "60"}
    )
    answer = answer_to(symptom, stopped)
    assert isinstance(answer, Refusal)
    assert answer.code == "need_already_met"
    assert "60 messages waiting, 0 in flight" in answer.reason
    assert "its consumers may have stopped" in answer.reason

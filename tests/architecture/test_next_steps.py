"""Every symptom and refusal code that can occur together has a next step, and a true one."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from functools import cache
from types import FunctionType, ModuleType
from typing import Any

import pytest

from mendq.catalogue import CATALOGUE
from mendq.catalogue.symptom import CallExample, QueueExample, RefusalExample, Symptom
from mendq.heal import decide, guardrails
from mendq.model.facts import Facts
from mendq.model.harms import OWN_CHANGE_CODE
from mendq.model.plan import AWS_REFUSED, Refusal
from mendq.model.state import State
from mendq.notifications.next_steps import (
    GUARANTEED_TRAITS_BY_CODE,
    GUARANTEED_TRAITS_BY_SYMPTOM,
    NEXT_STEP_BY_SYMPTOM_AND_CODE,
    QueueTrait,
    find_next_step,
)
from tests.architecture.refusal_codes import codes_spelled_out
from tests.catalogue.asking import answer_to

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
        case QueueTrait.IS_DLQ:
            return bool(facts.dlq_sources or facts.unconfirmed_sources)


@pytest.mark.parametrize("symptom", PLANNED, ids=lambda symptom: symptom.name)
def test_every_code_of_a_symptom_has_a_next_step_whose_needs_are_guaranteed(
    symptom: Symptom,
) -> None:
    assert isinstance(symptom.plan, FunctionType)
    examples = {code for _, code in list_examples(symptom) if code}
    codes = list_reachable_codes(symptom.plan) | examples | list_codes_of_any_symptom()
    for code in codes - CODES_WITHOUT_CASE:
        pair = (symptom.name, code)
        guaranteed = GUARANTEED_TRAITS_BY_SYMPTOM.get(symptom.name, frozenset())
        guaranteed |= GUARANTEED_TRAITS_BY_CODE.get(pair, frozenset())
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
        traits = GUARANTEED_TRAITS_BY_SYMPTOM.get(symptom.name, frozenset())
        traits |= GUARANTEED_TRAITS_BY_CODE.get((symptom.name, code), frozenset())
        for trait in traits:
            assert has_trait(facts, trait), (symptom.name, code, trait)


def test_table_of_pairs_names_only_pairs_that_can_occur() -> None:
    reachable = {
        (symptom.name, code)
        for symptom in PLANNED
        if isinstance(symptom.plan, FunctionType)
        for code in list_reachable_codes(symptom.plan)
    }
    pairs = NEXT_STEP_BY_SYMPTOM_AND_CODE.keys() | GUARANTEED_TRAITS_BY_CODE.keys()
    assert pairs <= reachable
    assert GUARANTEED_TRAITS_BY_SYMPTOM.keys() <= {symptom.name for symptom in CATALOGUE}


def test_fifo_queue_without_consumers_is_not_told_that_its_groups_move_on() -> None:
    (symptom,) = [entry for entry in CATALOGUE if entry.name == "fifo_group_blocked"]
    stopped = Facts(
        "arn:aws:sqs:us-east-1:123456789012:orders.fifo", {"ApproximateNumberOfMessages": "60"}
    )
    answer = answer_to(symptom, stopped)
    assert isinstance(answer, Refusal)
    assert answer.code == "need_already_met"
    assert "60 messages waiting, 0 in flight" in answer.reason
    assert "its consumers may have stopped" in answer.reason

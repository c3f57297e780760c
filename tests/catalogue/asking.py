"""Ask an entry of the catalogue for its faults, plans and refusals, and read the tests' data."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from mendq.catalogue.symptom import CallExample, QueueExample, Symptom
from mendq.model.facts import Facts, Need
from mendq.model.limits import Limits
from mendq.model.plan import Plan, Refusal
from mendq.model.steps import AttributeStep
from tests.architecture.aws_commands import find_mistake

LIMITS = Limits()
_FOLDER = Path(__file__).parent


def policy_of(*statements: object) -> str:
    """Return a queue policy with these statements."""
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)})


def read_test_data(name: str) -> Any:
    """Read the JSON file of this name beside the tests."""
    return json.loads((_FOLDER / f"{name}.json").read_text())


def call_examples_of(entry: Symptom) -> list[CallExample]:
    """Return the entry's examples of failed calls that show the symptom."""
    return [example for example in entry.examples() if isinstance(example, CallExample)]


def queue_examples_of(entry: Symptom) -> list[QueueExample]:
    """Return the entry's examples of queues that show the symptom."""
    return [example for example in entry.examples() if isinstance(example, QueueExample)]


def keep_read_facts(facts: Facts, needs: Collection[Need]) -> Facts:
    """Return the facts as if only the attributes and the facts of `needs` had been read."""
    read_names = {"attributes"}
    for need in needs:
        read_names.update(need.fact_fields)
    all_names = {name for need in Need for name in need.fact_fields}
    unread: dict[str, Any] = {
        field.name: field.default for field in fields(facts) if field.name in all_names - read_names
    }
    return replace(facts, **unread)


def detect_fault(entry: Symptom, facts: Facts) -> Facts | None:
    """Return the facts with the fault that the entry detects in them, or None without a fault."""
    assert entry.detection is not None
    fault = entry.detection.detect(facts)
    return None if fault is None else replace(facts, found=fault.because)


def facts_of(entry: Symptom, example: Any) -> Facts:
    """Return the facts from which the entry plans its answer to an example."""
    facts = (
        detect_fault(entry, example.facts) if isinstance(example, QueueExample) else example.facts
    )
    assert facts is not None
    return facts


def answer_to(entry: Symptom, facts: Facts) -> Plan | Refusal:
    assert entry.plan is not None
    return entry.plan(facts, LIMITS)


def expect_plan(entry: Symptom, facts: Facts) -> Plan:
    """Return the entry's plan, and check that its steps are the entry's and within their bounds."""
    answer = answer_to(entry, facts)
    assert isinstance(answer, Plan), answer
    for step in (*answer.steps, *answer.proposal):
        assert isinstance(step, entry.steps)
        assert step.find_bounds_fault() is None
    return answer


def only_step_of(answer: Plan | Refusal) -> AttributeStep:
    """Return the only step of a plan."""
    assert isinstance(answer, Plan), answer
    (step,) = answer.steps
    return step


def expect_refusal(entry: Symptom, facts: Facts) -> Refusal:
    """Return the entry's refusal, and check that its command can be run unchanged."""
    answer = answer_to(entry, facts)
    assert isinstance(answer, Refusal), answer
    assert answer.reason
    if answer.next_command.startswith("aws "):
        assert find_mistake(answer.next_command) == ""
    return answer


def words_of(answer: Plan | Refusal) -> Mapping[str, Any]:
    """Return everything that people read of an answer."""
    if isinstance(answer, Refusal):
        kind = f"{type(answer).__name__} {answer.code}"
        silent = {"silent_in_observe": True} if answer.silent_in_observe else {}
        return {"kind": kind, "reason": answer.reason, "command": answer.next_command, **silent}
    steps = [[step.attribute, str(step.before), str(step.after)] for step in answer.steps]
    more = {
        "first": list(answer.first_commands),
        "beyond": [str(step.after) for step in answer.proposal],
    }
    said = {name: value for name, value in more.items() if value}
    return {
        "kind": f"at most {answer.highest_mode}",
        "steps": steps,
        "reason": answer.reason,
        **said,
    }

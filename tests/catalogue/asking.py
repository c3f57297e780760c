"""Ask an entry of the catalogue, and compare what it says with what is recorded."""

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
    """A queue policy of these statements."""
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)})


def golden(name: str) -> Any:
    """A recorded file beside the tests."""
    return json.loads((_FOLDER / f"{name}.json").read_text())


def call_examples_of(entry: Symptom) -> list[CallExample]:
    """The entry's examples of calls that it matches."""
    return [each for each in entry.examples() if isinstance(each, CallExample)]


def queue_examples_of(entry: Symptom) -> list[QueueExample]:
    """The entry's examples of queues that its detection finds something wrong with."""
    return [each for each in entry.examples() if isinstance(each, QueueExample)]


def keep_read_facts(facts: Facts, needs: Collection[Need]) -> Facts:
    """The same where nobody asked for anything but `needs`; attributes are always there."""
    answered = {"attributes", *(name for need in needs for name in need.answers)}
    unasked = {name for need in Need for name in need.answers} - answered
    absent: dict[str, Any] = {e.name: e.default for e in fields(facts) if e.name in unasked}
    return replace(facts, **absent)


def detect_fault(entry: Symptom, facts: Facts) -> Facts | None:
    """The facts with what the entry's detection found in them; None where it found nothing."""
    assert entry.detection is not None
    found = entry.detection.detect(facts)
    return None if found is None else replace(facts, found=found.because)


def facts_of(entry: Symptom, example: Any) -> Facts:
    """What an example's answer is made of."""
    facts = (
        detect_fault(entry, example.facts) if isinstance(example, QueueExample) else example.facts
    )
    assert facts is not None
    return facts


def answer_to(entry: Symptom, facts: Facts) -> Plan | Refusal:
    assert entry.plan is not None
    return entry.plan(facts, LIMITS)


def expect_plan(entry: Symptom, facts: Facts) -> Plan:
    """The entry's plan, whose steps are its own and within their bounds."""
    answer = answer_to(entry, facts)
    assert isinstance(answer, Plan), answer
    for step in (*answer.steps, *answer.proposal):
        assert isinstance(step, entry.steps)
        assert step.find_bounds_fault() is None
    return answer


def only_step_of(answer: Plan | Refusal) -> AttributeStep:
    """The only step of a plan."""
    assert isinstance(answer, Plan), answer
    (step,) = answer.steps
    return step


def expect_refusal(entry: Symptom, facts: Facts) -> Refusal:
    """The entry's refusal, whose command can be typed as it stands."""
    answer = answer_to(entry, facts)
    assert isinstance(answer, Refusal), answer
    assert answer.reason
    if answer.next_command.startswith("aws "):
        assert find_mistake(answer.next_command) == ""
    return answer


def words_of(answer: Plan | Refusal) -> Mapping[str, Any]:
    """All that people read of an answer."""
    if isinstance(answer, Refusal):
        kind = f"{type(answer).__name__} {answer.code}"
        silent = {"silent_in_observe": True} if answer.silent_in_observe else {}
        return {"kind": kind, "reason": answer.reason, "command": answer.next_command, **silent}
    steps = [[step.attribute, str(step.before), str(step.after)] for step in answer.steps]
    more = {"first": list(answer.first), "beyond": [str(step.after) for step in answer.proposal]}
    said = {name: value for name, value in more.items() if value}
    return {"kind": f"at most {answer.at_most}", "steps": steps, "reason": answer.reason, **said}

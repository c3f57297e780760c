"""What every entry of the catalogue has to keep; the cases come from the entries themselves."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from mendq import catalogue
from mendq.catalogue import CATALOGUE, examples, find_symptom_of
from mendq.catalogue.symptom import (
    CallExample,
    CallNearMiss,
    FixedSymptom,
    NearMiss,
    QueueExample,
    QueueNearMiss,
    RefusalExample,
    ReportedSymptom,
    Symptom,
)
from mendq.model.failed_call import FailedCall, read
from mendq.model.plan import Escalate, Plan, owner_of_case
from mendq.model.steps import STEP_CLASSES, AttributeStep, Owner, SetMessageRetention
from mendq.scan.scan import NEEDS_OF_PLANS, NEEDS_READ_FOR_SUSPECTS
from tests.architecture.aws_commands import find_mistake
from tests.catalogue.asking import (
    answer_to,
    call_examples_of,
    detect_fault,
    expect_plan,
    expect_refusal,
    facts_of,
    keep_read_facts,
    queue_examples_of,
)
from tests.catalogue.entry_checks import missing_in_entry
from tests.catalogue.recorded_sentences import SENTENCES_FILE, recorded, sentences_of
from tests.golden.checks import fail_if_different
from tests.model.builders import make_record

ROOT = Path(__file__).parents[2]
SCANNED = [entry for entry in CATALOGUE if entry.detection]


def _examples(*kinds: type) -> pytest.MarkDecorator:
    """A test of every example of these kinds, by its title."""
    of_kinds = [(e, each) for e in CATALOGUE for each in e.examples() if isinstance(each, kinds)]
    return pytest.mark.parametrize(
        ("entry", "example"), of_kinds, ids=[f"{e.name}: {each.title}" for e, each in of_kinds]
    )


def _entries(entries: Iterable[Symptom]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("entry", entries, ids=lambda entry: entry.name)


def _defines_a_symptom(path: Path) -> bool:
    """Return True if the module assigns an entry of the catalogue."""
    return (
        re.search(
            r"^[A-Z_]+ = (FixedSymptom|NotifiedSymptom|ReportedSymptom)\(",
            path.read_text(),
            re.MULTILINE,
        )
        is not None
    )


def test_every_file_is_an_entry_with_a_runbook_and_the_other_way_round() -> None:
    """A symptom's runbook is known by its title; alarms have theirs in the same folder."""
    folder = Path(catalogue.__file__).parent
    files = [path.stem for path in folder.rglob("*.py") if _defines_a_symptom(path)]
    assert sorted(files) == sorted(entry.name for entry in CATALOGUE)
    pages = (ROOT / "docs" / "runbooks").glob("*.md")
    titled = {each for each in pages if each.read_text().startswith(f"# {each.stem}: ")}
    assert titled == {ROOT / entry.runbook for entry in CATALOGUE}


@_entries(CATALOGUE)
def test_an_entry_is_whole(entry: Symptom) -> None:
    assert list(missing_in_entry(entry)) == []
    assert bool(call_examples_of(entry)) == bool(entry.seen_as)
    assert bool(queue_examples_of(entry)) == bool(entry.detection)


@_entries(CATALOGUE)
def test_advice_for_many_queues_is_short_and_its_command_can_be_typed(entry: Symptom) -> None:
    assert len(entry.advice_if_many.sentence) < 600
    if command := entry.advice_if_many.make_command(examples.QUEUE_ARN):
        assert find_mistake(command) == ""


def _steps(example: CallExample | QueueExample) -> tuple[AttributeStep, ...]:
    return () if isinstance(example.expected_outcome, str) else example.expected_outcome


def test_what_is_only_counted_comes_last() -> None:
    """It takes what the others leave of its codes."""
    assert [each.name for each in CATALOGUE if each.default_mode_text == "count only"] == [
        CATALOGUE[-1].name
    ]


def test_every_step_has_an_entry() -> None:
    assert {step for entry in CATALOGUE for step in entry.steps} == set(STEP_CLASSES)


@_examples(CallNearMiss, QueueNearMiss, RefusalExample)
def test_a_near_miss_is_not_touched(entry: Symptom, example: NearMiss) -> None:
    if isinstance(example, CallNearMiss):
        assert find_symptom_of(example.call) is not entry
    elif isinstance(example, QueueNearMiss):
        assert detect_fault(entry, example.facts) is None
    else:
        assert expect_refusal(entry, example.facts).code == example.code


@_examples(QueueExample)
def test_what_is_detected_is_asked_for(entry: Symptom, example: QueueExample) -> None:
    """A suspect before it is measured, but where a configuration shows it; found in what a scan
    gathers, where examples have more; and planned the same from what heal gathers.
    """
    assert entry.detection is not None
    unmeasured = replace(example.facts, measurement=None, move_task_running=False)
    shows = entry.detection.is_of_configuration and entry.detection.detect(unmeasured)
    assert shows or entry.detection.is_suspect(unmeasured)
    facts = facts_of(entry, example)
    scanned = keep_read_facts(
        example.facts, {*NEEDS_READ_FOR_SUSPECTS, *entry.detection.needs} - NEEDS_OF_PLANS
    )
    by_the_scan = detect_fault(entry, scanned)
    assert by_the_scan is not None
    assert by_the_scan.found == facts.found
    by_heal = detect_fault(entry, keep_read_facts(example.facts, entry.every_need))
    assert by_heal is not None
    assert entry.plan is None or answer_to(entry, by_heal) == answer_to(entry, facts)


@_examples(QueueNearMiss)
def test_a_detection_misses_it_in_what_its_needs_gather(
    entry: Symptom, example: QueueNearMiss
) -> None:
    assert entry.detection is not None
    needs = {*NEEDS_READ_FOR_SUSPECTS, *entry.detection.needs} - NEEDS_OF_PLANS
    assert detect_fault(entry, keep_read_facts(example.facts, needs)) is None


@_entries(SCANNED)
def test_an_entry_gives_way_to_the_cases_that_it_says(entry: Symptom) -> None:
    """A scan weighs its findings by what the entry says; the entry itself by open cases."""

    def is_taken_up(example: QueueExample, open_symptom: str) -> bool:
        facts = replace(example.facts, open_symptoms=frozenset({open_symptom}))
        found = detect_fault(entry, facts)
        if found is None or entry.plan is None:
            return found is not None
        expected_outcome = answer_to(entry, found)
        return isinstance(expected_outcome, Plan) or expected_outcome.case_state is not None

    for other in CATALOGUE:
        taken_up = [is_taken_up(each, other.name) for each in queue_examples_of(entry)]
        assert all(taken_up) != (other.name in entry.gives_way_to), other.name
    assert entry.gives_way_to <= {each.name for each in CATALOGUE} - {entry.name}


@_examples(CallExample, QueueExample)
def test_an_example_gets_the_answer_it_states(
    entry: Symptom, example: CallExample | QueueExample
) -> None:
    if isinstance(entry, ReportedSymptom):
        return
    facts = facts_of(entry, example)
    if isinstance(example.expected_outcome, str):
        page = expect_refusal(entry, facts)
        assert isinstance(page, Escalate)
        assert page.code == example.expected_outcome
        assert page.next_command.startswith(("aws ", "mendq dlq ", "mendq rollback "))
        return
    plan = expect_plan(entry, facts)
    assert plan.steps == example.expected_outcome
    stood = {step.attribute: step.value_in(facts.attributes) for step in plan.steps}
    assert len(stood) == len(plan.steps), "an attribute once"
    undone = {step.attribute: str(step.before) for step in plan.steps}
    assert undone == stood, "undoing a plan brings back what stood there"


@_entries([entry for entry in CATALOGUE if isinstance(entry, FixedSymptom)])
def test_one_owner_takes_a_plan(entry: FixedSymptom) -> None:
    """No Lambda could carry out one of two; a redrive raises its own queue's retention."""
    owner = entry.steps[0].owner
    others = {step for step in entry.steps if step.owner is not owner}
    assert others <= ({SetMessageRetention} if owner is Owner.REDRIVE else set())
    answered = (each for each in entry.examples() if isinstance(each, CallExample | QueueExample))
    plans = [steps for each in answered if (steps := _steps(each))]
    assert {plan[0].owner for plan in plans} == {owner}
    assert {owner_of_case([step.document() for step in plan]) for plan in plans} == {owner}
    assert all(sum(step.is_permanent for step in plan) <= 1 for plan in plans), (
        "one queue made at most"
    )


@_examples(CallExample)
def test_one_entry_alone_claims_an_example(entry: Symptom, example: CallExample) -> None:
    assert find_symptom_of(example.call) is entry
    claiming = [each for each in CATALOGUE if each.matches(example.call) and each.plan]
    assert claiming == ([entry] if entry.plan else [])
    call, queues = example.call, [{"ARN": example.call.queue_arn}]
    said = {"errorCode": call.raw_error_code, "errorMessage": call.error_message}
    recorded = read(make_record(eventName=call.event_name, resources=queues, **said))
    assert isinstance(recorded, FailedCall)
    assert find_symptom_of(recorded) is entry


@_entries(CATALOGUE)
def test_people_read_what_is_recorded(entry: Symptom) -> None:
    fail_if_different(
        SENTENCES_FILE, {entry.name: recorded(entry)}, {entry.name: sentences_of(entry)}
    )

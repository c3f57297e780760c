"""Test the rules that every entry of the catalogue must keep, with the entries' own examples."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from mendq import catalogue
from mendq.catalogue import CATALOGUE, SYMPTOM_BY_NAME, examples, find_symptom_of
from mendq.catalogue.dlq.redrive_causes import SYMPTOMS_HARMLESS_WITHOUT_PAGE
from mendq.catalogue.symptom import (
    CallExample,
    CallNearMiss,
    FixedSymptom,
    NotifiedSymptom,
    QueueExample,
    QueueNearMiss,
    RefusalExample,
    ReportedSymptom,
    Symptom,
)
from mendq.model.facts import Need
from mendq.model.failed_call import FailedCall, read, read_refused_mapping
from mendq.model.plan import Escalate, Plan, Refuse, owner_of_case
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
from tests.catalogue.entry_checks import SYMPTOMS_THAT_NEVER_PAGE, find_missing_in_entry
from tests.catalogue.recorded_sentences import SENTENCES_FILE, read_recorded_sentences, sentences_of
from tests.golden.checks import fail_if_different
from tests.model.builders import make_record

ROOT = Path(__file__).parents[2]
# A scan may fail to read the consumers, so a detection that uses them must declare it.
ALWAYS_READ_NEEDS = NEEDS_READ_FOR_SUSPECTS - {Need.LAMBDA_CONSUMERS}
ENTRIES_WITH_DETECTION = [entry for entry in CATALOGUE if entry.detection]
NOTIFIED_ENTRIES = [entry for entry in CATALOGUE if isinstance(entry, NotifiedSymptom)]


# Made once: each call of `examples` makes new ones, and most tests below need them all.
EXAMPLES = [(entry, example) for entry in CATALOGUE for example in entry.examples()]


def for_examples(*kinds: type, only: type[Symptom] = Symptom) -> pytest.MarkDecorator:
    """Parametrize a test with every example of these kinds, of entries of the class `only`."""
    examples_of_kinds = [
        (entry, example)
        for entry, example in EXAMPLES
        if isinstance(entry, only) and isinstance(example, kinds)
    ]
    assert examples_of_kinds
    ids = [f"{entry.name}: {example.title}" for entry, example in examples_of_kinds]
    return pytest.mark.parametrize(("entry", "example"), examples_of_kinds, ids=ids)


def for_entries(entries: Iterable[Symptom]) -> pytest.MarkDecorator:
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


def test_every_symptom_has_one_file_of_its_name() -> None:
    folder = Path(catalogue.__file__).parent
    files = [path.stem for path in folder.rglob("*.py") if _defines_a_symptom(path)]
    assert sorted(files) == sorted(entry.name for entry in CATALOGUE)


def test_every_symptom_has_one_runbook_whose_title_is_its_name() -> None:
    """A symptom's runbook is known by its title; alarms have theirs in the same folder."""
    pages = (ROOT / "docs" / "runbooks").glob("*.md")
    titled = {page for page in pages if page.read_text().startswith(f"# {page.stem}: ")}
    assert titled == {ROOT / entry.runbook for entry in CATALOGUE}


@for_entries(CATALOGUE)
def test_entry_has_all_texts_and_examples_and_declares_how_it_is_found(entry: Symptom) -> None:
    assert list(find_missing_in_entry(entry)) == []
    assert bool(call_examples_of(entry)) == bool(entry.seen_as)
    assert bool(queue_examples_of(entry)) == bool(entry.detection)


@for_entries(NOTIFIED_ENTRIES)
def test_entry_that_notifies_people_has_a_short_advice_for_many_queues(entry: Symptom) -> None:
    assert 0 < len(entry.advice_if_many.sentence) < 600


@for_entries([entry for entry in CATALOGUE if isinstance(entry, ReportedSymptom)])
def test_entry_that_is_only_reported_has_no_advice_for_many_queues(entry: Symptom) -> None:
    assert entry.advice_if_many.sentence == ""
    assert entry.advice_if_many.make_command(examples.QUEUE_ARN) == ""


@pytest.mark.parametrize("name", ["consumer_throttled", "kms_throttled"])
def test_advice_for_many_throttled_consumers_or_keys_has_a_valid_aws_command(name: str) -> None:
    command = SYMPTOM_BY_NAME[name].advice_if_many.make_command(examples.QUEUE_ARN)
    assert command.startswith("aws ")
    assert find_mistake(command) == ""


@for_entries(NOTIFIED_ENTRIES)
def test_command_in_the_advice_for_many_queues_is_one_that_aws_accepts(entry: Symptom) -> None:
    command = entry.advice_if_many.make_command(examples.QUEUE_ARN)
    assert find_mistake(command) == "" if command else entry.advice_if_many.sentence


def _expected_steps_of(example: CallExample | QueueExample) -> tuple[AttributeStep, ...]:
    return () if isinstance(example.expected_outcome, str) else example.expected_outcome


def test_only_the_last_entry_which_takes_all_other_failed_calls_merely_counts_them() -> None:
    """The last entry takes the calls that no other entry matches."""
    only_counted = [entry.name for entry in CATALOGUE if entry.default_mode_text == "count only"]
    assert only_counted == [CATALOGUE[-1].name]


def test_every_step_class_is_used_by_an_entry() -> None:
    assert {step for entry in CATALOGUE for step in entry.steps} == set(STEP_CLASSES)


@for_examples(CallNearMiss)
def test_failed_call_that_only_looks_like_the_symptom_is_not_matched(
    entry: Symptom, example: CallNearMiss
) -> None:
    assert find_symptom_of(example.call) is not entry


@for_examples(QueueNearMiss)
def test_queue_that_only_looks_like_it_has_the_fault_is_not_detected(
    entry: Symptom, example: QueueNearMiss
) -> None:
    assert detect_fault(entry, example.facts) is None


@for_examples(RefusalExample)
def test_queue_that_must_not_be_fixed_is_refused_with_the_stated_code(
    entry: Symptom, example: RefusalExample
) -> None:
    assert expect_refusal(entry, example.facts).code == example.code


@for_examples(QueueExample)
def test_queue_example_is_possible_or_shows_its_fault_before_any_metric_is_read(
    entry: Symptom, example: QueueExample
) -> None:
    """A scan looks for a symptom in metrics only if the configuration makes it possible."""
    assert entry.detection is not None
    unmeasured = replace(example.facts, measurement=None, move_task_running=False)
    is_configuration_fault = bool(
        entry.detection.is_of_configuration and entry.detection.detect(unmeasured)
    )
    assert is_configuration_fault or entry.detection.is_possible(unmeasured)


@for_examples(QueueExample)
def test_queue_example_is_detected_with_only_the_facts_that_a_scan_reads(
    entry: Symptom, example: QueueExample
) -> None:
    assert entry.detection is not None
    needs = {*ALWAYS_READ_NEEDS, *entry.detection.needs} - NEEDS_OF_PLANS
    found_by_scan = detect_fault(entry, keep_read_facts(example.facts, needs))
    assert found_by_scan is not None
    assert found_by_scan.found == facts_of(entry, example).found


@for_examples(QueueExample, only=NotifiedSymptom)
def test_queue_example_is_planned_the_same_with_only_the_facts_that_heal_reads(
    entry: Symptom, example: QueueExample
) -> None:
    found_by_heal = detect_fault(entry, keep_read_facts(example.facts, entry.all_needs))
    assert found_by_heal is not None
    assert answer_to(entry, found_by_heal) == answer_to(entry, facts_of(entry, example))


@for_examples(QueueNearMiss)
def test_near_miss_is_not_detected_with_only_the_facts_that_a_scan_reads(
    entry: Symptom, example: QueueNearMiss
) -> None:
    assert entry.detection is not None
    needs = {*ALWAYS_READ_NEEDS, *entry.detection.needs} - NEEDS_OF_PLANS
    assert detect_fault(entry, keep_read_facts(example.facts, needs)) is None


@for_entries(ENTRIES_WITH_DETECTION)
def test_entry_is_silent_exactly_while_a_case_of_a_symptom_that_it_gives_way_to_is_open(
    entry: Symptom,
) -> None:
    """A scan compares its findings by `gives_way_to`, and the entry compares open cases.

    An open case of a symptom that is harmless without a page has paged. Its findings may not have.
    """

    def is_handled(example: QueueExample, open_symptom: str) -> bool:
        facts = replace(example.facts, open_symptoms=frozenset({open_symptom}))
        found = detect_fault(entry, facts)
        if found is None or entry.plan is None:
            return found is not None
        expected_outcome = answer_to(entry, found)
        return isinstance(expected_outcome, Plan) or expected_outcome.case_state is not None

    for other in CATALOGUE:
        handled = [is_handled(example, other.name) for example in queue_examples_of(entry)]
        is_explained = other.name in entry.gives_way_to
        if other.name in SYMPTOMS_HARMLESS_WITHOUT_PAGE and not is_explained:
            continue
        assert all(handled) != is_explained, other.name


@for_entries(ENTRIES_WITH_DETECTION)
def test_entry_gives_way_only_to_other_entries_of_the_catalogue(entry: Symptom) -> None:
    assert entry.gives_way_to <= {other.name for other in CATALOGUE} - {entry.name}


@for_examples(CallExample, QueueExample, only=NotifiedSymptom)
def test_example_gets_its_stated_steps_or_a_notification_with_its_code_and_a_command(
    entry: Symptom, example: CallExample | QueueExample
) -> None:
    facts = facts_of(entry, example)
    if isinstance(example.expected_outcome, str):
        page = expect_refusal(entry, facts)
        assert isinstance(page, Refuse if entry.name in SYMPTOMS_THAT_NEVER_PAGE else Escalate)
        assert page.code == example.expected_outcome
        first_words = ("aws ", "mendq confirm ", "mendq dlq ", "mendq rollback ")
        assert page.next_command.startswith(first_words)
    else:
        assert expect_plan(entry, facts).steps == example.expected_outcome


@for_examples(CallExample, QueueExample, only=FixedSymptom)
def test_steps_of_an_example_set_each_attribute_once_and_record_its_current_value(
    entry: Symptom, example: CallExample | QueueExample
) -> None:
    facts = facts_of(entry, example)
    steps = _expected_steps_of(example)
    values_before = {step.attribute: step.value_in(facts.attributes) for step in steps}
    assert len(values_before) == len(steps)
    assert {step.attribute: str(step.before) for step in steps} == values_before


@for_entries([entry for entry in CATALOGUE if isinstance(entry, FixedSymptom)])
def test_steps_of_an_entry_are_all_written_by_one_lambda(entry: FixedSymptom) -> None:
    """No Lambda function may carry out both of two owners' steps.

    The exception is a redrive, which raises the retention of its DLQ.
    """
    owner = entry.steps[0].owner
    others = {step for step in entry.steps if step.owner is not owner}
    assert others <= ({SetMessageRetention} if owner is Owner.REDRIVE else set())
    plans = [
        _expected_steps_of(example)
        for example in entry.examples()
        if isinstance(example, CallExample | QueueExample) and _expected_steps_of(example)
    ]
    assert plans
    for plan in plans:
        assert plan[0].owner is owner
        documents = [step.document() for step in plan]
        assert owner_of_case(documents) is owner


@for_examples(CallExample, QueueExample, only=FixedSymptom)
def test_plan_of_an_example_creates_at_most_one_queue(
    entry: Symptom, example: CallExample | QueueExample
) -> None:
    permanent_steps = [step for step in _expected_steps_of(example) if step.is_permanent]
    assert len(permanent_steps) <= 1, entry.name


@for_examples(CallExample)
def test_failed_call_example_is_matched_by_its_own_entry_alone(
    entry: Symptom, example: CallExample
) -> None:
    assert find_symptom_of(example.call) is entry
    matching = [other for other in CATALOGUE if other.matches(example.call) and other.plan]
    assert matching == ([entry] if entry.plan else [])


@for_examples(CallExample)
def test_failed_call_example_is_matched_also_if_it_is_read_from_a_cloudtrail_record(
    entry: Symptom, example: CallExample
) -> None:
    record = make_record(
        eventName=example.call.event_name,
        resources=[{"ARN": example.call.queue_arn}],
        errorCode=example.call.raw_error_code,
        errorMessage=example.call.error_message,
    )
    if example.call.refused_function_seconds is not None:
        record["eventSource"] = "lambda.amazonaws.com"
        record["requestParameters"] = {"eventSourceArn": example.call.queue_arn}
    call_from_record = read_refused_mapping(record) or read(record)
    assert isinstance(call_from_record, FailedCall)
    assert find_symptom_of(call_from_record) is entry


@for_entries(CATALOGUE)
def test_sentences_of_an_entry_equal_the_recorded_ones(entry: Symptom) -> None:
    fail_if_different(
        SENTENCES_FILE,
        {entry.name: read_recorded_sentences(entry)},
        {entry.name: sentences_of(entry)},
    )

"""The page about messages in a DLQ waits only for a cause that pages."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mendq.cases.finding import Finding, find_waiting_findings
from mendq.catalogue import SYMPTOM_BY_NAME
from mendq.catalogue.dlq.redrive_causes import CAUSE_SYMPTOMS, find_cause_cases
from mendq.catalogue.examples import DLQ_ARN, EXAMPLE_TIME, STANDARD_ARN, case
from mendq.catalogue.symptom import NotifiedSymptom, QueueExample, RefusalExample
from mendq.model.facts import Facts
from mendq.model.limits import Limits
from mendq.model.plan import Escalate, Plan
from mendq.model.state import State
from tests.catalogue.asking import detect_fault, queue_examples_of

ARRIVING = SYMPTOM_BY_NAME["dlq_messages_arriving"]
WAITING = SYMPTOM_BY_NAME["dlq_messages_waiting"]
ARRIVAL = Finding(
    DLQ_ARN, ARRIVING.name, "they arrive", (STANDARD_ARN,), possible_source_arns=(STANDARD_ARN,)
)
CAUSES_OF_SCANS = sorted(name for name in CAUSE_SYMPTOMS if SYMPTOM_BY_NAME[name].detection)


def list_facts(entry: NotifiedSymptom) -> list[Facts]:
    """Return the queues of the entry's examples, also of those without a page."""
    return [
        example.facts
        for example in entry.examples()
        if isinstance(example, (QueueExample, RefusalExample))
    ]


@pytest.mark.parametrize("name", ["in_flight_limit", "consumer_crashes"])
def test_crashes_and_a_full_queue_can_explain_dlq_messages(name: str) -> None:
    assert name in CAUSE_SYMPTOMS


def test_low_receive_count_that_nobody_is_paged_about_explains_no_dlq_messages() -> None:
    assert "max_receive_count_too_low" not in CAUSE_SYMPTOMS


@pytest.mark.parametrize("name", CAUSES_OF_SCANS)
@pytest.mark.parametrize("should_page", [True, False])
def test_page_about_a_dlq_waits_for_a_cause_only_if_the_cause_pages(
    name: str, should_page: bool
) -> None:
    cause = Finding(STANDARD_ARN, name, "it fails", should_page=should_page)
    waiting = find_waiting_findings([ARRIVAL, cause], {ARRIVING.name: ARRIVING.gives_way_to})
    assert (ARRIVAL in waiting) is should_page


@pytest.mark.parametrize("name", CAUSES_OF_SCANS)
def test_cause_for_which_the_page_about_a_dlq_waits_pages_or_is_fixed(name: str) -> None:
    entry = SYMPTOM_BY_NAME[name]
    assert isinstance(entry, NotifiedSymptom)
    assert entry.detection
    for facts in list_facts(entry):
        fault = entry.detection.detect(facts)
        if fault is not None and fault.should_page:
            answer = entry.plan(replace(facts, found=fault.because), Limits())
            assert isinstance(answer, (Escalate, Plan)), answer


@pytest.mark.parametrize("name", sorted(CAUSE_SYMPTOMS))
def test_page_about_a_dlq_waits_for_an_open_case_of_a_cause(name: str) -> None:
    facts = replace(
        queue_examples_of(ARRIVING)[0].facts,
        open_symptoms=frozenset({name}),
        open_symptoms_by_source={STANDARD_ARN: frozenset({name})},
    )
    assert detect_fault(ARRIVING, facts) is None


def test_crashes_that_lost_no_message_neither_explain_dlq_messages_nor_hold_back_a_redrive() -> (
    None
):
    recorded = case("consumer_crashes", State.REFUSED)
    paged = case("consumer_crashes", State.ESCALATED)
    assert find_cause_cases([recorded], EXAMPLE_TIME) == find_cause_cases([], EXAMPLE_TIME)
    assert find_cause_cases([paged], EXAMPLE_TIME).unfixed_cases == (paged,)
    assert "consumer_crashes" not in WAITING.gives_way_to

"""Test that every symptom declares its severity classes, and that faults have the right one."""

from __future__ import annotations

from typing import Any

import pytest

from mendq.catalogue import CATALOGUE, SYMPTOM_BY_NAME
from mendq.catalogue.symptom import QueueExample, ReportedSymptom, Symptom
from mendq.model.severity_class import SeverityClass, find_worst_class

ONLY_COUNTED = [
    symptom
    for symptom in CATALOGUE
    if isinstance(symptom, ReportedSymptom) and symptom.detection is None
]
RATED = [symptom for symptom in CATALOGUE if symptom not in ONLY_COUNTED]


@pytest.mark.parametrize("symptom", RATED, ids=lambda symptom: symptom.name)
def test_symptom_declares_each_kind_of_evidence_once_with_its_class(symptom: Symptom) -> None:
    texts = [kind.text for kind in symptom.evidence_kinds]
    assert texts, f"{symptom.name} has no class: give its entry `evidence_kinds`"
    assert len({*texts}) == len(texts)
    assert len(texts) == 1 or all(texts), "several kinds, and one of them is not described"


@pytest.mark.parametrize("symptom", RATED, ids=lambda symptom: symptom.name)
def test_detection_names_only_kinds_of_evidence_that_its_entry_declares(symptom: Symptom) -> None:
    detection = symptom.detection
    if detection is None:
        return
    for example in symptom.examples():
        if isinstance(example, QueueExample):
            fault = detection.detect(example.facts)
            assert fault is not None
            assert fault.evidence_kind is None or fault.evidence_kind in symptom.evidence_kinds


@pytest.mark.parametrize("symptom", ONLY_COUNTED, ids=lambda symptom: symptom.name)
def test_symptom_that_is_only_counted_has_no_class_on_a_queue(symptom: Symptom) -> None:
    assert all(kind.is_of_template for kind in symptom.evidence_kinds)
    with pytest.raises(ValueError, match="only counted"):
        symptom.find_class()


def _list_classes_of_examples(name: str) -> dict[str, SeverityClass]:
    symptom = SYMPTOM_BY_NAME[name]
    detection: Any = symptom.detection
    return {
        example.title: symptom.find_class(detection.detect(example.facts))
        for example in symptom.examples()
        if isinstance(example, QueueExample)
    }


def test_dlq_retention_is_rated_worse_if_it_is_shorter_than_if_it_is_equal() -> None:
    assert _list_classes_of_examples("dlq_retention_too_short") == {
        "both keep for the four days that SQS starts with": SeverityClass.MAY_LOSE,
        "the source keeps longer": SeverityClass.WILL_LOSE,
    }


def test_measured_duplicates_are_rated_as_a_loss_now() -> None:
    classes = _list_classes_of_examples("visibility_timeout_too_short").values()
    assert {*classes} == {SeverityClass.LOSING}


@pytest.mark.parametrize("name", ["consumer_failing", "function_errors", "function_times_out"])
def test_consumers_that_finish_nothing_and_those_that_fail_in_part_have_different_classes(
    name: str,
) -> None:
    classes = {*_list_classes_of_examples(name).values()}
    assert classes <= {SeverityClass.STANDING_STILL, SeverityClass.FAILING_IN_PART}
    assert SeverityClass.STANDING_STILL in classes


def test_worst_class_is_the_first_of_the_scale() -> None:
    assert [severity_class.rank for severity_class in SeverityClass] == [*range(7)]
    assert find_worst_class(reversed(SeverityClass)) is SeverityClass.EXPOSED

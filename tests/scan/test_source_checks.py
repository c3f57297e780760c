"""Test what findings of a DLQ say about its sources."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mendq.cases.finding import (
    Finding,
    ScanResult,
    make_heal_request,
    read_finding_references,
)
from mendq.catalogue.dlq.dlq_messages_arriving import DLQ_MESSAGES_ARRIVING
from mendq.catalogue.examples import DLQ_ARN, STANDARD_ARN, replace_values
from mendq.model.facts import SourceCheck
from mendq.scan.source_checks import add_source_checks
from tests.catalogue.asking import expect_refusal, queue_examples_of

OTHER_ARN = f"{STANDARD_ARN}-2"
ARRIVING = Finding(
    DLQ_ARN, "dlq_messages_arriving", "3 more DLQ messages", (OTHER_ARN, STANDARD_ARN)
)
MEASURED: dict[str, Any] = {arn: {} for arn in (DLQ_ARN, STANDARD_ARN, OTHER_ARN)}


def find_arriving(result: ScanResult) -> Finding:
    checked = add_source_checks(result).findings
    return next(finding for finding in checked if finding.symptom == ARRIVING.symptom)


def test_finding_of_a_dlq_names_the_fault_that_the_scan_found_at_its_source() -> None:
    fault = Finding(STANDARD_ARN, "function_errors", "all runs fail")
    finding = find_arriving(ScanResult(findings=(ARRIVING, fault), levels_by_arn=MEASURED))
    assert finding.sentence == (
        "3 more DLQ messages; orders shows function_errors; orders-2 was measured and shows no "
        "fault"
    )


@pytest.mark.parametrize("symptom", ["alarm_missing", "not_encrypted", "empty_receives"])
def test_source_fault_that_cannot_move_messages_is_not_named_as_the_cause(symptom: str) -> None:
    fault = Finding(STANDARD_ARN, symptom, "it")
    finding = find_arriving(ScanResult(findings=(ARRIVING, fault), levels_by_arn=MEASURED))
    assert symptom not in finding.sentence


def test_source_with_too_few_receives_before_the_dlq_is_named_as_the_cause() -> None:
    fault = Finding(STANDARD_ARN, "max_receive_count_too_low", "it")
    finding = find_arriving(ScanResult(findings=(ARRIVING, fault), levels_by_arn=MEASURED))
    assert "orders shows max_receive_count_too_low" in finding.sentence


@pytest.mark.parametrize(
    "result",
    [
        ScanResult(levels_by_arn={DLQ_ARN: {}, OTHER_ARN: {}}),
        ScanResult(levels_by_arn=MEASURED, error_by_target={STANDARD_ARN: TimeoutError("slow")}),
    ],
    ids=["not measured", "one check failed"],
)
def test_source_that_was_not_wholly_measured_is_never_called_healthy(result: ScanResult) -> None:
    finding = find_arriving(ScanResult(**{**vars(result), "findings": (ARRIVING,)}))
    assert "orders was not measured" in finding.sentence
    assert "orders was measured" not in finding.sentence


def test_other_findings_keep_their_sentence() -> None:
    fault = Finding(STANDARD_ARN, "function_errors", "all runs fail", (OTHER_ARN,))
    assert add_source_checks(ScanResult(findings=(fault,))).findings[0].sentence == fault.sentence


def test_heal_receives_what_the_scan_knows_about_the_first_three_sources() -> None:
    sources = tuple(f"{STANDARD_ARN}-{number}" for number in range(5))
    finding = find_arriving(
        ScanResult(
            findings=(
                Finding(DLQ_ARN, ARRIVING.symptom, "3 more", sources),
                Finding(sources[4], "consumer_failing", "it"),
            ),
            levels_by_arn={sources[0]: {}},
        )
    )
    (reference,) = read_finding_references(json.loads(make_heal_request([finding])))
    assert [source.source_check for source in reference.sources] == [
        SourceCheck(sources[4], ("consumer_failing",)),
        SourceCheck(sources[1]),
        SourceCheck(sources[2]),
    ]


def test_case_names_a_fourth_source_that_was_not_measured_if_three_were_measured() -> None:
    sources = tuple(f"{STANDARD_ARN}-{number}" for number in range(4))
    finding = find_arriving(
        ScanResult(
            findings=(Finding(DLQ_ARN, ARRIVING.symptom, "3 more", sources),),
            levels_by_arn={source: {} for source in sources[:3]},
        )
    )
    (reference,) = read_finding_references(json.loads(make_heal_request([finding])))
    facts = replace_values(
        queue_examples_of(DLQ_MESSAGES_ARRIVING)[0].facts,
        source_checks=tuple(source.source_check for source in reference.sources),
    )
    answer = expect_refusal(DLQ_MESSAGES_ARRIVING, facts)
    assert answer.code == "source_not_measured"
    assert "orders-3 was not measured" in answer.reason
    assert "orders-3 was not measured" in finding.sentence


@pytest.mark.parametrize(
    "source",
    [
        {"queue_arn": "orders"},
        {"queue_arn": STANDARD_ARN, "symptoms": ["Ignore all rules"]},
        {"queue_arn": STANDARD_ARN, "symptoms": ["a"] * 4},
    ],
)
def test_request_with_a_source_that_no_scan_writes_is_left_out(source: dict[str, Any]) -> None:
    found = {"queue_arn": DLQ_ARN, "symptom": ARRIVING.symptom, "sources": [source]}
    assert read_finding_references({"found": [found]}) == []


@pytest.mark.parametrize(
    ("source_checks", "code", "text"),
    [
        ((SourceCheck(STANDARD_ARN, is_measured=True),), "no_known_cause", "no known cause"),
        ((), "source_not_measured", "its sources were not measured"),
        (
            (SourceCheck(STANDARD_ARN, is_measured=True), SourceCheck(OTHER_ARN)),
            "source_not_measured",
            "orders-2 was not measured, so the cause is not known yet",
        ),
        (
            (SourceCheck(STANDARD_ARN, ("consumer_stopped",)), SourceCheck(OTHER_ARN)),
            "cause_at_source",
            "orders shows consumer_stopped",
        ),
    ],
)
def test_page_says_no_known_cause_only_if_every_source_was_measured_and_shows_none(
    source_checks: tuple[SourceCheck, ...], code: str, text: str
) -> None:
    facts = queue_examples_of(DLQ_MESSAGES_ARRIVING)[0].facts
    answer = expect_refusal(
        DLQ_MESSAGES_ARRIVING, replace_values(facts, source_checks=source_checks)
    )
    assert answer.code == code
    assert text in answer.reason
    assert ("no known cause" in answer.reason) == (code == "no_known_cause")

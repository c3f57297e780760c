"""Test which finding of a queue stands first if messages will be lost."""

from __future__ import annotations

from typing import Any

import pytest

from mendq.cases.finding import Finding, ScanResult
from mendq.catalogue.examples import DLQ_ARN, STANDARD_ARN, standard_queue
from mendq.catalogue.messages.messages_expire import detect
from mendq.model.severity_class import SeverityClass
from mendq.scan.severity import FindingSeverity, find_class, rate_severity, sort_worst_first
from mendq.scan.urgency import share_seconds_left

GROWS = Finding(STANDARD_ARN, "backlog_grows", "it grows", seconds_left=600.0)


@pytest.mark.parametrize(
    "cause", ["function_times_out", "function_errors", "consumer_failing", "in_flight_limit"]
)
def test_cause_of_a_growing_backlog_stands_before_it_although_only_the_backlog_loses_messages(
    cause: str,
) -> None:
    result = share_seconds_left(ScanResult(findings=(GROWS, Finding(STANDARD_ARN, cause, "it"))))
    findings = sort_worst_first(result.findings)
    assert [finding.symptom for finding in findings] == [cause, "backlog_grows"]
    assert [finding.seconds_left for finding in findings] == [600.0, 600.0]


def test_cause_of_a_loss_has_the_class_of_the_loss_and_stands_before_it() -> None:
    expiring = Finding(STANDARD_ARN, "messages_expire", "they expire", seconds_left=0.0)
    cause = Finding(STANDARD_ARN, "function_errors", "all runs fail")
    result = share_seconds_left(ScanResult(findings=(expiring, cause)))
    findings = sort_worst_first(result.findings)
    assert [finding.symptom for finding in findings] == ["function_errors", "messages_expire"]
    assert [find_class(finding) for finding in findings] == [SeverityClass.LOSING] * 2


def test_cause_of_a_growing_backlog_keeps_its_own_class_if_that_is_worse() -> None:
    cause = Finding(STANDARD_ARN, "function_errors", "all runs fail")
    result = share_seconds_left(ScanResult(findings=(GROWS, cause)))
    classes = [find_class(finding) for finding in result.findings]
    assert classes == [SeverityClass.FAILING_IN_PART, SeverityClass.STANDING_STILL]


def test_findings_are_sorted_by_class_and_not_by_the_time_that_is_left() -> None:
    public = Finding(STANDARD_ARN, "policy_is_public", "anybody")
    hygiene = Finding(STANDARD_ARN, "tls_not_enforced", "no TLS")
    findings = sort_worst_first((hygiene, GROWS, public))
    assert findings == [public, GROWS, hygiene]


def test_finding_of_a_dlq_stands_after_its_cause_on_the_source_although_its_class_is_worse() -> (
    None
):
    cause = Finding(STANDARD_ARN, "consumer_failing", "fails in part")
    arriving = Finding(
        DLQ_ARN,
        "dlq_messages_arriving",
        "they come",
        source_arns=(STANDARD_ARN,),
        severity_class=SeverityClass.LOSING,
    )
    other = Finding(STANDARD_ARN, "tls_not_enforced", "no TLS")
    assert sort_worst_first((arriving, other, cause)) == [cause, other, arriving]
    assert sort_worst_first((other, arriving)) == [arriving, other], "nothing explains it"


@pytest.mark.parametrize(
    "other",
    [
        Finding(DLQ_ARN, "function_errors", "of another queue"),
        Finding(STANDARD_ARN, "alarm_missing", "no cause"),
    ],
)
def test_finding_that_is_no_cause_on_the_same_queue_does_not_become_urgent(other: Finding) -> None:
    result = share_seconds_left(ScanResult(findings=(GROWS, other)))
    assert [finding.seconds_left for finding in result.findings] == [600.0, None]


def test_cause_that_loses_messages_sooner_keeps_its_own_time() -> None:
    cause = Finding(STANDARD_ARN, "consumer_failing", "it", seconds_left=60.0)
    result = share_seconds_left(ScanResult(findings=(GROWS, cause)))
    assert [finding.seconds_left for finding in result.findings] == [600.0, 60.0]


@pytest.mark.parametrize(
    ("retention_seconds", "finished", "severity"),
    [
        (3_600, 1_719, FindingSeverity.LOSING_MESSAGES),
        (3_599, 1_719, FindingSeverity.HYGIENE),
        (3_600, 0, FindingSeverity.HYGIENE),
    ],
    ids=["consumers are too slow", "short retention", "archive"],
)
def test_expired_messages_are_hygiene_only_if_the_queue_may_be_meant_to_forget(
    retention_seconds: int, finished: int, severity: FindingSeverity
) -> None:
    counts: dict[str, Any] = {"sent": 2_280, "received": finished, "deleted": finished}
    facts = standard_queue(
        MessageRetentionPeriod=retention_seconds, highest_oldest_age_seconds=3_566, **counts
    )
    fault = detect(facts)
    assert fault is not None
    finding = Finding(
        STANDARD_ARN,
        "messages_expire",
        fault.because,
        seconds_left=fault.seconds_left,
        is_hygiene=fault.is_hygiene,
    )
    assert rate_severity(finding) is severity


@pytest.mark.parametrize(
    ("symptom", "severity"),
    [
        ("dlq_retention_too_short", FindingSeverity.AT_RISK),
        ("not_encrypted", FindingSeverity.AT_RISK),
        ("consumer_failing", FindingSeverity.FAILING_NOW),
    ],
)
def test_fault_of_configuration_is_a_risk_and_a_measured_one_is_a_failure_now(
    symptom: str, severity: FindingSeverity
) -> None:
    assert rate_severity(Finding(STANDARD_ARN, symptom, "it is so")) is severity


def test_hygiene_stands_after_every_other_finding() -> None:
    hygiene = Finding(STANDARD_ARN, "messages_expire", "on purpose", is_hygiene=True)
    costly = Finding(STANDARD_ARN, "empty_receives", "it costs money")
    assert sort_worst_first([hygiene, costly]) == [costly, hygiene]

"""Test which finding of a queue stands first if messages will be lost."""

from __future__ import annotations

import pytest

from mendq.cases.finding import Finding, ScanResult
from mendq.catalogue.examples import DLQ_ARN, STANDARD_ARN
from mendq.scan.severity import sort_worst_first
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

"""Rate how much a finding of a scan harms the users of its queue, and sort findings by it."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from math import inf

from mendq.cases.finding import Finding, find_waiting_findings
from mendq.catalogue import CATALOGUE, SYMPTOM_BY_NAME
from mendq.model.facts import Need
from mendq.model.severity_class import SeverityClass


class FindingSeverity(StrEnum):
    """The five words of the field `severity` in the JSON of a scan.

    Programs read them. People see the severity class (`SeverityClass`).
    """

    LOSING_MESSAGES = "losing messages"
    FAILING_NOW = "failing now"
    AT_RISK = "at risk"
    WASTING_MONEY = "costing money"
    HYGIENE = "hygiene"


def rate_severity(finding: Finding) -> FindingSeverity:
    """Return the severity of a finding.

    HYGIENE if the queue may be meant to be like that. LOSING_MESSAGES if it is known when messages
    will be lost, WASTING_MONEY if the symptom only costs money or does no harm yet
    (`is_measured_last`). FAILING_NOW if metrics show the fault, or if people are notified of what
    the queue's gauges or consumers show now. AT_RISK for any other fault.
    """
    symptom = SYMPTOM_BY_NAME[finding.symptom]
    detection = symptom.detection
    assert detection is not None  # noqa: S101 - a finding comes from a detection
    if finding.is_hygiene:
        return FindingSeverity.HYGIENE
    if finding.seconds_left is not None:
        return FindingSeverity.LOSING_MESSAGES
    if detection.is_measured_last:
        return FindingSeverity.WASTING_MONEY
    is_measured = Need.MEASUREMENTS in detection.needs
    if detection.is_of_configuration or (not is_measured and symptom.plan is None):
        return FindingSeverity.AT_RISK
    return FindingSeverity.FAILING_NOW


def find_class(finding: Finding) -> SeverityClass:
    """Return the severity class of a finding."""
    if finding.is_hygiene:
        return SeverityClass.HYGIENE
    return finding.severity_class or SYMPTOM_BY_NAME[finding.symptom].find_class()


# Position of each symptom in the catalogue.
_POSITION_BY_SYMPTOM = {symptom.name: position for position, symptom in enumerate(CATALOGUE)}


def find_explained_findings(findings: Iterable[Finding]) -> dict[Finding, str]:
    """Return the findings that another finding explains, each with the symptom that explains it.

    The scan of a deployed stack hands them to heal only once the other symptom is gone.
    """
    return find_waiting_findings(
        tuple(findings), {name: symptom.gives_way_to for name, symptom in SYMPTOM_BY_NAME.items()}
    )


def sort_worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """Sort findings by severity class, and then by the time until messages are lost.

    If both are equal, findings that Mendq can only report come last, and the others are in the
    order of the catalogue. Findings that another one explains come after all others, so that a
    cause is before its consequence.
    """
    all_findings = tuple(findings)
    explained_findings = find_explained_findings(all_findings)

    def rank_finding(finding: Finding) -> tuple[bool, int, float, bool, int, str]:
        class_rank = find_class(finding).rank
        seconds_left = inf if finding.seconds_left is None else finding.seconds_left
        is_only_reported = SYMPTOM_BY_NAME[finding.symptom].plan is None
        catalogue_position = _POSITION_BY_SYMPTOM[finding.symptom]
        return (
            finding in explained_findings,
            class_rank,
            seconds_left,
            is_only_reported,
            catalogue_position,
            finding.queue_arn,
        )

    return sorted(all_findings, key=rank_finding)

"""Apply the mutes of the settings to the findings of a scan.

A muted finding opens no case, pages nobody and is not fixed. It stays in the scan's results, so the
queue gets no baseline, and people see each hour what the mutes hide and what that costs.

1. A mute hides one symptom of a queue, and nothing else. A finding that another symptom explains is
   reported if that symptom is muted: otherwise a mute of a stopped consumer would hide that its
   messages expire.

2. But a fix that must wait for another symptom waits for a muted one too. Otherwise a DLQ would be
   attached while the muted symptom is that all messages fail, and take in the whole backlog.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import date

from mendq.cases.finding import Finding, ScanResult, find_waiting_findings
from mendq.catalogue import CATALOGUE, SYMPTOM_BY_NAME
from mendq.model.facts import Need
from mendq.model.mutes import Mute, MuteUse, find_mute
from mendq.model.queue import parse_queue_arn, queue_arn_or_none
from mendq.model.severity_class import SeverityClass
from mendq.notifications.text import format_count
from mendq.scan.severity import find_class

# What people must hear of each hour, although they muted it.
_HARM_BY_CLASS = {
    SeverityClass.EXPOSED: (
        "muted finding leaves a queue open to anyone",
        "muted findings leave queues open to anyone",
    ),
    SeverityClass.LOSING: (
        "muted finding loses or duplicates messages",
        "muted findings lose or duplicate messages",
    ),
    SeverityClass.WILL_LOSE: (
        "muted finding will lose messages",
        "muted findings will lose messages",
    ),
}
_SYMPTOMS_WITH_FIX = frozenset(symptom.name for symptom in CATALOGUE if symptom.steps)


def apply_mutes(
    result: ScanResult, scanned_queue_names: Collection[str], mutes: Collection[Mute], today: date
) -> ScanResult:
    """Return the result with the muted findings marked, and with what the run says of each mute.

    Args:
        result: The result of a run.
        scanned_queue_names: The names of the managed queues that the run has reached.
        mutes: The mutes of the settings.
        today: The day of the run, in UTC.
    """
    if not mutes:
        return result
    muted_findings = tuple(_mark_muted(finding, mutes, today) for finding in result.findings)
    mute_uses = tuple(_make_use(mute, result, scanned_queue_names) for mute in mutes)
    return replace(result, findings=muted_findings, mute_uses=mute_uses)


def _mark_muted(finding: Finding, mutes: Collection[Mute], today: date) -> Finding:
    queue_name = parse_queue_arn(finding.queue_arn).name
    mute = find_mute(mutes, queue_name, finding.symptom, today)
    if mute is None:
        return finding
    return replace(finding, mute=mute, severity_class=find_class(finding))


def _make_use(mute: Mute, result: ScanResult, scanned_queue_names: Collection[str]) -> MuteUse:
    """Count the findings and the queues that a mute names."""
    finding_count = sum(
        finding.symptom == mute.symptom
        and mute.names_queue(parse_queue_arn(finding.queue_arn).name)
        for finding in result.findings
    )
    names = [name for name in scanned_queue_names if mute.names_queue(name)]
    unchecked_names = _list_unchecked_names(mute.symptom, names, result)
    checked_count = len(names) - len(unchecked_names)
    return MuteUse(
        mute.queue,
        mute.symptom,
        mute.until,
        findings=finding_count,
        checked=checked_count,
        unchecked=len(unchecked_names),
    )


def _list_unchecked_names(
    symptom_name: str, queue_names: Collection[str], result: ScanResult
) -> frozenset[str]:
    """Return the names of those queues that may show a symptom although the run has not found it.

    Configuration alone shows some symptoms. Only of the others it matters what was measured.
    """
    detection = SYMPTOM_BY_NAME[symptom_name].detection
    if detection is None or symptom_name in result.unjudged_reason_by_symptom:
        return frozenset(queue_names)
    unchecked_arns = {*result.error_by_target}
    if Need.MEASUREMENTS not in detection.needs:
        return frozenset(queue_names) & _list_names(unchecked_arns)
    unchecked_arns |= {
        *result.skipped_arns,
        *result.gap_reason_by_arn,
        *result.partly_checked_arns,
        *result.unsettled_arns,
    }
    return frozenset(queue_names) - _list_names(result.configuration_by_arn.keys() - unchecked_arns)


def _list_names(targets: Iterable[str]) -> frozenset[str]:
    """Return the names of the queues among the targets of errors, which may also be patterns."""
    return frozenset(
        parse_queue_arn(target).name for target in targets if queue_arn_or_none(target)
    )


def describe_muted_harm(severity_classes: Iterable[str]) -> str:
    """Return what the muted findings do to messages, for the hour's summary; empty if nothing.

    Args:
        severity_classes: The severity class of each muted finding.
    """
    count_by_class = Counter(severity_classes)
    return ", ".join(
        format_count(count_by_class[severity_class], singular, plural)
        for severity_class, (singular, plural) in _HARM_BY_CLASS.items()
        if count_by_class[severity_class]
    )


def find_findings_to_wait(
    reported_findings: Collection[Finding],
    muted_findings: Iterable[Finding],
    explaining_symptoms_by_name: Mapping[str, frozenset[str]],
) -> frozenset[Finding]:
    """Return the reported findings that must wait for another symptom (rules 1 and 2 above).

    Args:
        reported_findings: The findings that are not muted.
        muted_findings: The muted ones. They are nobody's page, so nothing that would page waits for
            them.
        explaining_symptoms_by_name: For each symptom, the symptoms that are handled before it.
    """
    waiting_findings = set(
        find_waiting_findings(tuple(reported_findings), explaining_symptoms_by_name)
    )
    silent_findings = [replace(finding, should_page=False) for finding in muted_findings]
    waits_with_muted = find_waiting_findings(
        (*reported_findings, *silent_findings), explaining_symptoms_by_name
    )
    waiting_findings |= {
        finding for finding in waits_with_muted if finding.symptom in _SYMPTOMS_WITH_FIX
    }
    return frozenset(waiting_findings)

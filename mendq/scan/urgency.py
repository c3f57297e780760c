"""Give the cause of a loss the urgency of what it causes.

Several symptoms of one queue can have one cause: a function fails, so a backlog grows and its
messages will expire. People read the most urgent finding first. So the cause is as urgent as the
symptoms that give way to it (`gives_way_to`), and stands before them. It has their severity class
if that is worse than its own.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from math import inf

from mendq.cases.finding import ScanResult
from mendq.catalogue import SYMPTOM_BY_NAME
from mendq.model.severity_class import SeverityClass, find_worst_class
from mendq.scan.severity import find_class


def share_seconds_left(result: ScanResult) -> ScanResult:
    """Return the result with the urgency of a loss on the findings that explain it.

    These are findings on the same queue. They get `seconds_left`, and the severity class of the
    loss if it is worse.
    """
    seconds_by_cause = defaultdict[tuple[str, str], float](lambda: inf)
    classes_by_cause = defaultdict[tuple[str, str], list[SeverityClass]](list)
    for finding in result.findings:
        if finding.seconds_left is None:
            continue
        for cause in SYMPTOM_BY_NAME[finding.symptom].gives_way_to:
            key = finding.queue_arn, cause
            seconds_by_cause[key] = min(seconds_by_cause[key], finding.seconds_left)
            classes_by_cause[key].append(find_class(finding))
    findings = []
    for finding in result.findings:
        key = finding.queue_arn, finding.symptom
        if key not in classes_by_cause:
            findings.append(finding)
            continue
        seconds_left = min(
            inf if finding.seconds_left is None else finding.seconds_left, seconds_by_cause[key]
        )
        severity_class = find_worst_class((find_class(finding), *classes_by_cause[key]))
        findings.append(replace(finding, seconds_left=seconds_left, severity_class=severity_class))
    return replace(result, findings=tuple(findings))

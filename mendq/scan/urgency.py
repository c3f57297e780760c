"""Give the cause of a loss the urgency of what it causes.

Several symptoms of one queue can have one cause: a function fails, so a backlog grows and its
messages will expire. People read the most urgent finding first. So the cause is as urgent as the
symptoms that give way to it (`gives_way_to`), and stands before them.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from math import inf

from mendq.cases.finding import ScanResult
from mendq.catalogue import SYMPTOM_BY_NAME


def share_seconds_left(result: ScanResult) -> ScanResult:
    """Return the result with `seconds_left` on findings that explain a loss on the same queue."""
    seconds_by_cause = defaultdict[tuple[str, str], float](lambda: inf)
    for finding in result.findings:
        if finding.seconds_left is None:
            continue
        for cause in SYMPTOM_BY_NAME[finding.symptom].gives_way_to:
            key = finding.queue_arn, cause
            seconds_by_cause[key] = min(seconds_by_cause[key], finding.seconds_left)
    findings = []
    for finding in result.findings:
        seconds_left = min(
            inf if finding.seconds_left is None else finding.seconds_left,
            seconds_by_cause[finding.queue_arn, finding.symptom],
        )
        findings.append(
            replace(finding, seconds_left=None if seconds_left == inf else seconds_left)
        )
    return replace(result, findings=tuple(findings))

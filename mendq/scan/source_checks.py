"""Add to the findings of a scan what the same scan knows about the sources of a DLQ.

Messages arrive in a DLQ because consumers of a source do not finish them. So the cause is a fault
of the source, and the scan has usually looked at it. A finding of `dlq_messages_arriving` names
what the scan found there, and says that no cause is known only if the source was measured and
shows none. A source that was not measured, or of which a check failed, may have any fault.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

from mendq.cases.finding import MAXIMUM_NAMED_QUEUES, Finding, ScanResult
from mendq.catalogue import SYMPTOM_BY_NAME
from mendq.catalogue.dlq.dlq_messages_arriving import (
    DLQ_MESSAGES_ARRIVING,
    describe_source_checks,
)
from mendq.model.facts import SourceCheck
from mendq.scan.severity import FindingSeverity, rate_severity, sort_worst_first

# Findings of these severities can explain why messages are not finished.
_EXPLAINING_SEVERITIES = frozenset({FindingSeverity.LOSING_MESSAGES, FindingSeverity.FAILING_NOW})
# Faults of a source's configuration that move good messages to its DLQ.
_EXPLAINING_CONFIGURATION_SYMPTOMS = frozenset({"max_receive_count_too_low"})


def add_source_checks(result: ScanResult) -> ScanResult:
    """Return the result of a whole scan, with the sources in the findings of DLQs (see the module).

    Call it when all queues were scanned. Other findings are not changed.
    """
    symptoms_by_arn = _list_explaining_symptoms(result)
    findings = tuple(
        _add_sources_to_finding(finding, symptoms_by_arn, result) for finding in result.findings
    )
    return replace(result, findings=findings)


def _list_explaining_symptoms(result: ScanResult) -> dict[str, list[str]]:
    """Return the symptoms that can explain messages in a DLQ by the source's ARN, worst first.

    Symptoms that the catalogue does not have, as a caller of the scan may give them, explain none.
    """
    symptoms_by_arn = defaultdict[str, list[str]](list)
    known_findings = [finding for finding in result.findings if finding.symptom in SYMPTOM_BY_NAME]
    for finding in sort_worst_first(known_findings):
        if (
            rate_severity(finding) in _EXPLAINING_SEVERITIES
            or finding.symptom in _EXPLAINING_CONFIGURATION_SYMPTOMS
        ):
            symptoms_by_arn[finding.queue_arn].append(finding.symptom)
    return symptoms_by_arn


def _add_sources_to_finding(
    finding: Finding, symptoms_by_arn: Mapping[str, list[str]], result: ScanResult
) -> Finding:
    if finding.symptom != DLQ_MESSAGES_ARRIVING.name or not finding.source_arns:
        return finding
    source_checks = tuple(
        SourceCheck(
            source_arn,
            tuple(symptoms_by_arn.get(source_arn, ())),
            is_measured=source_arn in result.levels_by_arn
            and source_arn not in result.error_by_target,
        )
        for source_arn in finding.source_arns
    )
    # Only the first sources are named and handed to heal. So sources with a fault come first, then
    # sources that were not measured: without these, heal would say that no cause is known.
    sorted_checks = tuple(
        sorted(source_checks, key=lambda check: (not check.symptoms, check.is_measured))
    )
    sentence = f"{finding.sentence}; {describe_source_checks(sorted_checks[:MAXIMUM_NAMED_QUEUES])}"
    return replace(finding, sentence=sentence, source_checks=sorted_checks)

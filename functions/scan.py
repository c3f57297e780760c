"""Continue this hour's scan of the managed queues, every ten minutes."""

from __future__ import annotations

from itertools import islice

from aws_lambda_powertools import Logger

from functions.entry import Event, LambdaInvocation, entry
from mendq.aws.errors import QueueRefusesUs
from mendq.cases.finding import ScanResult
from mendq.model.names import OwnMetric
from mendq.model.settings import ScanSettings
from mendq.scan.hourly import ScanContext, scan_hourly
from mendq.scan.mutes import describe_muted_harm
from mendq.scan.reader import Paces

# The log names at most this many errors and findings. If every queue fails, the errors have the
# same cause. A whole stack has all findings in the case bucket.
_MAXIMUM_LOGGED_ERRORS = 20
_MAXIMUM_LOGGED_FINDINGS = 100


@entry(ScanSettings)
def handler(_event: Event, invocation: LambdaInvocation[ScanSettings]) -> dict[str, int]:
    """Scan the queues that this hour's scan has not reached yet.

    Returns:
        The number of scanned queues, of findings, of errors and so on. All are zero if this hour's
        scan is complete, or if another run is at work on it.

    Raises the errors of `scan_hourly`. The next run tries again.
    """
    context = invocation.make_store_context(
        ScanContext, remaining_seconds=invocation.remaining_seconds, paces=Paces()
    )
    scan_result = scan_hourly(context) or ScanResult()
    invocation.send_counts({OwnMetric.SCAN_ERRORS: count_faults(scan_result)})
    return log_scan_result(scan_result, invocation.log)


def log_scan_result(scan_result: ScanResult, log: Logger) -> dict[str, int]:
    """Log findings, errors and the numbers of a run. Return the numbers."""
    for finding in islice(scan_result.reported_findings, _MAXIMUM_LOGGED_FINDINGS):
        log.info("found a symptom", finding=finding.document())
    for finding in islice(scan_result.muted_findings, _MAXIMUM_LOGGED_FINDINGS):
        log.info("a mute hides a symptom", finding=finding.document())
    harm_text = describe_muted_harm(
        str(finding.severity_class) for finding in scan_result.muted_findings
    )
    if harm_text:
        log.warning(harm_text)
    for queue_arn, error in islice(scan_result.error_by_target.items(), _MAXIMUM_LOGGED_ERRORS):
        log.error("a queue could not be looked at", queue_arn=queue_arn, exc_info=error)
    scan_totals = _make_scan_totals(scan_result)
    log.info("scanned", totals=scan_totals)
    return scan_totals


def _make_scan_totals(scan_result: ScanResult) -> dict[str, int]:
    return {
        "queues": scan_result.queues_scanned,
        "gone": scan_result.gone,
        "unseen": scan_result.unseen,
        "suspects": scan_result.suspects,
        "measured": scan_result.measured,
        "metrics": scan_result.metrics,
        "skipped_for_budget": len(scan_result.skipped_arns),
        "metric_gaps": len(scan_result.gap_reason_by_arn),
        "findings": len(scan_result.reported_findings),
        "muted": len(scan_result.muted_findings),
        "errors": len(scan_result.error_by_target),
    }


def count_faults(scan_result: ScanResult) -> int:
    """Return the number of queues, names and prefixes that could not be scanned completely.

    Baselines that could not be stored count as one more. A queue whose policy refuses Mendq does
    not count, because the queue's owner decided so, and the alarm on scan errors would never end.
    If nothing could be scanned, such queues count too.
    """
    if scan_result.is_blind:
        return len(scan_result.error_by_target)
    return sum(
        not isinstance(error, QueueRefusesUs) for error in scan_result.error_by_target.values()
    )

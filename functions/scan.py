"""Continue this hour's scan of the managed queues, every ten minutes."""

from __future__ import annotations

from itertools import islice

from functions.entry import Call, Event, entry
from mendq.aws.errors import QueueRefusesUs
from mendq.cases.finding import ScanResult
from mendq.model.names import OwnMetric
from mendq.model.settings import ScanSettings
from mendq.scan.hourly import ScanContext, scan_hourly
from mendq.scan.reader import Paces

# The log names at most this many errors and findings. If every queue fails, the errors have the
# same cause. All findings are in the case bucket.
MOST_ERRORS = 20
MOST_FINDINGS = 100
# The counts of `ScanResult` that the answer and the log contain.
COUNTS = ("gone", "unseen", "suspects", "measured", "metrics")


@entry(ScanSettings)
def handler(_event: Event, call: Call[ScanSettings]) -> dict[str, int]:
    """Scan the queues that this hour's scan has not reached yet.

    Returns:
        The number of scanned queues, of findings, of errors and so on. All are zero if this hour's
        scan is complete.

    Raises:
        CaseStoreUnavailable, FactsUnavailable, OwnerUnavailable: The next run tries again.
    """
    context = call.make_store_context(
        ScanContext, remaining_seconds=call.remaining_seconds, paces=Paces()
    )
    scanned = scan_hourly(context) or ScanResult()
    call.count({OwnMetric.SCAN_ERRORS: count_faults(scanned)})
    for finding in islice(scanned.findings, MOST_FINDINGS):
        call.log.info("found a symptom", finding=finding.document())
    for queue_arn, error in islice(scanned.failed.items(), MOST_ERRORS):
        call.log.error("a queue could not be looked at", queue_arn=queue_arn, exc_info=error)
    totals = {
        "queues": scanned.queues_scanned,
        **{name: getattr(scanned, name) for name in COUNTS},
        "skipped_for_budget": len(scanned.skipped),
        "findings": len(scanned.findings),
        "errors": len(scanned.failed),
    }
    call.log.info("scanned", totals=totals)
    return totals


def count_faults(scanned: ScanResult) -> int:
    """Return the number of queues, names and prefixes that could not be scanned.

    A queue whose policy refuses Mendq does not count, because its owner decided so. Otherwise the
    alarm on scan errors would never end. If nothing could be scanned, such queues count too.
    """
    if scanned.is_blind:
        return len(scanned.failed)
    return sum(not isinstance(error, QueueRefusesUs) for error in scanned.failed.values())

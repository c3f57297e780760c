"""Scan what is left of the hour's round over the managed queues, every ten minutes."""

from __future__ import annotations

from itertools import islice

from functions.entry import Call, Event, entry
from mendq.aws.errors import QueueRefusesUs
from mendq.cases.finding import ScanResult
from mendq.model.names import OwnMetric
from mendq.model.settings import ScanSettings
from mendq.scan.hourly import ScanContext, scan_hourly
from mendq.scan.reader import Paces

# Where everything fails it fails alike; what was found stands in the case bucket whole.
MOST_ERRORS = 20
MOST_FINDINGS = 100
COUNTS = ("gone", "unseen", "suspects", "measured", "metrics")


@entry(ScanSettings)
def handler(_event: Event, call: Call[ScanSettings]) -> dict[str, int]:
    """What was looked at and found; zeros where the hour's round is done.

    Raises CaseStoreUnavailable, FactsUnavailable or OwnerUnavailable: then the next scan tries
    again.
    """
    context = call.make_store_context(
        ScanContext, remaining_seconds=call.remaining_seconds, paces=Paces()
    )
    scanned = scan_hourly(context) or ScanResult()
    call.count({OwnMetric.SCAN_ERRORS: faults(scanned)})
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


def faults(scanned: ScanResult) -> int:
    """Queues, names and prefixes that failed; a queue that keeps us out is none: its owner's word.

    Counted it would ring an alarm for ever that is to tell of the next. Where all do it is told.
    """
    if scanned.is_blind:
        return len(scanned.failed)
    return sum(not isinstance(each, QueueRefusesUs) for each in scanned.failed.values())

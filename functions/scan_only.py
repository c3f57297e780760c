"""Continue this hour's scan in a scan-only stack, every ten minutes, and report what is new."""

from __future__ import annotations

from functions.entry import Event, LambdaInvocation, entry
from functions.scan import log_scan_result
from mendq.cases.finding import ScanResult
from mendq.model.settings import ScanOnlySettings
from mendq.scan.reader import Paces
from mendq.scan.scan_only import ScanOnlyContext, scan_and_report


@entry(ScanOnlySettings)
def handler(_event: Event, invocation: LambdaInvocation[ScanOnlySettings]) -> dict[str, int]:
    """Scan the queues that this hour's scan has not reached yet, and report what is new.

    It sends no metric, because no alarm of a scan-only stack would use it.

    Returns:
        The number of scanned queues, of findings, of errors and so on. All are zero if this hour's
        scan is complete, or if another run is at work on it.

    Raises the errors of `scan_and_report`. The next run tries again.
    """
    context = invocation.make_store_context(
        ScanOnlyContext, remaining_seconds=invocation.remaining_seconds, paces=Paces()
    )
    return log_scan_result(scan_and_report(context) or ScanResult(), invocation.log)

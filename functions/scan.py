"""Scan what is left of the hour's round over the managed queues, every ten minutes."""

from __future__ import annotations

from functions.entry import Call, Event, entry
from functions.telemetry import emit_scan, log_scan, totals
from mendq.cases.finding import Scanned
from mendq.model.settings import ScanSettings
from mendq.scan.hourly import ScanContext, scan_hourly
from mendq.scan.reader import Paces


@entry(ScanSettings)
def handler(_event: Event, call: Call[ScanSettings]) -> dict[str, int]:
    """What was looked at and found; zeros where the hour's round is done.

    Raises CaseStoreUnavailable, FactsUnavailable or OwnerUnavailable: then the next scan tries
    again.
    """
    context = call.at_store(ScanContext, remaining_seconds=call.remaining_seconds, paces=Paces())
    scanned = scan_hourly(context) or Scanned()
    emit_scan(scanned)
    log_scan(call.log, scanned)
    return totals(scanned)

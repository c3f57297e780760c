"""Scan what is left of the hour's round over the managed queues, every ten minutes."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from functools import cache
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.entry import to_line
from functions.telemetry import emit_scan, log_scan, totals
from mendq.aws.clients import Clients
from mendq.cases.finding import Scanned
from mendq.model.settings import ScanSettings
from mendq.scan.hourly import ScanContext, scan_hourly
from mendq.scan.reader import Paces

logger = Logger(service="scan", json_serializer=to_line)


@cache
def _cold_start() -> tuple[ScanSettings, Clients]:
    return ScanSettings.from_environment(os.environ), Clients.of_this_lambda()


@logger.inject_lambda_context
def handler(_event: dict[str, Any], context: LambdaContext) -> dict[str, int]:
    """What was looked at and found; zeros where the hour's round is done.

    Raises CaseStoreUnavailable, FactsUnavailable or OwnerUnavailable: then the next scan tries
    again.
    """
    settings, clients = _cold_start()
    case_context = ScanContext(
        clients=clients,
        settings=settings,
        owner=context.aws_request_id,
        now=datetime.now(UTC),
        remaining_seconds=lambda: context.get_remaining_time_in_millis() / 1000,
        paces=Paces(),
    )
    scanned = scan_hourly(case_context) or Scanned()
    emit_scan(scanned)
    log_scan(logger, scanned)
    return totals(scanned)

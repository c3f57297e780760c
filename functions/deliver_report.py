"""Deliver a week's report from its summary in the bucket: page, verdict and mails."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.entry import to_line
from functions.telemetry import counting, log_delivery
from mendq.aws.clients import Clients
from mendq.model.names import NAMESPACE
from mendq.model.settings import DeliverReportSettings
from mendq.nightly.deliver import ReportBucket, ReportNotDelivered, send_report
from mendq.nightly.deliveries import DeliveryClaims
from mendq.notifications.notification import Again
from mendq.report.html_page import page
from mendq.report.mail import outgoing
from mendq.report.read_summary import MOST_BYTES, read_under

logger = Logger(service="deliver_report", json_serializer=to_line)
metrics = Metrics(namespace=NAMESPACE)


@cache
def _cold_start() -> tuple[DeliverReportSettings, Clients]:
    return DeliverReportSettings.from_environment(os.environ), Clients.of_this_lambda()


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Make the page anew for every summary; send each week that is over once to everybody.

    Raises SummaryUnreadable, ReportNotDelivered, or what AWS raises, so that the event is tried
    again and then parked; what was sent is not sent again.
    """
    settings, clients = _cold_start()
    key = event["detail"]["object"]["key"]
    with counting(metrics) as deliveries:
        bucket = ReportBucket(clients.s3, settings.report_bucket)
        summary = read_under(key, bucket.summary(key, MOST_BYTES + 1))
        place = f"s3://{bucket.name}/{bucket.put_page(summary.week, page(summary))}"
        if not summary.not_seen.week_is_over:
            logger.warning("made a page, sent nothing: the week is not over", page=place)
            return {"week": summary.week, "page": place, "sent_to": []}
        clock, owner = partial(datetime.now, UTC), context.aws_request_id
        marked = DeliveryClaims(clients.s3, bucket.name, summary.week, owner, clock)
        again = Again(context.function_name, clients.region, key)
        report = outgoing(summary, place, clients.region, settings.sender or "")
        delivery = send_report(clients, settings, marked, report, again)
        deliveries.append(delivery)
        log_delivery(logger, summary.week, place, delivery)
        if delivery.failed:
            raise ReportNotDelivered("; ".join(each.why for each in delivery.failed))
    return {"week": summary.week, "page": place, "sent_to": list(delivery.reached)}

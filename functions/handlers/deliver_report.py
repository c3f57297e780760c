"""A week's summary in the report bucket in, its page and its verdict out."""

from __future__ import annotations

from functools import cache
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.aws.clients import Clients
from functions.aws.report_bucket import ReportBucket
from functions.aws.send_verdict import send_once
from functions.report import page, read, verdict_text
from functions.settings import DeliverReportSettings

logger = Logger(service="deliver_report")


@cache
def _cold_start() -> tuple[DeliverReportSettings, Clients]:
    return DeliverReportSettings.from_environment(), Clients.of_this_lambda()


@logger.inject_lambda_context
def handler(event: dict[str, Any], _context: LambdaContext) -> dict[str, Any]:
    """Make the page anew for every summary; send the verdict once a week.

    Raises SummaryUnreadable, or what AWS raises, so that the event is tried again and then parked.
    """
    settings, clients = _cold_start()
    bucket = ReportBucket(clients.s3, settings.report_bucket)
    summary = read(bucket.summary(event["detail"]["object"]["key"]))
    where = f"s3://{settings.report_bucket}/{bucket.put_page(summary.week, page(summary))}"
    sent = send_once(
        clients,
        bucket,
        topic_arn=settings.topic_arn,
        week=summary.week,
        message=f"{verdict_text(summary)}\n\n{where}",
    )
    logger.info("delivered", week=summary.week, page=where, sent=sent)
    return {"week": summary.week, "page": where, "sent": sent}

"""Make a week's report from its summary in the report bucket, and send it."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial

from functions.entry import Event, LambdaInvocation, entry
from mendq.model.names import OwnMetric
from mendq.model.settings import DeliverReportSettings
from mendq.nightly.deliver import ReportBucket, read_account_alias, send_report
from mendq.nightly.deliveries import DeliveryClaims
from mendq.notifications.notification import ReportRedelivery
from mendq.report.html_page import make_page
from mendq.report.links import ReportedAccount
from mendq.report.mail import OutgoingReport
from mendq.report.summary import MOST_SUMMARY_BYTES, read_stored_summary

DELIVERED_METRIC = OwnMetric.REPORTS_DELIVERED
NOT_DELIVERED_METRIC = OwnMetric.REPORTS_NOT_DELIVERED


@entry(DeliverReportSettings)
def handler(event: Event, invocation: LambdaInvocation[DeliverReportSettings]) -> Event:
    """Write the report's page for a summary. If the week is over, send the report once.

    Args:
        event: An S3 event. Its object is the summary of a week.
        invocation: This invocation of the Lambda.

    Returns:
        `{"week", "page", "sent_to"}`. `sent_to` is empty if nothing was sent.

    Raises:
        SummaryUnreadable, ReportNotDelivered, ClientError, BotoCoreError: Lambda tries the event
            again, and in the end sends it to a DLQ. A recipient that got the report does not get it
            again.
    """
    is_delivered = False
    delivery_has_failed = True
    try:
        answer = _deliver_report(event, invocation)
        is_delivered = bool(answer["sent_to"])
        delivery_has_failed = False
    finally:
        invocation.send_counts(
            {DELIVERED_METRIC: is_delivered, NOT_DELIVERED_METRIC: delivery_has_failed},
            should_send_zeros=True,
        )
    return answer


def _deliver_report(event: Event, invocation: LambdaInvocation[DeliverReportSettings]) -> Event:
    settings = invocation.settings
    clients = invocation.clients
    summary_key = event["detail"]["object"]["key"]
    report_bucket = ReportBucket(clients.s3, settings.report_bucket)
    summary = read_stored_summary(
        summary_key, report_bucket.read_summary(summary_key, MOST_SUMMARY_BYTES + 1)
    )
    account_alias = read_account_alias(clients)
    reported_account = ReportedAccount(
        clients.region, settings.account, account_alias, settings.docs_url or ""
    )
    page_html = make_page(summary, reported_account)
    page_uri = f"s3://{report_bucket.name}/{report_bucket.put_report_page(summary.week, page_html)}"
    invocation.log.info("wrote the report's page", week=summary.week, page=page_uri)
    if not summary.not_seen.week_is_over:
        invocation.log.warning("sent nothing: the week is not over", page=page_uri)
        return {"week": summary.week, "page": page_uri, "sent_to": []}
    clock = partial(datetime.now, UTC)
    invocation_id = invocation.context.aws_request_id
    delivery_claims = DeliveryClaims(
        clients.s3, report_bucket.name, summary.week, invocation_id, clock
    )
    redelivery = ReportRedelivery(invocation.context.function_name, clients.region, summary_key)
    report = OutgoingReport(summary, page_uri, reported_account, settings.sender or "", page_html)
    reached_addresses = send_report(clients, settings, delivery_claims, report, redelivery)
    return {"week": summary.week, "page": page_uri, "sent_to": reached_addresses}

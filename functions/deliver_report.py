"""Make a week's report from its summary in the report bucket, and send it."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial

from functions.entry import Call, Event, entry
from mendq.model.names import OwnMetric
from mendq.model.settings import DeliverReportSettings
from mendq.nightly.deliver import ReportBucket, account_alias, send_report
from mendq.nightly.deliveries import DeliveryClaims
from mendq.notifications.notification import Redelivery
from mendq.report.html_page import page
from mendq.report.links import ReportedAccount
from mendq.report.mail import Outgoing
from mendq.report.summary import MOST_BYTES, read_under

DELIVERED = OwnMetric.REPORTS_DELIVERED
NOT_DELIVERED = OwnMetric.REPORTS_NOT_DELIVERED


@entry(DeliverReportSettings)
def handler(event: Event, call: Call[DeliverReportSettings]) -> Event:
    """Write the report's page for a summary. If the week is over, send the report once.

    Args:
        event: An S3 event. Its object is the summary of a week.
        call: This invocation.

    Returns:
        `{"week", "page", "sent_to"}`. `sent_to` is empty if nothing was sent.

    Raises:
        SummaryUnreadable, ReportNotDelivered, ClientError, BotoCoreError: Lambda tries the event
            again, and in the end sends it to a DLQ. A recipient that got the report does not get it
            again.
    """
    is_delivered = False
    has_failed = True
    try:
        answer = _deliver(event, call)
        is_delivered = bool(answer["sent_to"])
        has_failed = False
    finally:
        call.count({DELIVERED: is_delivered, NOT_DELIVERED: has_failed}, zeros=True)
    return answer


def _deliver(event: Event, call: Call[DeliverReportSettings]) -> Event:
    settings = call.settings
    clients = call.clients
    key = event["detail"]["object"]["key"]
    bucket = ReportBucket(clients.s3, settings.report_bucket)
    summary = read_under(key, bucket.summary(key, MOST_BYTES + 1))
    alias = account_alias(clients)
    here = ReportedAccount(clients.region, settings.account, alias, settings.docs_url or "")
    html = page(summary, here)
    place = f"s3://{bucket.name}/{bucket.put_page(summary.week, html)}"
    call.log.info("wrote the report's page", week=summary.week, page=place)
    if not summary.not_seen.week_is_over:
        call.log.warning("sent nothing: the week is not over", page=place)
        return {"week": summary.week, "page": place, "sent_to": []}
    clock = partial(datetime.now, UTC)
    owner = call.context.aws_request_id
    marked = DeliveryClaims(clients.s3, bucket.name, summary.week, owner, clock)
    again = Redelivery(call.context.function_name, clients.region, key)
    report = Outgoing(summary, place, here, settings.sender or "", html)
    sent_to = send_report(clients, settings, marked, report, again)
    return {"week": summary.week, "page": place, "sent_to": sent_to}

"""Deliver a week's report from its summary in the bucket: page, verdict and mails."""

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
from mendq.report.links import Here
from mendq.report.mail import Outgoing
from mendq.report.summary import MOST_BYTES, read_under

DELIVERED, NOT_DELIVERED = OwnMetric.REPORTS_DELIVERED, OwnMetric.REPORTS_NOT_DELIVERED


@entry(DeliverReportSettings)
def handler(event: Event, call: Call[DeliverReportSettings]) -> Event:
    """Make the page anew for every summary; send each week that is over once to everybody.

    Raises SummaryUnreadable, ReportNotDelivered, or what AWS raises, so that the event is tried
    again and then parked; what was sent is not sent again.
    """
    delivered, failed = False, True
    try:
        answer = _delivered(event, call)
        delivered, failed = bool(answer["sent_to"]), False
    finally:
        call.count({DELIVERED: delivered, NOT_DELIVERED: failed}, zeros=True)
    return answer


def _delivered(event: Event, call: Call[DeliverReportSettings]) -> Event:
    settings, clients = call.settings, call.clients
    key = event["detail"]["object"]["key"]
    bucket = ReportBucket(clients.s3, settings.report_bucket)
    summary = read_under(key, bucket.summary(key, MOST_BYTES + 1))
    alias = account_alias(clients)
    here = Here(clients.region, settings.account, alias, settings.docs_url or "")
    html = page(summary, here)
    place = f"s3://{bucket.name}/{bucket.put_page(summary.week, html)}"
    call.log.info("made a page", week=summary.week, page=place)
    if not summary.not_seen.week_is_over:
        call.log.warning("sent nothing: the week is not over", page=place)
        return {"week": summary.week, "page": place, "sent_to": []}
    clock, owner = partial(datetime.now, UTC), call.context.aws_request_id
    marked = DeliveryClaims(clients.s3, bucket.name, summary.week, owner, clock)
    again = Redelivery(call.context.function_name, clients.region, key)
    report = Outgoing(summary, place, here, settings.sender or "", html)
    sent_to = send_report(clients, settings, marked, report, again)
    return {"week": summary.week, "page": place, "sent_to": sent_to}

"""Deliver a week's report from its summary in the bucket, or say that nobody makes one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial

from functions.entry import Call, Event, entry
from mendq.model.names import OwnMetric
from mendq.model.settings import DeliverReportSettings
from mendq.nightly.deliver import (
    Delivery,
    ReportBucket,
    ReportNotDelivered,
    deliver,
    send_report,
    topic,
)
from mendq.nightly.deliveries import DeliveryClaims
from mendq.nightly.verdict import week_named
from mendq.notifications.notification import Again, of_nothing_counted
from mendq.report.html_page import page
from mendq.report.mail import Outgoing
from mendq.report.read_summary import MOST_BYTES, read_under
from mendq.report.to_do import Here

DELIVERED, NOT_DELIVERED = OwnMetric.REPORTS_DELIVERED, OwnMetric.REPORTS_NOT_DELIVERED


@entry(DeliverReportSettings)
def handler(event: Event, call: Call[DeliverReportSettings]) -> Event:
    """Make the page anew for every summary; send each week that is over once to everybody.

    `{"time"}` in, from the schedule of a stack without the nightly job: the topic is told so, once.
    Raises SummaryUnreadable, ReportNotDelivered, or what AWS raises, so that the event is tried
    again and then parked; what was sent is not sent again.
    """
    delivered, failed = False, True
    try:
        act = _delivered if "detail" in event else _said_that_nothing_is_counted
        answer = act(event, call)
        delivered, failed = bool(answer["sent_to"]), False
    finally:
        call.count({DELIVERED: delivered, NOT_DELIVERED: failed}, zeros=True)
    return answer


def _delivered(event: Event, call: Call[DeliverReportSettings]) -> Event:
    settings, clients = call.settings, call.clients
    key = event["detail"]["object"]["key"]
    bucket = ReportBucket(clients.s3, settings.report_bucket)
    summary = read_under(key, bucket.summary(key, MOST_BYTES + 1))
    here = Here(clients.region, settings.account)
    place = f"s3://{bucket.name}/{bucket.put_page(summary.week, page(summary, here))}"
    if not summary.not_seen.week_is_over:
        call.log.warning("made a page, sent nothing: the week is not over", page=place)
        return {"week": summary.week, "page": place, "sent_to": []}
    marked = _claims(summary.week, call)
    again = Again(call.context.function_name, clients.region, key)
    report = Outgoing(summary, place, here, settings.sender or "")
    delivery = send_report(clients, settings, marked, report, again)
    call.log.info("made a page", week=summary.week, page=place, sent_to=delivery.reached)
    return {"week": summary.week, "page": place, "sent_to": _reached(delivery, call)}


def _said_that_nothing_is_counted(event: Event, call: Call[DeliverReportSettings]) -> Event:
    week = week_named((datetime.fromisoformat(event["time"]) - timedelta(days=7)).date())
    text = of_nothing_counted(week, call.clients.region)
    told = topic(call.clients, "nothing-counted", call.settings.topic_arn, text.subject, text.body)
    return {"week": week, "sent_to": _reached(deliver(_claims(week, call), [told]), call)}


def _claims(week: str, call: Call[DeliverReportSettings]) -> DeliveryClaims:
    clock, owner = partial(datetime.now, UTC), call.context.aws_request_id
    return DeliveryClaims(call.clients.s3, call.settings.report_bucket, week, owner, clock)


def _reached(delivery: Delivery, call: Call[DeliverReportSettings]) -> list[str]:
    """Whom it reached; raises ReportNotDelivered where a channel failed."""
    for each in delivery.failed:
        call.log.error("not delivered", to=each.channel.reaches, why=each.why)
    if delivery.failed:
        raise ReportNotDelivered("; ".join(each.why for each in delivery.failed))
    return list(delivery.reached)

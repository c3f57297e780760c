"""AWS/SQS in MiniStack's CloudWatch, and what its queries leave out.

A query's StartTime is rounded down to the minute; GetMetricData's newest value comes first, and
its answer in pages.
https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_GetMetricData.html
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from ministack.core.responses import get_account_id, get_region
from ministack.services import cloudwatch

from local_account.cloudwatch.install import OF_LAMBDA
from local_account.cloudwatch.pages import BadRequest, Page
from local_account.sqs.queue_metrics import MINUTE_SECONDS, NAMESPACE, QueueMetrics

Asked = Mapping[str, Any]
Query = Callable[..., Any]
Measure = Callable[[], None]
logger = logging.getLogger("mendq.metrics")


@dataclass(frozen=True)
class Form:
    """How the answer to one GetMetricData is laid out."""

    page: Page
    newest_first: bool


_form: ContextVar[Form | None] = ContextVar("form", default=None)


def install(metrics: QueueMetrics, measure: Measure) -> None:
    """Hook the queries, and start the thread that measures each minute; once per process."""

    def published(query: Query) -> Query:
        def asking(params: Asked, asked: Asked, *protocol: bool) -> Any:
            measure()
            publish(metrics)
            return query(params, asked, *protocol)

        return asking

    cloudwatch._list_metrics = published(cloudwatch._list_metrics)
    cloudwatch._get_metric_statistics = published(_rounded(cloudwatch._get_metric_statistics))
    cloudwatch._get_metric_data = published(_formed(_rounded(cloudwatch._get_metric_data)))
    cloudwatch._cbor_ok = _forming(cloudwatch._cbor_ok)
    cloudwatch._json_ok = _forming(cloudwatch._json_ok)
    cloudwatch._evaluate_alarm = _leaving_out_dimensions(cloudwatch._evaluate_alarm)
    threading.Thread(target=_run, args=(measure,), name="queue-metrics", daemon=True).start()


def publish(metrics: QueueMetrics) -> None:
    """Show the metrics of the caller's account and Region; what was shown before is replaced."""
    for series in metrics.series(get_account_id(), get_region()):
        key = (NAMESPACE, series.metric, cloudwatch._dims_key(series.dimensions))
        cloudwatch._metrics[key] = list(series.points)


def _run(measure: Measure) -> None:
    """An empty queue that nobody asks about reports as well, each minute."""
    while True:
        time.sleep(MINUTE_SECONDS - time.time() % MINUTE_SECONDS)
        try:
            measure()
        except Exception:
            logger.exception("the metrics of the queues are lost for this minute")


def _rounded(query: Query) -> Query:
    def asking(params: Asked, asked: Asked, *protocol: bool) -> Any:
        start = cloudwatch._parse_ts(asked.get("StartTime"))
        if start is not None:
            asked = {**asked, "StartTime": start // MINUTE_SECONDS * MINUTE_SECONDS}
        return query(params, asked, *protocol)

    return asking


def _formed(query: Query) -> Query:
    def asking(params: Asked, asked: Asked, is_cbor: bool, is_json: bool = False) -> Any:
        try:
            page = Page.asked(asked)
        except BadRequest as refused:
            return cloudwatch._error(
                "ValidationError", f"{refused}", 400, use_json=is_json, use_cbor=is_cbor
            )
        token = _form.set(Form(page, asked.get("ScanBy") != "TimestampAscending"))
        try:
            return query(params, asked, is_cbor, is_json)
        finally:
            _form.reset(token)

    return asking


def _forming(respond: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def responding(answer: Any) -> Any:
        form = _form.get()
        if form is None:
            return respond(answer)
        results = answer["MetricDataResults"]
        if form.newest_first:
            results = [_reversed(each) for each in results]
        return respond(form.page.of(results))

    return responding


def _reversed(result: Asked) -> Asked:
    turned = {name: list(reversed(result[name])) for name in ("Timestamps", "Values")}
    return {**result, **turned}


def _leaving_out_dimensions(evaluate: Callable[[Asked], None]) -> Callable[[Asked], None]:
    """MiniStack's alarms look at none: any queue or Lambda would raise the alarm of another."""

    def evaluating(alarm: Asked) -> None:
        if alarm.get("Namespace") not in (NAMESPACE, OF_LAMBDA):
            evaluate(alarm)

    return evaluating

"""Measure signs that a change by Mendq does harm."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from mendq.aws.clients import Clients
from mendq.aws.cloudwatch import measure_queues
from mendq.aws.errors import QueueGone
from mendq.aws.queue import read_queue_attributes
from mendq.model.case import Case
from mendq.model.facts import QueueFacts
from mendq.model.harms import HarmMeasurements, HarmSign, find_dlq_arn, find_harm_sign
from mendq.model.metrics import Measurement, MetricGap, Window
from mendq.model.steps import CreateDlq

# The shortest time to measure. SQS sends one datapoint per minute, and a single one proves nothing.
SHORTEST_MEASURED_TIME = timedelta(minutes=3)


def measure_harm_signs(
    clients: Clients, case: Case, written_at: datetime, now: datetime
) -> HarmMeasurements:
    """Return the measurements since a case's change, of the changed queue or of its DLQ.

    Only the metrics that can show harm by this kind of change are read, because AWS charges for
    each metric.

    Raises:
        FactsUnavailable: SQS or CloudWatch cannot be read.
        QueueRefusesUs: The DLQ's policy denies Mendq access.
    """
    sign = find_harm_sign(case)
    if sign is HarmSign.DLQ_ARRIVALS:
        has_created_dlq = any(step["attribute"] == CreateDlq.attribute for step in case.steps)
        dlq_arn = find_dlq_arn(case.steps) or case.queue_arn
        dlq_measurement = _measure_since(
            clients, dlq_arn, written_at, now, begins_empty=has_created_dlq
        )
        return HarmMeasurements(
            dlq=dlq_measurement, dlq_message_count=_count_dlq_messages(clients, dlq_arn)
        )
    metric_kinds = (
        ("every queue", "repeated sends") if sign is HarmSign.SENDS_DROPPED else ("every queue",)
    )
    return HarmMeasurements(
        queue=_measure_since(clients, case.queue_arn, written_at, now, metric_kinds=metric_kinds)
    )


def _count_dlq_messages(clients: Clients, dlq_arn: str) -> int:
    """Return the number of visible and in-flight messages in the DLQ; 0 if the DLQ was deleted."""
    try:
        queue = QueueFacts(dlq_arn, read_queue_attributes(clients, dlq_arn))
    except QueueGone:
        return 0
    return queue.visible + queue.in_flight


def _measure_since(  # noqa: PLR0913
    clients: Clients,
    queue_arn: str,
    written_at: datetime,
    now: datetime,
    *,
    begins_empty: bool = False,
    metric_kinds: tuple[str, ...] = ("every queue",),
) -> Measurement | None:
    """Return a measurement of a queue from a write until now.

    Return None if CloudWatch has no data or has gaps, or if the write is so recent that
    SHORTEST_MEASURED_TIME cannot be measured yet.
    """
    window = Window.choose(now, written_at, SHORTEST_MEASURED_TIME, is_new=begins_empty)
    if window is None:
        return None
    window_by_arn = {queue_arn: replace(window, kinds=metric_kinds)}
    measurement = measure_queues(clients, window_by_arn)[queue_arn]
    return None if isinstance(measurement, MetricGap) else measurement

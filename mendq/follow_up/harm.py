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
    is_about_dlq = sign is HarmSign.DLQ_ARRIVALS
    has_created_dlq = is_about_dlq and any(
        step["attribute"] == CreateDlq.attribute for step in case.steps
    )
    window = Window.choose(now, written_at, SHORTEST_MEASURED_TIME, is_new=has_created_dlq)
    if is_about_dlq:
        dlq_arn = find_dlq_arn(case.steps) or case.queue_arn
        return HarmMeasurements(
            dlq=_measure(clients, dlq_arn, window),
            dlq_message_count=_count_dlq_messages(clients, dlq_arn),
            window=window,
        )
    if window is not None and sign is HarmSign.SENDS_DROPPED:
        window = replace(window, kinds=("every queue", "repeated sends"))
    return HarmMeasurements(queue=_measure(clients, case.queue_arn, window), window=window)


def _count_dlq_messages(clients: Clients, dlq_arn: str) -> int:
    """Return the number of visible and in-flight messages in the DLQ; 0 if the DLQ was deleted."""
    try:
        queue = QueueFacts(dlq_arn, read_queue_attributes(clients, dlq_arn))
    except QueueGone:
        return 0
    return queue.visible + queue.in_flight


def _measure(clients: Clients, queue_arn: str, window: Window | None) -> Measurement | None:
    """Return a measurement of a queue in the window.

    Return None if CloudWatch has no data or has gaps, or if there is no window because the write is
    too recent.
    """
    if window is None:
        return None
    measurement = measure_queues(clients, {queue_arn: window})[queue_arn]
    return None if isinstance(measurement, MetricGap) else measurement

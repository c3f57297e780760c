"""Metrics and log lines of a report's delivery."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit

from functions.aws.deliver import Delivery
from functions.healing.own_metrics import OwnMetric

DELIVERED, NOT_DELIVERED = OwnMetric.REPORTS_DELIVERED, OwnMetric.REPORTS_NOT_DELIVERED


@contextmanager
def counting(metrics: Metrics) -> Iterator[list[Delivery]]:
    """Count what is put into the list; whatever raises within was not delivered."""
    deliveries: list[Delivery] = []
    failed = True
    try:
        yield deliveries
        failed = False
    finally:
        reached = any(each.reached for each in deliveries)
        metrics.add_metric(DELIVERED, MetricUnit.Count, int(reached and not failed))
        metrics.add_metric(NOT_DELIVERED, MetricUnit.Count, int(failed))


def log(logger: Logger, week: str, place: str, delivery: Delivery) -> None:
    """One line for the report, one for each channel that did not take it."""
    for each in delivery.failed:
        logger.error("not delivered", week=week, to=each.channel.reaches, why=each.why)
    logger.info("made a page", week=week, page=place, sent_to=delivery.reached)

"""Metrics and logs of a sweep: only what is not zero, never per queue."""

from __future__ import annotations

from itertools import islice

from aws_lambda_powertools import Logger, single_metric
from aws_lambda_powertools.metrics import MetricUnit

from functions.aws.emitting import NAMESPACE
from functions.aws.errors import QueueRefusesUs
from functions.healing.own_metrics import OwnMetric
from functions.healing.sweeping import Swept

# Where everything fails it fails alike; what was found stands in the case bucket whole.
MOST_ERRORS = 20
MOST_FINDINGS = 100


def emit(swept: Swept) -> None:
    """Queues that it came to, left out for the budget or failed at, and findings by symptom."""
    for name, value in (
        (OwnMetric.SWEPT_QUEUES, swept.queues),
        (OwnMetric.SWEEP_SKIPPED, swept.skipped),
        (OwnMetric.SWEEP_ERRORS, _faults(swept)),
    ):
        if value:
            with single_metric(name, MetricUnit.Count, value, namespace=NAMESPACE):
                pass  # it is sent on leaving
    for symptom, value in swept.by_symptom().items():
        name = OwnMetric.SWEEP_FINDINGS
        with single_metric(name, MetricUnit.Count, value, namespace=NAMESPACE) as metric:
            metric.add_dimension("symptom", symptom)


def _faults(swept: Swept) -> int:
    """Queues, names and prefixes that failed; a queue that keeps us out is none: its owner's word.

    Counted it would ring an alarm for ever that is to tell of the next. Where all do it is told.
    """
    if swept.is_blind:
        return len(swept.failed)
    return sum(not isinstance(each, QueueRefusesUs) for each in swept.failed.values())


def log(logger: Logger, swept: Swept) -> None:
    """The first findings and errors, a line each, and how far it came."""
    for finding in islice(swept.findings, MOST_FINDINGS):
        logger.info("found a symptom", finding=finding.document())
    for queue_arn, error in islice(swept.failed.items(), MOST_ERRORS):
        logger.error("a queue could not be looked at", queue_arn=queue_arn, exc_info=error)
    logger.info("swept", totals=totals(swept))


def totals(swept: Swept) -> dict[str, int]:
    """What the Lambda answers."""
    return {
        "queues": swept.queues,
        "gone": swept.gone,
        "unseen": swept.unseen,
        "suspects": swept.suspects,
        "measured": swept.measured,
        "skipped_for_budget": swept.skipped,
        "metrics": swept.metrics,
        "findings": len(swept.findings),
        "errors": len(swept.failed),
    }

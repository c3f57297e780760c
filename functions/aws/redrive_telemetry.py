"""Metrics and the log line of one call of the redrive Lambda.

Letters are counted where they are sent, and only while something goes on: a series of zeros that
exists all month costs money and says nothing here.
https://aws.amazon.com/cloudwatch/pricing/
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit

from functions.aws.redrive_run import Ticked
from functions.aws.run import Outcome
from functions.aws.telemetry import emit_taken_up
from functions.healing.own_metrics import OwnMetric


def emit(metrics: Metrics, outcome: Outcome) -> None:
    """A case that was taken up counts as what became of it, a tick as the letters it moved."""
    if not isinstance(outcome, Ticked):
        emit_taken_up(metrics, outcome)
        return
    metrics.add_metric(OwnMetric.REDRIVEN_MESSAGES, MetricUnit.Count, outcome.redriven)
    metrics.add_metric(OwnMetric.QUARANTINED_MESSAGES, MetricUnit.Count, outcome.quarantined)


def log(logger: Logger, request: Mapping[str, Any], outcome: Outcome) -> None:
    """One line, with how far the redrive has come."""
    course = outcome.course.document() if isinstance(outcome, Ticked) and outcome.course else {}
    course.pop("fingerprints", None)  # thousands, and of use to the next tick alone
    logger.info("redrove a case", request=request, course=course, **outcome.document())

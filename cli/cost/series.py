"""The series of our own metrics that are there although nothing happens.

Derived by letting the Lambdas' telemetry tell of a run that found nothing: what it sends even then
is there all month. Series per symptom, of redrives and of times to heal come with what happens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import cast

from aws_lambda_powertools import Metrics
from aws_lambda_powertools.metrics import EphemeralMetrics

from functions.aws import delivery_telemetry, follow_up_telemetry, telemetry
from functions.aws.emitting import NAMESPACE
from functions.aws.follow_up import Followed
from functions.aws.intake import Intake
from functions.healing.limits import Limits
from functions.healing.night_watch import NightMetric
from functions.healing.own_metrics import OwnMetric

_NOW = datetime(2026, 1, 1, tzinfo=UTC)


def _told(tell: Callable[[Metrics], None]) -> frozenset[str]:
    metrics = EphemeralMetrics(namespace=NAMESPACE)
    tell(cast("Metrics", metrics))  # it keeps to itself what Metrics shares with everybody
    (sent,) = metrics.serialize_metric_set()["_aws"]["CloudWatchMetrics"]
    return frozenset(each["Name"] for each in sent["Metrics"])


@cache
def sent() -> Mapping[str, frozenset[str]]:
    """By the handler that the clock starts, what comes of its every run."""
    return {
        "follow_up": _told(lambda to: follow_up_telemetry.emit(to, Followed([]), _NOW, Limits())),
        # It makes a failing call, which comes round to heal.
        "pulse": _told(lambda to: telemetry.emit(to, Intake(), {})) | {OwnMetric.PULSES_LOST},
        # It starts the night, whose end another Lambda counts.
        "start_night": frozenset(NightMetric) | {OwnMetric.WEEKS_FAILED},
        "deliver_report": frozenset(
            {delivery_telemetry.DELIVERED, delivery_telemetry.NOT_DELIVERED}
        ),
    }


def hours_a_month(runs: Mapping[str, float], month_hours: float) -> dict[str, float]:
    """By metric, the hours in which a datum of it comes; `runs` are times a month by handler.

    CloudWatch bills a series for the hours in which it is sent.
    """
    hours: dict[str, float] = {}
    for handler, times in runs.items():
        busy = min(month_hours, times)
        for name in sent().get(handler, ()):
            hours[name] = max(busy, hours.get(name, 0.0))
    return hours

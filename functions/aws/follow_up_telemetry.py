"""Metrics and logs of a follow-up: gauges each minute, so that an alarm lasts as its cause does.

The fixes that heal counts are sent as zeros too: their anomaly band learns nothing else.
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Anomaly_Detection.html
"""

from __future__ import annotations

from datetime import datetime

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit

from functions.aws.follow_up import Followed
from functions.aws.telemetry import COUNTED_AS_ZERO, add_counts
from functions.healing.case import Case
from functions.healing.limits import Limits
from functions.healing.own_metrics import HEARTBEAT, OwnMetric
from functions.healing.states import State


def emit(metrics: Metrics, followed: Followed, now: datetime, limits: Limits) -> None:
    """Gauges, a zero for the fixes that heal counts, what was moved and what could not be."""
    gauges = {
        OwnMetric.ESCALATED_CASES_OPEN: followed.by_state[State.ESCALATED],
        OwnMetric.PROPOSED_CASES_OPEN: followed.by_state[State.PROPOSED],
        OwnMetric.FIXES_BEING_VERIFIED: followed.fixes_being_verified(now, limits),
    }
    for name, value in gauges.items():
        metrics.add_metric(name, MetricUnit.Count, value)
    came_back = sum(_came_back(each) for each in followed.moved)
    add_counts(
        metrics,
        {
            COUNTED_AS_ZERO: 0,
            OwnMetric.RECURRENCES: came_back,
            OwnMetric.FOLLOW_UP_ERRORS: len(followed.errors),
        },
    )
    age_seconds = followed.oldest_age_seconds(now)
    metrics.add_metric(HEARTBEAT, MetricUnit.Seconds, max(0, age_seconds))
    for case in followed.moved:
        if case.state is State.VERIFIED:
            seconds = _seconds_to_heal(case)
            metrics.add_metric(OwnMetric.TIME_TO_HEAL, MetricUnit.Seconds, seconds)


def log(logger: Logger, followed: Followed) -> None:
    """One line a case that moved, was handed over or could not be looked at."""
    for case in followed.moved:
        logger.info("moved a case", case=case.document())
    for case in followed.called:
        logger.info("called heal with a case", case_id=case.case_id, state=case.state)
    for left in followed.unknown:
        logger.warning(
            "a case of a symptom that another version of Mendq knows; `mendq close` ends it",
            case_id=left.case_id,
            symptom=left.symptom,
        )
    for case_id, error in followed.errors.items():
        logger.error("a case could not be followed", case_id=case_id, exc_info=error)


def _came_back(case: Case) -> bool:
    return case.state is State.INEFFECTIVE and case.came_from is State.WATCHING


def _seconds_to_heal(case: Case) -> float:
    first_at = datetime.fromisoformat(case.evidence["first_at"])
    return max(0.0, (case.at - first_at).total_seconds())

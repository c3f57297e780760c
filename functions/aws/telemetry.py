"""Metrics (EMF, namespace Mendq) and logs of one batch; never a dimension per queue.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from aws_lambda_powertools import Logger, Metrics, single_metric
from aws_lambda_powertools.metrics import MetricUnit

from functions.aws.emitting import NAMESPACE
from functions.aws.errors import ComeAgain, EventUnreadable
from functions.aws.intake import Intake
from functions.aws.run import Group, Outcome
from functions.healing.own_metrics import OwnMetric
from functions.healing.states import State

MOST_CODES = 20
# What every batch counts, in the order it is sent; follow_up sends zeros of the same.
TOTALS = (
    OwnMetric.FAILED_CALLS_SEEN,
    OwnMetric.UNKNOWN_ERROR_CODES,
    OwnMetric.UNREADABLE_EVENTS,
    OwnMetric.AUTO_FIXES,
    OwnMetric.REFUSALS,
)
Mended = Mapping[Group, Outcome]


def emit(metrics: Metrics, intake: Intake, mended: Mended) -> None:
    """Totals without a dimension always, per symptom only what is not zero."""
    fixes = Counter(group.symptom.name for group, each in mended.items() if _is_fix(each))
    refusals = Counter(group.symptom.name for group, each in mended.items() if each.refusal)
    totals = (
        intake.failed_calls,
        len(intake.unknown_codes),
        len(intake.unreadable),
        fixes.total(),
        refusals.total() + len(intake.refusals),
    )
    for name, value in zip(TOTALS, totals, strict=True):
        metrics.add_metric(name, MetricUnit.Count, value)
    for name, counts in ((OwnMetric.AUTO_FIXES, fixes), (OwnMetric.REFUSALS, refusals)):
        for symptom, value in counts.items():
            with single_metric(name, MetricUnit.Count, value, namespace=NAMESPACE) as metric:
                metric.add_dimension("symptom", symptom)


def emit_taken_up(metrics: Metrics, outcome: Outcome) -> None:
    """A case that was taken up counts as what became of it."""
    refused = outcome.refusal is not None
    for name, value in (
        (OwnMetric.AUTO_FIXES, _is_fix(outcome)),
        (OwnMetric.REFUSALS, refused),
    ):
        metrics.add_metric(name, MetricUnit.Count, int(value))


def log(logger: Logger, intake: Intake, mended: Mended, errors: Iterable[Exception] = ()) -> None:
    """One line a case, refusal or error, and one for what could not be read."""
    for error in {id(each): each for each in errors}.values():
        if not isinstance(error, ComeAgain | EventUnreadable):
            logger.error("a queue could not be mended; its events come again", exc_info=error)
    for group, outcome in mended.items():
        case = outcome.case.document() if outcome.case else None
        refusal = outcome.refusal
        logger.info(
            "looked at a queue",
            queue_arn=group.queue_arn,
            symptom=group.symptom.name,
            failed_calls=len(group.calls),
            refusal={"code": refusal.code, "reason": refusal.reason} if refusal else None,
            case=case,
        )
    for call in intake.pulses.values():
        logger.info("saw the pulse", made_at=call.event_time, spelled=call.raw_error_code)
    if intake.unknown_codes:
        codes = sorted(set(intake.unknown_codes))
        logger.warning("error codes that nobody listed", codes=codes[:MOST_CODES], all=len(codes))
    if intake.unreadable:
        reasons = Counter(each.reason for each in intake.unreadable.values())
        logger.warning("events that cannot be read, on their way to parking", reasons=reasons)


def _is_fix(outcome: Outcome) -> bool:
    return outcome.case is not None and outcome.case.state is State.APPLIED

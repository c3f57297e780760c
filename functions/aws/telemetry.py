"""Metrics (EMF, namespace Mendq) and logs of one batch; never a dimension per queue.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from aws_lambda_powertools import Logger, Metrics, single_metric
from aws_lambda_powertools.metrics import MetricUnit

from functions.aws.emitting import NAMESPACE
from functions.aws.errors import CaseMoved, ComeAgain, EventUnreadable
from functions.aws.intake import Intake
from functions.aws.run import Group, Outcome
from functions.healing.own_metrics import OwnMetric
from functions.healing.states import State

MOST_CODES = 20
# An anomaly band learns nothing from a series that is only there when something happens; any other
# counter that is always there costs its month and is watched by no alarm.
COUNTED_AS_ZERO = OwnMetric.AUTO_FIXES
NO_FAULTS = (CaseMoved, ComeAgain, EventUnreadable)
Mended = Mapping[Group, Outcome]


def emit(
    metrics: Metrics, intake: Intake, mended: Mended, errors: Iterable[Exception] = ()
) -> None:
    """What is not zero, the fixes always; fixes and refusals per symptom as well."""
    fixes = Counter(group.symptom.name for group, each in mended.items() if _is_fix(each))
    refusals = Counter(group.symptom.name for group, each in mended.items() if each.refusal)
    totals = {
        OwnMetric.FAILED_CALLS_SEEN: intake.failed_calls,
        OwnMetric.UNKNOWN_ERROR_CODES: len(intake.unknown_codes),
        OwnMetric.UNREADABLE_EVENTS: len(intake.unreadable),
        OwnMetric.HEAL_ERRORS: len(_faults(errors)),
        OwnMetric.AUTO_FIXES: fixes.total(),
        OwnMetric.REFUSALS: refusals.total() + len(intake.refusals),
    }
    add_counts(metrics, totals)
    for name, counts in ((OwnMetric.AUTO_FIXES, fixes), (OwnMetric.REFUSALS, refusals)):
        for symptom, value in counts.items():
            with single_metric(name, MetricUnit.Count, value, namespace=NAMESPACE) as metric:
                metric.add_dimension("symptom", symptom)


def emit_taken_up(metrics: Metrics, outcome: Outcome) -> None:
    """A case that was taken up counts as what became of it."""
    fixes, refusals = int(_is_fix(outcome)), int(outcome.refusal is not None)
    add_counts(metrics, {OwnMetric.AUTO_FIXES: fixes, OwnMetric.REFUSALS: refusals})


def add_counts(metrics: Metrics, counts: Mapping[OwnMetric, int]) -> None:
    """Those that are not zero, and COUNTED_AS_ZERO."""
    for name, value in counts.items():
        if value or name is COUNTED_AS_ZERO:
            metrics.add_metric(name, MetricUnit.Count, value)


def log(logger: Logger, intake: Intake, mended: Mended, errors: Iterable[Exception] = ()) -> None:
    """One line a case, refusal or error, and one for what could not be read."""
    for error in _faults(errors):
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


def _faults(errors: Iterable[Exception]) -> list[Exception]:
    """Each once, however many messages it failed.

    To wait or to be unreadable is none; nor is it that another run was faster, as runs are that
    read one burst.
    """
    once = {id(each): each for each in errors}.values()
    return [each for each in once if not isinstance(each, NO_FAULTS)]

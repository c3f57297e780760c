"""Metrics (EMF, namespace Mendq) and log lines of the Lambdas; never a dimension per queue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools import Logger, Metrics, single_metric
from aws_lambda_powertools.metrics import MetricUnit

from functions.entry import Call, Event
from mendq.aws.errors import CaseMoved, ComeAgain, EventUnreadable, QueueRefusesUs
from mendq.model.case import State
from mendq.model.limits import Limits
from mendq.model.names import HEARTBEAT, NAMESPACE, OwnMetric

# A Lambda loads its own rooms, and not those of the others.
if TYPE_CHECKING:
    from mendq.cases.finding import Scanned
    from mendq.follow_up.follow_up import Followed
    from mendq.heal.batch import Healed
    from mendq.heal.context import Outcome
    from mendq.nightly.deliver import Delivery
    from mendq.nightly.outcome import Watched, WeekEnded


def tell_nightly(call: Call[Any], seen: Watched | WeekEnded) -> dict[str, str]:
    """Every figure of the run at the time at which it ended, told twice it is the same; and why.

    A run that is not fine is a warning.
    """
    from mendq.nightly.outcome import NightlyMetric, WeekEnded  # noqa: PLC0415 - see above

    call.metrics.set_timestamp(seen.run.updated_at)
    for name, value in seen.metrics().items():
        unit = MetricUnit.Bytes if name is NightlyMetric.BYTES_UNREADABLE else MetricUnit.Count
        call.metrics.add_metric(name, unit, value)
    run = seen.run
    if isinstance(seen, WeekEnded):
        say = call.log.warning if seen.failed else call.log.info
        say("a week ended", week=seen.week, run=run.id, why=seen.why, details=run.details)
        return {"week": seen.week, "verdict": "failed" if seen.failed else "summed_up"}
    say = call.log.info if seen.is_fine else call.log.warning
    say(
        "a nightly run ended",
        day=str(seen.day),
        run=run.id,
        state=run.state,
        verdict=seen.verdict,
        usual_records=seen.judged.usual_records,
        why=seen.why,
        nightly=seen.nightly.document() if seen.nightly else None,
    )
    return {"day": str(seen.day), "verdict": seen.verdict}


def tell_taken_up(call: Call[Any], event: Event, outcome: Outcome) -> Event:
    """What whoever called with a case is answered; it counts as what became of it."""
    fixes, refusals = int(_is_fix(outcome)), int(outcome.refusal is not None)
    add_counts(call.metrics, {OwnMetric.AUTO_FIXES: fixes, OwnMetric.REFUSALS: refusals})
    document = outcome.document()
    call.log.info("took up a case", request=event, **document)
    return document


MOST_CODES = 20
# An anomaly band learns nothing from a series that is only there when something happens; any other
# counter that is always there costs its month and is watched by no alarm.
COUNTED_AS_ZERO = OwnMetric.AUTO_FIXES
NO_FAULTS = (CaseMoved, ComeAgain, EventUnreadable)


def emit_heal(metrics: Metrics, healed: Healed) -> None:
    """What is not zero, the fixes always; fixes and refusals per symptom as well."""
    fixed = healed.fixed.items()
    fixes = Counter(group.symptom.name for group, each in fixed if _is_fix(each))
    refusals = Counter(group.symptom.name for group, each in fixed if each.refusal)
    totals = {
        OwnMetric.FAILED_CALLS_SEEN: healed.failed_calls,
        OwnMetric.UNKNOWN_ERROR_CODES: len(healed.unknown_codes),
        OwnMetric.UNREADABLE_EVENTS: len(healed.unreadable),
        OwnMetric.HEAL_ERRORS: len(_heal_faults(healed)),
        OwnMetric.AUTO_FIXES: fixes.total(),
        OwnMetric.REFUSALS: refusals.total() + len(healed.refusals),
    }
    add_counts(metrics, totals)
    _by_symptom(OwnMetric.AUTO_FIXES, fixes)
    _by_symptom(OwnMetric.REFUSALS, refusals)


def _by_symptom(name: OwnMetric, counts: Mapping[str, int]) -> None:
    for symptom, value in counts.items():
        with single_metric(name, MetricUnit.Count, value, namespace=NAMESPACE) as metric:
            metric.add_dimension("symptom", symptom)


def add_counts(metrics: Metrics, counts: Mapping[OwnMetric, int]) -> None:
    """Those that are not zero, and COUNTED_AS_ZERO."""
    for name, value in counts.items():
        if value or name is COUNTED_AS_ZERO:
            metrics.add_metric(name, MetricUnit.Count, value)


def log_heal(logger: Logger, healed: Healed) -> None:
    """One line a case, refusal or error, and one for what could not be read."""
    for error in _heal_faults(healed):
        logger.error("a queue could not be fixed; its events come again", exc_info=error)
    for group, outcome in healed.fixed.items():
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
    for call in healed.probes.values():
        logger.info("saw the probe", made_at=call.event_time, spelled=call.raw_error_code)
    if healed.unknown_codes:
        codes = sorted(set(healed.unknown_codes))
        logger.warning("error codes that nobody listed", codes=codes[:MOST_CODES], all=len(codes))
    if healed.unreadable:
        reasons = Counter(each.reason for each in healed.unreadable.values())
        logger.warning("events that cannot be read, on their way to parking", reasons=reasons)


def _is_fix(outcome: Outcome) -> bool:
    return outcome.case is not None and outcome.case.state is State.APPLIED


def _heal_faults(healed: Healed) -> list[Exception]:
    """Each once, however many messages it failed.

    To wait or to be unreadable is none; nor is it that another run was faster, as runs are that
    read one burst.
    """
    once = {id(each): each for each in healed.errors.values()}.values()
    return [each for each in once if not isinstance(each, NO_FAULTS)]


def emit_follow_up(metrics: Metrics, followed: Followed, now: datetime, limits: Limits) -> None:
    """Gauges, a zero for the fixes that heal counts, what was moved and what could not be."""
    gauges = {
        OwnMetric.ESCALATED_CASES_OPEN: followed.by_state[State.ESCALATED],
        OwnMetric.PROPOSED_CASES_OPEN: followed.by_state[State.PROPOSED],
        OwnMetric.FIXES_BEING_VERIFIED: followed.fixes_being_verified(now, limits),
    }
    for name, value in gauges.items():
        metrics.add_metric(name, MetricUnit.Count, value)
    came_back = [
        each
        for each in followed.moved
        if each.state is State.INEFFECTIVE and each.came_from is State.WATCHING
    ]
    counts = {COUNTED_AS_ZERO: 0, OwnMetric.RECURRENCES: len(came_back)}
    add_counts(metrics, {**counts, OwnMetric.FOLLOW_UP_ERRORS: len(followed.errors)})
    age_seconds = followed.oldest_age_seconds(now)
    metrics.add_metric(HEARTBEAT, MetricUnit.Seconds, max(0, age_seconds))
    for case in (each for each in followed.moved if each.state is State.VERIFIED):
        healing = case.at - datetime.fromisoformat(case.evidence["first_at"])
        seconds = max(0.0, healing.total_seconds())
        metrics.add_metric(OwnMetric.TIME_TO_HEAL, MetricUnit.Seconds, seconds)


def log_follow_up(logger: Logger, followed: Followed) -> None:
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


# Where everything fails it fails alike; what was found stands in the case bucket whole.
MOST_ERRORS = 20
MOST_FINDINGS = 100


def emit_scan(scanned: Scanned) -> None:
    """Queues that it came to, left out for the budget or failed at, and findings by symptom."""
    counts = {
        OwnMetric.SCANNED_QUEUES: scanned.queues,
        OwnMetric.SCAN_SKIPPED: scanned.skipped,
        OwnMetric.SCAN_ERRORS: _faults(scanned),
    }
    for name in filter(counts.get, counts):
        with single_metric(name, MetricUnit.Count, counts[name], namespace=NAMESPACE):
            pass  # it is sent on leaving
    _by_symptom(OwnMetric.SCAN_FINDINGS, scanned.by_symptom())


def _faults(scanned: Scanned) -> int:
    """Queues, names and prefixes that failed; a queue that keeps us out is none: its owner's word.

    Counted it would ring an alarm for ever that is to tell of the next. Where all do it is told.
    """
    if scanned.is_blind:
        return len(scanned.failed)
    return sum(not isinstance(each, QueueRefusesUs) for each in scanned.failed.values())


def log_scan(logger: Logger, scanned: Scanned) -> None:
    """The first findings and errors, a line each, and how far it came."""
    for finding in islice(scanned.findings, MOST_FINDINGS):
        logger.info("found a symptom", finding=finding.document())
    for queue_arn, error in islice(scanned.failed.items(), MOST_ERRORS):
        logger.error("a queue could not be looked at", queue_arn=queue_arn, exc_info=error)
    logger.info("scanned", totals=totals(scanned))


def totals(scanned: Scanned) -> dict[str, int]:
    """What the Lambda answers."""
    counts = ("queues", "gone", "unseen", "suspects", "measured", "metrics")
    return {
        **{name: getattr(scanned, name) for name in counts},
        "skipped_for_budget": scanned.skipped,
        "findings": len(scanned.findings),
        "errors": len(scanned.failed),
    }


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


def log_delivery(logger: Logger, week: str, place: str, delivery: Delivery) -> None:
    """One line for the report, one for each channel that did not take it."""
    for each in delivery.failed:
        logger.error("not delivered", week=week, to=each.channel.reaches, why=each.why)
    logger.info("made a page", week=week, page=place, sent_to=delivery.reached)

"""Alarms on Mendq's own health and on cases that wait for people, a row each.

Those on heal or on the nightly runs that tell nobody by themselves have one cause: one page tells.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import Any

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs

from infra.alarms.alarm import (
    A_FAULT,
    A_MINUTE,
    AN_HOUR,
    AS_BEFORE,
    BELOW,
    FINE,
    FIVE_MINUTES,
    INTAKE,
    OPEN_CASES,
    AlarmDescription,
    Firing,
    Watch,
    own,
)
from infra.alarms.fixes import over_ceiling
from infra.intake import MAX_RECEIVE_COUNT, VISIBILITY_SECONDS, Intake
from infra.lambdas.lambda_function import OwnLambda, ParkingLambda
from infra.pagerduty import PagerDuty
from infra.settings.deployment import DeploymentSettings
from mendq.model.case import Severity
from mendq.model.names import HEARTBEAT, OwnMetric
from mendq.model.steps import Owner
from mendq.nightly.outcome import REPORT_WITHIN, NightlyMetric
from mendq.probe.probe import LOST_IN_A_ROW

SILENT_MINUTES = 10
LATE_MINUTES = 5
# What is tried again and again is parked by then; what waits longer was not looked at.
LATE_SECONDS = VISIBILITY_SECONDS * MAX_RECEIVE_COUNT
# A probe that comes a little late is still in its period.
PROBE_SLACK_MINUTES = 10
# https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch_concepts.html
LONGEST_PERIOD_MINUTES = 1_440
# A Lambda that fails at all, and one that writes; twice may be bad luck.
HEAL_FAILS, WRITER_FAILS, WRITER_PERIODS = 3, 2, 6
# What heal cannot do comes again after six minutes, a case that follow_up cannot move after five:
# twice is bad luck, and may be over by then. The hour makes what comes now and then one alarm.
FAILS, PERIODS = 3, 12
# Hourly scans: two that fail may be one service's bad morning. Three are started in a half hour.
SCAN_FAILS, SCANS = 3, 4
SCAN_MINUTES, SCAN_MISSING_HOURS = 30, 2
# A day, and what nightly runs differ in length.
NIGHTLY_MISSING_HOURS = 27
# Three tries of one delivery, with what lies between them.
DELIVERY_PERIOD = Duration.minutes(15)
_BLIND = "Failing calls may go unseen: meanwhile nothing is fixed, and no case is paged."
_OFTEN = f"in {FAILS} of {PERIODS} periods of 5 minutes"

_liveness = partial(AlarmDescription, part="Liveness")
SILENT = _liveness(
    "heartbeat_missing",
    f"follow_up, which runs each minute, did not end well or sent no metrics for {SILENT_MINUTES} "
    "minutes",
    "Nobody looks after open cases, and the alarms on them stand where they stood.",
    severity=Severity.URGENT,
    is_essential=True,
)
PROBE_LOST = _liveness(
    "probe_lost",
    f"{LOST_IN_A_ROW} probes in a row were lost, or none is sent any more",
    _BLIND,
    severity=Severity.URGENT,
    is_essential=True,
)
LATE = _liveness(
    "intake_late",
    f"the oldest failed call waits longer than {MAX_RECEIVE_COUNT} tries of heal take, for "
    f"{LATE_MINUTES} minutes",
    "Fixes come late or not at all: heal is not running, or not as fast as calls fail.",
    is_essential=True,
)
HEAL_FAILING = _liveness(
    "heal_failing",
    f"heal fails in {HEAL_FAILS} periods of 5 minutes in a row",
    _BLIND,
    runbook="lambda_failing",
)
NOT_HEALING = AlarmDescription(
    "not_healing",
    "failed calls reach the intake and do not come through heal",
    _BLIND,
    severity=Severity.URGENT,
)
_failing = partial(
    AlarmDescription, runbook="lambda_failing", severity=Severity.URGENT, part="Failing"
)
HEAL_ERRORS = _failing(
    "heal_errors",
    f"heal could not do what failed calls asked for, {_OFTEN}",
    "Of some queues at least, failing calls come to nothing: no fix, and no page about a case.",
    is_essential=True,
)
FOLLOW_UP_ERRORS = _failing(
    "follow_up_errors",
    f"follow_up could not look after a case, {_OFTEN}",
    "Cases stay where they are: fixes are not verified, and approved ones are not made.",
    is_essential=True,
)
_scanning = partial(
    AlarmDescription,
    impact="What fails no call is found by the scan alone, and stays unseen where it cannot look.",
    runbook="scan_failing",
    severity=Severity.INFO,
    part="Scanning",
)
SCAN_ERRORS = _scanning(
    "scan_errors",
    f"the scan could not look at some queue, or at none, in {SCAN_FAILS} of {SCANS} hours",
)
SCAN_MISSING = _scanning(
    "scan_missing",
    f"no scan, which is started every ten minutes, ended well for {SCAN_MISSING_HOURS} hours",
    is_essential=True,
)
_open_cases = partial(AlarmDescription, command=OPEN_CASES, part="OpenCases")
_escalated = partial(_open_cases, runbook="cases_escalated")
ESCALATED = _escalated(
    "case_escalated",
    "a case was escalated; it ends by itself within minutes, so that the next one rings too",
    "A queue is broken in a way that Mendq cannot or may not fix. Each case has a page of its own, "
    "which may come later where many are sent.",
    severity=Severity.URGENT,
    is_essential=True,
)
ESCALATED_OPEN = _escalated(
    "escalated_cases_open",
    "a case is escalated, and for as long as one is",
    "A queue stays broken until a person settles its case; this ends when the last of them does.",
    severity=Severity.INFO,
)
PROPOSED = _open_cases(
    "proposed_cases_open",
    "a proposal waits for a person, and for as long as one does",
    "Mendq knows a change that would help and may not make it by itself. Where nobody approves it "
    "in time it expires.",
    runbook="proposals_waiting",
    severity=Severity.INFO,
)
_parked = partial(AlarmDescription, severity=Severity.INFO, part="Parked")
UNDELIVERED = _parked(
    "failed_calls_undelivered",
    "EventBridge could not put failed calls into the intake queue",
    _BLIND,
    runbook="own_dlq",
    severity=Severity.URGENT,
    is_essential=True,
)
OWN_DLQ = _parked(
    "own_dlq",
    "a DLQ of Mendq's own holds something",
    "Something that Mendq was to do was given up; it is kept for 14 days, for a person.",
    is_essential=True,
)
WRITER_FAILING = _parked(
    "lambda_failing",
    f"a Lambda that writes failed in {WRITER_FAILS} of {WRITER_PERIODS} periods of 5 minutes",
    "Changes that were approved, or are due, are not made; after a day their cases are escalated.",
)
_NIGHTLY_RUNS = "NightlyRuns"
_nightly = partial(AlarmDescription, runbook="nightly_and_report", part=_NIGHTLY_RUNS)
_run = partial(
    _nightly, impact="The week's report lacks this nightly run; queues are fixed all the same."
)
NIGHTLY_FAILED = _run("nightly_failed", "the newest nightly run ended and wrote nothing")
NIGHTLY_MISSING = _run(
    "nightly_missing",
    f"no nightly run wrote anything for {NIGHTLY_MISSING_HOURS} hours, or none ever has",
)
NIGHTLY_DOUBTFUL = _run(
    "nightly_doubtful", "the newest nightly run read nothing, or far less than is usual"
)
NIGHTLY_FAILING = _nightly(
    "nightly_failing",
    "a nightly run failed, is missing or read too little",
    "The weekly report lacks a day, or comes late; queues are fixed all the same.",
    severity=Severity.INFO,
)
_week = partial(
    _nightly,
    impact="There is no new weekly report; queues are fixed all the same.",
    severity=Severity.INFO,
)
WEEK_FAILED = _week("week_failed", "the newest weekly run ended and summed nothing up")
REPORT_MISSING = _week(
    "report_missing",
    f"no week was summed up for {REPORT_WITHIN.days} days; checked after each nightly run",
)
NOT_DELIVERED = _nightly(
    "report_not_delivered",
    "the newest report was not delivered; only where report.sender and report.recipients are set",
    "Somebody has not got the weekly report. Its page lies in the report bucket.",
    command="mendq report",
    runbook="report_not_mailed",
    severity=Severity.INFO,
)
TRAIL_BUSY = _nightly(
    "trail_busy",
    "the day before the newest nightly run had more records than trail.expectedEventsPerDay",
    "CloudTrail bills every call that is logged, so this month's bill grows faster than expected.",
    command="mendq cost",
    runbook="trail_busy",
    severity=Severity.INFO,
)

_OFTEN_FIRING = Firing(1, FINE, FAILS, PERIODS)
# A gauge, or what the newest run said: an alarm lasts as long as its cause, and silence ends none.
_LASTING = Firing(1, AS_BEFORE)
_MISSING = Firing(1, A_FAULT, NIGHTLY_MISSING_HOURS, NIGHTLY_MISSING_HOURS, BELOW)
# On metrics that Mendq sends.
_ON_OURS = (
    # AWS counts no error where a Lambda has caught it. Each tells of itself: one queue that heal
    # can do nothing for must not hide that heal is gone.
    (HEAL_ERRORS, OwnMetric.HEAL_ERRORS, "Sum", FIVE_MINUTES, _OFTEN_FIRING),
    (FOLLOW_UP_ERRORS, OwnMetric.FOLLOW_UP_ERRORS, "Sum", FIVE_MINUTES, _OFTEN_FIRING),
    (SCAN_ERRORS, OwnMetric.SCAN_ERRORS, "Sum", AN_HOUR, Firing(1, FINE, SCAN_FAILS, SCANS)),
    (ESCALATED, OwnMetric.ESCALATIONS, "Sum", A_MINUTE, Firing(1, FINE)),
    (ESCALATED_OPEN, OwnMetric.ESCALATED_CASES_OPEN, "Maximum", A_MINUTE, _LASTING),
    (PROPOSED, OwnMetric.PROPOSED_CASES_OPEN, "Maximum", A_MINUTE, _LASTING),
    (NIGHTLY_FAILED, NightlyMetric.FAILED, "Maximum", AN_HOUR, _LASTING),
    (NIGHTLY_DOUBTFUL, NightlyMetric.DOUBTFUL, "Maximum", AN_HOUR, _LASTING),
    (WEEK_FAILED, OwnMetric.WEEKS_FAILED, "Maximum", AN_HOUR, _LASTING),
    (REPORT_MISSING, NightlyMetric.REPORT_MISSING, "Maximum", AN_HOUR, _LASTING),
    (NIGHTLY_MISSING, NightlyMetric.WRITTEN, "Maximum", AN_HOUR, _MISSING),
    # The least of the tries: one that got through is no alarm.
    (NOT_DELIVERED, OwnMetric.REPORTS_NOT_DELIVERED, "Minimum", DELIVERY_PERIOD, _LASTING),
)


@dataclass(frozen=True)
class Watched:
    """What of the stack is watched beside the metrics that Mendq sends."""

    intake: Intake
    lambdas: Mapping[str, OwnLambda]
    paging: PagerDuty | None = None

    def dlqs(self) -> dict[str, sqs.Queue]:
        """All of Mendq's own but the rule's, by what they belong to, such as `start-nightly`."""
        parking = {
            name.replace("_", "-"): each.dlq
            for name, each in self.lambdas.items()
            if isinstance(each, ParkingLambda)
        }
        paging = {"pagerduty": self.paging.dlq} if self.paging else {}
        return {INTAKE: self.intake.dlq, **parking, **paging}

    def errors(self, name: str, **asked: Any) -> cloudwatch.Metric:
        """The runs of a Lambda that failed."""
        return self.lambdas[name].function.metric_errors(**{"period": FIVE_MINUTES, **asked})


def waiting_in(queue: sqs.Queue, **asked: Any) -> cloudwatch.Metric:
    """The messages in a queue of ours."""
    return queue.metric_approximate_number_of_messages_visible(
        period=FIVE_MINUTES, statistic="Maximum", **asked
    )


def watches(watched: Watched, settings: DeploymentSettings) -> Iterator[Watch]:
    """Every alarm on a metric but those on many fixes."""
    yield over_ceiling(settings.limits)
    yield from _on_the_way(watched, settings.timing.probe_minutes)
    # Each run counts as an error or as none, so the least is 0 where one ended well. Nothing else
    # would miss a scan that is not run.
    # https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html
    least = watched.errors("scan", period=Duration.minutes(SCAN_MINUTES), statistic="Minimum")
    periods = SCAN_MISSING_HOURS * 60 // SCAN_MINUTES
    yield Watch(SCAN_MISSING, least, Firing(1, A_FAULT, periods, periods))
    for announced, metric, statistic, period, firing in _ON_OURS:
        is_run = settings.nightly.enabled or announced.part != _NIGHTLY_RUNS
        if is_run and (announced is not NOT_DELIVERED or settings.report.mails):
            yield Watch(announced, own(metric, statistic, period), firing)
    if settings.nightly.enabled:
        most = Firing(settings.trail.expected_events_per_day + 1, AS_BEFORE)
        read = own(NightlyMetric.RECORDS_READ, "Maximum", AN_HOUR)
        yield Watch(TRAIL_BUSY, read, most)
    # Each tells of itself: what lies in one queue for days must not hide the next. By what waits,
    # not by what arrived: it ends when a person has emptied the queue.
    for of, queue in {"": watched.intake.undelivered, **watched.dlqs()}.items():
        yield Watch(OWN_DLQ if of else UNDELIVERED, waiting_in(queue), _LASTING, of)
    again = Firing(1, FINE, WRITER_FAILS, WRITER_PERIODS)
    for owner in Owner:
        if owner is not Owner.HEAL:
            yield Watch(WRITER_FAILING, watched.errors(owner), again, owner.replace("_", "-"))


def _on_the_way(watched: Watched, probe_minutes: int) -> Iterator[Watch]:
    """On the way from a failed call to a fix; the first two have causes of their own."""
    silent = Firing(1, A_FAULT, SILENT_MINUTES, SILENT_MINUTES, BELOW)
    yield Watch(SILENT, _beats(watched.lambdas["follow_up"].function), silent)
    # A period, or several where a day is too short, that hold a probe each time. Of several each
    # has to breach: an empty one does, so that the one with the probe decides. Where CloudWatch
    # looks further back instead, the alarm is a probe late; the probe pages by itself.
    together = probe_minutes + PROBE_SLACK_MINUTES
    periods = ceil(together / LONGEST_PERIOD_MINUTES)
    lost = own(OwnMetric.PROBES_LOST, "Maximum", Duration.minutes(ceil(together / periods)))
    yield Watch(PROBE_LOST, lost, Firing(LOST_IN_A_ROW, A_FAULT, periods, periods))
    age = watched.intake.age(A_MINUTE)
    yield Watch(LATE, age, Firing(LATE_SECONDS, FINE, LATE_MINUTES, LATE_MINUTES))
    yield Watch(HEAL_FAILING, watched.errors("heal"), Firing(1, FINE, HEAL_FAILS, HEAL_FAILS))


def _beats(follow_up: lambda_.Function) -> cloudwatch.MathExpression:
    """A run that ended well, which AWS counts and nobody else can, and that sent its metrics.

    A minute that lacks one of the three has no value, as an expression on missing data has none.
    https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/using-metric-math.html
    """
    return cloudwatch.MathExpression(
        expression="(runs - errors) * beats",
        using_metrics={
            "runs": follow_up.metric_invocations(period=A_MINUTE),
            "errors": follow_up.metric_errors(period=A_MINUTE),
            "beats": own(HEARTBEAT, "SampleCount", A_MINUTE),
        },
        period=A_MINUTE,
    )

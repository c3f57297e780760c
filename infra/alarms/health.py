"""Alarms on Mendq's own health and on cases that wait for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
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
from mendq.notifications.announcements import LOST_PROBES_IN_A_ROW

SILENT_MINUTES = 10
LATE_MINUTES = 5
# A call that heal retries is in the DLQ by then, so one that waits longer was never tried.
LATE_SECONDS = VISIBILITY_SECONDS * MAX_RECEIVE_COUNT
# Added to the period, so that a probe that comes a little late is still in it.
PROBE_SLACK_MINUTES = 10
# https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch_concepts.html
LONGEST_PERIOD_MINUTES = 1_440
# Periods of five minutes in a row in which heal fails. Twice may be bad luck.
HEAL_FAILS = 3
# The same for a Lambda that writes: two of six.
WRITER_FAILS = 2
WRITER_PERIODS = 6
# Heal retries a call after six minutes, follow_up a case after five. Twice may be bad luck that is
# over by then. The periods are an hour together, so that errors now and then are one alarm.
FAILS = 3
PERIODS = 12
# Hourly scans. Two that fail may be one bad hour of an AWS service.
SCAN_FAILS = 3
SCANS = 4
# The scan is started every ten minutes, so three times in one period.
SCAN_MINUTES = 30
SCAN_MISSING_HOURS = 2
# A day, and by how much the lengths of nightly runs differ.
NIGHTLY_MISSING_HOURS = 27
# Holds all three tries of one delivery.
DELIVERY_PERIOD = Duration.minutes(15)
_BLIND = "Failing calls may go unseen: meanwhile nothing is fixed, and no case is paged."
_OFTEN = f"in {FAILS} of {PERIODS} periods of 5 minutes"

_LIVENESS = "Liveness"
SILENT = AlarmDescription(
    name="heartbeat_missing",
    when=f"follow_up, which runs each minute, did not end well or sent no metrics for "
    f"{SILENT_MINUTES} minutes",
    impact="Nobody looks after open cases, and the alarms on them stand where they stood.",
    severity=Severity.URGENT,
    part=_LIVENESS,
    is_essential=True,
)
PROBE_LOST = AlarmDescription(
    name="probe_lost",
    when=f"{LOST_PROBES_IN_A_ROW} probes in a row were lost, or none is sent any more",
    impact=_BLIND,
    severity=Severity.URGENT,
    part=_LIVENESS,
    is_essential=True,
)
LATE = AlarmDescription(
    name="intake_late",
    when=f"the oldest failed call waits longer than {MAX_RECEIVE_COUNT} tries of heal take, for "
    f"{LATE_MINUTES} minutes",
    impact="Fixes come late or not at all: heal is not running, or not as fast as calls fail.",
    part=_LIVENESS,
    is_essential=True,
)
HEAL_FAILING = AlarmDescription(
    name="heal_failing",
    when=f"heal fails in {HEAL_FAILS} periods of 5 minutes in a row",
    impact=_BLIND,
    runbook="lambda_failing",
    part=_LIVENESS,
)
NOT_HEALING = AlarmDescription(
    name="not_healing",
    when="failed calls reach the intake and do not come through heal",
    impact=_BLIND,
    severity=Severity.URGENT,
)
_FAILING = "Failing"
HEAL_ERRORS = AlarmDescription(
    name="heal_errors",
    when=f"heal could not do what failed calls asked for, {_OFTEN}",
    impact="Of some queues at least, failing calls come to nothing: no fix, and no page about a "
    "case.",
    runbook="lambda_failing",
    severity=Severity.URGENT,
    part=_FAILING,
    is_essential=True,
)
FOLLOW_UP_ERRORS = AlarmDescription(
    name="follow_up_errors",
    when=f"follow_up could not look after a case, {_OFTEN}",
    impact="Cases stay where they are: fixes are not verified, and approved ones are not made.",
    runbook="lambda_failing",
    severity=Severity.URGENT,
    part=_FAILING,
    is_essential=True,
)
_SCANNING = "Scanning"
_UNSEEN = "What fails no call is found by the scan alone, and stays unseen where it cannot look."
SCAN_ERRORS = AlarmDescription(
    name="scan_errors",
    when=f"the scan could not look at some queue, or at none, in {SCAN_FAILS} of {SCANS} hours",
    impact=_UNSEEN,
    runbook="scan_failing",
    severity=Severity.INFO,
    part=_SCANNING,
)
SCAN_MISSING = AlarmDescription(
    name="scan_missing",
    when=f"no scan, which is started every ten minutes, ended well for {SCAN_MISSING_HOURS} hours",
    impact=_UNSEEN,
    runbook="scan_failing",
    severity=Severity.INFO,
    part=_SCANNING,
    is_essential=True,
)
_OPEN_CASES = "OpenCases"
ESCALATED = AlarmDescription(
    name="case_escalated",
    when="a case was escalated; it ends by itself within minutes, so that the next one rings too",
    impact="A queue is broken in a way that Mendq cannot or may not fix. Each case has a page of "
    "its own, which may come later where many are sent.",
    command=OPEN_CASES,
    runbook="cases_escalated",
    severity=Severity.URGENT,
    part=_OPEN_CASES,
    is_essential=True,
)
ESCALATED_OPEN = AlarmDescription(
    name="escalated_cases_open",
    when="a case is escalated, and for as long as one is",
    impact="A queue stays broken until a person settles its case; this ends when the last of them "
    "does.",
    command=OPEN_CASES,
    runbook="cases_escalated",
    severity=Severity.INFO,
    part=_OPEN_CASES,
)
PROPOSED = AlarmDescription(
    name="proposed_cases_open",
    when="a proposal waits for a person, and for as long as one does",
    impact="Mendq knows a change that would help and may not make it by itself. Where nobody "
    "approves it in time it expires.",
    command=OPEN_CASES,
    runbook="proposals_waiting",
    severity=Severity.INFO,
    part=_OPEN_CASES,
)
_PARKED = "Parked"
UNDELIVERED = AlarmDescription(
    name="failed_calls_undelivered",
    when="EventBridge could not put failed calls into the intake queue",
    impact=_BLIND,
    runbook="own_dlq",
    severity=Severity.URGENT,
    part=_PARKED,
    is_essential=True,
)
OWN_DLQ = AlarmDescription(
    name="own_dlq",
    when="a DLQ of Mendq's own holds something",
    impact="Something that Mendq was to do was given up; it is kept for 14 days, for a person.",
    severity=Severity.INFO,
    part=_PARKED,
    is_essential=True,
)
WRITER_FAILING = AlarmDescription(
    name="lambda_failing",
    when=f"a Lambda that writes failed in {WRITER_FAILS} of {WRITER_PERIODS} periods of 5 minutes",
    impact="Changes that were approved, or are due, are not made; after a day their cases are "
    "escalated.",
    severity=Severity.INFO,
    part=_PARKED,
)
_NIGHTLY_RUNS = "NightlyRuns"
_RUN_LACKING = "The week's report lacks this nightly run; queues are fixed all the same."
_NO_REPORT = "There is no new weekly report; queues are fixed all the same."
NIGHTLY_FAILED = AlarmDescription(
    name="nightly_failed",
    when="the newest nightly run ended and wrote nothing",
    impact=_RUN_LACKING,
    runbook="nightly_and_report",
    part=_NIGHTLY_RUNS,
)
NIGHTLY_MISSING = AlarmDescription(
    name="nightly_missing",
    when=f"no nightly run wrote anything for {NIGHTLY_MISSING_HOURS} hours, or none ever has",
    impact=_RUN_LACKING,
    runbook="nightly_and_report",
    part=_NIGHTLY_RUNS,
)
NIGHTLY_DOUBTFUL = AlarmDescription(
    name="nightly_doubtful",
    when="the newest nightly run read nothing, or far less than is usual",
    impact=_RUN_LACKING,
    runbook="nightly_and_report",
    part=_NIGHTLY_RUNS,
)
NIGHTLY_FAILING = AlarmDescription(
    name="nightly_failing",
    when="a nightly run failed, is missing or read too little",
    impact="The weekly report lacks a day, or comes late; queues are fixed all the same.",
    runbook="nightly_and_report",
    severity=Severity.INFO,
    part=_NIGHTLY_RUNS,
)
WEEK_FAILED = AlarmDescription(
    name="week_failed",
    when="the newest weekly run ended and summed nothing up",
    impact=_NO_REPORT,
    runbook="nightly_and_report",
    severity=Severity.INFO,
    part=_NIGHTLY_RUNS,
)
REPORT_MISSING = AlarmDescription(
    name="report_missing",
    when=f"no week was summed up for {REPORT_WITHIN.days} days; checked after each nightly run",
    impact=_NO_REPORT,
    runbook="nightly_and_report",
    severity=Severity.INFO,
    part=_NIGHTLY_RUNS,
)
NOT_DELIVERED = AlarmDescription(
    name="report_not_delivered",
    when="the newest report was not delivered; only where report.sender and report.recipients are "
    "set",
    impact="Somebody has not got the weekly report. Its page lies in the report bucket.",
    command="mendq report",
    runbook="report_not_mailed",
    severity=Severity.INFO,
    part=_NIGHTLY_RUNS,
)
TRAIL_BUSY = AlarmDescription(
    name="trail_busy",
    when="the day before the newest nightly run had more records than trail.expectedEventsPerDay",
    impact="CloudTrail bills every call that is logged, so this month's bill grows faster than "
    "expected.",
    command="mendq cost",
    runbook="trail_busy",
    severity=Severity.INFO,
    part=_NIGHTLY_RUNS,
)

_OFTEN_FIRING = Firing(1, FINE, FAILS, PERIODS)
# For a gauge, or what the newest run reported: the alarm lasts as long as its cause.
_LASTING = Firing(1, AS_BEFORE)


@dataclass(frozen=True)
class WatchedResources:
    """Resources of the stack whose own metrics are watched, besides the metrics that Mendq sends.

    Attributes:
        intake: the rule's target queue and its DLQs.
        lambdas: every Lambda by the name of its handler.
        paging: the rules that call PagerDuty, if the settings ask for them.
    """

    intake: Intake
    lambdas: Mapping[str, OwnLambda]
    paging: PagerDuty | None = None

    def dlqs(self) -> dict[str, sqs.Queue]:
        """Every DLQ of Mendq's own except the rule's, by its owner, such as `start-nightly`."""
        dlqs = {INTAKE: self.intake.dlq}
        for name, own_lambda in self.lambdas.items():
            if isinstance(own_lambda, ParkingLambda):
                dlqs[name.replace("_", "-")] = own_lambda.dlq
        if self.paging:
            dlqs["pagerduty"] = self.paging.dlq
        return dlqs

    def errors(self, name: str, **asked: Any) -> cloudwatch.Metric:
        """The runs of a Lambda that failed, as AWS counts them."""
        return self.lambdas[name].function.metric_errors(**{"period": FIVE_MINUTES, **asked})


def waiting_in(queue: sqs.Queue, **asked: Any) -> cloudwatch.Metric:
    """The messages in one of Mendq's own queues."""
    return queue.metric_approximate_number_of_messages_visible(
        period=FIVE_MINUTES, statistic="Maximum", **asked
    )


def watches(watched: WatchedResources, settings: DeploymentSettings) -> Iterator[Watch]:
    """Every alarm on a metric, except the alarms of `fixes.Spike`."""
    yield over_ceiling(settings.limits)
    yield from _on_the_way(watched, settings.timing.probe_minutes)
    yield _scan_missing(watched)
    yield from _on_own_metrics()
    if settings.nightly.enabled:
        yield from _on_nightly_runs(settings)
    yield from _on_parked(watched)


def _on_the_way(watched: WatchedResources, probe_minutes: int) -> Iterator[Watch]:
    """Alarms on the way from a failed call to a fix."""
    silent = Firing(1, A_FAULT, SILENT_MINUTES, SILENT_MINUTES, BELOW)
    yield Watch(SILENT, _beats(watched.lambdas["follow_up"].function), silent)
    yield _probe_lost(probe_minutes)
    late = Firing(LATE_SECONDS, FINE, LATE_MINUTES, LATE_MINUTES)
    yield Watch(LATE, watched.intake.age(A_MINUTE), late)
    yield Watch(HEAL_FAILING, watched.errors("heal"), Firing(1, FINE, HEAL_FAILS, HEAL_FAILS))


def _beats(follow_up: lambda_.Function) -> cloudwatch.MathExpression:
    """The heartbeat of each minute: 0 if no run of follow_up ended without an error.

    It multiplies such runs, which AWS counts, by the heartbeats that follow_up itself sent.
    A minute in which one of the three metrics is missing has no value.
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


def _probe_lost(probe_minutes: int) -> Watch:
    """The alarm on lost probes, with a period that holds a probe each time.

    If that is longer than CloudWatch's longest period, it is cut into several. Each of them must
    breach; a period without a probe does, so the one with the probe decides. If CloudWatch looks
    further back instead, the alarm comes one probe later; the probe itself pages in time.
    """
    minutes = probe_minutes + PROBE_SLACK_MINUTES
    periods = ceil(minutes / LONGEST_PERIOD_MINUTES)
    period = Duration.minutes(ceil(minutes / periods))
    lost = own(OwnMetric.PROBES_LOST, "Maximum", period)
    return Watch(PROBE_LOST, lost, Firing(LOST_PROBES_IN_A_ROW, A_FAULT, periods, periods))


def _scan_missing(watched: WatchedResources) -> Watch:
    """The alarm on a scan that does not run, or of which every run fails.

    No other alarm notices that it does not run.
    AWS counts each run as 0 or 1 errors, so the minimum is 0 if at least one run ended well.
    https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html
    """
    errors = watched.errors("scan", period=Duration.minutes(SCAN_MINUTES), statistic="Minimum")
    periods = SCAN_MISSING_HOURS * 60 // SCAN_MINUTES
    return Watch(SCAN_MISSING, errors, Firing(1, A_FAULT, periods, periods))


def _on_own_metrics() -> Iterator[Watch]:
    """Alarms on metrics that heal, follow_up and scan send.

    AWS counts no error if a Lambda caught it, so these metrics do. Each alarm notifies by itself: a
    queue that heal can do nothing for must not hide that heal has stopped.
    """
    heal_errors = own(OwnMetric.HEAL_ERRORS, "Sum", FIVE_MINUTES)
    yield Watch(HEAL_ERRORS, heal_errors, _OFTEN_FIRING)
    follow_up_errors = own(OwnMetric.FOLLOW_UP_ERRORS, "Sum", FIVE_MINUTES)
    yield Watch(FOLLOW_UP_ERRORS, follow_up_errors, _OFTEN_FIRING)
    scan_errors = own(OwnMetric.SCAN_ERRORS, "Sum", AN_HOUR)
    yield Watch(SCAN_ERRORS, scan_errors, Firing(1, FINE, SCAN_FAILS, SCANS))
    escalations = own(OwnMetric.ESCALATIONS, "Sum", A_MINUTE)
    yield Watch(ESCALATED, escalations, Firing(1, FINE))
    escalated_open = own(OwnMetric.ESCALATED_CASES_OPEN, "Maximum", A_MINUTE)
    yield Watch(ESCALATED_OPEN, escalated_open, _LASTING)
    proposed_open = own(OwnMetric.PROPOSED_CASES_OPEN, "Maximum", A_MINUTE)
    yield Watch(PROPOSED, proposed_open, _LASTING)


def _on_nightly_runs(settings: DeploymentSettings) -> Iterator[Watch]:
    """Alarms on nightly and weekly runs, on the report, and on the trail that they read."""
    yield Watch(NIGHTLY_FAILED, own(NightlyMetric.FAILED, "Maximum", AN_HOUR), _LASTING)
    yield Watch(NIGHTLY_DOUBTFUL, own(NightlyMetric.DOUBTFUL, "Maximum", AN_HOUR), _LASTING)
    yield Watch(WEEK_FAILED, own(OwnMetric.WEEKS_FAILED, "Maximum", AN_HOUR), _LASTING)
    yield Watch(REPORT_MISSING, own(NightlyMetric.REPORT_MISSING, "Maximum", AN_HOUR), _LASTING)
    missing = Firing(1, A_FAULT, NIGHTLY_MISSING_HOURS, NIGHTLY_MISSING_HOURS, BELOW)
    yield Watch(NIGHTLY_MISSING, own(NightlyMetric.WRITTEN, "Maximum", AN_HOUR), missing)
    if settings.report.mails:
        # The minimum over the tries: no alarm if one of them was delivered.
        not_delivered = own(OwnMetric.REPORTS_NOT_DELIVERED, "Minimum", DELIVERY_PERIOD)
        yield Watch(NOT_DELIVERED, not_delivered, _LASTING)
    too_many = Firing(settings.trail.expected_events_per_day + 1, AS_BEFORE)
    yield Watch(TRAIL_BUSY, own(NightlyMetric.RECORDS_READ, "Maximum", AN_HOUR), too_many)


def _on_parked(watched: WatchedResources) -> Iterator[Watch]:
    """Alarms on Mendq's own DLQs and on Lambdas that write, one for each.

    A message that waits in one DLQ for days must not hide the next. The alarm counts messages that
    wait, not arrivals, so it ends when a person has emptied the queue.
    """
    yield Watch(UNDELIVERED, waiting_in(watched.intake.undelivered), _LASTING)
    for owner_of_dlq, queue in watched.dlqs().items():
        yield Watch(OWN_DLQ, waiting_in(queue), _LASTING, owner_of_dlq)
    repeatedly = Firing(1, FINE, WRITER_FAILS, WRITER_PERIODS)
    for owner in Owner:
        if owner is not Owner.HEAL:
            resource = owner.replace("_", "-")
            yield Watch(WRITER_FAILING, watched.errors(owner), repeatedly, resource)

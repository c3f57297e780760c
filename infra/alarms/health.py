"""Alarms on Mendq's own health and on cases that wait for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import ceil

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from msgspec import Struct

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
    own_metric,
)
from infra.alarms.fixes import over_ceiling
from infra.intake import MAX_RECEIVE_COUNT, VISIBILITY_SECONDS, Intake
from infra.lambdas.lambda_function import OwnLambda, ParkingLambda
from infra.pagerduty import PagerDuty
from infra.settings.deployment import DeploymentSettings
from mendq.model.case import Severity
from mendq.model.names import HEARTBEAT_METRIC, OwnMetric
from mendq.model.steps import Owner
from mendq.nightly.outcome import LONGEST_TIME_BETWEEN_REPORTS, NightlyMetric
from mendq.notifications.announcements import LOST_PROBES_IN_A_ROW

SILENT_MINUTES = 10
LATE_MINUTES = 5
# After this time a call that heal retries is in the DLQ. A call that waits longer was never tried.
LATE_SECONDS = VISIBILITY_SECONDS * MAX_RECEIVE_COUNT
# Minutes that are added to the time between probes, so that the period also holds a late probe.
PROBE_SLACK_MINUTES = 10
# The longest period of an alarm: one day.
# https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch_concepts.html
LONGEST_PERIOD_MINUTES = 1_440
# After this number of periods of five minutes in a row in which heal fails, its alarm rings. Two
# failures may be bad luck.
HEAL_FAILS = 3
# The alarm of another Lambda that writes queues rings if it fails in two of six such periods.
WRITER_FAILS = 2
WRITER_PERIODS = 6
# The alarms on errors that heal and follow_up caught ring after three of twelve such periods. Heal
# retries a call after six minutes, follow_up a case after five, so two failures may be bad luck.
# Twelve periods are an hour, so that errors now and then make one alarm and not several.
FAILS = 3
PERIODS = 12
# The alarm on the scan's errors rings if it fails in three of four hours. An AWS service that is
# disturbed for an hour can make two hourly scans fail.
SCAN_FAILS = 3
SCANS = 4
# Period of the alarm on a missing scan. The scan is started three times in it, every ten minutes.
SCAN_MINUTES = 30
SCAN_MISSING_HOURS = 2
# A day, and three hours because nightly runs take differently long.
NIGHTLY_MISSING_HOURS = 27
# A period that contains all three attempts to deliver a report.
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
    when=(
        f"no week was summed up for {LONGEST_TIME_BETWEEN_REPORTS.days} days; "
        "checked after each nightly run"
    ),
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
# Every description above. `make check` names one that is missing here.
DESCRIPTIONS = (
    SILENT,
    PROBE_LOST,
    LATE,
    HEAL_FAILING,
    NOT_HEALING,
    HEAL_ERRORS,
    FOLLOW_UP_ERRORS,
    SCAN_ERRORS,
    SCAN_MISSING,
    ESCALATED,
    ESCALATED_OPEN,
    PROPOSED,
    UNDELIVERED,
    OWN_DLQ,
    WRITER_FAILING,
    NIGHTLY_FAILED,
    NIGHTLY_MISSING,
    NIGHTLY_DOUBTFUL,
    NIGHTLY_FAILING,
    WEEK_FAILED,
    REPORT_MISSING,
    NOT_DELIVERED,
    TRAIL_BUSY,
)

_REPEATED_ERRORS = Firing(1, FINE, FAILS, PERIODS)
# For a gauge, or for the result of the newest run: the alarm lasts as long as its cause.
_LASTING = Firing(1, AS_BEFORE)


class WatchedResources(Struct, frozen=True):
    """Resources of the stack whose metrics AWS sends and alarms watch.

    Attributes:
        intake: the intake queue and its DLQs.
        lambdas: every Lambda by the name of its handler.
        paging: the rules that call PagerDuty; None if the settings do not enable them.
    """

    intake: Intake
    lambdas: Mapping[str, OwnLambda]
    paging: PagerDuty | None = None

    def dlqs(self) -> dict[str, sqs.Queue]:
        """Return Mendq's own DLQs, except the rule's, by owner: `intake`, `start-nightly` ..."""
        dlqs = {INTAKE: self.intake.dlq}
        for name, own_lambda in self.lambdas.items():
            if isinstance(own_lambda, ParkingLambda):
                dlqs[name.replace("_", "-")] = own_lambda.dlq
        if self.paging:
            dlqs["pagerduty"] = self.paging.dlq
        return dlqs

    def error_metric(
        self,
        name: str,
        *,
        period: Duration = FIVE_MINUTES,
        statistic: str | None = None,
        label: str | None = None,
    ) -> cloudwatch.Metric:
        """Return AWS's count of failed runs of a Lambda, by default the sum over five minutes.

        `name` is the name of the Lambda's handler.
        """
        function = self.lambdas[name].function
        return function.metric_errors(period=period, statistic=statistic, label=label)


def waiting_messages_metric(queue: sqs.Queue, *, label: str | None = None) -> cloudwatch.Metric:
    """Return the metric of the number of visible messages in a queue."""
    return queue.metric_approximate_number_of_messages_visible(
        period=FIVE_MINUTES, statistic="Maximum", label=label
    )


def list_watches(watched: WatchedResources, settings: DeploymentSettings) -> Iterator[Watch]:
    """Yield every alarm on a metric, except the alarms of `fixes.Spike`."""
    yield over_ceiling(settings.limits)
    yield from _watch_liveness(watched, settings.timing.probe_minutes)
    yield _watch_missing_scan(watched)
    yield from _watch_own_metrics()
    if settings.nightly.enabled:
        yield from _watch_nightly_runs(settings)
    yield from _watch_dlqs_and_writers(watched)


def _watch_liveness(watched: WatchedResources, probe_minutes: int) -> Iterator[Watch]:
    """Yield the alarms on the heartbeat, on probes, and on calls that wait for heal."""
    silent = Firing(1, A_FAULT, SILENT_MINUTES, SILENT_MINUTES, BELOW)
    yield Watch(SILENT, _heartbeat_metric(watched.lambdas["follow_up"].function), silent)
    yield _watch_probes(probe_minutes)
    late = Firing(LATE_SECONDS, FINE, LATE_MINUTES, LATE_MINUTES)
    yield Watch(LATE, watched.intake.oldest_age_metric(A_MINUTE), late)
    yield Watch(HEAL_FAILING, watched.error_metric("heal"), Firing(1, FINE, HEAL_FAILS, HEAL_FAILS))


def _heartbeat_metric(follow_up: lambda_.Function) -> cloudwatch.MathExpression:
    """Return the metric of the heartbeat of each minute.

    It is the number of runs of follow_up without an error, which AWS counts, multiplied by the
    number of heartbeats that follow_up sent. So it is 0 if no run ended without an error. A minute
    in which one of the three metrics is missing has no value.
    https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/using-metric-math.html
    """
    return cloudwatch.MathExpression(
        expression="(runs - errors) * beats",
        using_metrics={
            "runs": follow_up.metric_invocations(period=A_MINUTE),
            "errors": follow_up.metric_errors(period=A_MINUTE),
            "beats": own_metric(HEARTBEAT_METRIC, "SampleCount", A_MINUTE),
        },
        period=A_MINUTE,
    )


def _watch_probes(probe_minutes: int) -> Watch:
    """Return the alarm on lost probes. It looks at a time that always contains a probe.

    If that time is longer than CloudWatch's longest period, it is divided into several periods.
    All of them must breach. A period without a probe has no data and breaches, so the period with
    the probe decides. CloudWatch may look further back because of the missing data: then the alarm
    comes one probe later, but the probe itself sends a page in time.
    """
    minutes = probe_minutes + PROBE_SLACK_MINUTES
    periods = ceil(minutes / LONGEST_PERIOD_MINUTES)
    period = Duration.minutes(ceil(minutes / periods))
    lost = own_metric(OwnMetric.PROBES_LOST, "Maximum", period)
    return Watch(PROBE_LOST, lost, Firing(LOST_PROBES_IN_A_ROW, A_FAULT, periods, periods))


def _watch_missing_scan(watched: WatchedResources) -> Watch:
    """Return the alarm on a scan that does not run, or whose runs all fail.

    No other alarm notices that the scan does not run. AWS counts 0 or 1 errors for each run, so the
    minimum of a period is 0 if at least one run succeeded.
    https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html
    """
    period = Duration.minutes(SCAN_MINUTES)
    errors = watched.error_metric("scan", period=period, statistic="Minimum")
    periods = SCAN_MISSING_HOURS * 60 // SCAN_MINUTES
    return Watch(SCAN_MISSING, errors, Firing(1, A_FAULT, periods, periods))


def _watch_own_metrics() -> Iterator[Watch]:
    """Yield the alarms on metrics that heal, follow_up and scan send.

    AWS counts no error that a Lambda caught, so the Lambdas count such errors with these metrics.
    No composite joins these alarms: a queue that heal cannot fix must not hide that heal has
    stopped.
    """
    heal_errors = own_metric(OwnMetric.HEAL_ERRORS, "Sum", FIVE_MINUTES)
    yield Watch(HEAL_ERRORS, heal_errors, _REPEATED_ERRORS)
    follow_up_errors = own_metric(OwnMetric.FOLLOW_UP_ERRORS, "Sum", FIVE_MINUTES)
    yield Watch(FOLLOW_UP_ERRORS, follow_up_errors, _REPEATED_ERRORS)
    scan_errors = own_metric(OwnMetric.SCAN_ERRORS, "Sum", AN_HOUR)
    yield Watch(SCAN_ERRORS, scan_errors, Firing(1, FINE, SCAN_FAILS, SCANS))
    escalations = own_metric(OwnMetric.ESCALATIONS, "Sum", A_MINUTE)
    yield Watch(ESCALATED, escalations, Firing(1, FINE))
    escalated_open = own_metric(OwnMetric.ESCALATED_CASES_OPEN, "Maximum", A_MINUTE)
    yield Watch(ESCALATED_OPEN, escalated_open, _LASTING)
    proposed_open = own_metric(OwnMetric.PROPOSED_CASES_OPEN, "Maximum", A_MINUTE)
    yield Watch(PROPOSED, proposed_open, _LASTING)


def _watch_nightly_runs(settings: DeploymentSettings) -> Iterator[Watch]:
    """Yield the alarms on nightly and weekly runs, the report, and the size of the trail."""
    failed = own_metric(NightlyMetric.FAILED, "Maximum", AN_HOUR)
    yield Watch(NIGHTLY_FAILED, failed, _LASTING)
    doubtful = own_metric(NightlyMetric.DOUBTFUL, "Maximum", AN_HOUR)
    yield Watch(NIGHTLY_DOUBTFUL, doubtful, _LASTING)
    week_failed = own_metric(OwnMetric.WEEKS_FAILED, "Maximum", AN_HOUR)
    yield Watch(WEEK_FAILED, week_failed, _LASTING)
    report_missing = own_metric(NightlyMetric.REPORT_MISSING, "Maximum", AN_HOUR)
    yield Watch(REPORT_MISSING, report_missing, _LASTING)
    missing = Firing(1, A_FAULT, NIGHTLY_MISSING_HOURS, NIGHTLY_MISSING_HOURS, BELOW)
    yield Watch(NIGHTLY_MISSING, own_metric(NightlyMetric.WRITTEN, "Maximum", AN_HOUR), missing)
    if settings.report.is_mailed:
        # The minimum over the attempts: there is no alarm if one of them succeeded.
        not_delivered = own_metric(OwnMetric.REPORTS_NOT_DELIVERED, "Minimum", DELIVERY_PERIOD)
        yield Watch(NOT_DELIVERED, not_delivered, _LASTING)
    too_many = Firing(settings.trail.expected_events_per_day + 1, AS_BEFORE)
    yield Watch(TRAIL_BUSY, own_metric(NightlyMetric.RECORDS_READ, "Maximum", AN_HOUR), too_many)


def _watch_dlqs_and_writers(watched: WatchedResources) -> Iterator[Watch]:
    """Yield an alarm for each of Mendq's own DLQs, and for each owner of writes besides heal.

    Each DLQ has an alarm of its own, so that a message that waits in one DLQ for days does not hide
    a message in another. The alarm counts messages that wait, not arrivals, so it ends when a
    person has emptied the DLQ.
    """
    yield Watch(UNDELIVERED, waiting_messages_metric(watched.intake.undelivered), _LASTING)
    for owner_of_dlq, queue in watched.dlqs().items():
        yield Watch(OWN_DLQ, waiting_messages_metric(queue), _LASTING, owner_of_dlq)
    repeatedly = Firing(1, FINE, WRITER_FAILS, WRITER_PERIODS)
    for owner in Owner:
        if owner is not Owner.HEAL:
            resource = owner.replace("_", "-")
            yield Watch(WRITER_FAILING, watched.error_metric(owner), repeatedly, resource)

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
    BELOW_THRESHOLD_OPERATOR,
    FIVE_MINUTES,
    INTAKE_ALARM_SUFFIX,
    MISSING_DATA_IS_A_FAULT,
    MISSING_DATA_IS_FINE,
    MISSING_DATA_KEEPS_STATE,
    ONE_HOUR,
    ONE_MINUTE,
    OPEN_CASES_COMMAND,
    AlarmDescription,
    FiringRule,
    MetricAlarm,
    make_own_metric,
)
from infra.alarms.fixes import make_fix_ceiling_alarm
from infra.intake import MAXIMUM_RECEIVE_COUNT, VISIBILITY_TIMEOUT_SECONDS, Intake
from infra.lambdas.lambda_function import AsyncLambda, OwnLambda
from infra.pagerduty import PagerDuty
from infra.settings.deployment import DeploymentSettings
from mendq.model.case import Severity
from mendq.model.names import HEARTBEAT_METRIC, OwnMetric
from mendq.model.steps import Owner
from mendq.nightly.outcome import LONGEST_TIME_BETWEEN_REPORTS, NightlyMetric
from mendq.notifications.announcements import LOST_PROBES_TO_REPORT

HEARTBEAT_MISSING_MINUTES = 10
INTAKE_LATE_MINUTES = 5
# After this time a call that heal retries is in the DLQ. A call that waits longer was never tried.
INTAKE_LATE_AGE_SECONDS = VISIBILITY_TIMEOUT_SECONDS * MAXIMUM_RECEIVE_COUNT
# Minutes that are added to the time between probes, so that the period also holds a late probe.
LATE_PROBE_MARGIN_MINUTES = 10
# The longest period of an alarm: one day.
# https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch_concepts.html
LONGEST_PERIOD_MINUTES = 1_440
# Heal's alarm rings if heal fails in this many periods of five minutes in a row. Two failures may
# be bad luck.
HEAL_FAILING_PERIODS = 3
# The alarm of another Lambda that writes queues rings if it fails in two of six such periods.
WRITER_FAILING_PERIODS = 2
WRITER_WATCHED_PERIODS = 6
# The alarms on errors that heal and follow_up caught ring after three of twelve such periods. Heal
# retries a call after six minutes, follow_up a case after five, so two failures may be bad luck.
# Twelve periods are an hour, so that errors now and then make one alarm and not several.
BREACHING_ERROR_PERIODS = 3
ERROR_WATCHED_PERIODS = 12
# The alarm on the scan's errors rings if it fails in three of four hours. An AWS service that is
# disturbed for an hour can make two hourly scans fail.
SCAN_ERROR_HOURS = 3
SCAN_WATCHED_HOURS = 4
# Period of the alarm on a missing scan. The scan is started three times in it, every ten minutes.
SCAN_MISSING_PERIOD_MINUTES = 30
SCAN_MISSING_HOURS = 2
# A day, and three hours because some nightly runs take longer than others.
NIGHTLY_MISSING_HOURS = 27
# A period that contains all three attempts to deliver a report.
REPORT_DELIVERY_PERIOD = Duration.minutes(15)
_UNSEEN_CALLS_IMPACT = (
    "Mendq may not see failed calls: then it fixes nothing and sends no page about a case."
)
_ERROR_FREQUENCY_TEXT = (
    f"in {BREACHING_ERROR_PERIODS} of {ERROR_WATCHED_PERIODS} periods of 5 minutes"
)

_LIVENESS_PART = "Liveness"
HEARTBEAT_MISSING_ALARM = AlarmDescription(
    name="heartbeat_missing",
    firing_condition=f"follow_up, which runs each minute, did not end well or sent no metrics for "
    f"{HEARTBEAT_MISSING_MINUTES} minutes",
    impact="Open cases do not continue, and the alarms on them keep their last state.",
    severity=Severity.URGENT,
    part=_LIVENESS_PART,
    is_essential=True,
)
PROBE_LOST_ALARM = AlarmDescription(
    name="probe_lost",
    firing_condition=(
        f"{LOST_PROBES_TO_REPORT} probes in a row were lost, or no probe is sent any more"
    ),
    impact=_UNSEEN_CALLS_IMPACT,
    severity=Severity.URGENT,
    part=_LIVENESS_PART,
    is_essential=True,
)
INTAKE_LATE_ALARM = AlarmDescription(
    name="intake_late",
    firing_condition=(
        f"for {INTAKE_LATE_MINUTES} minutes, the oldest failed call waits longer than "
        f"{MAXIMUM_RECEIVE_COUNT} attempts of heal take"
    ),
    impact="Fixes come late or not at all: heal does not run, or calls fail faster than it handles "
    "them.",
    part=_LIVENESS_PART,
    is_essential=True,
)
HEAL_FAILING_ALARM = AlarmDescription(
    name="heal_failing",
    firing_condition=f"heal fails in {HEAL_FAILING_PERIODS} periods of 5 minutes in a row",
    impact=_UNSEEN_CALLS_IMPACT,
    runbook="lambda_failing",
    part=_LIVENESS_PART,
)
NOT_HEALING_ALARM = AlarmDescription(
    name="not_healing",
    firing_condition="failed calls reach the intake queue, but heal does not handle them",
    impact=_UNSEEN_CALLS_IMPACT,
    severity=Severity.URGENT,
)
_ERRORS_PART = "Failing"
HEAL_ERRORS_ALARM = AlarmDescription(
    name="heal_errors",
    firing_condition=f"heal could not handle failed calls, {_ERROR_FREQUENCY_TEXT}",
    impact="On some queues at least, Mendq fixes nothing after failed calls and sends no page "
    "about a case.",
    runbook="lambda_failing",
    severity=Severity.URGENT,
    part=_ERRORS_PART,
    is_essential=True,
)
FOLLOW_UP_ERRORS_ALARM = AlarmDescription(
    name="follow_up_errors",
    firing_condition=f"follow_up could not continue a case, {_ERROR_FREQUENCY_TEXT}",
    impact="Some cases do not continue: their fixes are not verified, or not made after approval.",
    runbook="lambda_failing",
    severity=Severity.URGENT,
    part=_ERRORS_PART,
    is_essential=True,
)
_SCANNING_PART = "Scanning"
_NO_SCAN_IMPACT = (
    "Only the scan finds faults that make no call fail. Mendq does not see them on queues that "
    "it cannot scan."
)
SCAN_ERRORS_ALARM = AlarmDescription(
    name="scan_errors",
    firing_condition=f"the scan could not check some or all queues in {SCAN_ERROR_HOURS} of "
    f"{SCAN_WATCHED_HOURS} hours",
    impact=_NO_SCAN_IMPACT,
    runbook="scan_failing",
    severity=Severity.INFO,
    part=_SCANNING_PART,
)
SCAN_MISSING_ALARM = AlarmDescription(
    name="scan_missing",
    firing_condition=(
        f"no scan, which is started every ten minutes, ended well for {SCAN_MISSING_HOURS} hours"
    ),
    impact=_NO_SCAN_IMPACT,
    runbook="scan_failing",
    severity=Severity.INFO,
    part=_SCANNING_PART,
    is_essential=True,
)
_OPEN_CASES_PART = "OpenCases"
CASE_ESCALATED_ALARM = AlarmDescription(
    name="case_escalated",
    firing_condition=(
        "a case was escalated; the alarm ends within minutes, so that it can ring for the next case"
    ),
    impact="A queue is broken in a way that Mendq cannot or may not fix. Each case has a page of "
    "its own, which may come later if many are sent.",
    command=OPEN_CASES_COMMAND,
    runbook="cases_escalated",
    severity=Severity.URGENT,
    part=_OPEN_CASES_PART,
    is_essential=True,
)
ESCALATED_CASES_OPEN_ALARM = AlarmDescription(
    name="escalated_cases_open",
    firing_condition="at least one case is escalated",
    impact="A queue stays broken until a person settles its case. The alarm ends with the last "
    "such case.",
    command=OPEN_CASES_COMMAND,
    runbook="cases_escalated",
    severity=Severity.INFO,
    part=_OPEN_CASES_PART,
)
PROPOSED_CASES_OPEN_ALARM = AlarmDescription(
    name="proposed_cases_open",
    firing_condition="at least one proposal waits for a person",
    impact="Mendq knows a change that would help, but needs a person's approval. A proposal that "
    "is not approved in time expires.",
    command=OPEN_CASES_COMMAND,
    runbook="proposals_waiting",
    severity=Severity.INFO,
    part=_OPEN_CASES_PART,
)
_PARKED_MESSAGES_PART = "Parked"
FAILED_CALLS_UNDELIVERED_ALARM = AlarmDescription(
    name="failed_calls_undelivered",
    firing_condition="EventBridge could not put failed calls into the intake queue",
    impact=_UNSEEN_CALLS_IMPACT,
    runbook="own_dlq",
    severity=Severity.URGENT,
    part=_PARKED_MESSAGES_PART,
    is_essential=True,
)
OWN_DLQ_ALARM = AlarmDescription(
    name="own_dlq",
    firing_condition="one of Mendq's own DLQs has messages",
    impact="Mendq gave up some of its work. The messages about it are kept for 14 days.",
    severity=Severity.INFO,
    part=_PARKED_MESSAGES_PART,
    is_essential=True,
)
LAMBDA_FAILING_ALARM = AlarmDescription(
    name="lambda_failing",
    firing_condition=(
        f"a Lambda that writes failed in {WRITER_FAILING_PERIODS} of {WRITER_WATCHED_PERIODS} "
        "periods of 5 minutes"
    ),
    impact="Changes that were approved or are due are not made. After a day, their cases are "
    "escalated.",
    severity=Severity.INFO,
    part=_PARKED_MESSAGES_PART,
)
_NIGHTLY_RUNS_PART = "NightlyRuns"
_NO_NIGHTLY_RUN_IMPACT = "The weekly report lacks this nightly run. Mendq still fixes queues."
_NO_REPORT_IMPACT = "There is no new weekly report. Mendq still fixes queues."
NIGHTLY_FAILED_ALARM = AlarmDescription(
    name="nightly_failed",
    firing_condition="the newest nightly run ended and wrote nothing",
    impact=_NO_NIGHTLY_RUN_IMPACT,
    runbook="nightly_and_report",
    part=_NIGHTLY_RUNS_PART,
)
NIGHTLY_MISSING_ALARM = AlarmDescription(
    name="nightly_missing",
    firing_condition=(
        f"no nightly run wrote anything for {NIGHTLY_MISSING_HOURS} hours, or none ever has"
    ),
    impact=_NO_NIGHTLY_RUN_IMPACT,
    runbook="nightly_and_report",
    part=_NIGHTLY_RUNS_PART,
)
NIGHTLY_DOUBTFUL_ALARM = AlarmDescription(
    name="nightly_doubtful",
    firing_condition="the newest nightly run read nothing, or far less than usual",
    impact=_NO_NIGHTLY_RUN_IMPACT,
    runbook="nightly_and_report",
    part=_NIGHTLY_RUNS_PART,
)
NIGHTLY_FAILING_ALARM = AlarmDescription(
    name="nightly_failing",
    firing_condition="a nightly run failed, is missing or read too little",
    impact="The weekly report lacks a day, or comes late. Mendq still fixes queues.",
    runbook="nightly_and_report",
    severity=Severity.INFO,
    part=_NIGHTLY_RUNS_PART,
)
WEEK_FAILED_ALARM = AlarmDescription(
    name="week_failed",
    firing_condition="the newest weekly run ended without a summary",
    impact=_NO_REPORT_IMPACT,
    runbook="nightly_and_report",
    severity=Severity.INFO,
    part=_NIGHTLY_RUNS_PART,
)
REPORT_MISSING_ALARM = AlarmDescription(
    name="report_missing",
    firing_condition=f"there was no weekly summary for {LONGEST_TIME_BETWEEN_REPORTS.days} days; "
    "checked after each nightly run",
    impact=_NO_REPORT_IMPACT,
    runbook="nightly_and_report",
    severity=Severity.INFO,
    part=_NIGHTLY_RUNS_PART,
)
REPORT_NOT_DELIVERED_ALARM = AlarmDescription(
    name="report_not_delivered",
    firing_condition=(
        "the newest report was not delivered; only if report.sender and report.recipients are set"
    ),
    impact="Some recipients did not get the weekly report. It is in the report bucket.",
    command="mendq report",
    runbook="report_not_mailed",
    severity=Severity.INFO,
    part=_NIGHTLY_RUNS_PART,
)
TRAIL_BUSY_ALARM = AlarmDescription(
    name="trail_busy",
    firing_condition=(
        "the day before the newest nightly run had more records than trail.expectedEventsPerDay"
    ),
    impact="CloudTrail bills every call that is logged, so this month's bill grows faster than "
    "expected.",
    command="mendq cost",
    runbook="trail_busy",
    severity=Severity.INFO,
    part=_NIGHTLY_RUNS_PART,
)
# Every description above. `make check` names one that is missing here.
DESCRIPTIONS = (
    HEARTBEAT_MISSING_ALARM,
    PROBE_LOST_ALARM,
    INTAKE_LATE_ALARM,
    HEAL_FAILING_ALARM,
    NOT_HEALING_ALARM,
    HEAL_ERRORS_ALARM,
    FOLLOW_UP_ERRORS_ALARM,
    SCAN_ERRORS_ALARM,
    SCAN_MISSING_ALARM,
    CASE_ESCALATED_ALARM,
    ESCALATED_CASES_OPEN_ALARM,
    PROPOSED_CASES_OPEN_ALARM,
    FAILED_CALLS_UNDELIVERED_ALARM,
    OWN_DLQ_ALARM,
    LAMBDA_FAILING_ALARM,
    NIGHTLY_FAILED_ALARM,
    NIGHTLY_MISSING_ALARM,
    NIGHTLY_DOUBTFUL_ALARM,
    NIGHTLY_FAILING_ALARM,
    WEEK_FAILED_ALARM,
    REPORT_MISSING_ALARM,
    REPORT_NOT_DELIVERED_ALARM,
    TRAIL_BUSY_ALARM,
)

_REPEATED_ERRORS_RULE = FiringRule(
    1, MISSING_DATA_IS_FINE, BREACHING_ERROR_PERIODS, ERROR_WATCHED_PERIODS
)
# For a gauge, or for the result of the newest run: the alarm lasts as long as its cause.
_POSITIVE_VALUE_RULE = FiringRule(1, MISSING_DATA_KEEPS_STATE)


class WatchedResources(Struct, frozen=True):
    """Resources of the stack whose metrics AWS sends and alarms watch.

    Attributes:
        intake: the intake queue and its DLQs.
        lambda_by_handler: every Lambda by the name of its handler.
        pagerduty: the rules that call PagerDuty; None if the settings do not enable them.
    """

    intake: Intake
    lambda_by_handler: Mapping[str, OwnLambda]
    pagerduty: PagerDuty | None = None

    def list_dlqs_by_owner(self) -> dict[str, sqs.Queue]:
        """Return Mendq's own DLQs by owner, such as `intake` or `start-nightly`.

        The DLQ of events that EventBridge could not send to the intake queue is not among them.
        """
        dlq_by_owner = {INTAKE_ALARM_SUFFIX: self.intake.dlq}
        for name, own_lambda in self.lambda_by_handler.items():
            if isinstance(own_lambda, AsyncLambda):
                dlq_by_owner[name.replace("_", "-")] = own_lambda.dlq
        if self.pagerduty:
            dlq_by_owner["pagerduty"] = self.pagerduty.dlq
        return dlq_by_owner

    def make_error_metric(
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
        function = self.lambda_by_handler[name].function
        return function.metric_errors(period=period, statistic=statistic, label=label)


def make_waiting_messages_metric(
    queue: sqs.Queue, *, label: str | None = None
) -> cloudwatch.Metric:
    """Return the metric of the number of visible messages in a queue."""
    return queue.metric_approximate_number_of_messages_visible(
        period=FIVE_MINUTES, statistic="Maximum", label=label
    )


def list_metric_alarms(
    watched_resources: WatchedResources, settings: DeploymentSettings
) -> Iterator[MetricAlarm]:
    """Yield every alarm on a metric, except the alarms that `fixes.SpikeRules` makes."""
    yield make_fix_ceiling_alarm(settings.limits)
    yield from _list_liveness_alarms(watched_resources, settings.timing.probe_minutes)
    yield make_missing_scan_alarm(watched_resources.lambda_by_handler["scan"].function)
    yield from _list_own_metric_alarms()
    if settings.nightly.enabled:
        yield from _list_nightly_alarms(settings)
    yield from _list_dlq_and_writer_alarms(watched_resources)


def _list_liveness_alarms(
    watched_resources: WatchedResources, probe_minutes: int
) -> Iterator[MetricAlarm]:
    """Yield the alarms on the heartbeat, probes, calls that wait for heal, and heal's failed runs.

    The first two have causes of their own, so each notifies people directly. The composite alarm
    `not_healing` notifies for the other two, which one cause can make ring together (rules 2, 3
    and 10 of `infra/alarms/__init__.py`).
    """
    heartbeat_rule = FiringRule(
        1,
        MISSING_DATA_IS_A_FAULT,
        HEARTBEAT_MISSING_MINUTES,
        HEARTBEAT_MISSING_MINUTES,
        BELOW_THRESHOLD_OPERATOR,
    )
    yield MetricAlarm(
        HEARTBEAT_MISSING_ALARM,
        _make_heartbeat_metric(watched_resources.lambda_by_handler["follow_up"].function),
        heartbeat_rule,
    )
    yield _make_probe_alarm(probe_minutes)
    intake_late_rule = FiringRule(
        INTAKE_LATE_AGE_SECONDS, MISSING_DATA_IS_FINE, INTAKE_LATE_MINUTES, INTAKE_LATE_MINUTES
    )
    yield MetricAlarm(
        INTAKE_LATE_ALARM,
        watched_resources.intake.make_oldest_age_metric(ONE_MINUTE),
        intake_late_rule,
    )
    yield MetricAlarm(
        HEAL_FAILING_ALARM,
        watched_resources.make_error_metric("heal"),
        FiringRule(1, MISSING_DATA_IS_FINE, HEAL_FAILING_PERIODS, HEAL_FAILING_PERIODS),
    )


def _make_heartbeat_metric(follow_up_function: lambda_.Function) -> cloudwatch.MathExpression:
    """Return the heartbeat metric, which has one value a minute.

    The value is the number of runs of follow_up without an error, which AWS counts, multiplied by
    the number of heartbeats that follow_up sent. So it is 0 if no run ended without an error. A
    minute in which one of the three metrics is missing has no value.
    https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/using-metric-math.html
    """
    return cloudwatch.MathExpression(
        expression="(runs - errors) * beats",
        using_metrics={
            "runs": follow_up_function.metric_invocations(period=ONE_MINUTE),
            "errors": follow_up_function.metric_errors(period=ONE_MINUTE),
            "beats": make_own_metric(HEARTBEAT_METRIC, "SampleCount", ONE_MINUTE),
        },
        period=ONE_MINUTE,
    )


def _make_probe_alarm(probe_minutes: int) -> MetricAlarm:
    """Return the alarm on lost probes. It looks back over a time that always contains a probe.

    If that time is longer than CloudWatch's longest period, it is divided into several periods. All
    of them must breach. A period without a probe has no data and breaches, so the period with the
    probe decides. CloudWatch may look further back because of the missing data: then the alarm
    comes one probe later, but the probe itself sends a page in time.
    """
    watched_minutes = probe_minutes + LATE_PROBE_MARGIN_MINUTES
    period_count = ceil(watched_minutes / LONGEST_PERIOD_MINUTES)
    period = Duration.minutes(ceil(watched_minutes / period_count))
    lost_probes_metric = make_own_metric(OwnMetric.PROBES_LOST, "Maximum", period)
    return MetricAlarm(
        PROBE_LOST_ALARM,
        lost_probes_metric,
        FiringRule(LOST_PROBES_TO_REPORT, MISSING_DATA_IS_A_FAULT, period_count, period_count),
    )


def make_missing_scan_alarm(scan_function: lambda_.Function) -> MetricAlarm:
    """Return the alarm that rings if the scan does not run, or if all its runs fail.

    No other alarm notices a scan that does not run. AWS counts 0 or 1 errors for each run, so the
    minimum of a period is 0 if at least one run succeeded.
    https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html
    """
    period = Duration.minutes(SCAN_MISSING_PERIOD_MINUTES)
    errors_metric = scan_function.metric_errors(period=period, statistic="Minimum")
    period_count = SCAN_MISSING_HOURS * 60 // SCAN_MISSING_PERIOD_MINUTES
    return MetricAlarm(
        SCAN_MISSING_ALARM,
        errors_metric,
        FiringRule(1, MISSING_DATA_IS_A_FAULT, period_count, period_count),
    )


def _list_own_metric_alarms() -> Iterator[MetricAlarm]:
    """Yield the alarms on errors that heal, follow_up and scan caught, and on waiting cases.

    AWS does not count an error that a Lambda caught, so the Lambdas send metrics of their own. No
    composite joins these alarms: a queue that heal cannot fix must not hide that heal
    has stopped.
    """
    heal_errors_metric = make_own_metric(OwnMetric.HEAL_ERRORS, "Sum", FIVE_MINUTES)
    yield MetricAlarm(HEAL_ERRORS_ALARM, heal_errors_metric, _REPEATED_ERRORS_RULE)
    follow_up_errors_metric = make_own_metric(OwnMetric.FOLLOW_UP_ERRORS, "Sum", FIVE_MINUTES)
    yield MetricAlarm(FOLLOW_UP_ERRORS_ALARM, follow_up_errors_metric, _REPEATED_ERRORS_RULE)
    scan_errors_metric = make_own_metric(OwnMetric.SCAN_ERRORS, "Sum", ONE_HOUR)
    yield MetricAlarm(
        SCAN_ERRORS_ALARM,
        scan_errors_metric,
        FiringRule(1, MISSING_DATA_IS_FINE, SCAN_ERROR_HOURS, SCAN_WATCHED_HOURS),
    )
    escalations_metric = make_own_metric(OwnMetric.ESCALATIONS, "Sum", ONE_MINUTE)
    yield MetricAlarm(CASE_ESCALATED_ALARM, escalations_metric, FiringRule(1, MISSING_DATA_IS_FINE))
    open_escalated_cases_metric = make_own_metric(
        OwnMetric.ESCALATED_CASES_OPEN, "Maximum", ONE_MINUTE
    )
    yield MetricAlarm(ESCALATED_CASES_OPEN_ALARM, open_escalated_cases_metric, _POSITIVE_VALUE_RULE)
    open_proposed_cases_metric = make_own_metric(
        OwnMetric.PROPOSED_CASES_OPEN, "Maximum", ONE_MINUTE
    )
    yield MetricAlarm(PROPOSED_CASES_OPEN_ALARM, open_proposed_cases_metric, _POSITIVE_VALUE_RULE)


def _list_nightly_alarms(settings: DeploymentSettings) -> Iterator[MetricAlarm]:
    """Yield the alarms on nightly and weekly runs, the report, and the size of the trail."""
    failed_runs_metric = make_own_metric(NightlyMetric.FAILED_RUNS, "Maximum", ONE_HOUR)
    yield MetricAlarm(NIGHTLY_FAILED_ALARM, failed_runs_metric, _POSITIVE_VALUE_RULE)
    doubtful_runs_metric = make_own_metric(NightlyMetric.DOUBTFUL_RUNS, "Maximum", ONE_HOUR)
    yield MetricAlarm(NIGHTLY_DOUBTFUL_ALARM, doubtful_runs_metric, _POSITIVE_VALUE_RULE)
    failed_weeks_metric = make_own_metric(OwnMetric.WEEKS_FAILED, "Maximum", ONE_HOUR)
    yield MetricAlarm(WEEK_FAILED_ALARM, failed_weeks_metric, _POSITIVE_VALUE_RULE)
    missing_reports_metric = make_own_metric(NightlyMetric.MISSING_REPORTS, "Maximum", ONE_HOUR)
    yield MetricAlarm(REPORT_MISSING_ALARM, missing_reports_metric, _POSITIVE_VALUE_RULE)
    missing_runs_rule = FiringRule(
        1,
        MISSING_DATA_IS_A_FAULT,
        NIGHTLY_MISSING_HOURS,
        NIGHTLY_MISSING_HOURS,
        BELOW_THRESHOLD_OPERATOR,
    )
    yield MetricAlarm(
        NIGHTLY_MISSING_ALARM,
        make_own_metric(NightlyMetric.WRITTEN_RUNS, "Maximum", ONE_HOUR),
        missing_runs_rule,
    )
    if settings.report.is_mailed:
        # The minimum over the attempts: there is no alarm if one of them succeeded.
        undelivered_reports_metric = make_own_metric(
            OwnMetric.REPORTS_NOT_DELIVERED, "Minimum", REPORT_DELIVERY_PERIOD
        )
        yield MetricAlarm(
            REPORT_NOT_DELIVERED_ALARM, undelivered_reports_metric, _POSITIVE_VALUE_RULE
        )
    too_many_records_rule = FiringRule(
        settings.trail.expected_events_per_day + 1, MISSING_DATA_KEEPS_STATE
    )
    yield MetricAlarm(
        TRAIL_BUSY_ALARM,
        make_own_metric(NightlyMetric.RECORDS_READ, "Maximum", ONE_HOUR),
        too_many_records_rule,
    )


def _list_dlq_and_writer_alarms(watched_resources: WatchedResources) -> Iterator[MetricAlarm]:
    """Yield an alarm for each of Mendq's own DLQs, and for each owner except heal.

    An owner is a Lambda that writes queues. Each DLQ has an alarm of its own, so that a message
    that waits in one DLQ for days does not hide a message in another. The alarm counts messages
    that wait, not arrivals, so it ends when a person has emptied the DLQ.
    """
    yield MetricAlarm(
        FAILED_CALLS_UNDELIVERED_ALARM,
        make_waiting_messages_metric(watched_resources.intake.undelivered_dlq),
        _POSITIVE_VALUE_RULE,
    )
    for dlq_owner, queue in watched_resources.list_dlqs_by_owner().items():
        yield MetricAlarm(
            OWN_DLQ_ALARM, make_waiting_messages_metric(queue), _POSITIVE_VALUE_RULE, dlq_owner
        )
    repeated_failure_rule = FiringRule(
        1, MISSING_DATA_IS_FINE, WRITER_FAILING_PERIODS, WRITER_WATCHED_PERIODS
    )
    for owner in Owner:
        if owner is not Owner.HEAL:
            writer_alarm_suffix = owner.replace("_", "-")
            yield MetricAlarm(
                LAMBDA_FAILING_ALARM,
                watched_resources.make_error_metric(owner),
                repeated_failure_rule,
                writer_alarm_suffix,
            )

"""The CloudWatch dashboard: is Mendq well, what is broken now, and what did Mendq do today?

If Mendq sends a metric only when something happens, the dashboard shows 0 while nothing is sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aws_cdk import Duration, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from infra.alarms import Alarms
from infra.alarms.alarm import (
    FIVE_MINUTES,
    ONE_HOUR,
    OPEN_CASES_COMMAND,
    add_region_option,
    make_own_metric,
)
from infra.alarms.fixes import (
    BAND_WIDTH_STANDARD_DEVIATIONS,
    FIXES_OVER_CEILING_ALARM,
    FIXES_PERIOD,
    FIXES_SPIKE_ALARM,
)
from infra.alarms.health import (
    CASE_ESCALATED_ALARM,
    PROPOSED_CASES_OPEN_ALARM,
    WatchedResources,
    make_waiting_messages_metric,
)
from infra.settings.deployment import DeploymentSettings
from mendq.model import names
from mendq.model.limits import Limits
from mendq.model.names import HEARTBEAT_METRIC, METRIC_NAMESPACE, METRICS_SENT_ON_EVENTS, OwnMetric
from mendq.nightly.outcome import NightlyMetric
from mendq.notifications.commands import DOCTOR_COMMAND

# Sizes of widgets in units of CloudWatch's grid, which is 24 units wide.
# https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/CloudWatch-Dashboard-Body-Structure.html
FULL_PAGE_WIDTH = 24
WIDGET_WIDTH = 8
NARROW_WIDGET_WIDTH = 4
WIDGET_HEIGHT = 6
LOW_WIDGET_HEIGHT = 3
HEADING_HEIGHT = 2
ONE_DAY = Duration.days(1)
CASES_COMMAND = "mendq cases"
# Alarms that only cases or many fixes make ring. They say nothing about Mendq's own health.
QUEUE_ALARM_NAMES = frozenset(
    description.alarm_name()
    for description in (
        FIXES_SPIKE_ALARM,
        FIXES_OVER_CEILING_ALARM,
        CASE_ESCALATED_ALARM,
        PROPOSED_CASES_OPEN_ALARM,
    )
)
ERROR_METRICS = (OwnMetric.HEAL_ERRORS, OwnMetric.FOLLOW_UP_ERRORS, OwnMetric.SCAN_ERRORS)
NIGHTLY_RUN_METRICS = (
    NightlyMetric.WRITTEN_RUNS,
    NightlyMetric.FAILED_RUNS,
    NightlyMetric.DOUBTFUL_RUNS,
)
WAITING_CASE_METRICS = (OwnMetric.ESCALATED_CASES_OPEN, OwnMetric.PROPOSED_CASES_OPEN)
ACTIVITY_METRICS = (
    OwnMetric.FAILED_CALLS_SEEN,
    OwnMetric.AUTO_FIXES,
    OwnMetric.REFUSALS,
    OwnMetric.RECURRENCES,
    OwnMetric.REDRIVEN_MESSAGES,
    OwnMetric.QUARANTINED_MESSAGES,
)


def add_dashboard(
    scope: Construct,
    alarms: Alarms,
    watched_resources: WatchedResources,
    settings: DeploymentSettings,
) -> None:
    """Add the dashboard. Its name has the region, because names are unique in an account."""
    region = Stack.of(scope).region
    dashboard = cloudwatch.Dashboard(
        Construct(scope, "Dashboard"),
        "Page",
        dashboard_name=f"mendq-{region}",
        default_interval=ONE_DAY,
    )
    queue_alarms, mendq_alarms = alarms.split_by_name(QUEUE_ALARM_NAMES)
    waiting_case_metrics = _make_own_metrics(WAITING_CASE_METRICS, "Maximum")
    health_heading = _make_heading_widget(
        "Is the healer well?", add_region_option(DOCTOR_COMMAND, region), "asks for more."
    )
    broken_queues_heading = _make_heading_widget(
        "What is broken now?", add_region_option(OPEN_CASES_COMMAND, region), "names the queues."
    )
    activity_heading = _make_heading_widget(
        "What did it do today?",
        add_region_option(CASES_COMMAND, region),
        "names every case, newest first.",
    )
    dashboard.add_widgets(health_heading)
    dashboard.add_widgets(
        _make_alarm_list("Alarms about Mendq itself", mendq_alarms, FULL_PAGE_WIDTH)
    )
    dashboard.add_widgets(*_make_intake_widgets(watched_resources, settings.timing.probe_minutes))
    dashboard.add_widgets(
        *_make_error_widgets(watched_resources, is_nightly_enabled=settings.nightly.enabled)
    )
    dashboard.add_widgets(broken_queues_heading)
    dashboard.add_widgets(
        _make_alarm_list("Alarms about your queues", queue_alarms, WIDGET_WIDTH),
        _make_numbers_widget(
            "Waiting for a person now", waiting_case_metrics, WIDGET_WIDTH, WIDGET_HEIGHT
        ),
        _make_graph("Cases that wait for a person", waiting_case_metrics),
    )
    dashboard.add_widgets(activity_heading)
    dashboard.add_widgets(*_make_count_widgets())
    dashboard.add_widgets(
        _make_fixes_graph(settings.limits), _make_symptom_graph(), _make_time_to_heal_graph()
    )


def _make_heading_widget(question: str, command: str, command_effect: str) -> cloudwatch.IWidget:
    """Return a heading: a question, and the command that answers it in detail."""
    markdown_text = f"## {question}\n`{command}` {command_effect}"
    return cloudwatch.TextWidget(
        markdown=markdown_text, width=FULL_PAGE_WIDTH, height=HEADING_HEIGHT
    )


def _make_alarm_list(title: str, alarms: list[cloudwatch.IAlarm], width: int) -> cloudwatch.IWidget:
    """Return a list of alarms. CloudWatch shows ringing alarms first."""
    return cloudwatch.AlarmStatusWidget(
        title=title, alarms=alarms, width=width, height=WIDGET_HEIGHT
    )


def _make_graph(
    title: str,
    metrics: Sequence[cloudwatch.IMetric],
    *,
    is_stacked: bool | None = None,
    shows_last_week: bool = False,
    annotations: Sequence[cloudwatch.HorizontalAnnotation] | None = None,
) -> cloudwatch.IWidget:
    """Return a graph of metrics over the time range that the page shows.

    If `shows_last_week` is True, the graph always shows the last week.
    """
    return cloudwatch.GraphWidget(
        title=title,
        left=list(metrics),
        left_y_axis=cloudwatch.YAxisProps(min=0, show_units=False),
        width=WIDGET_WIDTH,
        height=WIDGET_HEIGHT,
        legend_position=cloudwatch.LegendPosition.BOTTOM,
        stacked=is_stacked,
        start="-P7D" if shows_last_week else None,
        end="P0D" if shows_last_week else None,
        left_annotations=annotations,
    )


def _make_numbers_widget(
    title: str,
    metrics: Sequence[cloudwatch.IMetric],
    width: int,
    height: int,
    *,
    covers_whole_time_range: bool | None = None,
) -> cloudwatch.IWidget:
    """Return the newest values of metrics as numbers.

    If `covers_whole_time_range` is True, each number is over the time range that the page shows.
    """
    return cloudwatch.SingleValueWidget(
        title=title,
        metrics=list(metrics),
        width=width,
        height=height,
        set_period_to_time_range=covers_whole_time_range,
    )


def _make_own_metrics(
    metrics: Sequence[OwnMetric | NightlyMetric], statistic: str, period: Duration = FIVE_MINUTES
) -> list[cloudwatch.Metric]:
    """Return metrics that Mendq itself sends, each with its name in words as label."""
    return [
        make_own_metric(metric, statistic, period).with_(
            label=metric.name.lower().replace("_", " ")
        )
        for metric in metrics
    ]


def _make_math_metric(
    expression: str, label: str, period: Duration, metrics: Mapping[str, cloudwatch.IMetric]
) -> cloudwatch.IMetric:
    """Return a metric that CloudWatch computes from other metrics.

    `expression` uses the other metrics by their names in `metrics`.
    """
    return cloudwatch.MathExpression(
        expression=expression, label=label, period=period, using_metrics=metrics
    )


def _make_intake_widgets(
    watched_resources: WatchedResources, probe_minutes: int
) -> list[cloudwatch.IWidget]:
    """Return the graphs of signs of life, of calls that wait for heal, and of Mendq's own DLQs.

    Five follow-ups in a period of five minutes mean that follow_up ran each minute.
    """
    follow_up_runs_metric = make_own_metric(HEARTBEAT_METRIC, "SampleCount", FIVE_MINUTES).with_(
        label="follow-ups in 5 minutes"
    )
    lost_probes_metrics = _make_own_metrics(
        [OwnMetric.PROBES_LOST], "Maximum", Duration.minutes(probe_minutes)
    )
    intake = watched_resources.intake
    oldest_age_metric = intake.make_oldest_age_metric(
        FIVE_MINUTES, label="age of the oldest, seconds"
    )
    waiting_calls_metric = make_waiting_messages_metric(
        intake.queue, label="failed calls that wait"
    )
    dlq_by_label = {**watched_resources.list_dlqs_by_owner(), "undelivered": intake.undelivered_dlq}
    dlq_metrics = [
        make_waiting_messages_metric(queue, label=label) for label, queue in dlq_by_label.items()
    ]
    return [
        _make_graph("Signs of life", [follow_up_runs_metric, *lost_probes_metrics]),
        _make_graph("Failed calls on their way to heal", [oldest_age_metric, waiting_calls_metric]),
        _make_graph("Given up, for a person", dlq_metrics, is_stacked=True),
    ]


def _make_error_widgets(
    watched_resources: WatchedResources, *, is_nightly_enabled: bool
) -> list[cloudwatch.IWidget]:
    """Return the graphs of errors.

    AWS does not count an error that the Lambda caught, so Mendq's own counts have a graph too.
    If the nightly job is enabled, its runs have a graph as well. They have one point a day, so that
    graph always shows the last week.
    """
    lambda_error_metrics = [
        watched_resources.make_error_metric(handler_name, label=handler_name.replace("_", "-"))
        for handler_name in watched_resources.lambda_by_handler
    ]
    error_widgets = [
        _make_graph("Lambdas that failed", lambda_error_metrics, is_stacked=True),
        _make_graph(
            "Queues and cases that a Lambda failed at", _make_own_metrics(ERROR_METRICS, "Sum")
        ),
    ]
    if is_nightly_enabled:
        nightly_run_metrics = _make_own_metrics(NIGHTLY_RUN_METRICS, "Maximum", ONE_DAY)
        error_widgets.append(
            _make_graph("Nightly runs of the last week", nightly_run_metrics, shows_last_week=True)
        )
    return error_widgets


def _make_count_widgets() -> list[cloudwatch.IWidget]:
    """Return the counts of the page's time range, by default one day, and the oldest open case.

    A case stays open while its fix is watched, even if the fix has worked so far.
    """
    count_metrics = [_make_count_metric(metric) for metric in ACTIVITY_METRICS]
    oldest_case_seconds_metric = make_own_metric(
        OwnMetric.OLDEST_OPEN_CASE_AGE, "Maximum", FIVE_MINUTES
    )
    oldest_case_hours_metric = _make_math_metric(
        "age / 3600",
        "hours, of watched fixes too",
        FIVE_MINUTES,
        {"age": oldest_case_seconds_metric},
    )
    return [
        _make_numbers_widget(
            "In the time shown",
            count_metrics,
            FULL_PAGE_WIDTH - NARROW_WIDGET_WIDTH,
            LOW_WIDGET_HEIGHT,
            covers_whole_time_range=True,
        ),
        _make_numbers_widget(
            "Oldest case not closed",
            [oldest_case_hours_metric],
            NARROW_WIDGET_WIDTH,
            LOW_WIDGET_HEIGHT,
        ),
    ]


def _make_count_metric(metric: OwnMetric) -> cloudwatch.IMetric:
    """Return the sum of a metric over a day.

    If Mendq sends the metric only when something happens, the sum is 0 while nothing is sent.
    CloudWatch would show `--`, as if the count were unknown.
    """
    (daily_sum_metric,) = _make_own_metrics([metric], "Sum", ONE_DAY)
    if metric not in METRICS_SENT_ON_EVENTS:
        return daily_sum_metric
    metric_id = f"{metric[0].lower()}{metric[1:]}"
    return _make_math_metric(
        f"FILL({metric_id}, 0)", str(daily_sum_metric.label), ONE_DAY, {metric_id: daily_sum_metric}
    )


def _make_fixes_graph(limits: Limits) -> cloudwatch.IWidget:
    """Return the graph of fixes, with the band that CloudWatch expects and the ceiling."""
    (fixes_metric,) = _make_own_metrics([OwnMetric.AUTO_FIXES], "Sum", FIXES_PERIOD)
    band_expression = f"ANOMALY_DETECTION_BAND(fixes, {BAND_WIDTH_STANDARD_DEVIATIONS})"
    usual_fixes_metric = _make_math_metric(
        band_expression, "usual", FIXES_PERIOD, {"fixes": fixes_metric}
    )
    ceiling_line = cloudwatch.HorizontalAnnotation(
        value=names.compute_fix_ceiling(limits), label="ceiling"
    )
    title = f"Fixes in {FIXES_PERIOD.to_minutes():.0f} minutes"
    return _make_graph(title, [fixes_metric, usual_fixes_metric], annotations=[ceiling_line])


def _make_symptom_graph() -> cloudwatch.IWidget:
    """Return the graph of fixes by symptom."""
    metric_query = f'{{{METRIC_NAMESPACE},symptom}} MetricName="{OwnMetric.AUTO_FIXES}"'
    search_expression = f"FILL(SEARCH('{metric_query}', 'Sum', {ONE_HOUR.to_seconds():.0f}), 0)"
    fixes_by_symptom = cloudwatch.SearchExpression(
        expression=search_expression, label=" ", period=ONE_HOUR
    )
    return _make_graph("Fixes by symptom", [fixes_by_symptom], is_stacked=True)


def _make_time_to_heal_graph() -> cloudwatch.IWidget:
    """Return the graph of the median and of the longest time to heal. A mean would show neither."""
    metrics = [
        make_own_metric(OwnMetric.TIME_TO_HEAL, statistic, ONE_HOUR).with_(
            label=f"{label}, seconds"
        )
        for statistic, label in (("p50", "median"), ("Maximum", "slowest"))
    ]
    return _make_graph("From the first failed call to a fix that proved good", metrics)

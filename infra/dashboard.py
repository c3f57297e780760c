"""The CloudWatch dashboard: is Mendq well, what is broken now, what did it do today.

A metric that Mendq sends only if something happens is shown as zero while it is not sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aws_cdk import Duration, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from infra.alarms import Alarms
from infra.alarms.alarm import AN_HOUR, FIVE_MINUTES, OPEN_CASES, add_region, own_metric
from infra.alarms.fixes import BAND_WIDTH, FIXES_SPIKE, OVER_CEILING, PERIOD
from infra.alarms.health import ESCALATED, PROPOSED, WatchedResources, waiting_messages_metric
from infra.settings.deployment import DeploymentSettings
from mendq.model import names
from mendq.model.limits import Limits
from mendq.model.names import HEARTBEAT_METRIC, METRICS_SENT_ON_EVENTS, NAMESPACE, OwnMetric
from mendq.nightly.outcome import NightlyMetric
from mendq.notifications.commands import DOCTOR_COMMAND

# Sizes of widgets in units of CloudWatch's grid, which is 24 units wide.
# https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/CloudWatch-Dashboard-Body-Structure.html
WIDE = 24
WIDTH = 8
NARROW = 4
HEIGHT = 6
LOW = 3
HEADING = 2
A_DAY = Duration.days(1)
CASES = "mendq cases"
# Alarms that only cases or many fixes make ring. They say nothing about Mendq's own health.
OF_QUEUES = frozenset(
    description.alarm_name() for description in (FIXES_SPIKE, OVER_CEILING, ESCALATED, PROPOSED)
)
ERRORS = (OwnMetric.HEAL_ERRORS, OwnMetric.FOLLOW_UP_ERRORS, OwnMetric.SCAN_ERRORS)
RUNS = (NightlyMetric.WRITTEN, NightlyMetric.FAILED, NightlyMetric.DOUBTFUL)
WAITING = (OwnMetric.ESCALATED_CASES_OPEN, OwnMetric.PROPOSED_CASES_OPEN)
DONE = (
    OwnMetric.FAILED_CALLS_SEEN,
    OwnMetric.AUTO_FIXES,
    OwnMetric.REFUSALS,
    OwnMetric.RECURRENCES,
    OwnMetric.REDRIVEN_MESSAGES,
    OwnMetric.QUARANTINED_MESSAGES,
)


def add_dashboard(
    scope: Construct, alarms: Alarms, watched: WatchedResources, settings: DeploymentSettings
) -> None:
    """Add the dashboard. Its name has the region, because names are unique in an account."""
    region = Stack.of(scope).region
    page = cloudwatch.Dashboard(
        Construct(scope, "Dashboard"),
        "Page",
        dashboard_name=f"mendq-{region}",
        default_interval=A_DAY,
    )
    about_queues, about_mendq = alarms.split_by_name(OF_QUEUES)
    waiting = _own_metrics(WAITING, "Maximum")
    is_well = _question("Is the healer well?", add_region(DOCTOR_COMMAND, region), "asks for more.")
    is_broken = _question(
        "What is broken now?", add_region(OPEN_CASES, region), "names the queues."
    )
    has_done = _question(
        "What did it do today?", add_region(CASES, region), "names every case, newest first."
    )
    page.add_widgets(is_well)
    page.add_widgets(_alarm_status("Alarms about Mendq itself", about_mendq, WIDE))
    page.add_widgets(*_intake_widgets(watched, settings.timing.probe_minutes))
    page.add_widgets(*_error_widgets(watched, nightly=settings.nightly.enabled))
    page.add_widgets(is_broken)
    page.add_widgets(
        _alarm_status("Alarms about your queues", about_queues, WIDTH),
        _numbers("Waiting for a person now", waiting, WIDTH, HEIGHT),
        _graph("Cases that wait for a person", waiting),
    )
    page.add_widgets(has_done)
    page.add_widgets(*_count_widgets())
    page.add_widgets(_fixes_graph(settings.limits), _symptom_graph(), _time_to_heal_graph())


def _question(question: str, command: str, effect: str) -> cloudwatch.IWidget:
    """Return a heading with a question, and the command that says more."""
    text = f"## {question}\n`{command}` {effect}"
    return cloudwatch.TextWidget(markdown=text, width=WIDE, height=HEADING)


def _alarm_status(title: str, alarms: list[cloudwatch.IAlarm], width: int) -> cloudwatch.IWidget:
    """Return a list of alarms. CloudWatch shows ringing alarms first."""
    return cloudwatch.AlarmStatusWidget(title=title, alarms=alarms, width=width, height=HEIGHT)


def _graph(
    title: str,
    metrics: Sequence[cloudwatch.IMetric],
    *,
    stacked: bool | None = None,
    is_last_week: bool = False,
    annotations: Sequence[cloudwatch.HorizontalAnnotation] | None = None,
) -> cloudwatch.IWidget:
    """Return a graph of metrics over the page's time range, or over the last week."""
    return cloudwatch.GraphWidget(
        title=title,
        left=list(metrics),
        left_y_axis=cloudwatch.YAxisProps(min=0, show_units=False),
        width=WIDTH,
        height=HEIGHT,
        legend_position=cloudwatch.LegendPosition.BOTTOM,
        stacked=stacked,
        start="-P7D" if is_last_week else None,
        end="P0D" if is_last_week else None,
        left_annotations=annotations,
    )


def _numbers(
    title: str,
    metrics: Sequence[cloudwatch.IMetric],
    width: int,
    height: int,
    *,
    over_time_range: bool | None = None,
) -> cloudwatch.IWidget:
    """Return the newest values of metrics, or their values over the page's time range."""
    return cloudwatch.SingleValueWidget(
        title=title,
        metrics=list(metrics),
        width=width,
        height=height,
        set_period_to_time_range=over_time_range,
    )


def _own_metrics(
    metrics: Sequence[OwnMetric | NightlyMetric], statistic: str, period: Duration = FIVE_MINUTES
) -> list[cloudwatch.Metric]:
    """Return Mendq's own metrics, each with its name in words as label."""
    return [
        own_metric(metric, statistic, period).with_(label=metric.name.lower().replace("_", " "))
        for metric in metrics
    ]


def _math_metric(
    expression: str, label: str, period: Duration, metrics: Mapping[str, cloudwatch.IMetric]
) -> cloudwatch.IMetric:
    """Return what CloudWatch computes from metrics; `expression` uses their names."""
    return cloudwatch.MathExpression(
        expression=expression, label=label, period=period, using_metrics=metrics
    )


def _intake_widgets(watched: WatchedResources, probe_minutes: int) -> list[cloudwatch.IWidget]:
    """Return the widgets on the way of failed calls to heal.

    Five follow-ups in a period of five minutes mean that follow_up ran each minute.
    """
    beats = own_metric(HEARTBEAT_METRIC, "SampleCount", FIVE_MINUTES).with_(
        label="follow-ups in 5 minutes"
    )
    lost = _own_metrics([OwnMetric.PROBES_LOST], "Maximum", Duration.minutes(probe_minutes))
    intake = watched.intake
    age = intake.oldest_age_metric(FIVE_MINUTES, label="age of the oldest, seconds")
    waiting = waiting_messages_metric(intake.queue, label="failed calls that wait")
    dlqs = {**watched.dlqs(), "undelivered": intake.undelivered}
    given_up = [waiting_messages_metric(queue, label=label) for label, queue in dlqs.items()]
    return [
        _graph("Signs of life", [beats, *lost]),
        _graph("Failed calls on their way to heal", [age, waiting]),
        _graph("Given up, for a person", given_up, stacked=True),
    ]


def _error_widgets(watched: WatchedResources, *, nightly: bool) -> list[cloudwatch.IWidget]:
    """Return the widgets on errors.

    AWS counts no error if the Lambda caught it, so Mendq's own counts have a graph too. Nightly
    runs have one point a day, so their graph always shows a week.
    """
    errors = [watched.error_metric(name, label=name.replace("_", "-")) for name in watched.lambdas]
    widgets = [
        _graph("Lambdas that failed", errors, stacked=True),
        _graph("Queues and cases that a Lambda failed at", _own_metrics(ERRORS, "Sum")),
    ]
    if nightly:
        runs = _own_metrics(RUNS, "Maximum", A_DAY)
        widgets.append(_graph("Nightly runs of the last week", runs, is_last_week=True))
    return widgets


def _count_widgets() -> list[cloudwatch.IWidget]:
    """Return the counts of the page's time range, by default one day, and the oldest open case.

    A case stays open while its fix is watched, also if the fix has worked so far.
    """
    counts = [_count_metric(metric) for metric in DONE]
    oldest = own_metric(OwnMetric.OLDEST_OPEN_CASE_AGE, "Maximum", FIVE_MINUTES)
    age = _math_metric("age / 3600", "hours, of watched fixes too", FIVE_MINUTES, {"age": oldest})
    return [
        _numbers("In the time shown", counts, WIDE - NARROW, LOW, over_time_range=True),
        _numbers("Oldest case not closed", [age], NARROW, LOW),
    ]


def _count_metric(metric: OwnMetric) -> cloudwatch.IMetric:
    """Return the sum of a metric over a day; 0 if Mendq sent nothing.

    CloudWatch shows `--` for a metric that was not sent, which looks as if the count were unknown.
    """
    (total,) = _own_metrics([metric], "Sum", A_DAY)
    if metric not in METRICS_SENT_ON_EVENTS:
        return total
    name = f"{metric[0].lower()}{metric[1:]}"
    return _math_metric(f"FILL({name}, 0)", str(total.label), A_DAY, {name: total})


def _fixes_graph(limits: Limits) -> cloudwatch.IWidget:
    """Return the graph of fixes, with the band that CloudWatch expects and the ceiling."""
    (fixes,) = _own_metrics([OwnMetric.AUTO_FIXES], "Sum", PERIOD)
    band = f"ANOMALY_DETECTION_BAND(fixes, {BAND_WIDTH})"
    usual = _math_metric(band, "usual", PERIOD, {"fixes": fixes})
    ceiling = cloudwatch.HorizontalAnnotation(value=names.fix_ceiling(limits), label="ceiling")
    title = f"Fixes in {PERIOD.to_minutes():.0f} minutes"
    return _graph(title, [fixes, usual], annotations=[ceiling])


def _symptom_graph() -> cloudwatch.IWidget:
    """Return the graph of fixes by symptom."""
    query = f'{{{NAMESPACE},symptom}} MetricName="{OwnMetric.AUTO_FIXES}"'
    search = f"FILL(SEARCH('{query}', 'Sum', {AN_HOUR.to_seconds():.0f}), 0)"
    fixes = cloudwatch.SearchExpression(expression=search, label=" ", period=AN_HOUR)
    return _graph("Fixes by symptom", [fixes], stacked=True)


def _time_to_heal_graph() -> cloudwatch.IWidget:
    """Return the graph of the median and the longest time to heal. A mean would show neither."""
    metrics = [
        own_metric(OwnMetric.TIME_TO_HEAL, statistic, AN_HOUR).with_(label=f"{label}, seconds")
        for statistic, label in (("p50", "median"), ("Maximum", "slowest"))
    ]
    return _graph("From the first failed call to a fix that proved good", metrics)

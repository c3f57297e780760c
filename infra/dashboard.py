"""One page that answers: is Mendq well, what is broken now, what did it do today.

Counts that are not sent while nothing happens are shown as zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aws_cdk import Duration, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from infra.alarms import Alarms
from infra.alarms.alarm import AN_HOUR, FIVE_MINUTES, OPEN_CASES, in_region, own
from infra.alarms.fixes import BAND_WIDTH, FIXES_SPIKE, OVER_CEILING, PERIOD
from infra.alarms.health import ESCALATED, PROPOSED, WatchedResources, waiting_in
from infra.settings.deployment import DeploymentSettings
from mendq.model import names
from mendq.model.limits import Limits
from mendq.model.names import HEARTBEAT, NAMESPACE, WHEN_SOMETHING_HAPPENS, OwnMetric
from mendq.nightly.outcome import NightlyMetric
from mendq.notifications.commands import DOCTOR

# CloudWatch's grid.
# https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/CloudWatch-Dashboard-Body-Structure.html
WIDE, WIDTH, NARROW = 24, 8, 4
HEIGHT, LOW, HEADING = 6, 3, 2
A_DAY = Duration.days(1)
CASES = "mendq cases"
# What only an open case or many fixes make ring says nothing of Mendq's own health.
OF_QUEUES = frozenset(
    each.alarm_name() for each in (FIXES_SPIKE, OVER_CEILING, ESCALATED, PROPOSED)
)
NOT_DONE = (OwnMetric.HEAL_ERRORS, OwnMetric.FOLLOW_UP_ERRORS, OwnMetric.SCAN_ERRORS)
RUNS = (NightlyMetric.WRITTEN, NightlyMetric.FAILED, NightlyMetric.DOUBTFUL)
WAITING = (OwnMetric.ESCALATED_CASES_OPEN, OwnMetric.PROPOSED_CASES_OPEN)
DONE = (
    *(OwnMetric.FAILED_CALLS_SEEN, OwnMetric.AUTO_FIXES, OwnMetric.REFUSALS, OwnMetric.RECURRENCES),
    *(OwnMetric.REDRIVEN_MESSAGES, OwnMetric.QUARANTINED_MESSAGES),
)


def dashboard(
    scope: Construct, alarms: Alarms, watched: WatchedResources, settings: DeploymentSettings
) -> None:
    """Make the page. Its name holds in all regions of an account, so it carries the region."""
    region = Stack.of(scope).region
    page = cloudwatch.Dashboard(
        Construct(scope, "Dashboard"),
        "Page",
        dashboard_name=f"mendq-{region}",
        default_interval=A_DAY,
    )
    about_queues, about_us = alarms.about(OF_QUEUES)
    waiting = _own(WAITING, "Maximum")
    for row in (
        _asked("Is the healer well?", in_region(DOCTOR, region), "asks for more."),
        [_status("Alarms about Mendq itself", about_us, WIDE)],
        _on_the_way(watched, settings.timing.probe_minutes),
        _failing(watched, nightly=settings.nightly.enabled),
        _asked("What is broken now?", in_region(OPEN_CASES, region), "names the queues."),
        [
            _status("Alarms about your queues", about_queues, WIDTH),
            _numbers("Waiting for a person now", waiting, WIDTH, HEIGHT),
            _graph("Cases that wait for a person", waiting),
        ],
        _asked(
            "What did it do today?", in_region(CASES, region), "names every case, newest first."
        ),
        _counts(),
        [_fixes(settings.limits), _by_symptom(), _time_to_heal()],
    ):
        page.add_widgets(*row)


def _asked(question: str, command: str, does: str) -> list[cloudwatch.IWidget]:
    text = f"## {question}\n`{command}` {does}"
    return [cloudwatch.TextWidget(markdown=text, width=WIDE, height=HEADING)]


def _status(title: str, alarms: list[cloudwatch.IAlarm], width: int) -> cloudwatch.IWidget:
    """CloudWatch puts those that ring first."""
    return cloudwatch.AlarmStatusWidget(title=title, alarms=alarms, width=width, height=HEIGHT)


def _graph(title: str, left: Sequence[cloudwatch.IMetric], **more: Any) -> cloudwatch.IWidget:
    return cloudwatch.GraphWidget(
        title=title,
        left=list(left),
        left_y_axis=cloudwatch.YAxisProps(min=0, show_units=False),
        width=WIDTH,
        height=HEIGHT,
        legend_position=cloudwatch.LegendPosition.BOTTOM,
        **more,
    )


def _numbers(
    title: str, metrics: Sequence[cloudwatch.IMetric], width: int, height: int, **more: Any
) -> cloudwatch.IWidget:
    return cloudwatch.SingleValueWidget(
        title=title, metrics=list(metrics), width=width, height=height, **more
    )


def _own(
    metrics: Sequence[OwnMetric | NightlyMetric], statistic: str, period: Duration = FIVE_MINUTES
) -> list[cloudwatch.Metric]:
    """Each under its name in words."""
    return [
        own(each, statistic, period).with_(label=each.name.lower().replace("_", " "))
        for each in metrics
    ]


def _computed(
    expression: str, label: str, period: Duration, **metrics: cloudwatch.IMetric
) -> cloudwatch.IMetric:
    return cloudwatch.MathExpression(
        expression=expression, label=label, period=period, using_metrics=metrics
    )


def _on_the_way(watched: WatchedResources, probe_minutes: int) -> list[cloudwatch.IWidget]:
    """From a failed call to heal; five beats a period are a follow-up that ran each minute."""
    beats = own(HEARTBEAT, "SampleCount", FIVE_MINUTES).with_(label="follow-ups in 5 minutes")
    lost = _own([OwnMetric.PROBES_LOST], "Maximum", Duration.minutes(probe_minutes))
    intake = watched.intake
    age = intake.age(FIVE_MINUTES, label="age of the oldest, seconds")
    waiting = waiting_in(intake.queue, label="failed calls that wait")
    parked = {**watched.dlqs(), "undelivered": intake.undelivered}
    given_up = [waiting_in(queue, label=label) for label, queue in parked.items()]
    return [
        _graph("Signs of life", [beats, *lost]),
        _graph("Failed calls on their way to heal", [age, waiting]),
        _graph("Given up, for a person", given_up, stacked=True),
    ]


def _failing(watched: WatchedResources, *, nightly: bool) -> list[cloudwatch.IWidget]:
    """What a Lambda has caught is no error to AWS.

    A week of nightly runs, whatever the page shows: a point a nightly run.
    """
    errors = [watched.errors(name, label=name.replace("_", "-")) for name in watched.lambdas]
    runs = _own(RUNS, "Maximum", A_DAY)
    of_runs = _graph("Nightly runs of the last week", runs, start="-P7D", end="P0D")
    return [
        _graph("Lambdas that failed", errors, stacked=True),
        _graph("Queues and cases that a Lambda failed at", _own(NOT_DONE, "Sum")),
        *([of_runs] if nightly else ()),
    ]


def _counts() -> list[cloudwatch.IWidget]:
    """Over the time that the page shows, a day where nobody chose another.

    A fix that has proved good is an open case for as long as it is watched.
    """
    done = [_count(each) for each in DONE]
    oldest = own(OwnMetric.OLDEST_OPEN_CASE_AGE, "Maximum", FIVE_MINUTES)
    age = _computed("age / 3600", "hours, of watched fixes too", FIVE_MINUTES, age=oldest)
    return [
        _numbers("In the time shown", done, WIDE - NARROW, LOW, set_period_to_time_range=True),
        _numbers("Oldest case not closed", [age], NARROW, LOW),
    ]


def _count(of: OwnMetric) -> cloudwatch.IMetric:
    """CloudWatch shows `--` for what was not sent, as if nobody knew."""
    (counted,) = _own([of], "Sum", A_DAY)
    if of not in WHEN_SOMETHING_HAPPENS:
        return counted
    name = f"{of[0].lower()}{of[1:]}"
    return _computed(f"FILL({name}, 0)", str(counted.label), A_DAY, **{name: counted})


def _fixes(limits: Limits) -> cloudwatch.IWidget:
    """With the band that CloudWatch expects, and the ceiling."""
    (counted,) = _own([OwnMetric.AUTO_FIXES], "Sum", PERIOD)
    band = f"ANOMALY_DETECTION_BAND(fixes, {BAND_WIDTH})"
    usual = _computed(band, "usual", PERIOD, fixes=counted)
    ceiling = cloudwatch.HorizontalAnnotation(value=names.ceiling(limits), label="ceiling")
    title = f"Fixes in {PERIOD.to_minutes():.0f} minutes"
    return _graph(title, [counted, usual], left_annotations=[ceiling])


def _by_symptom() -> cloudwatch.IWidget:
    query = f'{{{NAMESPACE},symptom}} MetricName="{OwnMetric.AUTO_FIXES}"'
    search = f"FILL(SEARCH('{query}', 'Sum', {AN_HOUR.to_seconds():.0f}), 0)"
    found = cloudwatch.SearchExpression(expression=search, label=" ", period=AN_HOUR)
    return _graph("Fixes by symptom", [found], stacked=True)


def _time_to_heal() -> cloudwatch.IWidget:
    """Median and slowest: a mean would say nothing of either."""
    metrics = [
        own(OwnMetric.TIME_TO_HEAL, statistic, AN_HOUR).with_(label=f"{label}, seconds")
        for statistic, label in (("p50", "median"), ("Maximum", "slowest"))
    ]
    return _graph("From the first failed call to a fix that proved good", metrics)

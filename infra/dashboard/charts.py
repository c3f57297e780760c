"""What the dashboard draws. Counts that are not sent while nothing happens are shown as zeros."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs

from infra.alarms.spike import BAND_WIDTH, PERIOD
from infra.alarms.watched import Watched
from infra.alarms.watching import AN_HOUR, FIVE_MINUTES, own
from mendq.model import names
from mendq.model.limits import Limits
from mendq.model.names import HEARTBEAT, NAMESPACE, WHEN_SOMETHING_HAPPENS, OwnMetric
from mendq.nightly.outcome import NightlyMetric

WIDTH, HEIGHT, NARROW = 8, 6, 4
A_DAY = Duration.days(1)
FROM_ZERO = cloudwatch.YAxisProps(min=0, show_units=False)
_DONE = (
    (OwnMetric.FAILED_CALLS_SEEN, "failed calls seen"),
    (OwnMetric.AUTO_FIXES, "fixes"),
    (OwnMetric.REFUSALS, "refusals"),
    (OwnMetric.RECURRENCES, "came back"),
    (OwnMetric.REDRIVEN_MESSAGES, "messages sent back"),
    (OwnMetric.QUARANTINED_MESSAGES, "messages in quarantine"),
)


def _graph(title: str, left: Sequence[cloudwatch.IMetric], **more: Any) -> cloudwatch.GraphWidget:
    return cloudwatch.GraphWidget(
        title=title,
        left=list(left),
        left_y_axis=FROM_ZERO,
        width=WIDTH,
        height=HEIGHT,
        legend_position=cloudwatch.LegendPosition.BOTTOM,
        **more,
    )


def _called(metric: cloudwatch.Metric, label: str) -> cloudwatch.Metric:
    return metric.with_(label=label)


def signs_of_life(probe_minutes: int) -> cloudwatch.GraphWidget:
    """Five a period is a follow-up that ran each minute."""
    beats = _called(
        own(HEARTBEAT, "SampleCount", FIVE_MINUTES),
        f"follow-ups in {FIVE_MINUTES.to_minutes():.0f} minutes",
    )
    lost = own(OwnMetric.PROBES_LOST, "Maximum", Duration.minutes(probe_minutes))
    return _graph("Signs of life", [beats, _called(lost, "probes lost in a row")])


def intake(queue: sqs.Queue) -> cloudwatch.GraphWidget:
    age = queue.metric_approximate_age_of_oldest_message(
        period=FIVE_MINUTES, statistic="Maximum", label="age of the oldest, seconds"
    )
    waiting = queue.metric_approximate_number_of_messages_visible(
        period=FIVE_MINUTES, statistic="Maximum", label="failed calls that wait"
    )
    return _graph("Failed calls on their way to heal", [age, waiting])


def given_up(watched: Watched) -> cloudwatch.GraphWidget:
    queues = {**watched.dlqs, "undelivered": watched.intake.undelivered}
    waiting = [
        queue.metric_approximate_number_of_messages_visible(
            period=FIVE_MINUTES, statistic="Maximum", label=name
        )
        for name, queue in queues.items()
    ]
    return _graph("Given up, for a person", waiting, stacked=True)


def errors(functions: Mapping[str, lambda_.Function]) -> cloudwatch.GraphWidget:
    failed = [
        each.metric_errors(period=FIVE_MINUTES, label=name) for name, each in functions.items()
    ]
    return _graph("Lambdas that failed", failed, stacked=True)


def not_done() -> cloudwatch.GraphWidget:
    """What a Lambda has caught is no error to AWS."""
    announced = {
        OwnMetric.HEAL_ERRORS: "heal",
        OwnMetric.FOLLOW_UP_ERRORS: "follow-up",
        OwnMetric.SCAN_ERRORS: "scan",
    }
    counted = [_called(own(each, "Sum", FIVE_MINUTES), label) for each, label in announced.items()]
    return _graph("Queues and cases that a Lambda failed at", counted)


def nightly_runs() -> cloudwatch.GraphWidget:
    """A week of them, whatever the page shows: a point a nightly run."""
    announced = {
        NightlyMetric.WRITTEN: "written",
        NightlyMetric.FAILED: "failed",
        NightlyMetric.DOUBTFUL: "doubtful",
    }
    metrics = [_called(own(each, "Maximum", A_DAY), label) for each, label in announced.items()]
    return _graph("Nightly runs of the last week", metrics, start="-P7D", end="P0D")


def open_now() -> cloudwatch.SingleValueWidget:
    return cloudwatch.SingleValueWidget(
        title="Waiting for a person now",
        metrics=[
            _called(own(OwnMetric.ESCALATED_CASES_OPEN, "Maximum", FIVE_MINUTES), "escalated"),
            _called(own(OwnMetric.PROPOSED_CASES_OPEN, "Maximum", FIVE_MINUTES), "proposed"),
        ],
        width=WIDTH,
        height=HEIGHT,
    )


def open_cases() -> cloudwatch.GraphWidget:
    announced = {
        OwnMetric.ESCALATED_CASES_OPEN: "escalated",
        OwnMetric.PROPOSED_CASES_OPEN: "proposed",
    }
    metrics = [
        _called(own(each, "Maximum", FIVE_MINUTES), label) for each, label in announced.items()
    ]
    return _graph("Cases that wait for a person", metrics)


def counts() -> cloudwatch.SingleValueWidget:
    """Over the time that the page shows, a day where nobody chose another."""
    return cloudwatch.SingleValueWidget(
        title="In the time shown",
        metrics=[_count(each, label) for each, label in _DONE],
        set_period_to_time_range=True,
        width=3 * WIDTH - NARROW,
        height=3,
    )


def not_closed_yet() -> cloudwatch.SingleValueWidget:
    """Of all open cases: a fix that has proved good is one for as long as it is watched."""
    oldest = own(OwnMetric.OLDEST_OPEN_CASE_AGE, "Maximum", FIVE_MINUTES)
    hours = cloudwatch.MathExpression(
        expression="age / 3600",
        label="hours, of watched fixes too",
        using_metrics={"age": oldest},
        period=FIVE_MINUTES,
    )
    return cloudwatch.SingleValueWidget(
        title="Oldest case not closed", metrics=[hours], width=NARROW, height=3
    )


def _count(of: OwnMetric, label: str) -> cloudwatch.IMetric:
    """CloudWatch shows `--` for what was not sent, as if nobody knew."""
    counted = _called(own(of, "Sum", A_DAY), label)
    if of not in WHEN_SOMETHING_HAPPENS:
        return counted
    name = f"{of[0].lower()}{of[1:]}"
    return cloudwatch.MathExpression(
        expression=f"FILL({name}, 0)", label=label, using_metrics={name: counted}, period=A_DAY
    )


def fixes(limits: Limits) -> cloudwatch.GraphWidget:
    """With the band that CloudWatch expects, and the ceiling."""
    counted = _called(own(OwnMetric.AUTO_FIXES, "Sum", PERIOD), "fixes")
    usual = cloudwatch.MathExpression(
        expression=f"ANOMALY_DETECTION_BAND(fixes, {BAND_WIDTH})",
        label="usual",
        using_metrics={"fixes": counted},
        period=PERIOD,
    )
    ceiling = cloudwatch.HorizontalAnnotation(value=names.ceiling(limits), label="ceiling")
    return _graph(
        f"Fixes in {PERIOD.to_minutes():.0f} minutes", [counted, usual], left_annotations=[ceiling]
    )


def fixes_by_symptom() -> cloudwatch.GraphWidget:
    query = f'{{{NAMESPACE},symptom}} MetricName="{OwnMetric.AUTO_FIXES}"'
    found = cloudwatch.SearchExpression(
        expression=f"FILL(SEARCH('{query}', 'Sum', {AN_HOUR.to_seconds():.0f}), 0)",
        label=" ",
        period=AN_HOUR,
    )
    return _graph("Fixes by symptom", [found], stacked=True)


def time_to_heal() -> cloudwatch.GraphWidget:
    """Median and slowest: a mean would say nothing of either."""
    metrics = [
        _called(own(OwnMetric.TIME_TO_HEAL, statistic, AN_HOUR), label)
        for statistic, label in (("p50", "median, seconds"), ("Maximum", "slowest, seconds"))
    ]
    return _graph("From the first failed call to a fix that proved good", metrics)

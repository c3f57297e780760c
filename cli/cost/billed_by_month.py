"""What is billed by the month while it stands there, whoever uses it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cli.cost.deployed import MONTH_DAYS, MONTH_HOURS, Deployed
from cli.cost.line import Line
from cli.cost.series import hours_a_month
from functions.healing.plain_text import counted
from infra import prices

DASHBOARD = "dashboard"
# Assumptions, on the high side; none was measured in an account.
BUCKETS_GB = 1
TRAIL_FILES = MONTH_DAYS * 24 * (12 + 1)


def metrics(stack: Deployed) -> Line:
    """Mendq's own, of which no resource tells."""
    runs = {each.handler: stack.times(each.handler) for each in stack.started}
    runs["deliver_report"] = MONTH_DAYS / 7
    hours = hours_a_month(runs, MONTH_HOURS)
    always = sum(each >= MONTH_HOURS for each in hours.values())
    return Line(
        "custom metrics",
        f"{always} all month, {len(hours) - always} some hours of it",
        "what the Lambdas send when nothing happens; a symptom's own series come with it",
        ((prices.METRIC_MONTH, sum(hours.values()) / MONTH_HOURS),),
    )


def alarms(stack: Deployed) -> Line:
    every = stack.all("AWS::CloudWatch::Alarm")
    slow = sum(_metrics_of(each) for each in every if not _is_fast(each))
    fast = sum(_metrics_of(each) for each in every if _is_fast(each))
    return Line(
        "alarms",
        f"{len(every)} over {counted(slow + fast, 'metric')}",
        _whose_metrics(every),
        ((prices.ALARM_METRIC_MONTH, slow), (prices.FAST_ALARM_METRIC_MONTH, fast)),
    )


def _whose_metrics(alarms: Sequence[Mapping[str, Any]]) -> str:
    """Why there are more metrics than alarms, so that whoever adds them up comes to the same."""
    numbers = [(_metrics_of(each), str(each.get("AlarmName", "one"))) for each in alarms]
    more = sorted(f"{number} of {name}" for number, name in numbers if number > 1)
    others = f", but {' and '.join(more)}" if more else ""
    band = "; an anomaly band is two of them" if any(map(_bands_of, alarms)) else ""
    return f"a metric each{others}{band}"


def _metrics_of(alarm: Mapping[str, Any]) -> int:
    """Those that it is billed for: a band is two more."""
    metrics = alarm.get("Metrics", ())
    measured = sum("MetricStat" in each for each in metrics)
    return max(1, measured) + 2 * _bands_of(alarm)


def _bands_of(alarm: Mapping[str, Any]) -> int:
    metrics = alarm.get("Metrics", ())
    return sum("ANOMALY_DETECTION_BAND" in str(each.get("Expression")) for each in metrics)


def _is_fast(alarm: Mapping[str, Any]) -> bool:
    measured = (each.get("MetricStat", {}) for each in alarm.get("Metrics", ()))
    return any(each.get("Period", 60) < 60 for each in (alarm, *measured))


def composites(stack: Deployed) -> Line:
    every = stack.all("AWS::CloudWatch::CompositeAlarm")
    alone = _paging(stack.all("AWS::CloudWatch::Alarm"))
    return Line(
        "composite alarms",
        f"{len(every)}",
        f"{_paging(every)} of them page people; {counted(alone, 'alarm')} page by themselves",
        ((prices.COMPOSITE_MONTH, len(every)),),
    )


def _paging(alarms: Iterable[Mapping[str, Any]]) -> int:
    return sum("AlarmActions" in each for each in alarms)


def dashboards(stack: Deployed) -> Line:
    number = len(stack.all("AWS::CloudWatch::Dashboard"))
    billed = ((prices.DASHBOARD_MONTH, number),)
    return Line(DASHBOARD, f"{number}", "nothing while the payer has no three others", billed)


def with_and_without_dashboard(lines: Iterable[Line]) -> tuple[float, float]:
    """Dollars a month at list price of a stack with these lines, whichever of both it is."""
    without = sum(each.dollars for each in lines if each.what != DASHBOARD)
    return without + prices.DASHBOARD_MONTH.of(1), without


def keys(stack: Deployed) -> Line:
    number = len(stack.all("AWS::KMS::Key"))
    because = "a dollar more after its first yearly rotation, and another after its second"
    return Line("KMS key", f"{number}", because, ((prices.KEY_MONTH, number),))


def buckets(stack: Deployed) -> Line:
    number = len(stack.all("AWS::S3::Bucket"))
    return Line(
        "S3",
        f"{BUCKETS_GB} GB in {number} buckets, {TRAIL_FILES:,} files written",
        "at most a trail's file every five minutes, and its digest every hour",
        ((prices.S3_GB_MONTH, BUCKETS_GB), (prices.S3_PUT, TRAIL_FILES)),
    )

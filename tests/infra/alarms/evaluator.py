"""Evaluate the alarms of a template minute by minute, as CloudWatch's pages describe.

The pages leave some points open. This module assumes that windows slide by one minute, that
CloudWatch reads two further periods if data points are missing (as in the pages' example), that
metrics arrive at once, and that a composite alarm begins as OK (CloudWatch may notify about that).
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarms-and-missing-data.html
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarm-evaluation-window.html
"""

from __future__ import annotations

import operator
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import CodeType
from typing import Any

FURTHER_BACK = 2
METRIC_ALARM = "AWS::CloudWatch::Alarm"
_STATISTICS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "Sum": sum,
    "Maximum": max,
    "Minimum": min,
    "SampleCount": len,
}
_BREACHES: Mapping[str, Callable[[float, float], bool]] = {
    "GreaterThanOrEqualToThreshold": operator.ge,
    "LessThanThreshold": operator.lt,
    "GreaterThanUpperThreshold": operator.gt,
}
Series = tuple[str, str, frozenset[tuple[str, str]]]
# The assumed upper edge of an anomaly band at a minute. Only CloudWatch knows the model.
Edge = Callable[[int], float]


class State(StrEnum):
    OK = "OK"
    ALARM = "ALARM"
    INSUFFICIENT_DATA = "INSUFFICIENT_DATA"


class Data:
    """The metric values by series and minute."""

    def __init__(self, sent: Mapping[Series, Mapping[int, float]]) -> None:
        self._sent = {s: tuple(zip(*sorted(v.items()), strict=True)) for s, v in sent.items() if v}

    def has(self, series: Series) -> bool:
        return series in self._sent

    def within(self, series: Series, after: int, until: int) -> Sequence[float]:
        minutes, values = self._sent.get(series, ((), ()))
        return values[bisect_right(minutes, after) : bisect_right(minutes, until)]


@dataclass
class MetricAlarm:
    """An alarm on a metric, on a metric and its anomaly band, or on a metric expression."""

    terms: Mapping[str, tuple[Series, str]]
    expression: CodeType
    period_minutes: int
    of: int
    periods: int
    breaches: Callable[[float, float], bool]
    missing: str
    threshold: float | None
    topics: frozenset[str] = frozenset()
    announced: State = State.OK
    state: State = State.INSUFFICIENT_DATA
    _points: dict[int, bool | None] = field(default_factory=dict)
    _seen: list[bool | None] = field(default_factory=list)
    _steady: tuple[bool | None, int] = (
        None,
        0,
    )  # the newest point, and the minute since which it is the same

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> MetricAlarm:
        alone = {"Metric": given, "Stat": given.get("Statistic"), "Period": given.get("Period")}
        metrics = given.get("Metrics", [{"Id": "m", "MetricStat": alone}])
        asked = {metric["Id"]: metric["MetricStat"] for metric in metrics if "MetricStat" in metric}
        # CloudWatch computes the expression of an anomaly band.
        computed = [metric["Expression"] for metric in metrics if "Expression" in metric]
        is_band = "Threshold" not in given
        assert given.get("AlarmActions") == given.get("OKActions")
        return cls(
            terms={
                name: (_series(metric["Metric"]), metric["Stat"]) for name, metric in asked.items()
            },
            expression=compile([*asked, *computed][0 if is_band else -1], "expression", "eval"),
            period_minutes=next(iter(asked.values()))["Period"] // 60,
            of=given["DatapointsToAlarm"],
            periods=given["EvaluationPeriods"],
            breaches=_BREACHES[given["ComparisonOperator"]],
            missing=given["TreatMissingData"],
            threshold=given.get("Threshold"),
            topics=frozenset(given.get("AlarmActions", ())),
        )

    def is_sent(self, data: Data) -> bool:
        """Return True if all metrics of the alarm ever have data."""
        return all(data.has(series) for series, _ in self.terms.values())

    def look(self, data: Data, minute: int, edge: Edge) -> State | None:
        """Evaluate the data until `minute`. Return the state to notify people about, or None.

        Data that arrive later for an earlier point are not seen. The first OK is no news.
        """
        before = (self.periods + FURTHER_BACK - 1) * self.period_minutes
        newest = self._points[minute] = self._point(data, minute, edge)
        if newest is not self._steady[0] or minute - 1 not in self._points:
            self._steady = (newest, minute)
        elif minute - self._steady[1] > before:  # all points of the window are the same
            return None
        window = range(minute, minute - before - 1, -self.period_minutes)
        for until in window:
            if until not in self._points:
                self._points[until] = self._point(data, until, edge)
        points = [self._points[until] for until in window]
        if points == self._seen:
            return None
        self._seen = points
        self.state = judge_points(points, self.of, self.periods, self.missing, self.state)
        now = State.ALARM if self.state is State.ALARM else State.OK
        if not self.topics or now is self.announced:
            return None
        self.announced = now
        return now

    def _point(self, data: Data, until: int, edge: Edge) -> bool | None:
        value = self._value(data, until)
        limit = edge(until) if self.threshold is None else self.threshold
        return None if value is None else self.breaches(value, limit)

    def _value(self, data: Data, until: int) -> float | None:
        """Return the value, or None if a metric of the expression is missing."""
        values = {}
        for name, (series, statistic) in self.terms.items():
            sent = data.within(series, until - self.period_minutes, until)
            if not sent:
                return None
            values[name] = _STATISTICS[statistic](sent)
        return float(eval(self.expression, {"__builtins__": {}}, values))  # noqa: S307 - our own


def _series(metric: Mapping[str, Any]) -> Series:
    dimensions = (
        (dimension["Name"], dimension["Value"]) for dimension in metric.get("Dimensions", ())
    )
    return metric["Namespace"], metric["MetricName"], frozenset(dimensions)


def judge_points(
    newest_first: Sequence[bool | None], of: int, periods: int, missing: str, before: State
) -> State:
    """Return the state for data points that breach, do not breach, or are missing (None)."""
    real = [point for point in newest_first if point is not None][:periods]
    breaching = sum(real) + (periods - len(real)) * (missing == "breaching")
    if missing == "ignore" and len(real) < periods and breaching < of and all(real):
        return before
    return State.ALARM if breaching >= of else State.OK


@dataclass
class Composite:
    """A composite alarm, which notifies unless its suppressor alarm fires."""

    rule: CodeType
    topics: frozenset[str]
    suppressor: str = ""
    wait_minutes: int = 0
    extension_minutes: int = 0
    state: State = State.OK
    announced: State = State.OK
    _waits_until: int | None = None
    _was_held: bool = False

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Composite:
        """Compile the rule. NOT, AND and OR have the same precedence as in Python."""
        assert given.get("AlarmActions") == given.get("OKActions")
        rule = given["AlarmRule"]
        for word in ("NOT", "AND", "OR"):
            rule = rule.replace(f"{word} ", f"{word.lower()} ")
        return cls(
            rule=compile(rule, "rule", "eval"),
            topics=frozenset(given.get("AlarmActions", ())),
            suppressor=given.get("ActionsSuppressor", "").removeprefix("arn:"),
            wait_minutes=given.get("ActionsSuppressorWaitPeriod", 0) // 60,
            extension_minutes=given.get("ActionsSuppressorExtensionPeriod", 0) // 60,
        )

    def look(self, states: Mapping[str, State], minute: int, moved: int) -> State | None:
        """Return the state to notify about now, or None. `moved` is the minute of the last change.

        A state that ends before its notification is never notified. CloudWatch may notify its end.
        """
        state = self.state
        if minute - moved <= 1:  # a change of another composite arrives a minute later
            state = State.ALARM if self._holds(states) else State.OK
        if state is not self.state:
            self.state = state
            self._waits_until = minute + self.wait_minutes
        held = bool(self.suppressor) and states[self.suppressor] is State.ALARM
        if self._was_held and not held:
            self._waits_until = minute + self.extension_minutes
        self._was_held = held
        if self.state is self.announced or held or minute < (self._waits_until or 0):
            return None
        self.announced = self.state
        return self.announced

    def _holds(self, states: Mapping[str, State]) -> bool:
        def rings(name: str) -> bool:
            return states[name.removeprefix("arn:")] is State.ALARM

        return bool(eval(self.rule, {"__builtins__": {}, "ALARM": rings}))  # noqa: S307 - our own


@dataclass(frozen=True)
class Notice:
    """A notification: an alarm's name and state, at a minute, on a topic."""

    minute: int
    alarm: str
    state: State
    topic: str

    def __str__(self) -> str:
        days, rest = divmod(self.minute, 24 * 60)
        severity = "urgent" if self.topic.startswith("TopicsUrgent") else "info"
        clock = f"{rest // 60:02}:{rest % 60:02}"
        return f"day {days} {clock} {self.state:5} {self.alarm} ({severity})"


@dataclass
class Evaluator:
    """The alarms of a template whose names have a prefix, and the notifications they send."""

    metric_alarms: dict[str, MetricAlarm]
    composites: dict[str, Composite]
    names: Mapping[str, str]
    notices: list[Notice] = field(default_factory=list)
    rang: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))

    @classmethod
    def of(cls, template: Any, start: str = "") -> Evaluator:
        metric_alarms = _read_alarms(template, METRIC_ALARM, start)
        composites = _read_alarms(template, "AWS::CloudWatch::CompositeAlarm", start)
        all_alarms = {**metric_alarms, **composites}.items()
        return cls(
            {name: MetricAlarm.read(alarm) for name, alarm in metric_alarms.items()},
            {name: Composite.read(alarm) for name, alarm in composites.items()},
            {name: alarm["AlarmName"].removeprefix("mendq-") for name, alarm in all_alarms},
        )

    def run(self, data: Data, minutes: Iterable[int], edge: Edge) -> None:
        # Suppressors have no topics. They come first, because other composites read their state.
        composites = sorted(self.composites.items(), key=lambda item: bool(item[1].topics))
        # An alarm without any data keeps the state of its first evaluation.
        alarms_with_data = {
            name: alarm for name, alarm in self.metric_alarms.items() if alarm.is_sent(data)
        }
        states: dict[str, State] = {}
        moved = 0
        for minute in minutes:
            alarms = alarms_with_data if states else self.metric_alarms
            for name, alarm in alarms.items():
                self._evaluate_metric_alarm(name, alarm, data, minute, edge)
                if states.get(name) is not alarm.state:
                    states[name] = alarm.state
                    moved = minute
            for name, composite in composites:
                self._tell(name, minute, composite.look(states, minute, moved), composite.topics)
                if states.get(name) is not composite.state:
                    states[name] = composite.state
                    moved = minute

    def _evaluate_metric_alarm(
        self, name: str, alarm: MetricAlarm, data: Data, minute: int, edge: Edge
    ) -> None:
        before = alarm.state
        self._tell(name, minute, alarm.look(data, minute, edge), alarm.topics)
        if alarm.state is State.ALARM and before is not State.ALARM:
            self.rang[self.names[name]].append(minute)

    def _tell(
        self, name: str, minute: int, announced: State | None, topics: frozenset[str]
    ) -> None:
        if announced:
            self.notices += [Notice(minute, self.names[name], announced, topic) for topic in topics]


def _read_alarms(template: Any, kind: str, start: str) -> dict[str, Any]:
    alarms = {}
    for name, resource in template.all(kind).items():
        if resource["Properties"]["AlarmName"].startswith(f"mendq-{start}"):
            alarms[name] = resource["Properties"]
    return alarms

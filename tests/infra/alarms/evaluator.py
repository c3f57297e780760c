"""Evaluates the alarms of a template minute by minute, as CloudWatch's pages say that it does.

What they leave open is assumed, and said here: windows slide, one look a minute; where data points
are missing it looks two periods further back, as in the pages' example; metrics arrive at once; a
composite begins as OK, of which CloudWatch may tell.
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
# The upper edge of an anomaly band at a minute: nobody but CloudWatch knows its model.
Edge = Callable[[int], float]


class State(StrEnum):
    OK = "OK"
    ALARM = "ALARM"
    INSUFFICIENT_DATA = "INSUFFICIENT_DATA"


class Data:
    """What was sent, by series and minute."""

    def __init__(self) -> None:
        self._minutes: dict[Series, list[int]] = defaultdict(list)
        self._values: dict[Series, list[float]] = defaultdict(list)

    def put(self, series: Series, minute: int, value: float) -> None:
        """In the order of time."""
        assert not self._minutes[series] or minute >= self._minutes[series][-1]
        self._minutes[series].append(minute)
        self._values[series].append(value)

    def all_of(self, metric: str) -> list[Series]:
        """The series of a metric that have a dimension."""
        return [each for each in self._minutes if each[1] == metric and each[2]]

    def within(self, series: Series, after: int, until: int) -> Sequence[float]:
        minutes = self._minutes[series]
        return self._values[series][bisect_right(minutes, after) : bisect_right(minutes, until)]


@dataclass
class MetricAlarm:
    """One on a metric, on a metric and its band, or on an expression of several."""

    series: Series
    statistic: str
    period_minutes: int
    of: int
    periods: int
    breaches: Callable[[float, float], bool]
    missing: str
    threshold: float | None
    expression: str = ""
    terms: Mapping[str, tuple[Series, str]] = field(default_factory=dict)
    topics: frozenset[str] = frozenset()
    announced: State = State.OK
    state: State = State.INSUFFICIENT_DATA
    _points: dict[int, bool | None] = field(default_factory=dict)

    @classmethod
    def read(cls, properties: Mapping[str, Any]) -> MetricAlarm:
        metric, statistic, period = _metrics(properties)[0]
        named = {each["Id"]: each for each in properties.get("Metrics", ()) if "MetricStat" in each}
        stats = [(each, named[each]["MetricStat"]) for each in named if "Threshold" in properties]
        assert properties.get("AlarmActions") == properties.get("OKActions")
        return cls(
            series=_series(metric),
            statistic=statistic,
            period_minutes=period // 60,
            of=properties["DatapointsToAlarm"],
            periods=properties["EvaluationPeriods"],
            breaches=_BREACHES[properties["ComparisonOperator"]],
            missing=properties["TreatMissingData"],
            threshold=properties.get("Threshold"),
            expression=_expression(properties),
            terms={name: (_series(each["Metric"]), each["Stat"]) for name, each in stats},
            topics=frozenset(properties.get("AlarmActions", ())),
        )

    def look(self, data: Data, minute: int, edge: Edge) -> None:
        """At what was sent until then; what came to a point later would not be seen."""
        before = (self.periods + FURTHER_BACK - 1) * self.period_minutes
        points = [
            self._point(data, until, edge)
            for until in range(minute, minute - before - 1, -self.period_minutes)
        ]
        self.state = judged(points, self.of, self.periods, self.missing, self.state)

    def _point(self, data: Data, until: int, edge: Edge) -> bool | None:
        if until not in self._points:
            self._points[until] = self._looked_up(data, until, edge)
        return self._points[until]

    def _looked_up(self, data: Data, until: int, edge: Edge) -> bool | None:
        value = self._value(data, until)
        if value is None:
            return None
        return self.breaches(value, edge(until) if self.threshold is None else self.threshold)

    def _value(self, data: Data, until: int) -> float | None:
        """None where a metric of it is missing, as an expression has no value then."""
        values = {}
        for name, (series, statistic) in (
            self.terms or {"": (self.series, self.statistic)}
        ).items():
            sent = data.within(series, until - self.period_minutes, until)
            if not sent:
                return None
            values[name] = _STATISTICS[statistic](sent)
        if not self.terms:
            return values[""]
        return float(eval(self.expression, {"__builtins__": {}}, values))  # noqa: S307 - our own

    def tells(self) -> State | None:
        """What it tells people by itself; that it is OK at first is nothing new."""
        now = State.ALARM if self.state is State.ALARM else State.OK
        if not self.topics or now is self.announced:
            return None
        self.announced = now
        return now


def _metrics(properties: Mapping[str, Any]) -> list[tuple[Mapping[str, Any], str, int]]:
    if "Metrics" not in properties:
        return [(properties, properties["Statistic"], properties["Period"])]
    stats = (each["MetricStat"] for each in properties["Metrics"] if "MetricStat" in each)
    return [(each["Metric"], each["Stat"], each["Period"]) for each in stats]


def _series(metric: Mapping[str, Any]) -> Series:
    dimensions = ((each["Name"], each["Value"]) for each in metric.get("Dimensions", ()))
    return metric["Namespace"], metric["MetricName"], frozenset(dimensions)


def _expression(properties: Mapping[str, Any]) -> str:
    """Of metric math; that of a band is CloudWatch's own."""
    if "Threshold" not in properties:
        return ""
    return "".join(each.get("Expression", "") for each in properties.get("Metrics", ()))


def judged(
    newest_first: Sequence[bool | None], of: int, periods: int, missing: str, before: State
) -> State:
    """The state by data points that breach, do not, or are missing (None)."""
    real = [each for each in newest_first if each is not None][:periods]
    breaching = sum(real) + (periods - len(real)) * (missing == "breaching")
    if missing == "ignore" and len(real) < periods and breaching < of and all(real):
        return before
    return State.ALARM if breaching >= of else State.OK


@dataclass
class Composite:
    """Tells people, unless another alarm holds it back."""

    rule: Sequence[str]
    topics: frozenset[str]
    suppressor: str = ""
    wait_minutes: int = 0
    extension_minutes: int = 0
    state: State = State.OK
    announced: State = State.OK
    _waits_until: int | None = None
    _was_held: bool = False

    @classmethod
    def read(cls, properties: Mapping[str, Any]) -> Composite:
        assert properties.get("AlarmActions") == properties.get("OKActions")
        return cls(
            rule=_tokens(properties["AlarmRule"]),
            topics=frozenset(properties.get("AlarmActions", ())),
            suppressor=properties.get("ActionsSuppressor", "").removeprefix("arn:"),
            wait_minutes=properties.get("ActionsSuppressorWaitPeriod", 0) // 60,
            extension_minutes=properties.get("ActionsSuppressorExtensionPeriod", 0) // 60,
        )

    def look(self, states: Mapping[str, State], minute: int) -> State | None:
        """What it tells people this minute, if anything.

        What is over before anybody was told is never told; CloudWatch may tell of its end.
        """
        state = State.ALARM if _Rule(self.rule, states).holds() else State.OK
        if state is not self.state:
            self.state, self._waits_until = state, minute + self.wait_minutes
        held = bool(self.suppressor) and states[self.suppressor] is State.ALARM
        if self._was_held and not held:
            self._waits_until = minute + self.extension_minutes
        self._was_held = held
        if self.state is self.announced or held or minute < (self._waits_until or 0):
            return None
        self.announced = self.state
        return self.announced


def _tokens(rule: str) -> list[str]:
    for bracket in "()":
        rule = rule.replace(bracket, f" {bracket} ")
    return rule.split()


class _Rule:
    """`ALARM("a") AND (NOT ALARM("b") OR OK("c"))`: NOT binds before AND, and AND before OR."""

    def __init__(self, tokens: Sequence[str], states: Mapping[str, State]) -> None:
        self._left = list(tokens)
        self._states = states

    def holds(self) -> bool:
        value = self._any()
        assert not self._left, self._left
        return value

    def _any(self) -> bool:
        return any(self._joined("OR", self._all))

    def _all(self) -> bool:
        return all(self._joined("AND", self._one))

    def _joined(self, word: str, part: Callable[[], bool]) -> list[bool]:
        values = [part()]
        while self._left and self._left[0] == word:
            self._left.pop(0)
            values.append(part())
        return values

    def _one(self) -> bool:
        token = self._left.pop(0)
        if token == "NOT":
            return not self._one()
        if token == "(":
            value = self._any()
            assert self._left.pop(0) == ")"
            return value
        assert self._left.pop(0) == "("
        name = self._left.pop(0).strip('"').removeprefix("arn:")
        assert self._left.pop(0) == ")"
        return self._states[name] is State[token]


@dataclass(frozen=True)
class Notice:
    """What people get: an alarm's name and state, at a minute, on a topic."""

    minute: int
    alarm: str
    state: State
    topic: str

    def __str__(self) -> str:
        days, rest = divmod(self.minute, 24 * 60)
        return f"day {days} {rest // 60:02}:{rest % 60:02} {self.state:5} {self.alarm}"


@dataclass
class Evaluator:
    """All alarms of a template, from their first look on."""

    metric_alarms: dict[str, MetricAlarm]
    composites: dict[str, Composite]
    names: Mapping[str, str]
    notices: list[Notice] = field(default_factory=list)
    rang: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))

    @classmethod
    def of(cls, template: Any) -> Evaluator:
        made = template.all(METRIC_ALARM)
        composed = template.all("AWS::CloudWatch::CompositeAlarm")
        return cls(
            {name: MetricAlarm.read(each["Properties"]) for name, each in made.items()},
            {name: Composite.read(each["Properties"]) for name, each in composed.items()},
            {
                name: each["Properties"]["AlarmName"].removeprefix("mendq-")
                for name, each in {**made, **composed}.items()
            },
        )

    def run(self, data: Data, minutes: Iterable[int], edge: Edge) -> None:
        for minute in minutes:
            for name, alarm in self.metric_alarms.items():
                before = alarm.state
                alarm.look(data, minute, edge)
                if alarm.state is State.ALARM and before is not State.ALARM:
                    self.rang[self.names[name]].append(minute)
                self._tell(name, minute, alarm.tells(), alarm.topics)
            states = {name: each.state for name, each in self.metric_alarms.items()}
            # Those that tell nobody hold others back.
            for name, composite in sorted(self.composites.items(), key=lambda e: bool(e[1].topics)):
                self._tell(name, minute, composite.look(states, minute), composite.topics)
                states[name] = composite.state

    def _tell(
        self, name: str, minute: int, announced: State | None, topics: frozenset[str]
    ) -> None:
        if announced:
            self.notices += [Notice(minute, self.names[name], announced, each) for each in topics]

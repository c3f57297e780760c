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
# The upper edge of an anomaly band at a minute: nobody but CloudWatch knows its model.
Edge = Callable[[int], float]


class State(StrEnum):
    OK = "OK"
    ALARM = "ALARM"
    INSUFFICIENT_DATA = "INSUFFICIENT_DATA"


class Data:
    """What was sent, by series and minute."""

    def __init__(self, sent: Mapping[Series, Mapping[int, float]]) -> None:
        self._sent = {s: tuple(zip(*sorted(v.items()), strict=True)) for s, v in sent.items() if v}

    def has(self, series: Series) -> bool:
        return series in self._sent

    def within(self, series: Series, after: int, until: int) -> Sequence[float]:
        minutes, values = self._sent.get(series, ((), ()))
        return values[bisect_right(minutes, after) : bisect_right(minutes, until)]


@dataclass
class MetricAlarm:
    """One on a metric, on a metric and its band, or on an expression of several."""

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
    _steady: tuple[bool | None, int] = (None, 0)  # the newest point, and since when it is that

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> MetricAlarm:
        alone = {"Metric": given, "Stat": given.get("Statistic"), "Period": given.get("Period")}
        metrics = given.get("Metrics", [{"Id": "m", "MetricStat": alone}])
        asked = {each["Id"]: each["MetricStat"] for each in metrics if "MetricStat" in each}
        # The expression of a band is CloudWatch's own.
        computed = [each["Expression"] for each in metrics if "Expression" in each]
        is_band = "Threshold" not in given
        assert given.get("AlarmActions") == given.get("OKActions")
        return cls(
            terms={name: (_series(each["Metric"]), each["Stat"]) for name, each in asked.items()},
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
        """Whether there are ever data of all its metrics."""
        return all(data.has(series) for series, _ in self.terms.values())

    def look(self, data: Data, minute: int, edge: Edge) -> State | None:
        """At what was sent until then; what came to a point later would not be seen.

        What it tells people by itself; that it is OK at first is nothing new.
        """
        before = (self.periods + FURTHER_BACK - 1) * self.period_minutes
        newest = self._points[minute] = self._point(data, minute, edge)
        if newest is not self._steady[0] or minute - 1 not in self._points:
            self._steady = newest, minute
        elif minute - self._steady[1] > before:  # nothing that it looks at is another
            return None
        window = range(minute, minute - before - 1, -self.period_minutes)
        for until in window:
            if until not in self._points:
                self._points[until] = self._point(data, until, edge)
        points = [self._points[each] for each in window]
        if points == self._seen:
            return None
        self._seen = points
        self.state = judged(points, self.of, self.periods, self.missing, self.state)
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
        """None where a metric of it is missing, as an expression has no value then."""
        values = {}
        for name, (series, statistic) in self.terms.items():
            sent = data.within(series, until - self.period_minutes, until)
            if not sent:
                return None
            values[name] = _STATISTICS[statistic](sent)
        return float(eval(self.expression, {"__builtins__": {}}, values))  # noqa: S307 - our own


def _series(metric: Mapping[str, Any]) -> Series:
    dimensions = ((each["Name"], each["Value"]) for each in metric.get("Dimensions", ()))
    return metric["Namespace"], metric["MetricName"], frozenset(dimensions)


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
        """Its words bind as Python's do: NOT before AND, and AND before OR."""
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
        """What it tells people this minute, if anything; the states last `moved` then.

        What is over before anybody was told is never told; CloudWatch may tell of its end.
        """
        state = self.state
        if minute - moved <= 1:  # of a composite that comes later, it hears a minute later
            state = State.ALARM if self._holds(states) else State.OK
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

    def _holds(self, states: Mapping[str, State]) -> bool:
        def rings(name: str) -> bool:
            return states[name.removeprefix("arn:")] is State.ALARM

        return bool(eval(self.rule, {"__builtins__": {}, "ALARM": rings}))  # noqa: S307 - our own


@dataclass(frozen=True)
class Notice:
    """What people get: an alarm's name and state, at a minute, on a topic."""

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
    """The alarms of a template whose names begin so, from their first look on."""

    metric_alarms: dict[str, MetricAlarm]
    composites: dict[str, Composite]
    names: Mapping[str, str]
    notices: list[Notice] = field(default_factory=list)
    rang: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))

    @classmethod
    def of(cls, template: Any, start: str = "") -> Evaluator:
        made, composed = (
            {
                name: each["Properties"]
                for name, each in template.all(kind).items()
                if each["Properties"]["AlarmName"].startswith(f"mendq-{start}")
            }
            for kind in (METRIC_ALARM, "AWS::CloudWatch::CompositeAlarm")
        )
        named = {**made, **composed}.items()
        return cls(
            {name: MetricAlarm.read(each) for name, each in made.items()},
            {name: Composite.read(each) for name, each in composed.items()},
            {name: each["AlarmName"].removeprefix("mendq-") for name, each in named},
        )

    def run(self, data: Data, minutes: Iterable[int], edge: Edge) -> None:
        # Those that tell nobody hold others back.
        composites = sorted(self.composites.items(), key=lambda each: bool(each[1].topics))
        heard = [each for each in self.metric_alarms.items() if each[1].is_sent(data)]
        states, moved = dict[str, State](), 0
        for minute in minutes:
            # What nothing is ever sent of is the same at every look.
            for name, alarm in heard if states else self.metric_alarms.items():
                before = alarm.state
                self._tell(name, minute, alarm.look(data, minute, edge), alarm.topics)
                if alarm.state is State.ALARM and before is not State.ALARM:
                    self.rang[self.names[name]].append(minute)
                if states.get(name) is not alarm.state:
                    states[name], moved = alarm.state, minute
            for name, composite in composites:
                self._tell(name, minute, composite.look(states, minute, moved), composite.topics)
                if states.get(name) is not composite.state:
                    states[name], moved = composite.state, minute

    def _tell(
        self, name: str, minute: int, announced: State | None, topics: frozenset[str]
    ) -> None:
        if announced:
            self.notices += [Notice(minute, self.names[name], announced, each) for each in topics]

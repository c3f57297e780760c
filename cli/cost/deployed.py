"""A template as what is billed of it: who is started how often by the clock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

MONTH_DAYS = 30
MONTH_HOURS = 24 * MONTH_DAYS
_MINUTES = {"minute": 1, "hour": 60, "day": 1_440}


class NotPriced(Exception):
    """The template says something here that this version cannot count."""


@dataclass(frozen=True)
class Started:
    """A Lambda that a schedule starts so many times a month."""

    handler: str
    memory_gb: float
    times: float


@dataclass(frozen=True)
class Deployed:
    """A template, synthesized or of a deployed stack."""

    template: Mapping[str, Any]

    def all(self, resource_type: str) -> list[Mapping[str, Any]]:
        """The properties of the resources of a type."""
        return [
            each.get("Properties", {})
            for each in self._resources.values()
            if each["Type"] == resource_type
        ]

    @property
    def types(self) -> set[str]:
        return {each["Type"] for each in self._resources.values()}

    @cached_property
    def started(self) -> tuple[Started, ...]:
        """What each schedule starts. Raises NotPriced."""
        return tuple(self._started())

    def times(self, handler: str) -> float:
        """How often a month the clock starts a handler."""
        return sum(each.times for each in self.started if each.handler == handler)

    @property
    def _resources(self) -> Mapping[str, Any]:
        if not isinstance(self.template, Mapping) or "Resources" not in self.template:
            raise NotPriced("it is no JSON template with resources, so none of Mendq's")
        found: Mapping[str, Mapping[str, Any]] = self.template["Resources"]
        return found

    def _started(self) -> Iterator[Started]:
        for schedule in self.all("AWS::Scheduler::Schedule"):
            target = schedule["Target"]["Arn"]
            function = self._resources.get(target["Fn::GetAtt"][0], {}).get("Properties", {})
            name = str(function.get("Handler", "")).removesuffix(".handler").rpartition(".")[2]
            if not name:
                raise NotPriced("a schedule starts something that is no Lambda of the stack")
            times = times_a_month(schedule["ScheduleExpression"])
            yield Started(name, function.get("MemorySize", 128) / 1_024, times)


def times_a_month(expression: str) -> float:
    """Of a schedule; raise NotPriced where it is of a kind that Mendq does not make.

    https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html
    """
    kind, _, rest = expression.partition("(")
    words = rest.rstrip(")").split()
    if kind == "rate" and len(words) == 2 and words[0].isdigit():
        minutes = _MINUTES.get(words[1].removesuffix("s"))
        if minutes and int(words[0]):
            return MONTH_DAYS * 1_440 / (int(words[0]) * minutes)
    if kind == "cron" and len(words) == 6 and words[0].isdigit() and words[1].isdigit():
        day_of_month, _, day_of_week = words[2:5]
        if {day_of_month, day_of_week} <= {"*", "?"}:
            return MONTH_DAYS
        if day_of_month in "*?" and day_of_week.isalpha():
            return MONTH_DAYS / 7
    raise NotPriced(f"the schedule {expression} cannot be counted")

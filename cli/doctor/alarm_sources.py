"""The Lambda behind an alarm, by the metric that it watches, and where that logs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from cli.account import Account
from cli.doctor.deployment import Deployment
from functions.healing.night_watch import NightMetric
from functions.healing.own_metrics import HEARTBEAT, NAMESPACE, OwnMetric

# What the Lambda `Heal` catches it counts as `HealErrors`, and the others so; these are named
# after what they tell.
ERRORS = "Errors"
_SENT_BY: Mapping[str, str] = {
    HEARTBEAT: "FollowUp",
    OwnMetric.PULSES_LOST: "Pulse",
    OwnMetric.WEEKS_FAILED: "WatchNight",
    OwnMetric.REPORTS_NOT_DELIVERED: "DeliverReport",
    **dict.fromkeys(NightMetric, "WatchNight"),
}
_DEAD_LETTERS, _INTAKE = "DeadLetters", "Intake"


@dataclass(frozen=True)
class Sources:
    """Where the metrics of a stack's alarms come from."""

    account: Account
    deployment: Deployment

    @staticmethod
    def rings_at_first(alarm: Mapping[str, Any]) -> bool:
        """Whether it watches what is missing until Mendq has run for a while."""
        return any(name in (HEARTBEAT, OwnMetric.PULSES_LOST) for _, name, _ in _metrics(alarm))

    def log(self, alarm: Mapping[str, Any]) -> str | None:
        """Of the Lambda behind it, in words; None where there is none, or it cannot be found.

        What may not be read here takes nothing from the alarm, which rings all the same.
        """
        try:
            name = next(filter(None, map(self._function, _metrics(alarm))), None)
        except (ClientError, BotoCoreError):
            return None
        return None if name is None else self._log_of(name)

    def _log_of(self, name: str) -> str:
        try:
            found = self.account.clients.functions.get_function_configuration(FunctionName=name)
        except (ClientError, BotoCoreError):
            return f"the log of {name}"
        return f"the log {found['LoggingConfig']['LogGroup']}"

    def _function(self, metric: tuple[str, str, Mapping[str, str]]) -> str | None:
        namespace, name, dimensions = metric
        if "FunctionName" in dimensions:
            return dimensions["FunctionName"]
        if namespace == NAMESPACE:
            return self._made_as(_SENT_BY.get(name) or name.removesuffix(ERRORS))
        return self._reader_of(dimensions.get("QueueName", ""))

    def _reader_of(self, queue: str) -> str | None:
        """The Lambda that was to do what lies in one of Mendq's own queues."""
        for kind, logical, physical in self.deployment.parts:
            if kind != "AWS::SQS::Queue" or physical.rpartition("/")[2] != queue:
                continue
            before, parked, _ = logical.partition(_DEAD_LETTERS)
            if before == _INTAKE or logical.startswith(f"{_INTAKE}Queue"):
                return self._made_as("Heal")
            return self._made_as(before) if parked else None
        return None

    def _made_as(self, construct: str) -> str | None:
        """The physical name of the Lambda of a construct of the stack."""
        begins = f"{construct}Function"
        named = (
            physical
            for kind, logical, physical in self.deployment.parts
            if kind == "AWS::Lambda::Function" and logical.startswith(begins)
        )
        return next(named, None)


def _metrics(alarm: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, str]]]:
    """Namespace, name and dimensions of what an alarm watches: one metric, or several."""
    several = (each.get("MetricStat", {}).get("Metric") for each in alarm.get("Metrics", ()))
    for each in (alarm, *several):
        if each and "MetricName" in each:
            dimensions = {one["Name"]: one["Value"] for one in each.get("Dimensions", ())}
            yield each["Namespace"], each["MetricName"], dimensions

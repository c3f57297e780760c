"""Which of the stack's alarms ring, each with its runbook and the log to look into.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_DescribeAlarms.html
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from mendq.cli.account import Account
from mendq.cli.doctor.check import Check, Status
from mendq.cli.doctor.deployment import Deployment
from mendq.cli.output import age
from mendq.model.names import HEARTBEAT, NAMESPACE, OwnMetric
from mendq.nightly.outcome import NightlyMetric
from mendq.notifications import commands
from mendq.probe.probe import SEEN_WITHIN

# Its page tells of all of them.
ANY = "docs/alarms.md"
# What the Lambda `Heal` catches it counts as `HealErrors`, and the others so; these are named
# after what they tell.
ERRORS = "Errors"
_SENT_BY: Mapping[str, str] = {
    HEARTBEAT: "FollowUp",
    OwnMetric.PROBES_LOST: "Probe",
    OwnMetric.WEEKS_FAILED: "WatchNightly",
    OwnMetric.REPORTS_NOT_DELIVERED: "DeliverReport",
    **dict.fromkeys(NightlyMetric, "WatchNightly"),
}
_DLQ, _INTAKE = "Dlq", "Intake"
# An alarm as CloudWatch describes it.
Alarm = Mapping[str, Any]


@dataclass(frozen=True)
class Alarms:
    """Those of one stack's account and region."""

    account: Account
    deployment: Deployment
    now: datetime

    def look(self) -> Iterator[Check]:
        """One check for each that rings and tells people, or is what one that does stands on."""
        ringing = [each for each in self._ringing() if _tells(each) or _is_about_mendq(each)]
        for each in ringing:
            status, name = self._status(each, ringing), f"alarm {each['AlarmName']}"
            yield self._check(each, name, status)
        if not ringing:
            yield Check("alarms", Status.OK, "none rings")

    def _ringing(self) -> Iterator[Alarm]:
        pages = self.account.clients.cloudwatch.get_paginator("describe_alarms").paginate(
            AlarmNamePrefix=commands.ALARM_PREFIX,
            StateValue="ALARM",
            AlarmTypes=["CompositeAlarm", "MetricAlarm"],
        )
        for page in pages:
            yield from page.get("CompositeAlarms", ())
            yield from page.get("MetricAlarms", ())

    def _status(self, alarm: Alarm, ringing: list[Alarm]) -> Status:
        """As bad as what it wakes people with, by itself or by a composite."""
        urgent = self.account.settings.urgent_topic_arn
        above = [each for each in ringing if f'{alarm["AlarmName"]}"' in each.get("AlarmRule", "")]
        wakes = any(urgent in _tells(each) for each in (alarm, *above))
        is_fault = _is_about_mendq(alarm) and wakes and not self._may_be_a_beginning(alarm)
        return Status.FAIL if is_fault else Status.WARN

    def _may_be_a_beginning(self, alarm: Alarm) -> bool:
        """Whether no sign of life, or no probe, can have come yet since the stack was made."""
        first = timedelta(minutes=self.account.settings.timing.probe_minutes) + SEEN_WITHIN
        at_first = (HEARTBEAT, OwnMetric.PROBES_LOST)
        is_young = self.now - self.account.created_at < first
        return is_young and any(name in at_first for _, name, _ in _metrics(alarm))

    def _check(self, alarm: Alarm, name: str, status: Status) -> Check:
        words = commands.read(alarm.get("AlarmDescription", ""))
        when, command, page = words or ("", "", ANY)
        rung = age(alarm["StateUpdatedTimestamp"], self.now)
        says = f"has rung for {rung}" + (f": {when}" if when else "")
        to_do = f"`{command}`" if words and not _is_about_mendq(alarm) else ""
        remedy = ", then ".join(filter(None, (to_do, self._log(alarm), page)))
        return Check(name, status, says, remedy)

    def _log(self, alarm: Alarm) -> str:
        """Of the Lambda behind it, in words; empty where there is none, or it cannot be found."""
        name = ""
        # What may not be read here takes nothing from the alarm, which rings all the same.
        with suppress(ClientError, BotoCoreError):
            name = next(filter(None, map(self._function, _metrics(alarm))), "")
        log = self.deployment.logs.get(name)
        return f"the log {log.group if log else f'of {name}'}" if name else ""

    def _function(self, metric: tuple[str, str, Mapping[str, str]]) -> str:
        namespace, name, dimensions = metric
        if "FunctionName" in dimensions:
            return dimensions["FunctionName"]
        if namespace == NAMESPACE:
            return self._made_as(_SENT_BY.get(name) or name.removesuffix(ERRORS))
        return self._reader_of(dimensions.get("QueueName", ""))

    def _reader_of(self, queue: str) -> str:
        """The Lambda that was to do what lies in one of Mendq's own queues."""
        for kind, logical, physical in self.deployment.parts:
            if kind == "AWS::SQS::Queue" and physical.rpartition("/")[2] == queue:
                before, parked, _ = logical.partition(_DLQ)
                if before == _INTAKE or logical.startswith(f"{_INTAKE}Queue"):
                    return self._made_as("Heal")
                return self._made_as(before) if parked else ""
        return ""

    def _made_as(self, construct: str) -> str:
        """The physical name of the Lambda of a construct of the stack."""
        kind, begins = "AWS::Lambda::Function", f"{construct}Function"
        found = (each for each in self.deployment.parts if each[0] == kind)
        return next((physical for _, name, physical in found if name.startswith(begins)), "")


def _tells(alarm: Alarm) -> list[str]:
    found: list[str] = alarm.get("AlarmActions", [])
    return found


def _is_about_mendq(alarm: Alarm) -> bool:
    """Not about queues: then other commands come first, as the alarm's words say."""
    words = commands.read(alarm.get("AlarmDescription", ""))
    return words is not None and words[1].startswith(commands.DOCTOR)


def _metrics(alarm: Alarm) -> Iterator[tuple[str, str, Mapping[str, str]]]:
    """Namespace, name and dimensions of what an alarm watches: one metric, or several."""
    several = (each.get("MetricStat", {}).get("Metric") for each in alarm.get("Metrics", ()))
    for each in (alarm, *several):
        if each and "MetricName" in each:
            dimensions = {one["Name"]: one["Value"] for one in each.get("Dimensions", ())}
            yield each["Namespace"], each["MetricName"], dimensions

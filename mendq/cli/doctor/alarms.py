"""Which of the stack's alarms ring, each with its runbook and the log to look into.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_DescribeAlarms.html
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct

from mendq.cli.account import Account
from mendq.cli.doctor.check import Check, Status
from mendq.cli.doctor.deployment import Deployment
from mendq.cli.output import format_age
from mendq.notifications import commands
from mendq.probe.probe import SEEN_WITHIN

# Its page tells of all of them.
ANY = "docs/alarms.md"
# What no Lambda can have sent yet where the stack was made just now.
_FIRST_SIGNS = ("HeartbeatMissing", "ProbeLost")
# The construct whose log tells more, where an alarm's own name does not begin with it.
_BEHIND = {
    "Heartbeat": "FollowUp",
    "Intake": "Heal",
    "NightlyFailing": "",
    "Nightly": "WatchNightly",
    "ReportNot": "DeliverReport",
    "Report": "WatchNightly",
    "Week": "WatchNightly",
}
# An alarm as CloudWatch describes it.
Alarm = Mapping[str, Any]


class Alarms(Struct, frozen=True):
    """Those of one stack's account and region."""

    account: Account
    deployment: Deployment
    now: datetime

    def look(self) -> Iterator[Check]:
        """One check for each that rings and tells people, or is what one that does stands on."""
        ringing = [
            each for each in self._ringing() if each.get("AlarmActions") or _is_about_mendq(each)
        ]
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
        wakes = any(urgent in each.get("AlarmActions", ()) for each in (alarm, *above))
        is_fault = _is_about_mendq(alarm) and wakes and not self._may_be_a_beginning(alarm)
        return Status.FAIL if is_fault else Status.WARN

    def _may_be_a_beginning(self, alarm: Alarm) -> bool:
        """Whether no sign of life, or no probe, can have come yet since the stack was made."""
        first = timedelta(minutes=self.account.settings.timing.probe_minutes) + SEEN_WITHIN
        return self.now - self.account.created_at < first and _name(alarm) in _FIRST_SIGNS

    def _check(self, alarm: Alarm, name: str, status: Status) -> Check:
        words = commands.read(alarm.get("AlarmDescription", ""))
        when, command, page = words or ("", "", ANY)
        rung = format_age(alarm["StateUpdatedTimestamp"], self.now)
        says = f"has rung for {rung}" + (f": {when}" if when else "")
        to_do = f"`{command}`" if words and not _is_about_mendq(alarm) else ""
        remedy = ", then ".join(filter(None, (to_do, self._log(alarm), page)))
        return Check(name, status, says, remedy)

    def _log(self, alarm: Alarm) -> str:
        """Of the Lambda behind it, in words; empty where there is none, or it cannot be found."""
        name = _name(alarm).removeprefix("OwnDlq").removeprefix("LambdaFailing")
        name = next((behind for begins, behind in _BEHIND.items() if name.startswith(begins)), name)
        # What may not be read here takes nothing from the alarm, which rings all the same.
        with suppress(ClientError, BotoCoreError):
            for kind, logical, physical in self.deployment.parts:
                construct, is_named_so, _ = logical.partition("Function")
                if kind == "AWS::Lambda::Function" and is_named_so and name.startswith(construct):
                    log = self.deployment.logs.get(physical)
                    return f"the log {log.group if log else f'of {physical}'}"
        return ""


def _name(alarm: Alarm) -> str:
    """As a construct would be named: `mendq-own-dlq-scan` is OwnDlqScan."""
    words = alarm["AlarmName"].removeprefix(commands.ALARM_PREFIX).split("-")
    return "".join(map(str.capitalize, words))


def _is_about_mendq(alarm: Alarm) -> bool:
    """Not about queues: then other commands come first, as the alarm's words say."""
    words = commands.read(alarm.get("AlarmDescription", ""))
    return words is not None and words[1].startswith(commands.DOCTOR)

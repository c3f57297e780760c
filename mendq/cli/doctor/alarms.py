"""Checks of the stack's alarms: which of them are in ALARM, with their runbooks and logs.

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

# The page about all alarms, for an alarm whose description names no page.
ALARMS_PAGE = "docs/alarms.md"
# These alarms ring in a new stack, because its Lambdas have not sent their first metrics yet.
_FIRST_SIGNS = ("HeartbeatMissing", "ProbeLost")
# The construct with the useful log, if an alarm's name does not begin with that construct's name.
# Keys are the beginnings of alarm names; the first that fits counts. "" means: no log helps.
_CONSTRUCT_BY_ALARM = {
    "Heartbeat": "FollowUp",
    "Intake": "Heal",
    "NightlyFailing": "",
    "Nightly": "WatchNightly",
    "ReportNot": "DeliverReport",
    "Report": "WatchNightly",
    "Week": "WatchNightly",
}
# An alarm as CloudWatch's DescribeAlarms returns it.
Alarm = Mapping[str, Any]


class StackAlarms(Struct, frozen=True):
    """The alarms of the stack in one account and region."""

    account: Account
    deployment: Deployment
    now: datetime

    def check(self) -> Iterator[Check]:
        """Yield a check for each alarm in ALARM that notifies people or is about Mendq itself.

        An alarm about Mendq without actions counts too, because a composite alarm may watch it. If
        there is no such alarm, yield one check with status OK.
        """
        ringing = [
            alarm
            for alarm in self._list_ringing()
            if alarm.get("AlarmActions") or _is_about_mendq(alarm)
        ]
        for alarm in ringing:
            yield self._check_alarm(alarm, self._status_of(alarm, ringing))
        if not ringing:
            yield Check("alarms", Status.OK, "none rings")

    def _list_ringing(self) -> Iterator[Alarm]:
        pages = self.account.clients.cloudwatch.get_paginator("describe_alarms").paginate(
            AlarmNamePrefix=commands.ALARM_PREFIX,
            StateValue="ALARM",
            AlarmTypes=["CompositeAlarm", "MetricAlarm"],
        )
        for page in pages:
            yield from page.get("CompositeAlarms", ())
            yield from page.get("MetricAlarms", ())

    def _status_of(self, alarm: Alarm, ringing: list[Alarm]) -> Status:
        """Return FAIL for an alarm about Mendq that pages people, otherwise WARN.

        An alarm also pages people if a ringing composite alarm above it does.
        """
        urgent_topic = self.account.settings.urgent_topic_arn
        quoted_end = f'{alarm["AlarmName"]}"'
        composites = [other for other in ringing if quoted_end in other.get("AlarmRule", "")]
        is_urgent = any(
            urgent_topic in related.get("AlarmActions", ()) for related in (alarm, *composites)
        )
        if _is_about_mendq(alarm) and is_urgent and not self._is_stack_too_new(alarm):
            return Status.FAIL
        return Status.WARN

    def _is_stack_too_new(self, alarm: Alarm) -> bool:
        """Return True if the stack is so new that its first heartbeat or probe cannot be here."""
        first_sign = timedelta(minutes=self.account.settings.timing.probe_minutes) + SEEN_WITHIN
        stack_age = self.now - self.account.created_at
        return stack_age < first_sign and _construct_name(alarm) in _FIRST_SIGNS

    def _check_alarm(self, alarm: Alarm, status: Status) -> Check:
        """Return the check of a ringing alarm: for how long it has rung, and what to do.

        The remedy names a command, a log and a docs page, as far as there are any.
        """
        description = commands.parse_alarm_description(alarm.get("AlarmDescription", ""))
        when, command, page = description or ("", "", ALARMS_PAGE)
        text = f"has rung for {format_age(alarm['StateUpdatedTimestamp'], self.now)}"
        if when:
            text += f": {when}"
        first_step = ""
        if description and not _is_about_mendq(alarm):
            first_step = f"`{command}`"
        steps = [step for step in (first_step, self._log_text(alarm), page) if step]
        return Check(f"alarm {alarm['AlarmName']}", status, text, ", then ".join(steps))

    def _log_text(self, alarm: Alarm) -> str:
        """Return which Lambda's log to read, in words. Empty if no Lambda of that name is found."""
        name = _construct_name(alarm).removeprefix("OwnDlq").removeprefix("LambdaFailing")
        for beginning, construct_name in _CONSTRUCT_BY_ALARM.items():
            if name.startswith(beginning):
                name = construct_name
                break
        # If the stack's resources cannot be read, the alarm is still reported, without its log.
        with suppress(ClientError, BotoCoreError):
            for resource_type, logical_id, physical_id in self.deployment.parts:
                construct, separator, _ = logical_id.partition("Function")
                is_function = resource_type == "AWS::Lambda::Function" and separator
                if is_function and name.startswith(construct):
                    log = self.deployment.logs.get(physical_id)
                    return f"the log {log.group if log else f'of {physical_id}'}"
        return ""


def _construct_name(alarm: Alarm) -> str:
    """Return the alarm's name in the form of a construct id: `mendq-own-dlq-scan` is OwnDlqScan."""
    words = alarm["AlarmName"].removeprefix(commands.ALARM_PREFIX).split("-")
    return "".join(word.capitalize() for word in words)


def _is_about_mendq(alarm: Alarm) -> bool:
    """Return True if the alarm is about Mendq itself: its description says to run the doctor.

    Alarms about queues name another command first.
    """
    description = commands.parse_alarm_description(alarm.get("AlarmDescription", ""))
    return description is not None and description[1].startswith(commands.DOCTOR)

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
from mendq.probe.probe import PROBE_ARRIVAL_TIMEOUT

# The page about all alarms, for an alarm whose description names no page.
ALARMS_PAGE = "docs/alarms.md"
# Alarms that ring in a new stack because its Lambdas have not sent their first metrics yet.
_ALARMS_THAT_RING_IN_NEW_STACK = ("HeartbeatMissing", "ProbeLost")
# The Lambda whose log helps with an alarm, if the alarm's name does not begin with that Lambda's.
# Keys are beginnings of alarm names; the first key that fits counts. "" means that no log helps.
_LAMBDA_CONSTRUCT_BY_ALARM_NAME_BEGINNING = {
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
    """The checks of the stack's alarms in one account and region."""

    account: Account
    deployment: Deployment
    now: datetime

    def check_alarms(self) -> Iterator[Check]:
        """Yield a check for each alarm in state ALARM that has actions or is about Mendq itself.

        An alarm about Mendq counts even without actions, because a composite alarm may watch it. If
        there is no such alarm, yield one check with status OK.
        """
        ringing_alarms = [
            alarm
            for alarm in self._list_ringing_alarms()
            if alarm.get("AlarmActions") or _is_about_mendq(alarm)
        ]
        for alarm in ringing_alarms:
            yield self._check_alarm(alarm, self._find_status(alarm, ringing_alarms))
        if not ringing_alarms:
            yield Check("alarms", Status.OK, "none rings")

    def _list_ringing_alarms(self) -> Iterator[Alarm]:
        pages = self.account.clients.cloudwatch.get_paginator("describe_alarms").paginate(
            AlarmNamePrefix=commands.ALARM_PREFIX,
            StateValue="ALARM",
            AlarmTypes=["CompositeAlarm", "MetricAlarm"],
        )
        for page in pages:
            yield from page.get("CompositeAlarms", ())
            yield from page.get("MetricAlarms", ())

    def _find_status(self, alarm: Alarm, ringing_alarms: list[Alarm]) -> Status:
        """Return FAIL for an alarm about Mendq that pages people, otherwise WARN.

        An alarm also counts as paging people if a ringing composite alarm that contains it does. In
        a new stack, an alarm about a missing first signal gives WARN.
        """
        urgent_topic = self.account.settings.urgent_topic_arn
        quoted_alarm_name_end = f'{alarm["AlarmName"]}"'
        composite_alarms = [
            ringing_alarm
            for ringing_alarm in ringing_alarms
            if quoted_alarm_name_end in ringing_alarm.get("AlarmRule", "")
        ]
        is_urgent = any(
            urgent_topic in related_alarm.get("AlarmActions", ())
            for related_alarm in (alarm, *composite_alarms)
        )
        if _is_about_mendq(alarm) and is_urgent and not self._is_stack_too_new(alarm):
            return Status.FAIL
        return Status.WARN

    def _is_stack_too_new(self, alarm: Alarm) -> bool:
        """Return True if the alarm misses a signal that so new a stack cannot have sent yet."""
        maximum_first_signal_wait = (
            timedelta(minutes=self.account.settings.timing.probe_minutes) + PROBE_ARRIVAL_TIMEOUT
        )
        stack_age = self.now - self.account.created_at
        return (
            stack_age < maximum_first_signal_wait
            and _make_construct_name(alarm) in _ALARMS_THAT_RING_IN_NEW_STACK
        )

    def _check_alarm(self, alarm: Alarm, status: Status) -> Check:
        """Return the check of a ringing alarm: for how long it has rung, and what to do.

        The remedy names a command, a log and a docs page, if the alarm has them.
        """
        description = commands.parse_alarm_description(alarm.get("AlarmDescription", ""))
        firing_condition, command, runbook_path = description or ("", "", ALARMS_PAGE)
        sentence = f"has rung for {format_age(alarm['StateUpdatedTimestamp'], self.now)}"
        if firing_condition:
            sentence += f": {firing_condition}"
        command_text = ""
        if description and not _is_about_mendq(alarm):
            command_text = f"`{command}`"
        remedy_steps = [
            remedy_step
            for remedy_step in (command_text, self._describe_log(alarm), runbook_path)
            if remedy_step
        ]
        return Check(f"alarm {alarm['AlarmName']}", status, sentence, ", then ".join(remedy_steps))

    def _describe_log(self, alarm: Alarm) -> str:
        """Return a text that names the log of the Lambda that the alarm is about.

        The text is empty if the alarm is about no Lambda of the stack, or if the stack's resources
        cannot be read.
        """
        alarm_construct = (
            _make_construct_name(alarm).removeprefix("OwnDlq").removeprefix("LambdaFailing")
        )
        for (
            alarm_name_beginning,
            lambda_construct,
        ) in _LAMBDA_CONSTRUCT_BY_ALARM_NAME_BEGINNING.items():
            if alarm_construct.startswith(alarm_name_beginning):
                alarm_construct = lambda_construct
                break
        # If the stack's resources cannot be read, the alarm is still reported, without its log.
        with suppress(ClientError, BotoCoreError):
            for resource_type, logical_id, physical_id in self.deployment.resources:
                function_construct, function_separator, _ = logical_id.partition("Function")
                is_function = resource_type == "AWS::Lambda::Function" and function_separator
                if is_function and alarm_construct.startswith(function_construct):
                    log = self.deployment.logs.get(physical_id)
                    return f"the log {log.group if log else f'of {physical_id}'}"
        return ""


def _make_construct_name(alarm: Alarm) -> str:
    """Return the alarm's name in the form of a construct id: `mendq-own-dlq-scan` is OwnDlqScan."""
    alarm_name_words = alarm["AlarmName"].removeprefix(commands.ALARM_PREFIX).split("-")
    return "".join(word.capitalize() for word in alarm_name_words)


def _is_about_mendq(alarm: Alarm) -> bool:
    """Return True if the alarm is about Mendq itself: its description names `mendq doctor`.

    The descriptions of alarms about queues name another command.
    """
    description = commands.parse_alarm_description(alarm.get("AlarmDescription", ""))
    return description is not None and description[1].startswith(commands.DOCTOR_COMMAND)

"""Checks of the stack's alarms: which ring, and which can reach nobody.

An alarm rings if it is in state ALARM. It reaches nobody if its actions are disabled, or while a
mute rule mutes it. In both cases it still changes its state.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_DescribeAlarms.html
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarm-mute-rules.html
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

import botocore
from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct

from mendq.cli.account import Account
from mendq.cli.doctor.check import Check, Command, Status
from mendq.cli.doctor.deployment import Deployment
from mendq.cli.output import format_age, format_minute, shorten_list
from mendq.notifications import commands
from mendq.notifications.text import format_count
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
_ALARM_RESOURCE_TYPES = ("AWS::CloudWatch::Alarm", "AWS::CloudWatch::CompositeAlarm")
# An alarm as CloudWatch's DescribeAlarms returns it.
Alarm = Mapping[str, Any]
_NO_DISABLED_ACTIONS_SENTENCE = (
    "none is disabled (removed actions and added suppressors are not checked)"
)
# A mute rule as CloudWatch's ListAlarmMuteRules returns it.
MuteRule = Mapping[str, Any]


class StackAlarms(Struct, frozen=True, dict=True):
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
            for alarm in self.alarms
            if alarm["StateValue"] == "ALARM"
            and (alarm.get("AlarmActions") or _is_about_mendq(alarm))
        ]
        for alarm in ringing_alarms:
            yield self._check_alarm(alarm, self._find_status(alarm, ringing_alarms))
        if not ringing_alarms:
            yield Check("alarms", Status.OK, "none rings")

    def check_actions(self) -> Iterator[Check]:
        """Yield one check: do the stack's alarms that notify people have their actions enabled?

        It fails if one of them would page people about Mendq itself. Otherwise it is a warning. It
        does not see actions that were removed from an alarm, or a composite alarm's suppressor.
        """
        disabled_alarms = [
            alarm
            for alarm in self.notifying_alarms
            if not alarm.get("ActionsEnabled", True)
            and alarm["AlarmName"] in self.stack_alarm_names
        ]
        if not disabled_alarms:
            yield Check("alarm actions", Status.OK, _NO_DISABLED_ACTIONS_SENTENCE)
            return
        alarm_names = [alarm["AlarmName"] for alarm in disabled_alarms]
        urgent_topic = self.account.settings.urgent_topic_arn
        is_page_lost = any(
            _is_about_mendq(alarm) and urgent_topic in alarm["AlarmActions"]
            for alarm in disabled_alarms
        )
        sentence = (
            f"actions are disabled on {format_count(len(alarm_names), 'alarm')}, so nobody is "
            f"notified when they ring: {shorten_list(alarm_names)}"
        )
        status = Status.FAIL if is_page_lost else Status.WARN
        remedy = Command.aws(
            self.account.region, "cloudwatch", "enable-alarm-actions", "--alarm-names", *alarm_names
        )
        yield Check("alarm actions", status, sentence, remedy)

    def check_mute_rules(self) -> Iterator[Check]:
        """Yield a check for each mute rule that mutes alarms of the stack, now or later.

        A rule that mutes now is a warning. A rule that mutes later, such as in a maintenance
        window, is OK.
        """
        if not hasattr(self.account.clients.cloudwatch, "list_alarm_mute_rules"):
            sentence = f"not judged: botocore {botocore.__version__} knows no alarm mute rules"
            remedy = "update boto3, or look in the CloudWatch console under alarm mute rules"
            yield Check("mute-rules", Status.UNKNOWN, sentence, remedy)
            return
        has_rules = False
        for rule, alarm_names in self._find_mute_rules_of_stack():
            has_rules = True
            yield self._check_mute_rule(rule, alarm_names)
        if not has_rules:
            yield Check("mute-rules", Status.OK, "none mutes an alarm of the stack")

    def _find_mute_rules_of_stack(self) -> Iterator[tuple[MuteRule, list[str]]]:
        """Yield each mute rule, active or scheduled, with the alarms of the stack that it mutes.

        CloudWatch is asked for each alarm only if the account has such a rule at all.
        """
        rule_by_arn = {rule["AlarmMuteRuleArn"]: rule for rule in self._list_mute_rules()}
        if not rule_by_arn:
            return
        alarm_names_by_rule_arn = defaultdict[str, list[str]](list)
        for alarm in self.notifying_alarms:
            alarm_name = alarm["AlarmName"]
            if alarm_name in self.stack_alarm_names:
                for rule in self._list_mute_rules(AlarmName=alarm_name):
                    rule_by_arn[rule["AlarmMuteRuleArn"]] = rule
                    alarm_names_by_rule_arn[rule["AlarmMuteRuleArn"]].append(alarm_name)
        for rule_arn, alarm_names in alarm_names_by_rule_arn.items():
            yield rule_by_arn[rule_arn], alarm_names

    def _list_mute_rules(self, **selection_arguments: Any) -> Iterator[MuteRule]:
        """Yield mute rules that mute alarms now or will do so. Expired ones are left out."""
        paginator = self.account.clients.cloudwatch.get_paginator("list_alarm_mute_rules")
        for page in paginator.paginate(Statuses=["ACTIVE", "SCHEDULED"], **selection_arguments):
            yield from page.get("AlarmMuteRuleSummaries", ())

    def _check_mute_rule(self, rule: MuteRule, alarm_names: list[str]) -> Check:
        # arn:aws:cloudwatch:REGION:ACCOUNT:alarm-mute-rule:NAME
        rule_name = rule["AlarmMuteRuleArn"].split(":", 6)[-1]
        alarms_text = f"{len(alarm_names)} of the stack's alarms ({shorten_list(alarm_names)})"
        end_text = ""
        if expire_date := rule.get("ExpireDate"):
            end_text = f" until {format_minute(expire_date.astimezone(UTC))} at the latest"
        if rule["Status"] != "ACTIVE":
            sentence = f"{alarms_text} will be muted{end_text} by {rule_name}"
            return Check("mute-rule", Status.OK, sentence)
        sentence = (
            f"{alarms_text} are muted now{end_text}: nobody is notified if they ring. "
            f"The mute rule: {rule_name}"
        )
        remedy = Command.aws(
            self.account.region,
            "cloudwatch",
            "get-alarm-mute-rule",
            "--alarm-mute-rule-name",
            rule_name,
        )
        return Check("mute-rule", Status.WARN, sentence, remedy)

    @cached_property
    def alarms(self) -> list[Alarm]:
        """All alarms with Mendq's prefix. Other people's alarms may have the same prefix."""
        pages = self.account.clients.cloudwatch.get_paginator("describe_alarms").paginate(
            AlarmNamePrefix=commands.ALARM_PREFIX,
            AlarmTypes=["CompositeAlarm", "MetricAlarm"],
        )
        alarms: list[Alarm] = []
        for page in pages:
            alarms.extend(page.get("CompositeAlarms", ()))
            alarms.extend(page.get("MetricAlarms", ()))
        return alarms

    @property
    def notifying_alarms(self) -> list[Alarm]:
        """The alarms with actions. Others only feed a composite alarm or the dashboard."""
        return [alarm for alarm in self.alarms if alarm.get("AlarmActions")]

    @cached_property
    def stack_alarm_names(self) -> frozenset[str]:
        """The names of the stack's own alarms."""
        return frozenset(
            physical_id
            for resource_type, _, physical_id in self.deployment.resources
            if resource_type in _ALARM_RESOURCE_TYPES
        )

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
        """Return True if the alarm waits for a first signal that a new stack has not sent yet."""
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

"""Which of the stack's alarms ring, each with its runbook and the log to look into.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_DescribeAlarms.html
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from cli.account import Account
from cli.doctor.alarm_sources import Sources
from cli.doctor.check import Check, Status, guarded
from cli.doctor.deployment import Deployment
from cli.output import age
from functions.healing.pulse import SEEN_WITHIN
from infra import alarm_words

# Its page tells of all of them.
ANY = "docs/alarms.md"


@dataclass(frozen=True)
class Ringing:
    """One alarm as CloudWatch describes it; `rule` is a composite's, which names others."""

    name: str
    description: str
    since: datetime
    tells: tuple[str, ...]
    rule: str
    described: Mapping[str, Any]

    @property
    def is_about_mendq(self) -> bool:
        """Not about queues: then other commands come first, as the alarm's words say."""
        words = alarm_words.read(self.description)
        return words is not None and words[1].startswith(alarm_words.DOCTOR)


@dataclass(frozen=True)
class Alarms:
    """Those of one stack's account and region."""

    account: Account
    deployment: Deployment
    now: datetime

    def look(self) -> Iterator[Check]:
        """One check for each that rings and tells people, or is what one that does stands on."""
        ringing = [each for each in self._ringing() if each.tells or each.is_about_mendq]
        for each in ringing:
            status = self._status(each, ringing)
            yield from guarded(f"alarm {each.name}", partial(self._check, each, status))
        if not ringing:
            yield Check("alarms", Status.OK, "none rings")

    def _ringing(self) -> Iterator[Ringing]:
        pages = self.account.clients.cloudwatch.get_paginator("describe_alarms").paginate(
            AlarmNamePrefix=alarm_words.ALARM_PREFIX,
            StateValue="ALARM",
            AlarmTypes=["CompositeAlarm", "MetricAlarm"],
        )
        for page in pages:
            for each in (*page.get("CompositeAlarms", ()), *page.get("MetricAlarms", ())):
                found: Mapping[str, Any] = each
                yield Ringing(
                    found["AlarmName"],
                    found.get("AlarmDescription", ""),
                    found["StateUpdatedTimestamp"],
                    tuple(found.get("AlarmActions", ())),
                    found.get("AlarmRule", ""),
                    found,
                )

    def _status(self, alarm: Ringing, ringing: list[Ringing]) -> Status:
        """As bad as what it wakes people with, by itself or by a composite."""
        urgent = self.account.settings.urgent_topic_arn
        above = [each for each in ringing if f'{alarm.name}"' in each.rule]
        wakes = any(urgent in each.tells for each in (alarm, *above))
        is_fault = alarm.is_about_mendq and wakes and not self._may_be_a_beginning(alarm)
        return Status.FAIL if is_fault else Status.WARN

    def _may_be_a_beginning(self, alarm: Ringing) -> bool:
        """Whether no sign of life, or no pulse, can have come yet since the stack was made."""
        first = timedelta(minutes=self.account.settings.timing.pulse_minutes) + SEEN_WITHIN
        is_young = self.now - self.account.created_at < first
        return is_young and Sources.rings_at_first(alarm.described)

    def _check(self, alarm: Ringing, status: Status) -> list[Check]:
        words = alarm_words.read(alarm.description)
        when, command, page = words or ("", "", ANY)
        says = f"has rung for {age(alarm.since, self.now)}" + (f": {when}" if when else "")
        to_do = [] if not words or alarm.is_about_mendq else [f"`{command}`"]
        log = Sources(self.account, self.deployment).log(alarm.described)
        cure = ", then ".join([*to_do, *([log] if log else []), page])
        return [Check(f"alarm {alarm.name}", status, says, cure)]

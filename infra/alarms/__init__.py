"""What wakes people, and what it stands on.

An alarm whose cause is its own tells by itself, so that no other hides it; those that one cause
makes ring together tell by a composite.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from infra.alarms import fixes, health
from infra.alarms.alarm import AlarmDescription, composite
from infra.alarms.health import Watched, watches
from infra.settings.deployment import DeploymentSettings
from infra.topics import Topics

_EVERY = (
    *(fixes.FIXES_SPIKE, health.NOT_HEALING, health.NIGHTLY_FAILING),
    *(fixes.UNUSUAL, fixes.MANY, fixes.STILL, fixes.OVER_CEILING),
    *(fixes.BEING_VERIFIED, fixes.VERIFIED_FOR_LONG),
    *(health.SILENT, health.PROBE_LOST, health.LATE, health.HEAL_FAILING),
    *(health.HEAL_ERRORS, health.FOLLOW_UP_ERRORS, health.SCAN_ERRORS, health.SCAN_MISSING),
    *(health.ESCALATED, health.PROPOSED),
    *(health.UNDELIVERED, health.OWN_DLQ, health.WRITER_FAILING),
    *(health.NIGHTLY_FAILED, health.NIGHTLY_MISSING, health.NIGHTLY_DOUBTFUL),
    *(health.WEEK_FAILED, health.REPORT_MISSING, health.NOT_DELIVERED),
    fixes.HELD_BACK,
)
# Those that reach people, and those that composites stand on.
NOTIFIED = tuple(each for each in _EVERY if each.severity)
WATCHED = tuple(each for each in _EVERY if not each.severity)
# The composite of those in a part that tell nobody by themselves.
_JOINED = {"Liveness": health.NOT_HEALING, "NightlyRuns": health.NIGHTLY_FAILING}


class Alarms(Construct):
    """Every alarm, and whom it reaches."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        watched: Watched,
        topics: Topics,
        settings: DeploymentSettings,
    ) -> None:
        super().__init__(scope, name)
        self._topics = topics
        self._paging: list[tuple[AlarmDescription, cloudwatch.IAlarm]] = []
        spike = fixes.Spike(self, "Spike", settings.limits)
        held_back = composite(self, fixes.HELD_BACK, spike.holds_back)
        page = composite(self, fixes.FIXES_SPIKE, spike.rule, held_back, fixes.SETTLING)
        self._tell(fixes.FIXES_SPIKE, page)
        self._tell(fixes.OVER_CEILING, spike.over)
        parts: dict[str, Construct] = {}
        silent = defaultdict[str, list[cloudwatch.IAlarm]](list)
        for part, watch in watches(watched, settings):
            inner = parts.setdefault(part, parts.get(part) or Construct(self, part))
            alarm = watch.alarm(inner)
            self._tell(watch.announced, alarm)
            if not watch.announced.severity:
                silent[part].append(alarm)
        for part, alarms in silent.items():
            rule = cloudwatch.AlarmRule.any_of(*alarms)
            self._tell(_JOINED[part], composite(self, _JOINED[part], rule))

    def about(
        self, names: Collection[str]
    ) -> tuple[list[cloudwatch.IAlarm], list[cloudwatch.IAlarm]]:
        """Those that tell people what `names` say, and the others that do."""
        chosen = [(announced.called() in names, alarm) for announced, alarm in self._paging]
        return [each for yes, each in chosen if yes], [each for yes, each in chosen if not yes]

    def _tell(self, announced: AlarmDescription, alarm: cloudwatch.AlarmBase) -> None:
        if announced.severity:
            self._topics.tell_of(alarm, announced.severity)
            self._paging.append((announced, alarm))

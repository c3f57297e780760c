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
from mendq.model.settings import FULL

_EVERY = tuple(
    each
    for room in (fixes, health)
    for each in vars(room).values()
    if isinstance(each, AlarmDescription)
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
        self.node.set_context("docsUrl", settings.docs_url or "")
        self._topics = topics
        self._paging: list[tuple[AlarmDescription, cloudwatch.IAlarm]] = []
        is_full = settings.alarms == FULL
        parts = {each: Construct(self, each) for each in {row.part: 0 for row in _EVERY} if each}
        joined = defaultdict[str, list[cloudwatch.IAlarm]](list)
        for watch in (each for each in watches(watched, settings) if is_full or each.is_essential):
            announced = watch.announced
            alarm = watch.alarm(parts[announced.part])
            if announced.severity or not is_full:
                self._tell(announced, alarm)
            else:
                joined[announced.part].append(alarm)
        for part, alarms in joined.items():
            rule = cloudwatch.AlarmRule.any_of(*alarms)
            self._tell(_JOINED[part], composite(self, _JOINED[part], rule))
        if is_full:
            spike = fixes.Spike(parts[fixes.PART])
            held_back = composite(self, fixes.HELD_BACK, spike.holds_back)
            page = composite(self, fixes.FIXES_SPIKE, spike.rule, held_back, fixes.SETTLING)
            self._tell(fixes.FIXES_SPIKE, page)

    def about(
        self, names: Collection[str]
    ) -> tuple[list[cloudwatch.IAlarm], list[cloudwatch.IAlarm]]:
        """Those that tell people what `names` say, and the others that do."""
        chosen = [(announced.called() in names, alarm) for announced, alarm in self._paging]
        return [each for yes, each in chosen if yes], [each for yes, each in chosen if not yes]

    def _tell(self, announced: AlarmDescription, alarm: cloudwatch.AlarmBase) -> None:
        """What a composite would join tells by itself where there is none."""
        severity = announced.severity or _JOINED[announced.part].severity
        assert severity  # noqa: S101 - a composite tells people
        self._topics.tell_of(alarm, severity)
        self._paging.append((announced, alarm))

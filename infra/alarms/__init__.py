"""What wakes people, and what it stands on.

An alarm whose cause is its own tells by itself, so that no other hides it; those that one cause
makes ring together tell by a composite.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from infra.alarms import failing, liveness, nightly_runs, open_cases, pages, parked, scanning, spike
from infra.alarms.description import AlarmDescription
from infra.alarms.failing import Failing
from infra.alarms.liveness import Liveness
from infra.alarms.nightly_runs import NightlyRuns
from infra.alarms.open_cases import OpenCases
from infra.alarms.pages import page
from infra.alarms.parked import Parked
from infra.alarms.scanning import Scanning
from infra.alarms.spike import Spike
from infra.alarms.watched import Watched
from infra.alarms.watching import Ringing
from infra.settings.deployment import DeploymentSettings
from infra.topics import Topics

_PARTS = (spike, liveness, failing, scanning, open_cases, parked, nightly_runs)
# Those that reach people, and those that composites stand on.
NOTIFIED = (
    *pages.COMPOSITES,
    *(announced for part in _PARTS for announced in part.ANNOUNCED if announced.severity),
)
WATCHED = (
    *(announced for part in _PARTS for announced in part.ANNOUNCED if not announced.severity),
    pages.HELD_BACK,
)


class Alarms(Construct):
    """Every alarm, and whom it reaches."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        watched: Watched,
        topics: Topics,
        settings: DeploymentSettings,
    ) -> None:
        super().__init__(scope, name)
        self._topics = topics
        self._paging: list[tuple[AlarmDescription, cloudwatch.IAlarm]] = []
        fixes = Spike(self, "Spike", settings.limits)
        held_back = page(self, pages.HELD_BACK, fixes.holds_back, topics)
        self._composite(pages.FIXES_SPIKE, fixes.rule, held_back)
        alive = Liveness(self, "Liveness", watched, settings.timing.probe_minutes)
        broken = Failing(self, "Failing")
        self._composite(pages.NOT_HEALING, _any_silent(alive.alarms))
        by_day = NightlyRuns(self, "NightlyRuns", mails=settings.report.mails)
        self._composite(pages.NIGHTLY_FAILING, _any_silent(by_day.alarms))
        given_up = Parked(
            self,
            "Parked",
            undelivered=watched.intake.undelivered,
            dlqs=watched.dlqs,
            writers=watched.writers,
        )
        cases = OpenCases(self, "OpenCases")
        scanned = Scanning(self, "Scanning", watched.scan)
        for part in (fixes, alive, broken, scanned, cases, given_up, by_day):
            self._tell(part.alarms)

    def about(
        self, names: Collection[str]
    ) -> tuple[list[cloudwatch.IAlarm], list[cloudwatch.IAlarm]]:
        """Those that tell people what `names` say, and the others that do."""
        chosen = [(announced.called() in names, alarm) for announced, alarm in self._paging]
        return [each for yes, each in chosen if yes], [each for yes, each in chosen if not yes]

    def _composite(
        self,
        announced: AlarmDescription,
        rule: cloudwatch.IAlarmRule,
        held_back_by: cloudwatch.IAlarm | None = None,
    ) -> None:
        self._paging.append((announced, page(self, announced, rule, self._topics, held_back_by)))

    def _tell(self, alarms: Sequence[Ringing]) -> None:
        for each in alarms:
            if each.announced.severity:
                self._topics.tell_of(each.alarm, each.announced.severity)
                self._paging.append((each.announced, each.alarm))


def _any_silent(alarms: Sequence[Ringing]) -> cloudwatch.IAlarmRule:
    """Any of those that tell nobody by themselves."""
    silent = (each.alarm for each in alarms if not each.announced.severity)
    return cloudwatch.AlarmRule.any_of(*silent)

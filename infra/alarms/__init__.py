"""What wakes people, and what it stands on.

An alarm whose cause is its own tells by itself, so that no other hides it; those that one cause
makes ring together tell by a composite.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from infra.alarms import failing, liveness, nights, open_cases, pages, parked, spike, sweeping
from infra.alarms.failing import Failing
from infra.alarms.liveness import Liveness
from infra.alarms.nights import Nights
from infra.alarms.open_cases import OpenCases
from infra.alarms.pages import page
from infra.alarms.parked import Parked
from infra.alarms.spike import Spike
from infra.alarms.sweeping import Sweeping
from infra.alarms.told import Told
from infra.alarms.watched import Watched as Watched
from infra.alarms.watching import Ringing
from infra.settings import DeploymentSettings
from infra.topics import Topics

_PARTS = (spike, liveness, failing, sweeping, open_cases, parked, nights)
# Those that reach people, and those that composites stand on.
PAGED = (
    *pages.COMPOSITES,
    *(told for part in _PARTS for told in part.TOLD if told.severity),
)
WATCHED = (
    *(told for part in _PARTS for told in part.TOLD if not told.severity),
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
        self._paging: list[tuple[Told, cloudwatch.IAlarm]] = []
        fixes = Spike(self, "Spike", settings.limits)
        held_back = page(self, pages.HELD_BACK, fixes.holds_back, topics)
        self._composite(pages.FIXES_SPIKE, fixes.rule, held_back)
        alive = Liveness(self, "Liveness", watched, settings.timing.pulse_minutes)
        broken = Failing(self, "Failing")
        self._composite(pages.NOT_HEALING, _any_silent(alive.alarms))
        by_night = Nights(self, "Nights", mails=settings.report.mails)
        self._composite(pages.NIGHTS_FAILING, _any_silent(by_night.alarms))
        given_up = Parked(
            self,
            "Parked",
            undelivered=watched.intake.undelivered,
            dead_letters=watched.dead_letters,
            writers=watched.writers,
        )
        cases = OpenCases(self, "OpenCases")
        swept = Sweeping(self, "Sweeping", watched.sweep)
        for part in (fixes, alive, broken, swept, cases, given_up, by_night):
            self._tell(part.alarms)

    def about(
        self, names: Collection[str]
    ) -> tuple[list[cloudwatch.IAlarm], list[cloudwatch.IAlarm]]:
        """Those that tell people what `names` say, and the others that do."""
        chosen = [(told.called() in names, alarm) for told, alarm in self._paging]
        return [each for yes, each in chosen if yes], [each for yes, each in chosen if not yes]

    def _composite(
        self,
        told: Told,
        rule: cloudwatch.IAlarmRule,
        held_back_by: cloudwatch.IAlarm | None = None,
    ) -> None:
        self._paging.append((told, page(self, told, rule, self._topics, held_back_by)))

    def _tell(self, alarms: Sequence[Ringing]) -> None:
        for each in alarms:
            if each.told.severity:
                self._topics.tell_of(each.alarm, each.told.severity)
                self._paging.append((each.told, each.alarm))


def _any_silent(alarms: Sequence[Ringing]) -> cloudwatch.IAlarmRule:
    """Any of those that tell nobody by themselves."""
    silent = (each.alarm for each in alarms if not each.told.severity)
    return cloudwatch.AlarmRule.any_of(*silent)

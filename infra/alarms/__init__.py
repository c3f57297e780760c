"""What wakes people, and what it stands on. An alarm on one metric pages nobody by itself."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.alarms import liveness, nights, open_cases, pages, parked, spike
from infra.alarms.liveness import Liveness
from infra.alarms.nights import Nights
from infra.alarms.open_cases import OpenCases
from infra.alarms.pages import PAGED as PAGED
from infra.alarms.pages import page
from infra.alarms.parked import Parked
from infra.alarms.spike import Spike
from infra.alarms.told import Paged
from infra.intake import Intake
from infra.settings import DeploymentSettings
from infra.topics import Topics

# Those that pages stand on, in the order of the pages.
WATCHED = tuple(
    told for part in (spike, liveness, open_cases, parked, nights) for told in part.TOLD
)
_ANY_OF = cloudwatch.AlarmRule.any_of


@dataclass(frozen=True)
class Watched:
    """What of the stack is watched beside the metrics that Mendq sends.

    `dead_letters` are all of Mendq's own but the rule's, and `writers` all that write but heal: by
    the name of what they belong to.
    """

    intake: Intake
    heal: lambda_.Function
    dead_letters: Mapping[str, sqs.Queue]
    writers: Mapping[str, lambda_.Function]


class Alarms(Construct):
    """The composites, by what they tell."""

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
        fixes = Spike(self, "Spike", settings.limits)
        alive = Liveness(
            self,
            "Liveness",
            intake=watched.intake.queue,
            heal=watched.heal,
            pulse_minutes=settings.timing.pulse_minutes,
        )
        cases = OpenCases(self, "OpenCases")
        given_up = Parked(
            self,
            "Parked",
            undelivered=watched.intake.undelivered,
            dead_letters=watched.dead_letters,
            writers=watched.writers,
        )
        by_night = Nights(self, "Nights", mails=settings.report.mails)
        self._composites = [
            page(self, pages.FIXES_SPIKE, fixes.rule, topics, fixes.held_back_by),
            self._page(pages.NOT_HEALING, *alive.alarms, given_up.undelivered),
            self._page(pages.CASES_ESCALATED, cases.escalated),
            self._page(pages.PROPOSALS_WAITING, cases.proposed),
            self._page(pages.WORK_PARKED, *given_up.alarms),
            self._page(pages.NIGHTS_AND_REPORT, *by_night.alarms),
        ]

    def about(
        self, names: Collection[str]
    ) -> tuple[list[cloudwatch.CompositeAlarm], list[cloudwatch.CompositeAlarm]]:
        """Those that tell what `names` say, and the others."""
        chosen = [told.called() in names for told in PAGED]
        both = list(zip(chosen, self._composites, strict=True))
        return [each for yes, each in both if yes], [each for yes, each in both if not yes]

    def _page(self, told: Paged, *alarms: cloudwatch.Alarm) -> cloudwatch.CompositeAlarm:
        return page(self, told, _ANY_OF(*alarms), self._topics)

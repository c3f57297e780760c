"""Where the Change Calendars lie: Mendq asks its own region's Systems Manager, and no other.

One that cannot be read counts as closed, so that a stack elsewhere would never change anything.
https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_GetCalendarState.html
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from infra.settings.deployment import DeploymentSettings
from infra.settings.mistakes import Mistake


def unreadable(settings: DeploymentSettings, regions: Sequence[str]) -> Iterator[Mistake]:
    """The calendars that a stack in one of `regions` could not ask for."""
    for number, arn in enumerate(settings.freeze_calendars):
        said = arn.split(":")[3]
        others = [each for each in dict.fromkeys(regions) if each != said]
        if others:
            yield Mistake(
                f"freezeCalendars[{number}]",
                f"lies in {said}, and a stack goes to {others[0]}, which cannot read it and would "
                "be frozen for ever",
                "make one there, and deploy each region with settings of its own",
            )

"""Where the Change Calendars lie: Mendq asks its own region's Systems Manager, and no other.

One that cannot be read counts as closed, so that a stack elsewhere would never change anything.
https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_GetCalendarState.html
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from functions.healing.queue_names import partition_of
from infra.settings.deployment import DeploymentSettings
from infra.settings.mistakes import Mistake


def unreadable(settings: DeploymentSettings, regions: Sequence[str]) -> Iterator[Mistake]:
    """The calendars that a stack in one of `regions` could not ask for."""
    for number, arn in enumerate(settings.freeze_calendars):
        _, partition, _, region, *_ = arn.split(":")
        if fault := _elsewhere(region, regions) or _no_such_place(partition, region):
            yield Mistake(f"freezeCalendars[{number}]", *fault)


def of_another_account(settings: DeploymentSettings, account: str | None) -> Iterator[str]:
    """The calendars that some stack reads only where their owner shares them with it.

    `account` is the stack's where no environments are named; None is not known, and may be any.
    """
    named = {each.account for each in settings.environments} or {account} - {None}
    for arn in settings.freeze_calendars:
        if named - {arn.split(":")[4]}:
            yield arn


def _elsewhere(said: str, regions: Sequence[str]) -> tuple[str, str] | None:
    others = [each for each in dict.fromkeys(regions) if each != said]
    if not others:
        return None
    fault = (
        f"lies in {said}, and a stack goes to {others[0]}, which cannot read it and would be "
        "frozen for ever"
    )
    return fault, "make one there, and deploy each region with settings of its own"


def _no_such_place(partition: str, region: str) -> tuple[str, str] | None:
    there = partition_of(region)
    if partition == there:
        return None
    fault = (
        f"names the partition {partition}, and {region} is in {there}: there is no such calendar, "
        "and Mendq would be frozen for ever"
    )
    return fault, f"write arn:{there}:.."

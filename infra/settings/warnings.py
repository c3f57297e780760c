"""What may be so, and is hardly meant."""

from __future__ import annotations

from collections.abc import Iterator

from functions.healing.mode import Mode
from infra.settings.calendar_regions import of_another_account
from infra.settings.deployment import DeploymentSettings
from infra.settings.known_regions import known_regions
from infra.settings.prefix_places import fit_no_stack
from infra.settings.trail_region import is_not_said


def warnings(
    settings: DeploymentSettings, region: str | None = None, account: str | None = None
) -> Iterator[str]:
    """One line for each, for whoever synthesizes; nothing is refused for it.

    `region` and `account`, as far as they are known, are the stack's without environments.
    """
    for prefix in fit_no_stack(settings, region, account):
        yield (
            f"trail.queueArnPrefixes: {prefix} is of another partition, region or account than "
            "every stack, so no trail logs its calls"
        )
    for each in settings.environments:
        if each.region not in known_regions():
            yield (
                f"environments: {each.region} is no region that this version of Mendq knows, so "
                "deploying there may fail"
            )
    for arn in of_another_account(settings, account):
        yield (
            f"freezeCalendars: {arn} is of another account than a stack: share it first, or that "
            "stack cannot read it and is frozen for ever"
        )
    if is_not_said(settings):
        yield (
            "trail.bucketRegion does not say where trail.bucket lies: anywhere but in the stack's "
            "region, every night fails"
        )
    yield from _of_people(settings)
    if settings.report.sender is not None and not settings.report.mails:
        yield "nobody is mailed: report.sender is set, and report.recipients names no address"


def _of_people(settings: DeploymentSettings) -> Iterator[str]:
    """Alarms are sent in every mode; who deploys the defaults to see them is left in peace."""
    urgent, info = settings.pages.urgent, settings.pages.info
    acts = max(settings.mode, settings.tag_may_raise_to) > Mode.OBSERVE
    if acts and not (urgent or info):
        yield (
            "nobody is subscribed: Mendq may propose or heal, and neither pages.urgent nor "
            "pages.info names an address, so its pages reach nobody"
        )
    elif info and not urgent:
        yield "nobody is woken: pages.urgent names no address, so urgent pages reach nobody"
    elif urgent and not info:
        yield (
            "nobody reads what can wait: pages.info names no address, so proposals, the week's "
            "verdict and alarms that are not urgent reach nobody"
        )

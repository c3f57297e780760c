"""What may be so, and is hardly meant."""

from __future__ import annotations

from collections.abc import Iterator

from functions.healing.mode import Mode
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
    if is_not_said(settings):
        yield (
            "trail.bucketRegion does not say where trail.bucket lies: anywhere but in the stack's "
            "region, every night fails"
        )
    reached = settings.pages.urgent or settings.pages.info
    if max(settings.mode, settings.tag_may_raise_to) > Mode.OBSERVE and not reached:
        yield (
            "nobody is subscribed: Mendq may propose or heal, and neither pages.urgent nor "
            "pages.info names an address, so its pages reach nobody"
        )
    if settings.report.sender is not None and not settings.report.mails:
        yield "nobody is mailed: report.sender is set, and report.recipients names no address"

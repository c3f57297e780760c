"""Whether what the trail shall log lies where a stack goes: a trail sees its own place alone."""

from __future__ import annotations

from collections.abc import Iterator

from functions.healing.queue_names import partition_of
from infra.settings.deployment import DeploymentSettings


def fit_no_stack(
    settings: DeploymentSettings, region: str | None, account: str | None
) -> Iterator[str]:
    """The prefixes of `trail.queueArnPrefixes` that fit no queue of any stack.

    `region` and `account` are the stack's where no environments are named; None is not known, and
    may be any.
    """
    named = [(each.region, each.account) for each in settings.environments]
    stacks: list[tuple[str | None, str | None]] = [*named] or [(region, account)]
    for prefix in settings.trail.queue_arn_prefixes:
        if not any(_fits(prefix, *stack) for stack in stacks):
            yield prefix


def _fits(prefix: str, region: str | None, account: str | None) -> bool:
    """What a prefix leaves open, after its last colon, is any."""
    place = (region and partition_of(region), "sqs", region, account)
    said = prefix.split(":")[1:5]
    return all(
        not here or not there or here == there for here, there in zip(place, said, strict=False)
    )

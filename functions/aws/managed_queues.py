"""Lists the queues that Mendq manages: tagged, or named by the settings.

https://docs.aws.amazon.com/resourcegroupstagging/latest/APIReference/API_GetResources.html
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from functions.aws.clients import Clients
from functions.aws.errors import FactsUnavailable, looking
from functions.healing.managed import MODE_TAG, Consent
from functions.healing.queue_names import arn_of, arn_of_name, parts_of


@dataclass(frozen=True, order=True)
class ManagedQueue:
    """A queue that Mendq looks after, and its tags as they are listed: a moment old, maybe."""

    queue_arn: str
    tags: Mapping[str, str] = field(compare=False)

    @property
    def name(self) -> str:
        return parts_of(self.queue_arn).name


@dataclass(frozen=True)
class Listing:
    """The managed queues in order of their names, as far as they could be listed.

    `failed` says by name or prefix of the settings why not all of its queues are known.
    """

    queues: tuple[ManagedQueue, ...]
    failed: Mapping[str, FactsUnavailable]


def managed_queues(clients: Clients, account: str, consent: Consent) -> tuple[ManagedQueue, ...]:
    """All that there are, in order of their names. Raises FactsUnavailable."""
    listing = listed_queues(clients, account, consent)
    for error in listing.failed.values():
        raise error
    return listing.queues


def listed_queues(clients: Clients, account: str, consent: Consent) -> Listing:
    """What can be listed, also where a name or prefix cannot be.

    Raises FactsUnavailable where nothing is known but that.
    """
    with looking("the managed queues"):
        tags = _tagged(clients, consent)
    names, failed = set[str](), dict[str, FactsUnavailable]()
    for pattern in consent.queues:
        try:
            with looking(f"the queues named {pattern}"):
                names.update(_names(clients, pattern))
        except FactsUnavailable as error:
            failed[pattern] = error
    named = (arn_of_name(name, clients.region, account) for name in names)
    every = {**{arn: {} for arn in named if arn is not None}, **tags}
    queues = tuple(
        ManagedQueue(arn, every[arn])
        for arn in sorted(every)
        if consent.mode_of(parts_of(arn).name, every[arn]) is not None
    )
    if failed and not queues:
        raise next(iter(failed.values()))
    return Listing(queues, failed)


def _tagged(clients: Clients, consent: Consent) -> dict[str, dict[str, str]]:
    """Tags by ARN; of queues that settings name, those are wanted too that bear no tag of mode."""
    only = [] if consent.queues else [{"Key": MODE_TAG}]
    pages = clients.tagging.get_paginator("get_resources").paginate(
        ResourceTypeFilters=["sqs"],
        TagFilters=only,  # type: ignore[arg-type]
    )
    return {
        arn: {tag["Key"]: tag["Value"] for tag in resource["Tags"]}
        for page in pages
        for resource in page["ResourceTagMappingList"]
        if (arn := arn_of(resource["ResourceARN"])) is not None
    }


def _names(clients: Clients, pattern: str) -> Iterator[str]:
    """The names of queues that there are."""
    pages = clients.sqs.get_paginator("list_queues").paginate(
        QueueNamePrefix=pattern.removesuffix("*"), PaginationConfig={"PageSize": 1000}
    )
    for page in pages:
        for url in page.get("QueueUrls", []):
            name = url.rpartition("/")[2]
            if name == pattern or pattern.endswith("*"):
                yield name

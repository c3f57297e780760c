"""Counts the queues that Mendq manages: tagged, or named by the settings.

https://docs.aws.amazon.com/resourcegroupstagging/latest/APIReference/API_GetResources.html
"""

from __future__ import annotations

from collections.abc import Sequence

from functions.aws.clients import Clients
from functions.aws.errors import looking
from functions.healing.managed import MODE_TAG, OFF


def count_managed(clients: Clients, named: Sequence[str]) -> int:
    """`named` are names, or starts of names and a `*`. Raises FactsUnavailable."""
    with looking("the managed queues"):
        tagged = {
            resource["ResourceARN"].rpartition(":")[2]: tag["Value"]
            for page in clients.tagging.get_paginator("get_resources").paginate(
                ResourceTypeFilters=["sqs"], TagFilters=[{"Key": MODE_TAG}]
            )
            for resource in page["ResourceTagMappingList"]
            for tag in resource["Tags"]
            if tag["Key"] == MODE_TAG
        }
        names = {name for pattern in named for name in _names(clients, pattern)}
    off = {name for name, mode in tagged.items() if mode == OFF}
    return len((names | tagged.keys()) - off)


def _names(clients: Clients, pattern: str) -> set[str]:
    if not pattern.endswith("*"):
        return {pattern}
    pages = clients.sqs.get_paginator("list_queues").paginate(
        QueueNamePrefix=pattern.removesuffix("*"), PaginationConfig={"PageSize": 1000}
    )
    return {url.rpartition("/")[2] for page in pages for url in page.get("QueueUrls", [])}

"""The queue that somebody names, and the queues that Mendq manages, by tag or by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from cli.account import Account
from cli.exit_codes import Exit, Stopped
from functions.aws.queue_look import tags_of
from functions.healing.managed import MODE_TAG
from functions.healing.mode import Mode
from functions.healing.queue_names import arn_of, arn_of_name, arn_of_url, parts_of

PAGE = 1_000


@dataclass(frozen=True)
class ManagedQueue:
    """A queue that is tagged for Mendq or named by its settings."""

    queue_arn: str
    tags: Mapping[str, str]
    mode: Mode

    @property
    def name(self) -> str:
        return parts_of(self.queue_arn).name


def queue_arn_of(account: Account, named: str) -> str:
    """The ARN of a queue by its name, URL or ARN; Stopped where that is none of this account."""
    region, account_id = account.region, account.account_id
    arn = arn_of(named) or arn_of_url(named, region) or arn_of_name(named, region, account_id)
    if arn is None:
        line = f"{named[:120]!r} is no queue's name, URL or ARN"
        raise Stopped(line, Exit.USAGE)
    if parts_of(arn)[1:3] != (region, account_id):
        line = f"{arn} is not in {account_id} {region}: give its --profile and --region"
        raise Stopped(line, Exit.NOT_FOUND)
    return arn


def managed_queues(account: Account) -> list[ManagedQueue]:
    """In order of their names; FactsUnavailable or ClientError where AWS does not tell."""
    tagged = dict(_tagged(account))
    for arn in _named(account, account.settings.queues):
        if arn not in tagged and (tags := tags_of(account.clients, arn)) is not None:
            tagged[arn] = tags
    found = (
        (arn, tags, account.consent.mode_of(parts_of(arn).name, tags))
        for arn, tags in sorted(tagged.items())
    )
    return [ManagedQueue(arn, tags, mode) for arn, tags, mode in found if mode is not None]


def _tagged(account: Account) -> Iterator[tuple[str, Mapping[str, str]]]:
    pages = account.clients.tagging.get_paginator("get_resources").paginate(
        ResourceTypeFilters=["sqs"], TagFilters=[{"Key": MODE_TAG}]
    )
    for page in pages:
        for each in page["ResourceTagMappingList"]:
            if arn := arn_of(each["ResourceARN"]):
                yield arn, {tag["Key"]: tag["Value"] for tag in each["Tags"]}


def _named(account: Account, patterns: Iterable[str]) -> Iterator[str]:
    for pattern in patterns:
        names = [pattern]
        if pattern.endswith("*"):
            pages = account.clients.sqs.get_paginator("list_queues").paginate(
                QueueNamePrefix=pattern.removesuffix("*"), PaginationConfig={"PageSize": PAGE}
            )
            names = [url.rpartition("/")[2] for page in pages for url in page.get("QueueUrls", [])]
        for name in names:
            if arn := arn_of_name(name, account.region, account.account_id):
                yield arn

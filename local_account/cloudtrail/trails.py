"""The deployed trails as MiniStack keeps them: which one logs a record, and where to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ministack.services import cloudtrail

from local_account.cloudtrail.selectors import is_logged


@dataclass(frozen=True)
class Destination:
    """Where a trail's files go."""

    trail_arn: str
    bucket: str
    prefix: str


def destinations_of(record: Mapping[str, Any], account: str) -> tuple[Destination, ...]:
    """The trails that log the record now: switched on, selecting it, in its region."""
    return tuple(
        Destination(trail["TrailARN"], trail["S3BucketName"], trail.get("S3KeyPrefix") or "")
        for region, name, trail in _logging_trails(account)
        if (region == record["awsRegion"] or trail.get("IsMultiRegionTrail"))
        and is_logged(record, _selectors(account, region, name))
    )


def _logging_trails(account: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for (owner, region, name), trail in list(cloudtrail._trails.all_items()):
        if owner == account and trail.get("IsLogging"):
            yield region, name, trail


def _selectors(account: str, region: str, name: str) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = cloudtrail._event_selectors.get_scoped(
        account, region, name, cloudtrail._DEFAULT_EVENT_SELECTORS
    )
    return found

"""Find the deployed trails that log a record, and the buckets that they write to.

https://docs.aws.amazon.com/awscloudtrail/latest/userguide/filtering-data-events.html
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ministack.services import cloudtrail

from mendq.cli.doctor.visibility import is_field_match


@dataclass(frozen=True)
class Destination:
    """A trail, and the bucket and key prefix of its log files."""

    trail_arn: str
    bucket: str
    prefix: str


def find_destinations(record: Mapping[str, Any]) -> Iterator[Destination]:
    """Yield the destination of each trail that logs the record.

    A trail logs a record if the trail is switched on, belongs to the record's account and covers
    its Region, and if a selector of the trail matches.
    """
    for (trail_account, region, trail_name), trail in list(cloudtrail._trails.all_items()):
        covers_region = region == record["awsRegion"] or trail.get("IsMultiRegionTrail")
        if trail_account != record["recipientAccountId"] or not covers_region:
            continue
        if not trail.get("IsLogging"):
            continue
        default_selectors = cloudtrail._DEFAULT_EVENT_SELECTORS
        selectors = cloudtrail._event_selectors.get_scoped(
            trail_account, region, trail_name, default_selectors
        )
        if is_logged(record, selectors):
            prefix = trail.get("S3KeyPrefix") or ""
            yield Destination(trail["TrailARN"], trail["S3BucketName"], prefix)


def is_logged(record: Mapping[str, Any], selectors: Sequence[Mapping[str, Any]]) -> bool:
    """Return True if a selector of the trail matches the record.

    A basic event selector matches management events, unless its IncludeManagementEvents is False.
    An advanced event selector matches if all its field selectors match.
    """
    first_resource = (record.get("resources") or [{}])[0]
    value_by_field = {
        "eventCategory": record["eventCategory"],
        "eventName": record["eventName"],
        "eventSource": record["eventSource"],
        "eventType": record["eventType"],
        "readOnly": str(record["readOnly"]).lower(),
        "resources.type": first_resource.get("type", ""),
        "resources.ARN": first_resource.get("ARN", ""),
        "userIdentity.arn": record["userIdentity"].get("arn", ""),
    }
    for selector in selectors:
        if "FieldSelectors" in selector:
            field_selectors = selector["FieldSelectors"]
            if all(
                is_field_match(field_selector, value_by_field.get(field_selector["Field"], ""))
                for field_selector in field_selectors
            ):
                return True
        elif record["managementEvent"] and selector.get("IncludeManagementEvents", True):
            return True
    return False

"""The deployed trails as MiniStack keeps them: which one logs a record, and where to.

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
    """The bucket and prefix that a trail's files go to."""

    trail_arn: str
    bucket: str
    prefix: str


def destinations_of(record: Mapping[str, Any]) -> Iterator[Destination]:
    """The trails that log the record now: switched on, selecting it, in its account and region."""
    for (owner, region, name), trail in list(cloudtrail._trails.all_items()):
        is_here = region == record["awsRegion"] or trail.get("IsMultiRegionTrail")
        if owner == record["recipientAccountId"] and is_here and trail.get("IsLogging"):
            default = cloudtrail._DEFAULT_EVENT_SELECTORS
            selectors = cloudtrail._event_selectors.get_scoped(owner, region, name, default)
            if is_logged(record, selectors):
                prefix = trail.get("S3KeyPrefix") or ""
                yield Destination(trail["TrailARN"], trail["S3BucketName"], prefix)


def is_logged(record: Mapping[str, Any], selectors: Sequence[Mapping[str, Any]]) -> bool:
    """Tell whether any selector of a trail takes the record; basic ones take management events."""
    resource = (record.get("resources") or [{}])[0]
    plain = ("eventCategory", "eventName", "eventSource", "eventType")
    fields = {
        **{name: record[name] for name in plain},
        "readOnly": str(record["readOnly"]).lower(),
        "resources.type": resource.get("type", ""),
        "resources.ARN": resource.get("ARN", ""),
        "userIdentity.arn": record["userIdentity"].get("arn", ""),
    }
    return any(
        all(
            is_field_match(field, fields.get(field["Field"], ""))
            for field in each["FieldSelectors"]
        )
        if "FieldSelectors" in each
        else record["managementEvent"] and each.get("IncludeManagementEvents", True)
        for each in selectors
    )

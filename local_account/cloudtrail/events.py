"""CloudTrail's events on the default bus, and which rules see them.

https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-service-event-cloudtrail.html
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ministack.core.responses import request_scope
from ministack.services import eventbridge

DETAIL_TYPE = "AWS API Call via CloudTrail"
ENABLED = "ENABLED"
SEES_READING_MANAGEMENT_TOO = "ENABLED_WITH_ALL_CLOUDTRAIL_MANAGEMENT_EVENTS"


def put_event(record: Mapping[str, Any]) -> None:
    """Put a record on the default bus of its account and region, from `aws.<service>`."""
    service = record["eventSource"].partition(".")[0]
    entry = {
        "Source": f"aws.{service}",
        "DetailType": DETAIL_TYPE,
        "Detail": json.dumps(record),
        "Resources": [],
    }
    with request_scope(record["recipientAccountId"], record["awsRegion"]):
        eventbridge._put_events({"Entries": [entry]}, allow_aws_source=True)


def rule_sees(state: str, event: Mapping[str, Any]) -> bool:
    """Whether a rule in `state` is tried for an event that CloudTrail or anyone else put."""
    if state == SEES_READING_MANAGEMENT_TOO:
        return True
    return state == ENABLED and not _is_reading_management(event)


def _is_reading_management(event: Mapping[str, Any]) -> bool:
    if event.get("DetailType") != DETAIL_TYPE:
        return False
    try:
        record = json.loads(event.get("Detail") or "{}")
    except ValueError:
        return False
    return bool(record.get("managementEvent") and record.get("readOnly"))

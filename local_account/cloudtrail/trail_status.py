"""GetTrailStatus with what was delivered last, which MiniStack does not know.

https://docs.aws.amazon.com/awscloudtrail/latest/APIReference/API_GetTrailStatus.html
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ministack.services import cloudtrail

from local_account.cloudtrail.delivery import Delivery

ACTION = "GetTrailStatus"
Answer = tuple[int, dict[str, str], bytes]


def install(delivery: Delivery) -> None:
    """Hook the action; once per process."""
    get = cloudtrail._DISPATCH[ACTION]

    def answer(asked: Mapping[str, Any]) -> Answer:
        status, headers, body = get(asked)
        if status >= 400:
            return status, headers, body
        name = str(asked.get("Name", "")).strip()
        arn = name if name.startswith("arn:") else cloudtrail._trail_arn(name)
        content = {**json.loads(body), **latest(delivery, arn)}
        return status, headers, json.dumps(content).encode()

    cloudtrail._DISPATCH[ACTION] = answer


def latest(delivery: Delivery, trail_arn: str) -> dict[str, Any]:
    """When a trail's file was last written, and S3's error where the latest one was refused."""
    known: dict[str, Any] = {}
    if written_at := delivery.written_at.get(trail_arn):
        known["LatestDeliveryTime"] = int(written_at.timestamp())
    if error := delivery.refused_with.get(trail_arn):
        known["LatestDeliveryError"] = error
    return known

"""Counts what it is handed in its log, and tells what it sees of its process."""

from __future__ import annotations

import json
import os
import time
from importlib.util import find_spec
from typing import Any


def handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    time.sleep(event.get("sleep_seconds", 0))
    metrics = [{"Name": "Handled", "Unit": "Count"}]
    directive = {"Namespace": "Test", "Dimensions": [["who"], []], "Metrics": metrics}
    aws = {"Timestamp": int(time.time() * 1000), "CloudWatchMetrics": [directive]}
    count = len(event.get("Records", []))
    print(json.dumps({"_aws": aws, "who": "test", "Handled": count}))  # noqa: T201
    packages = ("boto3", "aws_lambda_powertools")
    return {"variables": dict(os.environ), **{each: bool(find_spec(each)) for each in packages}}

"""Does what its event says, counts its records in its log, and tells what it sees."""

from __future__ import annotations

import json
import os
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any


class Odd(Exception):
    """Raised if the event asks for it."""


def handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    if "raise" in event:
        raise Odd(event["raise"])
    if "touch" in event:
        Path(os.environ["TMPDIR"], event["touch"]).touch()
    time.sleep(event.get("sleep_seconds", 0))
    metrics = [{"Name": "Handled", "Unit": "Count"}]
    directive = {"Namespace": "Test", "Dimensions": [["who"], []], "Metrics": metrics}
    aws = {"Timestamp": int(time.time() * 1000), "CloudWatchMetrics": [directive]}
    count = len(event.get("Records", []))
    print(json.dumps({"_aws": aws, "who": "test", "Handled": count}))  # noqa: T201
    has_powertools = bool(find_spec("aws_lambda_powertools"))
    return {"variables": dict(os.environ), "aws_lambda_powertools": has_powertools}

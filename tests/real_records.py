"""Records and errors that others recorded at AWS: `tests/recorded/README.md` names the sources."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parent / "recorded"


def read_cloudtrail_records() -> list[dict[str, Any]]:
    """Return CloudTrail records of many services. None of them is a failed call of SQS."""
    lines = (_FOLDER / "cloudtrail_records.ndjson").read_text().splitlines()
    return [json.loads(line) for line in lines]


def read_sqs_errors() -> list[dict[str, Any]]:
    """Return errors of the real SQS, each with the name of the test that recorded it."""
    errors: list[dict[str, Any]] = json.loads((_FOLDER / "sqs_errors.json").read_text())
    return errors

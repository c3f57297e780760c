"""Records and errors that nobody here wrote; they stay outside the project, beside its checkout."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data"
DETONATIONS = _FOLDER / "cloudtrail-detonations.ndjson"
SQS_ERRORS = _FOLDER / "sqs-real-errors.json"


def detonations() -> list[dict[str, Any]]:
    """Real CloudTrail records of many services; none is a failed call of SQS."""
    return [json.loads(line)["rec"] for line in DETONATIONS.read_text().splitlines()]


def sqs_errors() -> list[dict[str, Any]]:
    """Errors that the real SQS gave."""
    errors: list[dict[str, Any]] = json.loads(SQS_ERRORS.read_text())
    return errors

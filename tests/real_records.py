"""Records and errors that nobody here wrote: in the folder MENDQ_RECORDED, or `tests/recorded/`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

_FOLDER = Path(os.environ.get("MENDQ_RECORDED") or Path(__file__).parent / "recorded").resolve()
DETONATIONS = _FOLDER / "cloudtrail-detonations.ndjson"
SQS_ERRORS = _FOLDER / "sqs-real-errors.json"


def detonations() -> list[dict[str, Any]]:
    """Real CloudTrail records of many services; none is a failed call of SQS. Or none are here."""
    if not DETONATIONS.exists():
        return []
    return [json.loads(line)["rec"] for line in DETONATIONS.read_text().splitlines()]


def sqs_errors() -> list[dict[str, Any]]:
    """Errors that the real SQS gave."""
    errors: list[dict[str, Any]] = json.loads(SQS_ERRORS.read_text())
    return errors

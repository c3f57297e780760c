"""Cases, failed calls and CloudTrail records for the tests of the model and its users."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from mendq.catalogue.examples import QUEUE_ARN
from mendq.model.case import Case, start_case
from mendq.model.consent import Consent
from mendq.model.evidence import Evidence, Sighting
from mendq.model.limits import Timing
from mendq.model.mode import Mode
from mendq.model.state import State
from mendq.model.steps import SetVisibilityTimeout
from tests.model.tables import any_json

NOW = datetime(2026, 11, 16, 9, 30, tzinfo=UTC)
TIMING = Timing()
# 60 s until a change has propagated, plus the longer of the visibility timeouts (30 s and 45 s).
FAILURES_COUNT_FROM = NOW + timedelta(seconds=105)

RECORD = json.loads(Path(__file__).with_name("failed_call.json").read_text())
JSON = any_json("arn", "ARN", "sessionContext", "queueUrl", max_leaves=8)


def make_case(state: State, age: timedelta = timedelta()) -> Case:
    """Make a case about the example queue, with three failed calls as its evidence."""
    calls = (Sighting(NOW - timedelta(seconds=n), f"e{n}", "r", "p") for n in (1, 2, 3))
    return start_case(
        state,
        queue_arn=QUEUE_ARN,
        symptom="visibility_timeout_too_short",
        reason="because",
        evidence=Evidence.of(calls),
        steps=(SetVisibilityTimeout(30, 45),),
        now=NOW - age,
        actor="heal",
    )


def make_consent(row: dict[str, Any]) -> Consent:
    """Make the settings about modes from a row of a table."""
    return Consent(Mode(row["account"]), Mode(row["raise_to"]), tuple(row["queues"]))


def make_failures(*times: datetime) -> Evidence:
    """Make the evidence of one failed call at each of these times."""
    return Evidence.of(Sighting(at, f"event-{n}", f"r{n}", "p") for n, at in enumerate(times))


def make_record(**fields: Any) -> dict[str, Any]:
    """Make the CloudTrail record of a failed call, in the shape of AWS's published sample."""
    return {**RECORD, **fields}

"""Examples and limits on the redrive pages and in the nightly runbook match the code."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime

from functions.start_nightly import JOB_MAKER_BY_NAME
from mendq.nightly.jobs import NightlyJobRoots
from mendq.redrive.message_filter import (
    DOCUMENT_FIELD_NAMES,
    LONGEST_EXPRESSION_CHARACTERS,
    MOST_EXPRESSION_LEVELS,
    MessageFilter,
    parse_filter,
)
from mendq.redrive.mover import MAXIMUM_HELD_MESSAGES, VISIBILITY_SECONDS
from tests.source_files import ROOT

FILTER = (ROOT / "docs" / "message-filter.md").read_text()
REDRIVE = FILTER + "".join(
    (ROOT / "docs" / f"{name}.md").read_text() for name in ("redrive", "dlq", "quarantine")
)
NIGHTLY = (ROOT / "docs" / "runbooks" / "nightly_and_report.md").read_text()


def test_every_message_filter_example_in_the_docs_can_be_parsed() -> None:
    found = re.findall(r"--where (?:'([^']+)'|\"([^\"]+)\")", REDRIVE)
    assert len(found) >= 6
    for expression in map("".join, found):
        assert isinstance(parse_filter(expression), MessageFilter), expression


def test_message_filter_page_lists_every_field_that_a_filter_may_use() -> None:
    rows = re.findall(r"^\| (`[^|]+?`) \|", FILTER, re.MULTILINE)
    assert sorted(re.findall(r"`(\w+)`", " ".join(rows))) == sorted(DOCUMENT_FIELD_NAMES)


def test_redrive_pages_state_the_limits_of_filters_and_of_held_messages_of_the_code() -> None:
    assert (
        f"{LONGEST_EXPRESSION_CHARACTERS:,} characters and {MOST_EXPRESSION_LEVELS} levels"
        in REDRIVE
    )
    assert f"{MAXIMUM_HELD_MESSAGES:,} messages are held at once" in REDRIVE
    assert VISIBILITY_SECONDS == 2 * 60
    assert "hidden for two minutes" in REDRIVE


def test_every_start_nightly_payload_in_the_runbook_makes_a_job() -> None:
    requests = [json.loads(payload) for payload in re.findall(r"--payload '([^']+)'", NIGHTLY)]
    assert {request["job"] for request in requests} == set(JOB_MAKER_BY_NAME)
    for request in requests:
        assert request.keys() == {"job", "time"}
        at = datetime.fromisoformat(request["time"])
        assert at.tzinfo == UTC
        assert JOB_MAKER_BY_NAME[request["job"]](
            at, NightlyJobRoots("t", "c", "o", "a", "r")
        ).name.startswith(request["job"])

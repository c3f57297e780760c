"""Test `mendq explain`, which names the symptom of CloudTrail records."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mendq.cli.app import app
from mendq.cli.look.explain import MOST_FILE_BYTES
from tests.cli.commands.explained_record import JSON_FILE, RECORD, TEXT_FILE
from tests.golden.checks import fail_if_stale

pytestmark = pytest.mark.usefixtures("no_account")
SUCCEEDED = {key: value for key, value in RECORD.items() if not key.startswith("error")}

# A gzip header, followed by bytes that are no deflated block.
CORRUPT = gzip.compress(b"{}", mtime=0)[:10] + b"\xff" * 20


def _explain(content: bytes, code: int = 0) -> Any:
    result = CliRunner().invoke(app, ["explain", "-", "--json"], input=content)
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "holds no JSON"),
        (b"{", "holds no JSON"),
        (b"\x1f\x8bbroken", "cannot be read"),
        (CORRUPT, "cannot be read"),
        (
            gzip.compress(b" " * (MOST_FILE_BYTES + 1), compresslevel=1),
            f"{MOST_FILE_BYTES:,} bytes",
        ),
    ],
    ids=["empty", "half", "broken", "corrupt", "bomb"],
)
def test_explain_of_input_that_is_no_json_or_too_large_exits_with_2_and_prints_one_line(
    content: bytes, says: str
) -> None:
    result = CliRunner().invoke(app, ["explain", "-"], input=content)
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert says in line


def test_explain_reports_a_successful_call_as_not_failed_and_an_unlisted_code_as_unknown() -> None:
    assert _explain(json.dumps(SUCCEEDED).encode())["unreadable"] == "not_failed"
    explanation = _explain(json.dumps({**RECORD, "errorCode": "Surprise"}).encode())
    assert (explanation["symptom"], explanation["match"]) == ("unknown:Surprise", None)


@pytest.mark.parametrize("packed", [True, False])
def test_explain_of_a_trail_file_counts_the_records_and_explains_the_failed_calls(
    tmp_path: Path, packed: bool
) -> None:
    content = json.dumps({"Records": [RECORD, SUCCEEDED]}).encode()
    path = tmp_path / "trail.json.gz"
    path.write_bytes(gzip.compress(content) if packed else content)
    result = CliRunner().invoke(app, ["explain", str(path), "--json"])
    found = json.loads(result.stdout)
    assert (found["records"], found["left_out"]) == (2, 1)
    assert [call["symptom"] for call in found["explained"]] == ["visibility_timeout_too_short"]


def test_explain_gives_the_same_answer_for_a_record_and_for_the_eventbridge_event_with_it() -> None:
    event = {"detail": RECORD, "region": "us-east-1"}
    assert _explain(json.dumps(event).encode()) == _explain(json.dumps(RECORD).encode())


def test_explain_prints_a_record_as_the_golden_json_file_and_text_file_show() -> None:
    fail_if_stale(JSON_FILE)
    fail_if_stale(TEXT_FILE)

"""Test `mendq support-bundle`, which writes a file for AWS Support."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.cli.builders import Operator
from tests.heal.operators import load_newest_case


@pytest.fixture(autouse=True)
def _start_two_hours_ago(operator: Operator) -> None:
    operator.aws.now = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=2)


def _write_bundle(operator: Operator, case_id: str, folder: Path) -> dict[str, Any]:
    path = folder / "bundle.json"
    operator.run_json("support-bundle", case_id, "--output", str(path), "--yes")
    bundle: dict[str, Any] = json.loads(path.read_text())
    return bundle


def test_support_bundle_holds_request_ids_attributes_and_metrics_of_the_case(
    operator: Operator, tmp_path: Path
) -> None:
    case_id = operator.open_applied_case()
    arn = load_newest_case(operator.aws).queue_arn
    operator.put_sqs_metric("orders.fifo", "NumberOfMessagesSent", 7, operator.aws.now)
    bundle = _write_bundle(operator, case_id, tmp_path)
    assert [request["request_id"] for request in bundle["requests"]] == [
        f"request-orders.fifo-{suffix}" for suffix in "abc"
    ]
    first = bundle["requests"][0]
    assert (first["operation"], first["region"]) == ("DeleteMessage", "us-east-1")
    assert first["error_code"] == "InvalidParameterValueException"
    assert "receipt handle has expired" in first["error_message"]
    assert bundle["attributes"]["VisibilityTimeout"] == "45"
    assert (bundle["tags"], bundle["queue_arn"]) == ({"mendq": "heal"}, arn)
    assert bundle["case"]["facts"]["VisibilityTimeout"] == "30"
    assert bundle["not_known"] == []
    metrics = bundle["metrics"]
    assert metrics["period_seconds"] == 60
    ((_, sent),) = metrics["series"]["NumberOfMessagesSent Sum"]
    assert (sent, metrics["since"] < first["at"] < metrics["until"]) == (7, True)


def test_support_bundle_overwrites_an_existing_file_only_with_yes_and_makes_it_private(
    operator: Operator, tmp_path: Path
) -> None:
    case_id = operator.open_applied_case()
    path = tmp_path / "mine.json"
    path.write_text("mine")
    line = operator.read_refusal("support-bundle", case_id, "-o", str(path), code=2)
    assert "--yes overwrites it" in line
    assert path.read_text() == "mine"
    path.chmod(0o644)
    output = operator.read_output("support-bundle", case_id, "-o", str(path), "--yes")
    assert "3 requests, no message bodies" in output
    assert json.loads(path.read_text())["case"]["case_id"] == case_id
    assert "other users of this machine could read or write " in output
    assert "(mode 0644)" in output
    assert path.stat().st_mode & 0o777 == 0o600


def test_support_bundle_of_an_unknown_case_writes_no_file(
    operator: Operator, tmp_path: Path
) -> None:
    path = tmp_path / "bundle.json"
    operator.read_refusal("support-bundle", "none", "-o", str(path), code=4)
    assert not path.exists()

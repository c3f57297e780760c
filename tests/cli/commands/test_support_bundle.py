from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from mendq.heal.batch import heal_findings
from tests.cli.conftest import Operator
from tests.cli.scan.conftest import pair
from tests.heal.operators import case_of


@pytest.fixture(autouse=True)
def _now(operator: Operator) -> None:
    operator.aws.now = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=2)


def _bundle(operator: Operator, case_id: str, folder: Path) -> dict[str, Any]:
    path = folder / "bundle.json"
    operator.json("support-bundle", case_id, "--output", str(path), "--yes")
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def test_it_holds_what_aws_support_asks_for(operator: Operator, tmp_path: Path) -> None:
    case_id = operator.applied()
    arn = case_of(operator.aws).queue_arn
    operator.aws.clients.cloudwatch.put_metric_data(
        Namespace="AWS/SQS",
        MetricData=[
            {
                "MetricName": "NumberOfMessagesSent",
                "Dimensions": [{"Name": "QueueName", "Value": "orders.fifo"}],
                "Timestamp": operator.aws.now,
                "Value": 7,
            }
        ],
    )
    found = _bundle(operator, case_id, tmp_path)
    assert [each["request_id"] for each in found["requests"]] == [
        f"request-orders.fifo-{each}" for each in "abc"
    ]
    first = found["requests"][0]
    assert (first["operation"], first["region"]) == ("DeleteMessage", "us-east-1")
    assert first["error_code"] == "InvalidParameterValueException"
    assert "receipt handle has expired" in first["error_message"]
    assert found["attributes"]["VisibilityTimeout"] == "45"
    assert (found["tags"], found["queue_arn"]) == ({"mendq": "heal"}, arn)
    assert found["case"]["facts"]["VisibilityTimeout"] == "30"
    assert found["not_known"] == []
    metrics = found["metrics"]
    assert metrics["period_seconds"] == 60
    ((_, sent),) = metrics["series"]["NumberOfMessagesSent Sum"]
    assert (sent, metrics["since"] < first["at"] < metrics["until"]) == (7, True)


def test_requests_that_are_too_old_to_look_up_are_said_to_be(
    operator: Operator, tmp_path: Path
) -> None:
    operator.aws.now -= timedelta(days=91)
    found = _bundle(operator, operator.applied(), tmp_path)
    assert found["not_known"] == [
        "there are requests older than 90 days: AWS may not find them any more"
    ]
    assert found["metrics"]["period_seconds"] == 3600, "a shorter one is kept no more"


def test_of_what_a_scan_found_and_a_queue_that_is_gone_it_says_so(
    operator: Operator, tmp_path: Path
) -> None:
    dead = pair(operator, "heal")
    operator.aws.later(minutes=5)
    found = [{"queue_arn": dead, "symptom": "dlq_retention_too_short"}]
    heal_findings({"found": found}, operator.aws.run())
    operator.aws.clients.sqs.delete_queue(QueueUrl=operator.aws.url(dead))
    bundle = _bundle(operator, case_of(operator.aws).case_id, tmp_path)
    assert (bundle["requests"], bundle["attributes"]) == ([], None)
    assert [each.split(":")[0] for each in bundle["not_known"]] == [
        "no failed call is known in full",
        "the queue is gone",
    ]


def test_a_file_that_is_there_stays_unless_said_otherwise(
    operator: Operator, tmp_path: Path
) -> None:
    case_id, path = operator.applied(), tmp_path / "mine.json"
    path.write_text("mine")
    line = operator.refused("support-bundle", case_id, "-o", str(path), code=2)
    assert "--yes overwrites it" in line
    assert path.read_text() == "mine"
    assert "3 requests, no message bodies" in operator.shown(
        "support-bundle", case_id, "-o", str(path), "--yes"
    )


def test_a_case_that_nobody_knows_writes_nothing(operator: Operator, tmp_path: Path) -> None:
    path = tmp_path / "bundle.json"
    operator.refused("support-bundle", "none", "-o", str(path), code=4)
    assert not path.exists()

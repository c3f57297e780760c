from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Operator

POLICY = {
    "Version": "2012-10-17",
    "Statement": [
        {"Effect": "Deny", "Principal": "*", "Action": "sqs:PurgeQueue", "Resource": "*"}
    ],
}


def test_a_second_run_changes_no_byte(operator: Operator, tmp_path: Path) -> None:
    operator.aws.queue("orders", Policy=json.dumps(POLICY))
    assert operator.json("export", str(tmp_path))["written"] == ["orders.json"]
    path = tmp_path / "orders.json"
    before = (path.read_bytes(), path.stat().st_mtime_ns)
    operator.aws.later(days=1)
    url = operator.aws.url("orders")
    operator.aws.clients.sqs.send_message(QueueUrl=url, MessageBody="counted")
    done = operator.json("export", str(tmp_path))
    assert (done["written"], done["unchanged"]) == ([], ["orders.json"])
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before


def test_policies_are_documents_and_counters_are_gone(operator: Operator, tmp_path: Path) -> None:
    operator.aws.queue("orders", Policy=json.dumps(POLICY))
    operator.mendq("export", str(tmp_path))
    found = json.loads((tmp_path / "orders.json").read_text())
    assert list(found) == sorted(found)
    assert found["attributes"]["Policy"] == POLICY
    assert found["tags"] == {"mendq": "heal"}
    assert not [each for each in found["attributes"] if "Approximate" in each or "Time" in each[:4]]


def test_nothing_is_removed(operator: Operator, tmp_path: Path) -> None:
    (tmp_path / "gone.json").write_text("a queue that was")
    operator.aws.queue("orders")
    operator.mendq("export", str(tmp_path))
    assert sorted(each.name for each in tmp_path.iterdir()) == ["gone.json", "orders.json"]


def test_a_file_where_the_folder_should_be(operator: Operator, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert operator.mendq("export", str(tmp_path / "file")).exit_code == 2

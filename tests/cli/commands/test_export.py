"""Test `mendq export`, which writes the configuration of each queue to a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from tests.cli.builders import Operator
from tests.scan.scanner import deny_operation

STATEMENT = {"Effect": "Deny", "Principal": "*", "Action": "sqs:PurgeQueue", "Resource": "*"}
POLICY = {"Version": "2012-10-17", "Statement": [STATEMENT]}


def test_export_writes_policy_and_tags_of_a_queue_sorted_and_without_counts_or_times(
    operator: Operator, tmp_path: Path
) -> None:
    operator.aws.queue("orders", Policy=json.dumps(POLICY))
    assert operator.run_json("export", str(tmp_path))["written"] == ["orders.json"]
    exported = json.loads((tmp_path / "orders.json").read_text())
    assert list(exported) == sorted(exported)
    assert (exported["attributes"]["Policy"], exported["tags"]) == (POLICY, {"mendq": "heal"})
    for name in exported["attributes"]:
        assert "Approximate" not in name
        assert not name.endswith("Timestamp")


def test_export_run_again_rewrites_no_unchanged_file_and_removes_no_file(
    operator: Operator, tmp_path: Path
) -> None:
    (tmp_path / "gone.json").write_text("a queue that was")
    operator.aws.queue("orders")
    operator.run_json("export", str(tmp_path))
    path = tmp_path / "orders.json"
    before = (path.read_bytes(), path.stat().st_mtime_ns)
    operator.aws.later(days=1)
    url = operator.aws.url("orders")
    operator.aws.clients.sqs.send_message(QueueUrl=url, MessageBody="counted")
    done = operator.run_json("export", str(tmp_path))
    assert (done["written"], done["unchanged"]) == ([], ["orders.json"])
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert sorted(file.name for file in tmp_path.iterdir()) == ["gone.json", "orders.json"]


def test_export_makes_unchanged_files_private_that_others_could_read_and_says_so_once(
    operator: Operator, tmp_path: Path
) -> None:
    operator.aws.queue("orders")
    operator.aws.queue("payments")
    operator.read_output("export", str(tmp_path))
    for path in tmp_path.iterdir():
        path.chmod(0o664)
    output = operator.read_output("export", str(tmp_path))
    assert "0 written, 2 unchanged" in output
    assert f"other users of this machine could read or write 2 files in {tmp_path}" in output
    assert "(mode 0664); now only you can (mode 0600)" in output
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
    assert "other users" not in operator.read_output("export", str(tmp_path))


def test_export_names_a_queue_deleted_meanwhile_keeps_its_file_and_writes_the_others(
    operator: Operator, tmp_path: Path
) -> None:
    gone = operator.aws.queue("gone")
    operator.aws.queue("orders")
    (tmp_path / "gone.json").write_text("as it was")
    answer: Any = {"Error": {"Code": "AWS.SimpleQueueService.NonExistentQueue", "Message": "none"}}
    client = operator.account.clients.sqs
    urls = [operator.aws.url("gone")]
    error = ClientError(answer, "GetQueueAttributes")
    deny_operation(client, "GetQueueAttributes", urls, unreachable=error)
    done = operator.run_json("export", str(tmp_path))
    assert (done["written"], done["gone"]) == (["orders.json"], [gone])
    assert (tmp_path / "gone.json").read_text() == "as it was"

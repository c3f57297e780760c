"""Test `mendq export`, which writes the configuration of each queue to a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from mendq.cli.exit_codes import CommandError
from mendq.cli.look.export import replace_if_changed
from tests.cli.builders import Operator
from tests.scan.scanner import deny_operation

STATEMENT = {"Effect": "Deny", "Principal": "*", "Action": "sqs:PurgeQueue", "Resource": "*"}
POLICY = {"Version": "2012-10-17", "Statement": [STATEMENT]}


def test_export_run_again_rewrites_no_unchanged_file_and_removes_no_file(
    operator: Operator, tmp_path: Path
) -> None:
    (tmp_path / "gone.json").write_text("a queue that was")
    operator.aws.queue("orders", Policy=json.dumps(POLICY))
    assert operator.run_json("export", str(tmp_path))["written"] == ["orders.json"]
    path = tmp_path / "orders.json"
    before = (path.read_bytes(), path.stat().st_mtime_ns)
    operator.aws.later(days=1)
    url = operator.aws.url("orders")
    operator.aws.clients.sqs.send_message(QueueUrl=url, MessageBody="counted")
    done = operator.run_json("export", str(tmp_path))
    assert (done["written"], done["unchanged"]) == ([], ["orders.json"])
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert sorted(file.name for file in tmp_path.iterdir()) == ["gone.json", "orders.json"]
    exported = json.loads(path.read_text())
    assert list(exported) == sorted(exported)
    assert (exported["attributes"]["Policy"], exported["tags"]) == (POLICY, {"mendq": "heal"})
    assert not [
        name for name in exported["attributes"] if "Approximate" in name or "Time" in name[:4]
    ]


def test_export_replaces_a_file_atomically_and_writes_through_no_symlink(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "orders.json"
    others = tmp_path / "others"
    others.write_text("somebody's")
    (tmp_path / ".orders.json.new").symlink_to(others)
    assert replace_if_changed(path, "{}")
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("{}", 0o644)
    assert others.read_text() == "somebody's"
    names = {file.name for file in tmp_path.iterdir()}

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(CommandError, match="No space left on device"):
        replace_if_changed(path, "{1}")
    assert {file.name for file in tmp_path.iterdir()} == names
    assert path.read_text() == "{}"


def test_export_names_a_queue_deleted_meanwhile_and_writes_the_others(
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

"""What is kept apart is seen, sent back and dropped by a person's word alone, and never lost."""

from __future__ import annotations

import json
import os
import resource
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from stat import S_ISREG
from typing import Any

import pytest

from mendq.cli.redrive import quarantine as command
from mendq.model.dlq import arn_of_quarantine
from mendq.redrive.messages import QUARANTINED, REDRIVE_COUNT
from mendq.redrive.mover import MessageMover
from mendq.redrive.progress import Stage
from mendq.redrive.store import CourseStore
from tests.cli.conftest import Operator
from tests.cli.redrive.dlq import Dlq, at_once, dlq

__all__ = ["at_once"]
pytestmark = pytest.mark.usefixtures("at_once")


@pytest.fixture
def queues(operator: Operator) -> Dlq:
    """`messages` is the quarantine of `source`."""
    made = dlq(operator)
    made.operator.aws.tag(made.source, mendq="observe")
    quarantine = operator.aws.queue("orders-quarantine", tag=None, VisibilityTimeout="600")
    assert quarantine == arn_of_quarantine(made.source)
    made.messages = quarantine
    return made


def _keep(queues: Dlq, body: object, source: str = "", redrive_count: int = 1) -> str:
    retained = {
        "why": "came back",
        "at": "2026-11-21T20:00:00+00:00",
        "case": "case-7",
        "redrive_count": redrive_count,
    }
    mark = json.dumps({**retained, "source": source or queues.source})
    return queues.write(body, died_in="", type="order", **{QUARANTINED: mark})


def _quarantine(queues: Dlq, word: str, *arguments: str, code: int = 0) -> Any:
    return queues.operator.json("quarantine", word, "orders", *arguments, code=code)


def test_nothing_is_listed_where_nothing_is_retained(operator: Operator) -> None:
    operator.aws.queue("orders", tag="observe")
    operator.aws.queue("strangers-quarantine", tag=None)
    assert operator.json("quarantine", "list") == []


def test_quarantines_of_managed_queues_are_listed(queues: Dlq) -> None:
    _keep(queues, "one")
    _keep(queues, "two")
    aws = queues.operator.aws
    aws.queue("strangers-quarantine", tag=None)
    queues.operator.account.clients.cloudwatch.put_metric_data(
        Namespace="AWS/SQS",
        MetricData=[
            {
                "MetricName": "ApproximateAgeOfOldestMessage",
                "Dimensions": [{"Name": "QueueName", "Value": "orders-quarantine"}],
                "Timestamp": aws.now - timedelta(minutes=2),
                "Value": 3_600,
            }
        ],
    )
    (found,) = queues.operator.json("quarantine", "list")
    assert found["queue_arn"] == queues.messages
    assert (found["source_arn"], found["messages"]) == (queues.source, 2)
    assert found["oldest_at"] is not None
    shown = queues.operator.mendq("quarantine", "list").output
    assert shown.splitlines()[1].split()[:4] == ["2", "over", "1", "h"]
    assert "within 3 d 22 h" in shown


@pytest.mark.parametrize("named", ["orders", "orders-quarantine"])
def test_a_peek_shows_why_and_no_body(queues: Dlq, named: str) -> None:
    message_id = _keep(queues, {"card": "4111"})
    (found,) = queues.operator.json("quarantine", "peek", named)
    assert (found["message_id"], found["why"], found["redrive_count"]) == (
        message_id,
        "came back",
        1,
    )
    assert (found["case_id"], found["source_arn"]) == ("case-7", queues.source)
    assert "body" not in found
    shown = queues.operator.mendq("quarantine", "peek", named).output
    assert "came back" in shown
    assert "since 2026-11-21 20:00 UTC" in shown
    assert "type = order" in shown
    assert "4111" not in shown
    assert queues.ids(queues.messages) == {message_id}, "it is visible again"


def test_bodies_are_shown_where_they_are_asked_for(queues: Dlq) -> None:
    _keep(queues, "4111 \x1b[31m\n next")
    (found,) = _quarantine(queues, "peek", "--bodies")
    assert found["body"] == "4111 \x1b[31m\n next"
    shown = queues.operator.mendq("quarantine", "peek", "orders", "--bodies").output
    assert "4111 \\x1b[31m next" in shown


def test_a_message_without_a_mark_of_ours_is_shown_as_that(queues: Dlq) -> None:
    queues.write("x", died_in="", **{QUARANTINED: "{}"})
    (found,) = _quarantine(queues, "peek")
    assert found["why"] is None
    assert "not known" in queues.operator.mendq("quarantine", "peek", "orders").output


def test_a_queue_without_a_quarantine(queues: Dlq) -> None:
    queues.operator.aws.queue("plain", tag=None)
    for word in ("peek", "return", "drop"):
        more = () if word == "peek" else ("--all", "--yes")
        error = queues.operator.json("quarantine", word, "plain", *more, code=4)["error"]
        assert "plain-quarantine" in error["message"]


def test_nothing_goes_unasked(queues: Dlq, tmp_path: Path) -> None:
    ids = {_keep(queues, "one")}
    path = tmp_path / "kept.jsonl"
    _quarantine(queues, "return", "--all", code=2)
    _quarantine(queues, "drop", "--all", "--file", str(path), code=2)
    assert _quarantine(queues, "return", "--all", "--yes", "--dry-run")["moved"] == 0
    done = _quarantine(queues, "drop", "--all", "--yes", "--dry-run", "--file", str(path))
    assert done == {"matched": 1, "dropped": 0, "left": 1, "failed": 0}
    assert queues.ids(queues.messages) == ids
    assert not path.exists()


def test_what_returns_loses_the_mark_and_counts_its_redrive_count(queues: Dlq) -> None:
    _keep(queues, {"n": 1}, redrive_count=2)
    _keep(queues, {"n": 2})
    done = _quarantine(queues, "return", "--where", "body.n == `1`", "--yes")
    assert done == {"matched": 1, "moved": 1, "left": 1, "failed": 0}
    (arrived,) = queues.seen(queues.source)
    assert QUARANTINED not in arrived.attributes
    assert arrived.redrive_count == 3
    assert len(queues.seen(queues.messages)) == 1


def test_what_was_retained_for_another_queue_does_not_return_here(queues: Dlq) -> None:
    _keep(queues, "elsewhere", source=queues.operator.aws.queue("refunds", tag=None))
    assert _quarantine(queues, "return", "--all", "--yes")["moved"] == 0
    assert queues.bodies(queues.messages) == ["elsewhere"]


def test_the_tag_refuses_a_return(queues: Dlq) -> None:
    _keep(queues, "one")
    queues.operator.aws.tag(queues.source, **{"mendq:redrive": "off"})
    error = _quarantine(queues, "return", "--all", "--yes", code=1)["error"]
    assert error["code"] == "redrive_off"
    assert queues.seen(queues.source) == []


def test_nothing_returns_while_mendq_sends_messages_back(queues: Dlq) -> None:
    _keep(queues, "one")
    dead = replace(queues, messages=f"{queues.source}-dlq")
    dead.course_in(Stage.SOAK)
    error = _quarantine(queues, "return", "--all", "--yes", code=1)["error"]
    assert error["code"] == "redrive_running"
    assert queues.seen(queues.source) == []
    dead.course_in(Stage.DONE)
    assert _quarantine(queues, "return", "--all", "--yes")["moved"] == 1


@pytest.mark.parametrize("what", ["redrive_running", "redrive_off"])
def test_what_came_between_while_somebody_thought_forbids_a_return(
    queues: Dlq, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    ids = {_keep(queues, "one")}
    dead = replace(queues, messages=f"{queues.source}-dlq")

    def meanwhile(*_: object, **__: object) -> None:
        if what == "redrive_running":
            dead.course_in(Stage.SOAK)
        else:
            queues.operator.aws.tag(queues.source, **{"mendq:redrive": "off"})

    monkeypatch.setattr("mendq.cli.redrive.redrive.confirm", meanwhile)
    assert _quarantine(queues, "return", "--all", code=1)["error"]["code"] == what
    assert queues.seen(queues.source) == []
    assert queues.ids(queues.messages) == ids


def test_mendq_s_own_redrive_waits_while_messages_return(
    queues: Dlq, monkeypatch: pytest.MonkeyPatch
) -> None:
    _keep(queues, "one")
    case_store = CourseStore(queues.operator.aws.clients.dynamodb, "case_store")
    put, found = MessageMover.put, list[object]()

    def watched(mover: MessageMover, messages: Any, to: Any) -> Any:
        found.append(case_store.claim(f"{queues.source}-dlq", "a tick", datetime.now(UTC)))
        return put(mover, messages, to)

    monkeypatch.setattr(MessageMover, "put", watched)
    assert _quarantine(queues, "return", "--all", "--yes")["moved"] == 1
    assert found == [None]


def test_what_is_dropped_lies_in_a_file_whole(queues: Dlq, tmp_path: Path) -> None:
    path = tmp_path / "kept.jsonl"
    for number in range(12):
        _keep(queues, {"n": number, "text": "é\u2028"})
    queues.write({"n": 12}, died_in="", **{REDRIVE_COUNT: "1"})
    done = _quarantine(queues, "drop", "--where", "body.n >= `3`", "--yes", "--file", str(path))
    assert done == {"matched": 10, "dropped": 10, "left": 3, "failed": 0, "file": str(path)}
    lines = path.read_text().splitlines()
    bodies = [json.loads(json.loads(line)["body"]) for line in lines]
    assert sorted(each["n"] for each in bodies) == list(range(3, 13))
    assert {each.get("text") for each in bodies} == {"é\u2028", None}
    assert path.stat().st_mode & 0o777 == 0o600
    assert len(queues.seen(queues.messages)) == 3


def test_a_file_that_is_there_is_not_written_over(queues: Dlq, tmp_path: Path) -> None:
    ids = {_keep(queues, "one")}
    path = tmp_path / "kept.jsonl"
    path.write_text("mine")
    error = _quarantine(queues, "drop", "--all", "--yes", "--file", str(path), code=2)["error"]
    assert "cannot be made" in error["message"]
    assert path.read_text() == "mine"
    assert queues.ids(queues.messages) == ids


def test_nothing_is_deleted_that_the_disk_did_not_take(
    queues: Dlq, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = {_keep(queues, "one"), _keep(queues, "two")}
    made = os.fsync

    def full(handle: int) -> None:
        if S_ISREG(os.fstat(handle).st_mode):
            raise OSError(28, "No space left on device")
        made(handle)

    monkeypatch.setattr(os, "fsync", full)
    path = tmp_path / "kept.jsonl"
    done = _quarantine(queues, "drop", "--all", "--yes", "--file", str(path), code=1)
    assert (done["dropped"], done["failed"]) == (0, 0)
    assert queues.ids(queues.messages) == ids


def test_a_disk_that_is_full_half_way_is_said_and_keeps_whole_lines(
    queues: Dlq, tmp_path: Path
) -> None:
    """As on a full disk: the file may not grow any more in the middle of a batch."""
    ids = {_keep(queues, {"n": n, "text": "x" * 3_000}) for n in range(40)}
    path = tmp_path / "kept.jsonl"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (85_000, before[1]))
    try:
        done = _quarantine(queues, "drop", "--all", "--yes", "--file", str(path), code=1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert done == {"matched": 40, "dropped": 20, "left": 20, "failed": 0, "file": str(path)}
    written = {json.loads(line)["message_id"] for line in path.read_text().splitlines()}
    left = queues.ids(queues.messages)
    assert len(left) == 20
    assert (written | left, written & left) == (ids, set())


def test_a_disk_that_is_full_is_said_to_people(queues: Dlq, tmp_path: Path) -> None:
    _keep(queues, "x" * 3_000)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    path = tmp_path / "kept.jsonl"
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, before[1]))
    try:
        arguments = ("drop", "orders", "--all", "--yes", "--file", str(path))
        result = queues.operator.mendq("quarantine", *arguments)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert result.exit_code == 1
    assert "0 messages dropped, 0 failed, 1 left" in result.output
    assert "cannot be written: File too large" in " ".join(result.output.split())
    assert path.read_text() == ""


@pytest.mark.parametrize("where", ["close", "ftruncate"])
def test_whatever_else_fails_of_the_file_nothing_is_lost(
    queues: Dlq, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    ids = {_keep(queues, "one")}
    path = tmp_path / "kept.jsonl"
    broken: list[int] = []

    def fail(handle: int, *_: object) -> None:
        if S_ISREG(os.fstat(handle).st_mode):
            broken.append(handle)
            raise OSError(5, "Input/output error")
        closed(handle)

    closed, synced = os.close, os.fsync
    monkeypatch.setattr(f"mendq.cli.redrive.quarantines.os.{where}", fail)
    if where == "ftruncate":
        monkeypatch.setattr(
            "mendq.cli.redrive.quarantines.os.fsync",
            lambda handle: fail(handle) if S_ISREG(os.fstat(handle).st_mode) else synced(handle),
        )
    code = 0 if where == "close" else 1
    done = _quarantine(queues, "drop", "--all", "--yes", "--file", str(path), code=code)
    assert broken
    assert done["dropped"] == (1 if where == "close" else 0)
    assert queues.ids(queues.messages) == (set() if where == "close" else ids)
    if where == "close":
        assert json.loads(path.read_text())["body"] == "one"
        closed(broken[0])


def test_a_folder_that_does_not_last_is_no_place(
    queues: Dlq, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = {_keep(queues, "one")}
    synced = os.fsync

    def fail(handle: int) -> None:
        if not S_ISREG(os.fstat(handle).st_mode):
            raise OSError(22, "Invalid argument")
        synced(handle)

    monkeypatch.setattr(os, "fsync", fail)
    path = tmp_path / "kept.jsonl"
    error = _quarantine(queues, "drop", "--all", "--yes", "--file", str(path), code=2)["error"]
    assert "cannot be made: Invalid argument" in error["message"]
    assert not path.exists()
    assert queues.ids(queues.messages) == ids


def test_a_folder_that_is_gone_is_no_place(
    queues: Dlq, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = {_keep(queues, "one")}
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    error = _quarantine(queues, "drop", "--all", "--yes", code=2)["error"]
    monkeypatch.chdir(tmp_path)
    assert "No such file or directory" in error["message"]
    assert queues.ids(queues.messages) == ids


def test_a_delete_that_sqs_does_not_take_is_said(
    queues: Dlq, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = {_keep(queues, "one")}
    monkeypatch.setattr(MessageMover, "delete", lambda *_: frozenset())
    path = tmp_path / "kept.jsonl"
    done = _quarantine(queues, "drop", "--all", "--yes", "--file", str(path), code=1)
    assert (done["dropped"], done["failed"], done["left"]) == (0, 1, 0)
    assert queues.ids(queues.messages) == ids


def test_a_peek_that_fails_says_which_grant_is_missing(queues: Dlq) -> None:
    queues.refused["ReceiveMessage"] = ("KMS.AccessDeniedException", "no")
    error = _quarantine(queues, "peek", code=1)["error"]
    assert "kms:Decrypt" in error["message"]


def test_the_commands_are_listed_once() -> None:
    names = [each.name for each in command.quarantine.registered_commands]
    assert names == ["list", "peek", "return", "drop"]

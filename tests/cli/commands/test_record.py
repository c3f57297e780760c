"""`mendq drill --record` on an account in moto that holds other resources as well.

moto delivers no CloudTrail records: tests/local_account/test_recorder.py shows how they are read.
"""

from __future__ import annotations

import ast
import errno
import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import boto3
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, ReadTimeoutError
from moto.kms.models import kms_backends
from typer.testing import CliRunner

from mendq.cli.app import app
from mendq.cli.deploy import record_failed_calls as recorder
from mendq.cli.deploy.drill import IAM_ACTIONS_FOR_RECORD_BY_RESOURCE
from mendq.cli.permissions import make_record_policy
from mendq.model.tags import DRILL_QUEUE_PREFIX, DRILL_TAG, MODE_OFF_VALUE, MODE_TAG
from tests.account.account import moto_account
from tests.cli.account_resources import list_account_resources
from tests.cli.called_actions import record_called_actions

REGION = "eu-west-1"
ACCOUNT = "123456789012"
CALLER = f"arn:aws:sts::{ACCOUNT}:user/moto"
CREATES = {part.name: part.create_operation for part in recorder.SETUP_STEPS}
# The run's own key policy grants these, no IAM policy does.
BY_KEY_POLICY = {"kms:DisableKey", "kms:ScheduleKeyDeletion"}
# Called only if the trail delivered a file, an answer was lost, or an earlier run exists.
OF_A_FILE = {"s3:GetObject", "s3:DeleteObject"}
OF_A_SEARCH = {"kms:ListKeys", "sqs:GetQueueAttributes", "sqs:ListQueueTags"}
READS = ("Get", "List", "Describe")


class RecordedAccount:
    """An account with a key in production and, if wanted, a live run of another folder."""

    def __init__(self, folder: Path, *, has_live_run: bool) -> None:
        self.session = boto3.Session(region_name=REGION)
        self.clients: dict[str, Any] = {}
        self.folder = folder
        self.questions: list[str] = []
        self.said: list[str] = []
        self.production_key = self.make_key("production")
        another = folder.with_name("another")
        another.mkdir()
        self.another = recorder.RecordingRun(self.session, another, str)
        if has_live_run:
            self.another.make_resources()
        self.before = self.all()
        assert (len(self.before) > 10) == has_live_run

    def client(self, service: str) -> Any:
        """Return a client that what is registered at the session later does not reach."""
        if service not in self.clients:
            self.clients[service] = self.session.client(service)
        return self.clients[service]

    def make_key(self, description: str, **more: Any) -> str:
        key = self.client("kms").create_key(Description=description, **more)
        return str(key["KeyMetadata"]["KeyId"])

    def key_states(self) -> dict[str, str]:
        kms = self.client("kms")
        keys = [key["KeyId"] for key in kms.list_keys()["Keys"]]
        return {key: kms.describe_key(KeyId=key)["KeyMetadata"]["KeyState"] for key in keys}

    def all(self) -> set[str]:
        """Return everything in the account, except keys whose deletion is scheduled."""
        states = self.key_states().items()
        keys = {key for key, state in states if state != "PendingDeletion"}
        return keys | list_account_resources(self.client)

    def drill(self, confirm: Callable[[str], object] = str) -> dict[str, Any]:
        def ask(question: str) -> object:
            self.questions.append(question)
            return confirm(question)

        return recorder.clean_up_and_record(self.session, self.folder, 0.002, self.said.append, ask)

    def clean_up(self) -> str:
        """Say yes to the clean-up and no to a new run. Return what was said."""
        with pytest.raises(SystemExit, match=r"no: Start\?"):
            self.drill(_yes_to_clean_up)
        return "\n".join(self.said)

    def answers(self, document: dict[str, Any]) -> dict[str, str]:
        return {row["call"]: row["answer"] for row in document["calls"]}

    def at(self, operation: str, happens: Callable[[], object], when: str = "before") -> None:
        """Do something before a call such as `kms.CreateKey` is sent, or after it was answered."""

        def then(**_: Any) -> None:
            happens()

        self.session.events.register(f"{when}-call.{operation}", then)

    def note_calls(self) -> list[str]:
        """Return a list that gets the name of every call from now on."""
        names: list[str] = []

        def note(model: Any, **_: Any) -> None:
            names.append(model.name)

        self.session.events.register("before-call", note)
        return names

    def plant(self, content: str | bytes) -> Path:
        """Write `unfinished.json` as another person could."""
        self.folder.mkdir(exist_ok=True)
        file = self.folder / recorder.UNFINISHED_FILE_NAME
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        return file

    def plant_run(self, run_id: str, **more: Any) -> Path:
        return self.plant(json.dumps({"run": run_id, "here": f"{REGION}:{ACCOUNT}", **more}))

    def kill_run(self, monkeypatch: pytest.MonkeyPatch, moment: str, when: str = "before") -> str:
        """Start a run that dies at a call without any clean-up. Return its id."""

        def die(*_: object) -> NoReturn:
            raise SystemExit("killed")

        with monkeypatch.context() as within:
            within.setattr(recorder.RecordingRun, "delete_resources", die)
            self.at(moment, die, when)
            with pytest.raises(SystemExit, match="killed"):
                self.drill()
        self.session = boto3.Session(region_name=REGION)
        self.questions.clear()
        self.said.clear()
        return str(json.loads((self.folder / recorder.UNFINISHED_FILE_NAME).read_text())["run"])

    @property
    def is_unfinished(self) -> bool:
        return (self.folder / recorder.UNFINISHED_FILE_NAME).exists()


class Clock:
    """In place of the module `time`: only a sleep takes time."""

    def __init__(self) -> None:
        self.now = time.time()

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("POLL_PAUSE", "VISIBILITY_WAIT", "KEY_DISABLING"):
        monkeypatch.setattr(recorder, f"{name}_SECONDS", 0.01)
    monkeypatch.setattr(recorder, "BURST_CALL_COUNT", 20)


@pytest.fixture
def account(tmp_path: Path) -> Iterator[RecordedAccount]:
    with moto_account():
        yield RecordedAccount(tmp_path / "records", has_live_run=True)


@pytest.fixture
def quiet_account(tmp_path: Path) -> Iterator[RecordedAccount]:
    """An account without another run."""
    with moto_account():
        yield RecordedAccount(tmp_path / "records", has_live_run=False)


def _refuse(operation: str) -> Callable[[], NoReturn]:
    def refuse() -> NoReturn:
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, operation)

    return refuse


def _lose_answer() -> NoReturn:
    raise ReadTimeoutError(endpoint_url="https://kms")


def _answer_no(question: str) -> NoReturn:
    raise SystemExit(f"no: {question}")


def _operation(call: str) -> str:
    """`s3.create_bucket` as botocore's events name it."""
    service, name = call.split(".")
    return f"{service}.{''.join(word.capitalize() for word in name.split('_'))}"


def _yes_to_clean_up(question: str) -> None:
    if question == "Start?":
        _answer_no(question)


def _assert_only_reads(calls: list[str]) -> None:
    assert calls
    assert [call for call in calls if not call.startswith(READS)] == []


@pytest.mark.parametrize("name", ["access", "key"])
def test_drill_record_records_the_other_calls_and_leaves_nothing_if_aws_refuses_one_resource(
    account: RecordedAccount, name: str
) -> None:
    account.at(_operation(CREATES[name]), _refuse(CREATES[name]))
    document = account.drill()
    assert "AccessDenied" in document["refused"][name]
    assert (account.all(), document["left"]) == (account.before, {})
    answer = account.answers(document)["missing_queue"]
    assert answer.startswith("AWS.SimpleQueueService.NonExistent")


def test_drill_record_files_can_be_read_by_their_owner_only(account: RecordedAccount) -> None:
    account.drill()
    (index,) = account.folder.rglob("index.json")
    modes = {path.stat().st_mode & 0o777 for path in index.parent.iterdir()}
    assert (index.parent.stat().st_mode & 0o777, modes) == (0o700, {0o600})


def test_drill_record_that_may_make_no_trail_and_no_rule_sends_no_call_and_leaves_nothing(
    account: RecordedAccount,
) -> None:
    for operation in ("cloudtrail.CreateTrail", "events.PutRule"):
        account.at(operation, _refuse(operation))
    document = account.drill()
    assert {"trail", "logging", "rule", "target"} <= document["refused"].keys()
    assert document["calls"] == []
    assert account.all() == account.before


def test_drill_record_creates_nothing_if_its_first_queue_is_refused(
    quiet_account: RecordedAccount,
) -> None:
    quiet_account.at("sqs.CreateQueue", _refuse("CreateQueue"))
    calls = quiet_account.note_calls()
    document = quiet_account.drill()
    assert [*document["refused"]] == ["events"]
    assert [call for call in calls if call.startswith("Create")] == []
    assert (quiet_account.all(), quiet_account.is_unfinished) == (quiet_account.before, False)


@pytest.mark.parametrize("moment", ["kms.CreateKey", "kms.DisableKey"])
def test_drill_record_deletes_everything_that_it_made_after_ctrl_c(
    account: RecordedAccount, moment: str
) -> None:
    account.at(moment, lambda: os.kill(os.getpid(), signal.SIGINT), "after")
    document = account.drill()
    assert document["refused"]["the rest"] == "interrupted"
    assert (account.all(), document["left"]) == (account.before, {})
    assert not account.is_unfinished


def test_drill_record_looks_again_for_records_if_aws_refuses_the_first_look(
    quiet_account: RecordedAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "time", Clock())
    requests: list[str] = []
    looks: list[str] = []

    def note_request(parsed: dict[str, Any], **_: Any) -> None:
        if "NonExistent" in parsed.get("Error", {}).get("Code", ""):
            requests.append(parsed["ResponseMetadata"]["RequestId"])

    def refuse_first_look() -> None:
        looks.append("")
        if len(looks) == 1:
            (request,) = requests
            other = boto3.Session(region_name=REGION).client("s3")
            names = [bucket["Name"] for bucket in other.list_buckets()["Buckets"]]
            (bucket,) = [name for name in names if name.startswith(recorder.NAME_PREFIX)]
            record = {"requestID": request, "errorCode": "QueueDoesNotExist"}
            body = gzip.compress(json.dumps({"Records": [record]}).encode())
            other.put_object(Bucket=bucket, Key="trail.json.gz", Body=body)
            _refuse("ListObjectsV2")()

    quiet_account.session.events.register("after-call.sqs.SendMessage", note_request)
    quiet_account.at("s3.ListObjectsV2", refuse_first_look)
    document = quiet_account.drill()
    (said,) = [line for line in quiet_account.said if "could not look for records" in line]
    assert "will try again" in said
    assert "AccessDenied" in said
    (row,) = [row for row in document["calls"] if row["call"] == "missing_queue"]
    assert row["records"]["trail"]["error code"] == "QueueDoesNotExist"
    assert (quiet_account.all(), document["left"]) == (quiet_account.before, {})
    assert not quiet_account.is_unfinished


@pytest.mark.parametrize(
    "content",
    [
        b"no gzip",
        gzip.compress(b"no JSON"),
        gzip.compress(b"[]"),
        gzip.compress(b'{"Records": 1}'),
        gzip.compress(b'{"Records": [1, {"detail": []}]}'),
        gzip.compress(b'{"Records": [' + b'{"a":' * 600 + b"1" + b"}" * 600 + b"]}"),
        gzip.compress(b"[" * 200_000),
        gzip.compress(b" " * 70_000_000, compresslevel=1),
    ],
    ids=["bytes", "text", "list", "number", "no objects", "deep", "deeper", "long"],
)
def test_drill_record_ignores_files_and_messages_that_others_put_there(content: bytes) -> None:
    """They are in its own bucket and queue, where others of the account may write."""
    assert recorder._decode_trail_file(content) == []
    text = content.decode("latin-1") if content[:2] != b"\x1f\x8b" else ""
    text = text or gzip.decompress(content).decode()
    assert recorder._decode_records(text.removeprefix('{"Records": ').removesuffix("}")) == []


def test_drill_record_ignores_a_file_that_unpacks_to_more_than_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    content = gzip.compress(b'{"Records": [{"eventName": "SendMessage"}]}')
    assert recorder._decode_trail_file(content) == [{"eventName": "SendMessage"}]
    monkeypatch.setattr(recorder, "_MOST_TRAIL_FILE_BYTES", 20)
    assert recorder._decode_trail_file(content) == []


def test_drill_record_ends_although_messages_keep_coming_to_its_queue(
    quiet_account: RecordedAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "time", Clock())
    monkeypatch.setattr(recorder, "_MOST_RECEIVES_PER_LOOK", 2)
    receives: list[str] = []

    def answer(**_: Any) -> Any:
        receives.append("")
        assert len(receives) < 1_000, "it would never end"
        message = {"Body": "[]", "Attributes": {"SentTimestamp": "1"}, "ReceiptHandle": "r"}
        return SimpleNamespace(status_code=200), {"Messages": [message]}

    quiet_account.session.events.register("before-call.sqs.ReceiveMessage", answer)
    document = quiet_account.drill()
    assert receives
    assert (quiet_account.all(), document["left"]) == (quiet_account.before, {})


def test_drill_record_makes_its_kms_key_without_tags_and_for_the_caller_alone(
    quiet_account: RecordedAccount,
) -> None:
    asked: list[dict[str, Any]] = []

    def note(params: dict[str, Any], **_: Any) -> None:
        asked.append(json.loads(params["body"]))

    quiet_account.session.events.register("before-call.kms.CreateKey", note)
    document = quiet_account.drill()
    (create_key,) = asked
    assert create_key.keys() == {"Description", "Policy"}
    assert document["run"] in create_key["Description"]
    (statement,) = json.loads(create_key["Policy"])["Statement"]
    assert statement == {
        "Effect": "Allow",
        "Principal": {"AWS": CALLER},
        "Action": [
            "kms:PutKeyPolicy",
            "kms:DescribeKey",
            "kms:GetKeyPolicy",
            "kms:DisableKey",
            "kms:GenerateDataKey",
            "kms:Decrypt",
            "kms:ScheduleKeyDeletion",
        ],
        "Resource": "*",
    }


def test_drill_record_deletes_its_kms_key_if_the_answer_to_create_key_was_lost(
    account: RecordedAccount,
) -> None:
    account.at("kms.CreateKey", _lose_answer, "after")
    document = account.drill()
    assert "Read timeout" in document["refused"]["key"]
    assert (document["left"], account.all()) == ({}, account.before)
    assert sorted(account.key_states().values()).count("PendingDeletion") == 1
    assert not account.is_unfinished


def test_drill_record_reports_a_kms_key_that_it_cannot_find_as_left_and_the_next_run_deletes_it(
    account: RecordedAccount,
) -> None:
    account.at("kms.CreateKey", _lose_answer, "after")
    account.at("kms.ListKeys", _refuse("ListKeys"))
    document = account.drill()
    assert document["run"] in document["left"]["key"]
    assert account.is_unfinished
    # The queue that proves who made the run stays until the rest is deleted.
    assert document["left"].keys() == {"key", "events"}
    account.session = boto3.Session(region_name=REGION)
    assert account.drill()["left"] == {}
    assert account.all() == account.before


@pytest.mark.parametrize(
    ("moment", "when"), [("sns.Publish", "before"), ("kms.CreateKey", "after")]
)
def test_drill_record_cleans_up_a_killed_run_after_yes_and_then_records(
    account: RecordedAccount, monkeypatch: pytest.MonkeyPatch, moment: str, when: str
) -> None:
    killed = account.kill_run(monkeypatch, moment, when)
    assert account.all() - account.before
    document = account.drill()
    assert account.questions == [f"Delete what {recorder.NAME_PREFIX}{killed} left?", "Start?"]
    assert (account.all(), document["left"]) == (account.before, {})
    assert document["calls"]


def test_drill_record_changes_nothing_of_a_killed_run_if_the_answer_is_no(
    account: RecordedAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = account.kill_run(monkeypatch, "sns.Publish")
    existing = account.all()
    states = account.key_states()
    calls = account.note_calls()
    with pytest.raises(SystemExit, match=f"no: Delete what {recorder.NAME_PREFIX}{killed} left"):
        account.drill(_answer_no)
    _assert_only_reads(calls)
    assert (account.all(), account.key_states()) == (existing, states)
    assert account.is_unfinished
    (key,) = existing - account.before - list_account_resources(account.client)
    assert key in "".join(account.said)


def test_drill_record_names_resources_that_it_cannot_delete_and_retries_before_a_new_run(
    account: RecordedAccount,
) -> None:
    account.at("cloudtrail.DeleteTrail", _refuse("DeleteTrail"))
    document = account.drill()
    assert [*document["left"]] == ["trail", "events"]
    assert "aws cloudtrail delete-trail --cli-input-json" in document["left"]["trail"]
    assert "aws sqs delete-queue --cli-input-json" in document["left"]["events"]
    assert len(account.all() - account.before) == 2
    again = account.drill()
    assert again["run"] == document["run"]
    assert ([*again["left"]], again["calls"]) == (["trail", "events"], [])
    account.session = boto3.Session(region_name=REGION)
    assert account.drill()["left"] == {}
    assert account.all() == account.before


# Contents that another person, or a full disk, could leave in DIR.
HOSTILE = {
    "empty": b"",
    "torn": b'{"run": "ff',
    "no JSON": b"\xff\xfe\x00",
    "deep": b"[" * 60_000,
    "long": b" " * 70_000 + b"{}",
    "no object": b"[]",
    "no run": b"{}",
    "a number": b'{"run": 12345678}',
    "a path": b'{"run": "../../x", "here": "eu-west-1:123456789012"}',
    "a line more": b'{"run": "ffffffff\\n", "here": "eu-west-1:123456789012"}',
    "a wildcard": b'{"run": "*", "here": "eu-west-1:123456789012"}',
    "no place": b'{"run": "ffffffff"}',
    "other region": b'{"run": "ffffffff", "here": "us-east-1:123456789012"}',
    "other account": b'{"run": "ffffffff", "here": "eu-west-1:111111111111"}',
    "unknown run": b'{"run": "ffffffff", "here": "eu-west-1:123456789012"}',
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE.keys())
def test_drill_record_refuses_unfinished_json_that_names_no_run_of_the_caller(
    quiet_account: RecordedAccount, content: bytes
) -> None:
    file = quiet_account.plant(content)
    states = quiet_account.key_states()
    done = _mendq(quiet_account, "--yes")
    assert (done.exit_code, type(done.exception)) == (2, SystemExit)
    (line,) = [line for line in done.stderr.splitlines() if line]
    assert str(file) in line
    assert "Nothing was deleted" in line
    assert f"rm {file}" in line or "another DIR" in line
    assert (quiet_account.all(), quiet_account.key_states()) == (quiet_account.before, states)
    assert file.read_bytes() == content


def test_drill_record_refuses_a_link_in_place_of_unfinished_json_and_changes_nothing(
    quiet_account: RecordedAccount,
) -> None:
    quiet_account.folder.mkdir()
    file = quiet_account.folder / recorder.UNFINISHED_FILE_NAME
    for target in ("/dev/zero", "missing", "."):
        file.symlink_to(target)
        with pytest.raises(SystemExit, match="is not a regular file"):
            quiet_account.drill()
        file.unlink()
    assert quiet_account.all() == quiet_account.before


def test_drill_record_refuses_unfinished_json_that_cannot_be_read(
    quiet_account: RecordedAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests may run as root, who may read every file, so the disk fails here."""
    file = quiet_account.plant_run("ffffffff")
    content = file.read_bytes()
    usual_open = Path.open

    def open_or_fail(path: Path, *arguments: Any, **more: Any) -> Any:
        if path == file:
            raise OSError(errno.EIO, "Input/output error")
        return usual_open(path, *arguments, **more)

    with monkeypatch.context() as within:
        within.setattr(Path, "open", open_or_fail)
        done = _mendq(quiet_account, "--yes")
    assert (done.exit_code, type(done.exception)) == (2, SystemExit)
    (line,) = [line for line in done.stderr.splitlines() if line]
    assert f"{file} cannot be read (Input/output error)" in line
    assert "Nothing was deleted" in line
    assert quiet_account.all() == quiet_account.before
    assert file.read_bytes() == content


def test_drill_record_leaves_a_kms_key_alone_that_only_a_planted_file_names(
    quiet_account: RecordedAccount,
) -> None:
    quiet_account.plant_run("ffffffff", key=quiet_account.production_key, made=["key"])
    calls = quiet_account.note_calls()
    with pytest.raises(SystemExit, match=quiet_account.production_key):
        quiet_account.drill()
    _assert_only_reads(calls)
    assert quiet_account.questions == []
    assert quiet_account.all() == quiet_account.before


def test_drill_record_deletes_the_callers_live_run_only_after_yes_and_no_key_that_a_file_names(
    account: RecordedAccount,
) -> None:
    account.plant_run(account.another.run_id, key=account.production_key, made=["key"])
    calls = account.note_calls()
    with pytest.raises(SystemExit, match="no: Delete what"):
        account.drill(_answer_no)
    _assert_only_reads(calls)
    assert "If another terminal is still running it, answer no" in account.said[0]
    assert account.production_key in account.said[0]
    assert account.all() == account.before
    things = list_account_resources(account.client)
    account.clean_up()
    # After yes only that run is deleted, not the key that the file names.
    assert account.key_states()[account.production_key] == "Enabled"
    others = {thing for thing in things if account.another.name not in thing}
    assert account.all() == others | {account.production_key}


@pytest.mark.parametrize("here", [f"us-east-1:{ACCOUNT}", f"{REGION}:111111111111"])
def test_drill_record_refuses_a_run_of_another_account_or_region_even_if_its_id_exists_here(
    account: RecordedAccount, here: str
) -> None:
    account.plant(json.dumps({"run": account.another.run_id, "here": here}))
    with pytest.raises(SystemExit, match="is of another account or region"):
        account.drill()
    assert (account.questions, account.all()) == ([], account.before)


def test_drill_record_leaves_the_run_of_another_caller_alone(account: RecordedAccount) -> None:
    url = account.client("sqs").get_queue_url(QueueName=f"{account.another.name}-events")
    tags = {recorder.CALLER_TAG: "AROAANOTHER"}
    account.client("sqs").tag_queue(QueueUrl=url["QueueUrl"], Tags=tags)
    account.plant_run(account.another.run_id)
    calls = account.note_calls()
    with pytest.raises(SystemExit, match="not tagged with your identity"):
        account.drill()
    _assert_only_reads(calls)
    assert (account.questions, account.all()) == ([], account.before)


def _key_policy(*principals: Any, effect: str = "Allow") -> str:
    statements = [
        {"Effect": effect, "Principal": principal, "Action": "kms:Decrypt", "Resource": "*"}
        for principal in principals
    ]
    return json.dumps({"Version": "2012-10-17", "Statement": statements})


def _description(run_id: str) -> str:
    return recorder.KEY_DESCRIPTION.replace("<name>", f"{recorder.NAME_PREFIX}{run_id}")


OWN_POLICY = _key_policy({"AWS": CALLER})
ANOTHER_ROLE = f"arn:aws:iam::{ACCOUNT}:role/another"
HOUR_SECONDS = 3_600
OTHER_KEYS = {
    "created before": (OWN_POLICY, -HOUR_SECONDS),
    "created just before": (OWN_POLICY, -30),
    "created later": (OWN_POLICY, HOUR_SECONDS),
    "another's": (_key_policy({"AWS": f"arn:aws:iam::{ACCOUNT}:role/another"}), 0),
    "another account's user": (_key_policy({"AWS": "arn:aws:sts::111111111111:user/moto"}), 0),
    "the account's": (_key_policy({"AWS": f"arn:aws:iam::{ACCOUNT}:root"}), 0),
    "everybody's": (_key_policy("*", {"AWS": "*"}), 0),
    "denied": (_key_policy({"AWS": CALLER}, effect="Deny"), 0),
    "shared with a role": (_key_policy({"AWS": [CALLER, ANOTHER_ROLE]}), 0),
    "shared with the account": (
        _key_policy({"AWS": CALLER}, {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}),
        0,
    ),
    "shared with a service": (_key_policy({"AWS": CALLER}, {"Service": "s3.amazonaws.com"}), 0),
    "shared with everybody": (_key_policy({"AWS": CALLER}, "*"), 0),
    "a service's": (_key_policy({"Service": "sqs.amazonaws.com"}), 0),
    "no policy": ("{", 0),
}


@pytest.mark.parametrize(("policy", "seconds"), OTHER_KEYS.values(), ids=OTHER_KEYS.keys())
def test_drill_record_leaves_a_kms_key_alone_if_its_creation_time_or_key_policy_differs(
    quiet_account: RecordedAccount,
    monkeypatch: pytest.MonkeyPatch,
    policy: str,
    seconds: int,
) -> None:
    killed = quiet_account.kill_run(monkeypatch, "kms.CreateKey")
    key = quiet_account.make_key(_description(killed), Policy=policy)
    kms_backends[ACCOUNT][REGION].keys[key].creation_date += seconds
    assert f"The KMS key {key} is left alone." in quiet_account.clean_up()
    assert quiet_account.key_states()[key] == "Enabled"
    assert quiet_account.all() == {*quiet_account.before, key}


def test_drill_record_leaves_a_kms_key_alone_whose_key_policy_it_may_not_read(
    quiet_account: RecordedAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = quiet_account.kill_run(monkeypatch, "kms.CreateKey")
    key = quiet_account.make_key(_description(killed))
    quiet_account.at("kms.GetKeyPolicy", _refuse("GetKeyPolicy"))
    assert f"The KMS key {key} is left alone." in quiet_account.clean_up()
    assert quiet_account.all() == {*quiet_account.before, key}


def test_drill_record_names_in_its_report_a_kms_key_that_it_left_alone(
    quiet_account: RecordedAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = quiet_account.kill_run(monkeypatch, "kms.CreateKey")
    name = f"{recorder.NAME_PREFIX}{killed}"
    key = quiet_account.make_key(f"{name}: made by somebody")
    sqs = quiet_account.client("sqs")
    url = sqs.get_queue_url(QueueName=f"{name}-events")["QueueUrl"]
    sqs.tag_queue(QueueUrl=url, Tags={recorder.KMS_KEY_TAG: key})
    document = quiet_account.drill()
    assert ([*document["left_alone"]], document["left"]) == ([key], {})
    assert quiet_account.key_states()[key] == "Enabled"
    (line,) = [line for line in recorder.list_report_lines(document) if key in line]
    assert f"aws kms describe-key --key-id {key}" in line
    assert quiet_account.all() == {*quiet_account.before, key}


@pytest.mark.parametrize(
    "description",
    ["", "production", "{id}", "mendq-drill-record-", "mendq-drill-record-{id}0", "x-record-{id}"],
)
def test_drill_record_leaves_a_kms_key_alone_whose_description_does_not_name_the_run(
    quiet_account: RecordedAccount, monkeypatch: pytest.MonkeyPatch, description: str
) -> None:
    killed = quiet_account.kill_run(monkeypatch, "kms.CreateKey")
    key = quiet_account.make_key(description.format(id=killed), Policy=OWN_POLICY)
    quiet_account.clean_up()
    assert quiet_account.key_states()[key] == "Enabled"
    assert quiet_account.all() == {*quiet_account.before, key}


@pytest.mark.parametrize(
    "description",
    [
        "production: not {name}",
        "{name}-copy of the payments key",
        "x{name}",
        "{name}: for failing SQS calls, made by mendq drill, and for payments",
    ],
)
def test_drill_record_leaves_a_kms_key_alone_whose_description_only_mentions_the_run(
    quiet_account: RecordedAccount, monkeypatch: pytest.MonkeyPatch, description: str
) -> None:
    killed = quiet_account.kill_run(monkeypatch, "kms.CreateKey")
    text = description.format(name=f"{recorder.NAME_PREFIX}{killed}")
    key = quiet_account.make_key(text, Policy=OWN_POLICY)
    assert f"The KMS key {key} is left alone." in quiet_account.clean_up()
    assert quiet_account.key_states()[key] == "Enabled"
    assert quiet_account.all() == {*quiet_account.before, key}


def test_drill_record_clean_up_deletes_only_its_own_kms_key_even_if_its_tag_names_another(
    quiet_account: RecordedAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = quiet_account.kill_run(monkeypatch, "kms.CreateKey", "after")
    sqs = quiet_account.client("sqs")
    url = sqs.get_queue_url(QueueName=f"{recorder.NAME_PREFIX}{killed}-events")["QueueUrl"]
    sqs.tag_queue(QueueUrl=url, Tags={recorder.KMS_KEY_TAG: quiet_account.production_key})
    quiet_account.clean_up()
    assert quiet_account.key_states()[quiet_account.production_key] == "Enabled"
    assert quiet_account.all() == quiet_account.before


def test_drill_record_clean_up_reads_no_other_kms_key_if_a_tag_names_its_own(
    quiet_account: RecordedAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    quiet_account.kill_run(monkeypatch, "sns.Publish")
    calls = quiet_account.note_calls()
    quiet_account.clean_up()
    assert calls.count("DescribeKey") == 1
    assert "ListKeys" not in calls


def _mendq(account: RecordedAccount, *arguments: str) -> Any:
    words = ["drill", "--record", str(account.folder), "--minutes", "0.1", "--region", REGION]
    return CliRunner().invoke(app, [*words, *arguments], env={"COLUMNS": "10000"})


def test_drill_record_changes_nothing_if_the_file_of_an_earlier_run_is_malformed(
    quiet_account: RecordedAccount,
) -> None:
    quiet_account.plant("torn")
    refused = _mendq(quiet_account, "--yes")
    assert refused.exit_code == 2
    assert recorder.UNFINISHED_FILE_NAME in refused.stderr
    assert quiet_account.all() == quiet_account.before
    assert quiet_account.is_unfinished, "the file is left for a person to look at"


def test_drill_record_cleans_up_a_killed_run_only_with_yes(
    account: RecordedAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    account.kill_run(monkeypatch, "sns.Publish")
    existing = account.all()
    refused = _mendq(account)
    assert (refused.exit_code, "--yes confirms" in refused.stderr) == (2, True)
    assert (account.all(), account.is_unfinished) == (existing, True)
    done = _mendq(account, "--yes")
    assert done.exit_code == 0, done.output
    assert (account.all(), account.is_unfinished) == (account.before, False)


def test_drill_record_without_yes_is_refused_and_makes_nothing(account: RecordedAccount) -> None:
    refused = _mendq(account)
    assert (refused.exit_code, "--yes confirms" in refused.stderr) == (2, True)
    assert account.all() == account.before


def test_drill_record_leaves_no_resource_and_needs_only_the_actions_of_its_policy(
    account: RecordedAccount,
) -> None:
    with record_called_actions() as asked:
        done = _mendq(account, "--yes", "--json")
    assert done.exit_code == 0, done.output
    assert account.all() == account.before
    allowed = {
        action for statement in make_record_policy()["Statement"] for action in statement["Action"]
    }
    assert asked == (allowed | BY_KEY_POLICY) - OF_A_SEARCH - OF_A_FILE
    document = json.loads(done.stdout)
    assert (document["left"], document["left_alone"], document["refused"]) == ({}, {}, {})
    assert not account.is_unfinished
    answers = account.answers(document)
    assert [*answers] == [call.name for call in recorder.FAILING_CALLS]
    assert answers["throttled"] == "answered with 200"
    (index,) = account.folder.glob("*/index.json")
    assert json.loads(index.read_text()) == document
    columns = [line.split() for line in done.stderr.splitlines()]
    assert ["late_delete", "no", "no", "-", "-"] in columns


Main = Callable[..., tuple[object, str, str]]


@pytest.fixture
def main(
    quiet_account: RecordedAccount,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Main:
    """Run `record_failed_calls.py DIR`. Return its exit code, standard output, standard error."""

    def run(*words: str) -> tuple[object, str, str]:
        folder = str(quiet_account.folder)
        command = ["record_failed_calls.py", folder, "--minutes", "0.002", *words]
        with monkeypatch.context() as within:
            within.setattr(sys, "argv", command)
            # The script makes its own session. Give it the account's.
            within.setattr(boto3, "Session", lambda: quiet_account.session)
            try:
                code: object = recorder.main()
            except SystemExit as ended:
                code = ended.code
            except KeyboardInterrupt:
                pytest.fail("Ctrl-C ends the program with a traceback")
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


def _interrupt() -> NoReturn:
    raise KeyboardInterrupt


def _lose_connection() -> NoReturn:
    raise EndpointConnectionError(endpoint_url="https://sqs")


@pytest.mark.parametrize(
    ("happens", "words"),
    [
        (_refuse("GetQueueAttributes"), "AccessDenied"),
        (_lose_connection, "Could not connect"),
    ],
    ids=["refused", "unreachable"],
)
def test_record_script_prints_one_line_and_keeps_the_earlier_run_if_aws_refuses_or_is_unreachable(
    quiet_account: RecordedAccount,
    main: Main,
    monkeypatch: pytest.MonkeyPatch,
    happens: Callable[[], NoReturn],
    words: str,
) -> None:
    quiet_account.kill_run(monkeypatch, "sns.Publish")
    existing = quiet_account.all()
    states = quiet_account.key_states()
    quiet_account.at("sqs.GetQueueAttributes", happens)
    code, said, line = main("--yes")
    assert (code, said, len(line.splitlines())) == (1, "", 1)
    assert words in line
    assert (quiet_account.all(), quiet_account.key_states()) == (existing, states)
    assert quiet_account.is_unfinished


def test_record_script_prints_one_line_if_its_folder_argument_is_a_file(
    quiet_account: RecordedAccount, main: Main
) -> None:
    quiet_account.folder.write_text("a person's")
    code, said, line = main("--yes")
    assert (code, said, len(line.splitlines())) == (1, "", 1)
    assert str(quiet_account.folder) in line
    assert quiet_account.folder.read_text() == "a person's"
    assert quiet_account.all() == quiet_account.before


def test_record_script_interrupted_in_its_clean_up_says_to_run_again_and_then_cleans_up(
    quiet_account: RecordedAccount, main: Main
) -> None:
    quiet_account.at("iam.DeleteRole", _interrupt)
    code, _, line = main("--yes")
    assert (code, len(line.splitlines())) == (1, 1)
    file = quiet_account.folder / recorder.UNFINISHED_FILE_NAME
    assert f"interrupted; if {file} exists, run this again to clean up" in line
    assert quiet_account.is_unfinished
    assert quiet_account.all() - quiet_account.before
    quiet_account.session = boto3.Session(region_name=REGION)
    code, said, line = main("--yes")
    assert (code, line) == (0, "")
    assert "cleaned up what" in said
    assert (quiet_account.all(), quiet_account.is_unfinished) == (quiet_account.before, False)


def test_record_script_changes_nothing_if_ctrl_c_comes_before_the_run(
    quiet_account: RecordedAccount, main: Main, monkeypatch: pytest.MonkeyPatch
) -> None:
    quiet_account.kill_run(monkeypatch, "sns.Publish")
    existing = quiet_account.all()
    states = quiet_account.key_states()
    quiet_account.at("sqs.ListQueueTags", _interrupt)
    code, said, line = main("--yes")
    assert (code, said, len(line.splitlines())) == (1, "", 1)
    assert "run this again to clean up" in line
    assert (quiet_account.all(), quiet_account.key_states()) == (existing, states)
    assert quiet_account.is_unfinished


def test_record_script_exits_with_2_and_deletes_nothing_if_unfinished_json_is_malformed(
    quiet_account: RecordedAccount, main: Main
) -> None:
    file = quiet_account.plant("torn")
    code, printed, error_text = main("--yes")
    (line,) = error_text.splitlines()
    assert (code, printed) == (2, "")
    assert str(file) in line
    assert "Nothing was deleted" in line
    assert quiet_account.all() == quiet_account.before
    assert file.read_text() == "torn"


def test_record_script_exits_with_2_without_yes_and_without_a_terminal(
    quiet_account: RecordedAccount, main: Main
) -> None:
    code, _, line = main()
    assert (code, len(line.splitlines())) == (2, 1)
    assert "not confirmed, nothing was changed" in line
    assert (quiet_account.all(), quiet_account.is_unfinished) == (quiet_account.before, False)


def test_record_policy_allows_on_all_resources_only_creating_and_listing_kms_keys() -> None:
    assert IAM_ACTIONS_FOR_RECORD_BY_RESOURCE["*"] == ["kms:CreateKey", "kms:ListKeys"]
    for statement in make_record_policy()["Statement"]:
        (resource,) = statement["Resource"]
        assert recorder.NAME_PREFIX in resource or resource == "*"


def test_record_policy_allows_no_tagging_of_kms_keys() -> None:
    for statement in make_record_policy()["Statement"]:
        assert not [action for action in statement["Action"] if "Tag" in action and "kms" in action]


def test_record_script_runs_without_mendq_and_has_the_syntax_of_python_3_9(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = Path(recorder.__file__).read_text()
    tree = ast.parse(text, feature_version=(3, 9))
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {node.module or "" for node in imports if isinstance(node, ast.ImportFrom)}
    assert not any(name.startswith("mendq") for name in names)
    alone = tmp_path / "record_failed_calls.py"
    alone.write_text(text)
    environment = {**os.environ, "AWS_ENDPOINT_URL": "http://127.0.0.1:1"}
    for words, code, text in (
        (["--help"], 0, "sandbox account"),
        ([str(tmp_path)], 1, "Could not connect"),
    ):
        command = [sys.executable, "-I", str(alone), *words]
        ran = subprocess.run(command, env=environment, capture_output=True, check=False, text=True)
        assert ran.returncode == code, ran.stderr
        assert text in " ".join((ran.stdout + ran.stderr).split())
    monkeypatch.setitem(sys.modules, "mendq.cli.look.explain", None)
    assert recorder.name_symptom({}) == "install mendq"


def test_record_script_uses_the_queue_prefix_and_tags_that_mendq_ignores() -> None:
    """The file runs alone, so it cannot import Mendq's names."""
    assert recorder.NAME_PREFIX.startswith(DRILL_QUEUE_PREFIX)
    assert {MODE_TAG: MODE_OFF_VALUE, DRILL_TAG: "true"} == recorder.QUEUE_TAGS

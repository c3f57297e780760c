"""The recorder on an account in moto, where other things lie: what it leaves behind is nothing.

moto delivers no records; how they are read, tests/local_account/test_recorder.py shows.
"""

from __future__ import annotations

import ast
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import boto3
import pytest
from botocore.exceptions import ClientError, ReadTimeoutError
from typer.testing import CliRunner

from mendq.cli.app import app
from mendq.cli.deploy import record_failed_calls as recorder
from mendq.cli.deploy.drill import RECORDING
from mendq.cli.permissions import record
from mendq.model.limits import DRILL_QUEUE, DRILL_TAG, MODE_TAG, OFF
from tests.account.account import moto_account
from tests.cli.asked import noted
from tests.cli.conftest import things_in

REGION = "eu-west-1"
CREATES = {name: does for name, does, *_ in recorder.PARTS}
# SQS's own use of the key, what comes with another action, what a lost answer takes, and a file.
NO_CALLS = {"kms:Decrypt", "kms:GenerateDataKey", "kms:TagResource", "tag:GetResources"}
OF_A_FILE = {"s3:GetObject", "s3:DeleteObject"}


class Account:
    """Somebody's account: another run's things are in it, which its folder alone may delete."""

    def __init__(self, folder: Path) -> None:
        self.session, self.folder = boto3.Session(region_name=REGION), folder
        another = folder.with_name("another")
        another.mkdir()
        recorder.Run(self.session, another, str).make()
        self.before = self.all()
        assert len(self.before) > 10

    def client(self, service: str) -> Any:
        return self.session.client(service)

    def all(self) -> set[str]:
        """All that an account may be left with; a key that waits for its deletion is gone."""
        kms = self.client("kms")
        keys = [each["KeyId"] for each in kms.list_keys()["Keys"]]
        states = {each: kms.describe_key(KeyId=each)["KeyMetadata"]["KeyState"] for each in keys}
        pending = {key for key, state in states.items() if state == "PendingDeletion"}
        return {*keys} - pending | things_in(self.client)

    def drill(self) -> dict[str, Any]:
        return recorder.drill(self.session, self.folder, 0.002, str, str)

    def answers(self, found: dict[str, Any]) -> dict[str, str]:
        return {each["call"]: each["answer"] for each in found["calls"]}

    def at(self, operation: str, happens: Callable[[], object], when: str = "before") -> None:
        """Before a call is sent, such as `kms.CreateKey`, or after it was answered."""

        def then(**_: Any) -> None:
            happens()

        self.session.events.register(f"{when}-call.{operation}", then)

    @property
    def unfinished(self) -> bool:
        return (self.folder / recorder.UNFINISHED).exists()


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    for name, value in {"PAUSE": 0.01, "LATE": 0.01, "DISABLED": 0.01}.items():
        monkeypatch.setattr(recorder, f"{name}_SECONDS", value)
    monkeypatch.setattr(recorder, "BURST", 20)
    with moto_account():
        yield Account(tmp_path / "records")


def _refuse(operation: str) -> Callable[[], NoReturn]:
    def refuse() -> NoReturn:
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, operation)

    return refuse


def _operation(does: str) -> str:
    """`s3.create_bucket` as botocore's events name it."""
    service, name = does.split(".")
    return f"{service}.{''.join(each.capitalize() for each in name.split('_'))}"


@pytest.mark.parametrize("name", ["access", "key"])
def test_what_aws_refuses_is_said_and_the_rest_goes_on_and_is_deleted(
    account: Account, name: str
) -> None:
    account.at(_operation(CREATES[name]), _refuse(CREATES[name]))
    found = account.drill()
    assert "AccessDenied" in found["refused"][name]
    assert (account.all(), found["left"]) == (account.before, {})
    assert account.answers(found)["missing_queue"].startswith("AWS.SimpleQueueService.NonExistent")


def test_without_a_trail_and_a_rule_no_call_is_made(account: Account) -> None:
    for operation in ("cloudtrail.CreateTrail", "events.PutRule"):
        account.at(operation, _refuse(operation))
    found = account.drill()
    assert {"trail", "logging", "rule", "target"} <= found["refused"].keys()
    assert found["calls"] == []
    assert account.all() == account.before


# Within the making, of which no answer may be lost, and at the calls and waits after it.
MOMENTS = ("kms.CreateKey", "kms.DisableKey")


@pytest.mark.parametrize("moment", MOMENTS)
def test_ctrl_c_ends_it_with_everything_deleted(account: Account, moment: str) -> None:
    account.at(moment, lambda: os.kill(os.getpid(), signal.SIGINT), "after")
    found = account.drill()
    assert found["refused"]["the rest"] == "interrupted"
    assert (account.all(), found["left"]) == (account.before, {})
    assert not account.unfinished


@pytest.mark.parametrize("is_found", [True, False])
def test_a_key_of_which_aws_never_answered_is_deleted_or_left(
    account: Account, is_found: bool
) -> None:
    def lost() -> NoReturn:
        raise ReadTimeoutError(endpoint_url="https://kms")

    account.at("kms.CreateKey", lost, "after")
    if not is_found:
        account.at("resource-groups-tagging-api.GetResources", _refuse("GetResources"))
    found = account.drill()
    assert "Read timeout" in found["refused"]["key"]
    assert account.unfinished == ("key" in found["left"]) == (not is_found)
    assert (account.all() == account.before) == is_found


@pytest.mark.parametrize(
    ("moment", "when"), [("sns.Publish", "before"), ("kms.CreateKey", "after")]
)
def test_what_a_killed_run_left_the_next_deletes(
    account: Account, monkeypatch: pytest.MonkeyPatch, moment: str, when: str
) -> None:
    def killed(*_: object) -> NoReturn:
        raise SystemExit

    with monkeypatch.context() as within:
        within.setattr(recorder.Run, "clean", killed)
        account.at(moment, killed, when)
        with pytest.raises(SystemExit):
            account.drill()
    assert account.all() - account.before
    account.session = boto3.Session(region_name=REGION)
    found = account.drill()
    assert (account.all(), found["left"]) == (account.before, {})
    assert found["calls"]


def test_what_cannot_be_deleted_is_said_and_tried_again_before_anything_new(
    account: Account,
) -> None:
    account.at("cloudtrail.DeleteTrail", _refuse("DeleteTrail"))
    found = account.drill()
    assert [*found["left"]] == ["trail"]
    (left,) = account.all() - account.before
    assert left == found["run"]
    again = account.drill()
    assert (again["run"], [*again["left"]], again["calls"]) == (found["run"], ["trail"], [])
    account.session = boto3.Session(region_name=REGION)
    assert account.drill()["left"] == {}
    assert account.all() == account.before


@pytest.mark.parametrize("wrong", [{"here": "us-east-1:1"}, {"run": "../x"}, {"run": ""}])
def test_a_list_of_something_else_deletes_nothing(account: Account, wrong: dict[str, str]) -> None:
    state = {"run": "ffffffff", "here": f"{REGION}:123456789012", "key": "", **wrong}
    account.folder.mkdir()
    (account.folder / recorder.UNFINISHED).write_text(json.dumps(state))
    with pytest.raises(SystemExit, match=r"unfinished\.json is of"):
        account.drill()
    assert account.all() == account.before


def _mendq(account: Account, *arguments: str) -> Any:
    words = ["drill", "--record", str(account.folder), "--minutes", "0.1", "--region", REGION]
    return CliRunner().invoke(app, [*words, *arguments])


def test_the_command_asks_first_and_then_leaves_nothing_asking_what_its_policy_allows(
    account: Account,
) -> None:
    refused = _mendq(account)
    assert (refused.exit_code, "--yes confirms" in refused.stderr) == (2, True)
    assert account.all() == account.before
    with noted() as asked:
        done = _mendq(account, "--yes", "--json")
    assert done.exit_code == 0, done.output
    assert account.all() == account.before
    allowed = {each for one in record()["Statement"] for each in one["Action"]}
    assert asked == allowed - NO_CALLS - OF_A_FILE
    found = json.loads(done.stdout)
    assert (found["left"], found["refused"], account.unfinished) == ({}, {}, False)
    answers = account.answers(found)
    assert [*answers] == [name for name, *_ in recorder.CALLS]
    assert answers["throttled"] == "answered with 200"
    (index,) = account.folder.glob("*/index.json")
    assert json.loads(index.read_text()) == found
    columns = [line.split() for line in done.stderr.splitlines()]
    assert ["late_delete", "no", "no", "-", "-"] in columns


def test_every_right_but_making_a_key_is_on_things_of_its_own() -> None:
    (anything,) = (names for where, names in RECORDING.items() if where == "*")
    assert anything.split() == ["kms:CreateKey", "kms:TagResource", "tag:GetResources"]
    for each in record()["Statement"]:
        (where,) = each["Resource"]
        assert recorder.PREFIX in where or where == "*" or "Condition" in each


def test_it_runs_alone_on_an_older_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = Path(recorder.__file__).read_text()
    tree = ast.parse(text, feature_version=(3, 9))
    heads = [each for each in tree.body if isinstance(each, ast.Import | ast.ImportFrom)]
    names = {each.module or "" for each in heads if isinstance(each, ast.ImportFrom)}
    assert not any(each.startswith("mendq") for each in names)
    alone = tmp_path / "record_failed_calls.py"
    alone.write_text(text)
    environment = {**os.environ, "AWS_ENDPOINT_URL": "http://127.0.0.1:1"}
    for words, code, said in (
        (["--help"], 0, "sandbox account"),
        ([str(tmp_path)], 1, "Could not connect"),
    ):
        command = [sys.executable, "-I", str(alone), *words]
        ran = subprocess.run(command, env=environment, capture_output=True, check=False, text=True)
        assert ran.returncode == code, ran.stderr
        assert said in " ".join((ran.stdout + ran.stderr).split())
    monkeypatch.setitem(sys.modules, "mendq.cli.look.explain", None)
    assert recorder.matched_as({}) == "install mendq"


def test_what_it_says_twice_is_what_mendq_says() -> None:
    """It cannot import Mendq's words."""
    assert recorder.PREFIX.startswith(DRILL_QUEUE)
    assert {MODE_TAG: OFF, DRILL_TAG: "true"} == recorder.TAGS

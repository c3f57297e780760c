"""What goes wrong before anything is asked for: one line, a number, no trace."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from typer.testing import CliRunner

from mendq.cli.__main__ import COMMANDS, app
from mendq.cli.account import Account

NO_STACK = {"Error": {"Code": "ValidationError", "Message": "Stack with id Other does not exist"}}
DENIED = {"Error": {"Code": "AccessDenied", "Message": "User: x is\nnot authorized"}}
OLDER = {"Stacks": [{"Outputs": [{"OutputKey": "CaseBucket", "OutputValue": "cases"}]}]}


def _cloudformation_answers(
    monkeypatch: pytest.MonkeyPatch, answer: dict[str, Any], status: int = 200
) -> None:
    session = boto3.Session(region_name="us-east-1")
    session.events.register(
        "before-call.cloudformation.DescribeStacks",
        lambda **_: (SimpleNamespace(status_code=status), answer),  # type: ignore[arg-type]
    )
    monkeypatch.setattr(Account, "of", lambda *_: Account(session, "Other"))


def _one_line(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, arguments)
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    return result.exit_code, line


@pytest.mark.parametrize(
    ("answer", "status", "wanted", "names"),
    [
        (NO_STACK, 400, (4, "not_found"), "Other"),
        (OLDER, 200, (1, "failed"), "CaseTable"),
        (DENIED, 403, (1, "AccessDenied"), "AWS refused DescribeStacks: AccessDenied: User: x is"),
    ],
)
def test_what_cloudformation_says_is_one_line_and_a_document(
    monkeypatch: pytest.MonkeyPatch,
    answer: dict[str, Any],
    status: int,
    wanted: tuple[int, str],
    names: str,
) -> None:
    _cloudformation_answers(monkeypatch, answer, status)
    code, line = _one_line("cases")
    code_of_json, error = _refused_as_json("cases")
    assert (code, (code_of_json, error["code"])) == (wanted[0], wanted)
    assert names in line
    assert names in error["message"]


@pytest.mark.parametrize(
    ("arguments", "names"),
    [((), "--region"), (("--profile", "nobody"), "nobody"), (("--stack", ""), "--stack is empty")],
)
def test_what_names_no_account_is_one_line(
    monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], names: str
) -> None:
    monkeypatch.delenv("AWS_REGION")
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    code, line = _one_line("cases", *arguments)
    assert code == 2
    assert names in line


def test_what_a_refusal_quotes_does_nothing_to_the_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    denied = {"Error": {"Code": "AccessDenied", "Message": "not \x1b[2Jallowed \u202eto\x07"}}
    _cloudformation_answers(monkeypatch, denied, 403)
    code, line = _one_line("cases")
    assert code == 1
    assert line.endswith("not \\x1b[2Jallowed \\u202eto\\x07")


def test_the_region_of_the_aws_cli_goes_before_botos(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    assert Account.of(None, None, "Mendq").region == "eu-west-1"
    assert Account.of(None, "eu-central-1", "Mendq").region == "eu-central-1"


def _refused_as_json(*arguments: str) -> tuple[int, dict[str, str]]:
    """The exit and the error of the one document on standard output; people get theirs too."""
    result = CliRunner().invoke(app, [*arguments, "--json"])
    assert result.stderr
    document = json.loads(result.stdout)
    assert list(document) == ["error"]
    assert list(document["error"]) == ["code", "message"]
    return result.exit_code, document["error"]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("show",), "CASE"),
        (("cases", "--nonsense"), "--nonsense"),
        (("nonsense",), "nonsense"),
        (("--nonsense",), "--nonsense"),
        (("drill", "--minutes", "soon"), "--minutes"),
        (("quarantine", "nonsense"), "nonsense"),
        (("quarantine", "peek"), "QUEUE"),
        (("quarantine", "peek", "orders", "--limit", "few"), "--limit"),
        (("quarantine", "--nonsense"), "--nonsense"),
        (("policy", "show"), "QUEUE"),
        (("explain", "/nonexistent/record.json"), "/nonexistent/record.json"),
    ],
)
def test_arguments_that_cannot_be_read_are_a_document_with_json(
    arguments: tuple[str, ...], named: str
) -> None:
    code, error = _refused_as_json(*arguments)
    wanted = (4, "not_found") if arguments[0] == "explain" else (2, "usage")
    assert (code, error["code"]) == wanted
    assert named in error["message"]


def test_behind_two_dashes_json_is_an_argument() -> None:
    result = CliRunner().invoke(app, ["explain", "--nonsense", "--", "--json"])
    assert (result.exit_code, result.stdout) == (2, "")


@pytest.mark.parametrize("command", COMMANDS)
def test_help_is_whole(command: str) -> None:
    """A first sentence that the list of commands cuts is too long."""
    assert CliRunner().invoke(app, [command, "--help"]).exit_code == 0
    listed = CliRunner().invoke(app, ["--help"]).stdout
    (line,) = (each for each in listed.splitlines() if each.split()[:1] == [command])
    assert not line.endswith("...")

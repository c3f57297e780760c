"""Test what all commands share: errors, help, output and confirmation."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import shlex
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from typer.main import get_command
from typer.testing import CliRunner

from mendq.cli import account as cli_account
from mendq.cli import output
from mendq.cli.account import Account
from mendq.cli.app import app
from mendq.cli.command_group import find_commands, list_examples
from mendq.cli.commands import DeclaredCommand, list_commands
from mendq.cli.exit_codes import CommandError, Exit
from mendq.cli.output import Output, confirm, require_yes_or_terminal
from mendq.model.names import OPERATOR_USER_AGENT
from mendq.redrive.message_filter import parse_filter
from tests.cli.builders import Operator
from tests.heal.restoring import GRANTS

EVIL = "not \x1b[2Jallowed \u202eto\x07\nanybody"
OLDER = {"Stacks": [{"Outputs": [{"OutputKey": "CaseBucket", "OutputValue": "cases"}]}]}


def _make_error(code: str, message: str) -> dict[str, Any]:
    return {"Error": {"Code": code, "Message": message}}


def _read_error(*arguments: str) -> tuple[int, str, str]:
    """Return exit code, error code and the line on standard error, alike with --json."""
    plain, as_json = (CliRunner().invoke(app, [*arguments, *more]) for more in ([], ["--json"]))
    assert (plain.stdout, plain.stderr) == ("", as_json.stderr)
    (line,) = plain.stderr.splitlines()
    (error,) = json.loads(as_json.stdout).values()
    assert list(error) == ["code", "message"]
    assert plain.exit_code == as_json.exit_code
    return plain.exit_code, error["code"], line


@pytest.mark.parametrize(
    ("answer", "status", "wanted", "names"),
    [
        (_make_error("ValidationError", "Stack with id Other"), 400, (4, "not_found"), "Other"),
        (OLDER, 200, (1, "failed"), "CaseTable"),
        (
            _make_error("AccessDenied", "no"),
            403,
            (1, "AccessDenied"),
            "refused DescribeStacks: AccessD",
        ),
        (_make_error("No", EVIL), 403, (1, "No"), "not \\x1b[2Jallowed \\u202eto\\x07 anybody"),
    ],
    ids=["no stack", "stack without outputs", "denied", "hostile text"],
)
def test_error_about_the_stack_is_printed_as_one_escaped_line_and_with_json_as_a_document(
    monkeypatch: pytest.MonkeyPatch,
    answer: dict[str, Any],
    status: int,
    wanted: tuple[int, str],
    names: str,
) -> None:
    session = boto3.Session(region_name="us-east-1")
    send_answer: Any = lambda **_: (SimpleNamespace(status_code=status), answer)  # noqa: E731
    session.events.register("before-call.cloudformation.DescribeStacks", send_answer)
    monkeypatch.setattr(Account, "from_options", lambda *_: Account(session, "Other"))
    exit_code, code, line = _read_error("cases")
    assert (exit_code, code) == wanted
    assert names in line


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ((), "--region"),
        (("--profile", "nobody"), "nobody"),
        (("--stack", ""), "--stack is empty"),
        (("--region", ""), "--region is empty"),
        (("--region", " "), "--region is empty"),
        (("--profile", ""), "--profile is empty"),
        (("--region", "us-east-1"), "AWS_ENDPOINT_URL"),
    ],
    ids=[
        "no region",
        "unknown profile",
        "empty stack",
        "empty region",
        "blank region",
        "empty profile",
        "malformed endpoint",
    ],
)
def test_command_without_a_usable_region_profile_stack_or_endpoint_exits_with_2_and_one_line(
    monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], names: str
) -> None:
    monkeypatch.delenv("AWS_REGION")
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://[::1")
    exit_code, code, line = _read_error("cases", *arguments)
    assert (exit_code, code) == (2, "usage")
    assert names in line


def _fail_every_account(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(cli_account.Account, "from_options", fail)


@pytest.mark.parametrize(
    ("region", "cure"),
    [
        ("us-eest-1", "No region is called 'us-eest-1', as far as botocore knows: did you mean "),
        ("mars", "No region is called 'mars', as far as botocore knows"),
        ("us-east-1", ""),
        ("us-gov-west-1", ""),
    ],
)
def test_unreachable_endpoint_names_the_region_only_if_there_is_no_such_region(
    monkeypatch: pytest.MonkeyPatch, region: str, cure: str
) -> None:
    _fail_every_account(monkeypatch, EndpointConnectionError(endpoint_url="https://sts"))
    code, error_code, line = _read_error("cases", "--region", region)
    assert (code, error_code) == (1, "EndpointConnectionError")
    assert ("No region is called" in line) is bool(cure)
    assert cure in line
    monkeypatch.delenv("AWS_REGION", raising=False)
    monkeypatch.setenv("AWS_DEFAULT_REGION", region)
    assert cure in _read_error("cases")[2]


@pytest.mark.parametrize(
    ("code", "has_cure"),
    [("AccessDenied", True), ("AccessDeniedException", True), ("ThrottlingException", False)],
)
def test_denied_call_of_any_command_says_where_the_needed_actions_are(
    monkeypatch: pytest.MonkeyPatch, code: str, *, has_cure: bool
) -> None:
    denied: Any = _make_error(code, "no")
    _fail_every_account(monkeypatch, ClientError(denied, "GetItem"))
    line = _read_error("cases")[2]
    assert f"AWS refused GetItem: {code}: no" in line
    assert ("`mendq scan --policy` prints the policy that a scan needs" in line) is has_cure


def test_mendq_stack_variable_that_is_blank_is_refused_as_an_empty_stack_option(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Stack sets give the stack another name. Printed commands must work without --stack."""
    monkeypatch.setenv("MENDQ_STACK", " ")
    assert "--stack is empty" in _read_error("cases")[-1]


def test_custom_endpoint_is_asked_once_and_for_less_than_three_seconds() -> None:
    configuration = cli_account._CUSTOM_ENDPOINT_CONFIGURATION
    assert configuration["connect_timeout"] + configuration["read_timeout"] < 3
    assert configuration["retries"]["total_max_attempts"] == 1


@pytest.mark.parametrize("command", ["cases", "scan"])
def test_custom_endpoint_that_never_answers_is_named_in_one_line(
    monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    configuration = {**cli_account._CUSTOM_ENDPOINT_CONFIGURATION, "read_timeout": 0.1}
    monkeypatch.setattr(cli_account, "_CUSTOM_ENDPOINT_CONFIGURATION", configuration)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        exit_code, code, line = _read_error(command)
    assert (exit_code, code) == (1, "ReadTimeoutError")
    assert url in line


def test_endpoint_that_answers_with_a_web_page_is_reported_in_one_line_as_not_aws(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = boto3.Session("key", "secret", region_name="us-east-1")
    page: Any = SimpleNamespace(status_code=200, headers={}, content=b"<html></html>")
    session.events.register("before-send", lambda **_: page)
    monkeypatch.setattr(Account, "from_options", lambda *_: Account(session, "Mendq"))
    assert all(
        "what answers is not AWS" in _read_error(command)[-1] for command in ("cases", "scan")
    )


def test_aws_region_variable_wins_over_aws_default_region_and_the_region_option_over_both(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    assert Account.from_options(None, None, "Mendq").region == "eu-west-1"
    assert Account.from_options(None, "eu-central-1", "Mendq").region == "eu-central-1"


def test_sqs_client_of_the_commands_begins_its_user_agent_with_the_mark_of_an_operator() -> None:
    account = Account.from_options(None, "eu-central-1", "Mendq")
    config: Any = account.clients.sqs.meta.config
    assert config.user_agent.startswith(f"{OPERATOR_USER_AGENT} ")


def test_wrong_arguments_with_json_exit_with_2_or_4_print_an_error_document_and_change_nothing(
    operator: Operator,
) -> None:
    operator.aws.later(hours=-1)
    operator.aws.queue("orders", Policy=GRANTS)
    operator.aws.later(hours=1)
    for typed, code, named in json.loads(Path(__file__).with_name("usage.json").read_text()):
        error = operator.run_json(*typed.split(), code=code)["error"]
        assert error["code"] == {2: "usage", 4: "not_found"}[code], typed
        assert named in error["message"], typed
    assert operator.account.invoked == []
    assert operator.aws.case_store_items() == {}


def test_json_option_behind_two_dashes_does_not_turn_on_json_output() -> None:
    result = CliRunner().invoke(app, ["explain", "--nonsense", "--", "--json"])
    assert (result.exit_code, result.stdout) == (2, "")


def test_help_shows_the_whole_first_sentence_of_every_command() -> None:
    help_text = CliRunner().invoke(app, ["--help"]).stdout
    for command in find_commands():
        (line,) = (line for line in help_text.splitlines() if line.split()[:1] == [command])
        assert not line.endswith("...")


@pytest.mark.parametrize("command", sorted(find_commands()))
def test_help_option_of_every_command_succeeds(command: str) -> None:
    assert CliRunner().invoke(app, [command, "--help"]).exit_code == 0


@pytest.mark.parametrize("each", list_commands(), ids=lambda each: each.full_name)
def test_help_of_each_command_has_two_or_three_short_examples_that_its_parser_accepts(
    each: DeclaredCommand,
) -> None:
    printed_text = CliRunner().invoke(app, [*each.full_name.split(), "--help"]).stdout
    examples = list_examples(each.run_command.__doc__)
    assert 2 <= len(examples) <= 3
    for line in examples:
        assert f"\n    {line}\n" in printed_text, "a line of its own"
        _assert_parsed(line, each.full_name)


def test_help_of_mendq_itself_has_examples_that_the_parsers_accept() -> None:
    examples = list_examples(get_command(app).help)
    assert examples
    for line in examples:
        _assert_parsed(line, line.split()[1])


def _assert_parsed(example: str, typed: str) -> None:
    """Check that the command's own parser accepts an example, without comment and redirection."""
    assert len(example) <= 76
    words = shlex.split(example, comments=True)
    words = words[
        : next((position for position, word in enumerate(words) if word in "<>"), len(words))
    ]
    name = ["mendq", *typed.split()]
    assert words[: len(name)] == name
    command: Any = get_command(app)
    for word in name[1:]:
        command = command.commands[word]
    given = command.make_context(typed, words[len(name) :]).params
    if expression := given.get("where"):
        assert parse_filter(expression).node_by_path_text


LONG_ERROR = CommandError(
    "AWS refused DescribeStacks: AccessDenied: whoever asks may not do that at all"
)


def test_error_is_one_line_in_a_log(capsys: pytest.CaptureFixture[str]) -> None:
    Output(as_json=False).report_error(LONG_ERROR)
    assert capsys.readouterr().err == f"mendq: {LONG_ERROR}\n"


def test_error_wraps_at_spaces_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": "40"}.items():
        monkeypatch.setenv(name, value)
    Output(as_json=False).report_error(LONG_ERROR)
    printed_text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().err)
    lines = [line.rstrip() for line in printed_text.splitlines()]
    assert len(lines) > 1
    assert max(map(len, lines)) <= 40
    assert " ".join(printed_text.split()) == f"mendq: {LONG_ERROR}"


@pytest.mark.parametrize("redirected", [">&-", "> /dev/full"])
def test_command_with_unwritable_standard_output_fails_with_one_line(redirected: str) -> None:
    # The shell's $0 is the Python interpreter.
    ended = subprocess.run(
        ["sh", "-c", f'exec "$0" -m mendq.cli explain - --json {redirected}', sys.executable],
        cwd=Path(__file__).resolve().parents[2],
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
        input="{}",
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ended.returncode == 1
    (line,) = ended.stderr.splitlines()
    assert line.startswith("mendq: standard output ")


class Terminal(io.StringIO):
    """A terminal at which a person types the given text. Without text the person presses Ctrl-C."""

    def isatty(self) -> bool:
        return True

    def readline(self, *size: int) -> str:  # type: ignore[override]
        if not self.getvalue():
            raise KeyboardInterrupt
        return super().readline(*size)


def test_confirm_accepts_the_answer_yes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    confirm("Do it?", yes=False)


@pytest.mark.parametrize("typed", ["n\n", "\n", "n", ""])
def test_confirm_stops_with_nothing_was_changed_after_no_or_an_empty_answer_or_ctrl_c(
    monkeypatch: pytest.MonkeyPatch, typed: str
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(typed))
    with pytest.raises(CommandError, match="nothing was changed") as stopped:
        confirm("Do it?", yes=False)
    assert stopped.value.code is Exit.USAGE


def test_confirm_ignores_keys_typed_before_the_question(monkeypatch: pytest.MonkeyPatch) -> None:
    keyboard, terminal = pty.openpty()
    is_answer_yes = output._is_answer_yes

    def type_no_and_ask(question: str) -> bool:
        os.write(keyboard, b"n\n")
        return is_answer_yes(question)

    monkeypatch.setattr(output, "_is_answer_yes", type_no_and_ask)
    with os.fdopen(keyboard, "wb", buffering=0), os.fdopen(terminal) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        os.write(keyboard, b"y\n")
        with pytest.raises(CommandError, match="nothing was changed"):
            confirm("Do it?", yes=False)


def test_command_without_a_terminal_is_refused_with_the_yes_option_as_the_cure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    with pytest.raises(CommandError, match="--yes confirms") as stopped:
        require_yes_or_terminal(yes=False)
    assert stopped.value.code is Exit.USAGE


def test_command_without_a_terminal_runs_with_the_yes_option(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    require_yes_or_terminal(yes=True)


def test_settings_of_a_lambda_that_cannot_be_read_stop_the_command_and_name_the_lambda(
    operator: Operator,
) -> None:
    account = Account(operator.account.session, "Mendq")
    outputs: Any = {"Outputs": [{"OutputKey": "HealFunction", "OutputValue": "mendq-heal"}]}

    def describe(**_: Any) -> Any:
        return SimpleNamespace(status_code=200), {"Stacks": [outputs]}

    def configure(**_: Any) -> Any:
        variables = {"MENDQ_MODE": "whatever"}
        return SimpleNamespace(status_code=200), {"Environment": {"Variables": variables}}

    events = account.session.events
    events.register_first("before-call.cloudformation.DescribeStacks", describe)
    events.register_first("before-call.lambda.GetFunctionConfiguration", configure)
    with pytest.raises(CommandError, match="the settings of mendq-heal") as stopped:
        _ = account.settings
    assert "Deploy the stack again" in str(stopped.value)

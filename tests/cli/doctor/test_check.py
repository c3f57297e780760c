from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from mendq.cli.doctor.check import Check, Command, Log, Status, guarded
from mendq.cli.exit_codes import Stopped


def _denied(message: str) -> ClientError:
    return ClientError({"Error": {"Code": "AccessDenied", "Message": message}}, "DescribeTrails")


def _raising(error: Exception) -> Iterator[Check]:
    yield Check("before", Status.OK, "")
    raise error


def test_what_was_found_before_an_error_stays() -> None:
    error = EndpointConnectionError(endpoint_url="http://nowhere")
    before, after = guarded("trails", lambda: _raising(error))
    assert (before.status, after.status) == (Status.OK, Status.UNKNOWN)


def test_a_refusal_names_the_action_that_is_missing() -> None:
    message = "User: x is not authorized to perform: cloudtrail:DescribeTrails because no policy"
    *_, unknown = guarded("trails", lambda: _raising(_denied(message)))
    assert unknown.status is Status.UNKNOWN
    assert unknown.remedy == "allow cloudtrail:DescribeTrails"


def test_a_refusal_that_names_no_action_names_the_call() -> None:
    *_, unknown = guarded("trails", lambda: _raising(_denied("no")))
    assert "DescribeTrails" in unknown.remedy


def test_an_older_stack_is_unknown_not_an_end() -> None:
    *_, unknown = guarded("life", lambda: _raising(Stopped("no output FollowUpFunction")))
    assert unknown.status is Status.UNKNOWN


LOGS = {
    "heal-1": Log("Mendq-HealLog-1", Command("aws logs 1")),
    "heal-12": Log("/of/ours/HealLog", Command("aws logs 12")),
}


@pytest.mark.parametrize(
    ("remedy", "typed"),
    [
        ("", []),
        ("deploy again", []),
        ("see the log of heal", []),
        ("see the log of heal-12", ["aws logs 12"]),
        ("the log Mendq-HealLog-12, then deploy", []),
        ("the log Mendq-HealLog-1, then deploy", ["aws logs 1"]),
        ("the log /of/ours/HealLog, then deploy", ["aws logs 12"]),
        ("the log /of/ours/HealLog/more", []),
        ("see the log of heal-1, and deploy", ["aws logs 1"]),
        (Command("aws sqs x --queue-url heal-1"), ["aws sqs x --queue-url heal-1"]),
        (Command("aws sqs x heal-1"), ["aws sqs x heal-1"]),
    ],
)
def test_what_there_is_to_type(remedy: str, typed: list[str]) -> None:
    assert list(Check("a", Status.FAIL, "it fails", remedy).commands(LOGS)) == typed


def test_a_shell_sees_the_words_that_a_command_was_made_of() -> None:
    command = Command.aws("eu-west-1", "logs", "tag-x", "--name", "a b;$(c)")
    assert command == "aws logs tag-x --region eu-west-1 --name 'a b;$(c)'"


ROOT = Path(__file__).resolve().parents[3]
DOCTOR = [ROOT / "mendq/cli/look/doctor.py", *sorted((ROOT / "mendq/cli/doctor").glob("*.py"))]


def _written_out(source: str) -> list[str]:
    """Texts of the AWS CLI's commands that are no `Command`."""
    nodes = (each for each in ast.walk(ast.parse(source)) if isinstance(each, ast.Constant))
    texts = [each.value for each in nodes if isinstance(each.value, str)]
    return [each for each in texts if re.search(r"\baws [a-z]", each)]


@pytest.mark.parametrize("source", DOCTOR, ids=lambda path: path.name)
def test_no_remedy_has_a_command_in_its_text(source: Path) -> None:
    """It would be wrapped, and its links broken."""
    assert _written_out(source.read_text()) == []


@pytest.mark.parametrize("wrong", ['f"aws sqs x {url}"', '"tag one: aws sqs x"'])
def test_a_command_in_a_text_is_found(wrong: str) -> None:
    assert _written_out(f"remedy = {wrong}")

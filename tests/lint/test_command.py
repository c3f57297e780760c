"""`mendq lint` as a CI job calls it, without an AWS account: exit codes and output formats."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from mendq.catalogue.visibility.visibility_timeout_too_short import (
    VISIBILITY_TIMEOUT_TOO_SHORT as VISIBILITY,
)
from mendq.cli.app import app
from mendq.lint import rules
from mendq.lint.judging import CONFIGURATION_SYMPTOMS
from tests.infra.synthesized import folder_of
from tests.lint.builders import (
    FAULTY_OUTPUT,
    FAULTY_TEMPLATE,
    LINT_PAGE,
    SOUND_TEMPLATE,
    TOO_COSTLY_TEMPLATE,
)
from tests.lint.plans import make_change, make_existing_queue, make_plan
from tests.source_files import ROOT

pytestmark = pytest.mark.usefixtures("no_account")
GOLDEN = Path(__file__).parent
MISSING_FILE_EXAMPLES = yaml.safe_load((GOLDEN / "values.yaml").read_text())["not_there"]


def _run_lint(*arguments: str, given: str | bytes = "") -> Result:
    return CliRunner().invoke(app, ["lint", *arguments], input=given)


@pytest.mark.parametrize(("file", "argument", "message"), MISSING_FILE_EXAMPLES)
def test_lint_of_a_missing_file_or_template_exits_2_and_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, argument: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    stack = {"type": "aws:cloudformation:stack", "properties": {"templateFile": "gone.json"}}
    if file:
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(json.dumps({"artifacts": {"Mendq": stack}}))
    result = _run_lint(argument, "--json")
    assert result.exit_code == 2
    assert json.loads(result.stdout)["error"] == {"code": "usage", "message": message}


@pytest.mark.parametrize("form", ["json", "github", "sarif"])
def test_lint_of_the_documented_template_exits_1_and_prints_the_recorded_output_of_each_format(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop,100%.yaml").write_text(FAULTY_TEMPLATE)
    result = _run_lint("shop,100%.yaml", "--format", form)
    assert result.exit_code == 1
    assert result.stdout == (GOLDEN / f"faulty.{form}").read_text()


def test_lint_option_json_prints_the_same_as_format_json() -> None:
    outputs = {
        _run_lint("-", *options, given=FAULTY_TEMPLATE).stdout
        for options in (("--json",), ("--format", "json"))
    }
    assert len(outputs) == 1


def test_lint_of_a_sound_template_exits_0() -> None:
    assert _run_lint("-", given=SOUND_TEMPLATE).exit_code == 0


ALLOW = {"Effect": "Allow", "Principal": {"Service": "sns.amazonaws.com"}, "Action": "sqs:*"}
GRANTS = {"Statement": [{**ALLOW, "Resource": "*"}]}
QUEUE = {"Type": "AWS::SQS::Queue", "Properties": {}}
POLICY_PROPERTIES = {"Queues": [{"Ref": "Orders"}], "PolicyDocument": GRANTS}
POLICY = {"Type": "AWS::SQS::QueuePolicy", "Properties": POLICY_PROPERTIES}
QUEUE_WITH_POLICY = make_existing_queue("aws_sqs_queue.orders", "orders", policy=json.dumps(GRANTS))
QUEUE_WITHOUT_POLICY = make_existing_queue("aws_sqs_queue.orders", "orders")
POLICY_RESOURCE = make_change(
    "aws_sqs_queue_policy.x",
    {"queue_url": QUEUE_WITHOUT_POLICY["change"]["after"]["url"], "policy": json.dumps(GRANTS)},
)
SOURCE_BY_POLICY_PLACE = {
    "Own": json.dumps({"Resources": {"Orders": QUEUE, "Own": POLICY}}),
    "aws_sqs_queue.orders.policy": make_plan(QUEUE_WITH_POLICY).decode(),
    "aws_sqs_queue_policy.x": make_plan(QUEUE_WITHOUT_POLICY, POLICY_RESOURCE).decode(),
}
FORMS = list(product(SOURCE_BY_POLICY_PLACE, ("text", "json", "github", "sarif")))


@pytest.mark.parametrize(("policy_place", "form"), [*FORMS, ("Own", "cfn-lint")])
def test_lint_remedy_adds_a_tls_denial_to_a_queue_policy_and_replaces_nothing(
    policy_place: str, form: str
) -> None:
    """A policy with only the denial would remove the permissions that the old policy grants."""
    text = SOURCE_BY_POLICY_PLACE[policy_place]
    if form == "cfn-lint":
        output = " ".join(message for _, _, message in rules._list_messages(text.encode()))
    else:
        output = _run_lint("-", "--format", form, given=text).stdout.replace('\\"', '"')
    assert f"# add to the Statement of {policy_place}" in output
    assert len(re.findall(r"(?:- |\{\"?)Effect\W+Deny", output)) == 1
    for replacement in ("PolicyDocument:", "policy =", '"Statement"', "jsonencode"):
        assert replacement not in output


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ([], 0),
        (["--fail-on", "error"], 0),
        (["--fail-on", "may_lose"], 0),
        (["--fail-on", "note"], 1),
        (["--fail-on", "hygiene"], 1),
        (["--fail-on", "hygiene", "--ignore", "dlq_missing"], 1),
        (["--fail-on", "hygiene", "--ignore", "tls_not_enforced"], 0),
    ],
)
def test_lint_exit_code_counts_only_findings_at_fail_on_severity_that_are_not_ignored(
    options: list[str], code: int
) -> None:
    result = _run_lint("-", *options, given=SOURCE_BY_POLICY_PLACE["Own"])
    assert result.exit_code == code
    assert "tls_not_enforced" in result.stdout, "listed even if it does not count"


@pytest.mark.parametrize(
    ("severity", "code"),
    [
        ("exposed", 0),
        ("losing", 0),
        ("standing_still", 1),
        ("will_lose", 1),
        ("may_lose", 1),
        ("error", 1),
        ("warning", 1),
    ],
)
def test_lint_fail_on_a_class_counts_findings_of_it_and_of_worse_classes(
    severity: str, code: int
) -> None:
    """The only finding that counts is a visibility timeout below the function's."""
    assert _run_lint("-", "--fail-on", severity, given=FAULTY_TEMPLATE).exit_code == code


def test_lint_fail_on_an_unknown_name_exits_2_and_lists_the_severities_and_classes() -> None:
    result = _run_lint("-", "--fail-on", "loosing", given=SOUND_TEMPLATE)
    assert result.exit_code == 2
    assert "error, warning, note, exposed, losing, standing_still" in result.stderr


def test_lint_class_option_shows_and_counts_only_findings_of_the_named_classes() -> None:
    shown = _run_lint("-", "--class", "standing_still", "--json", given=FAULTY_TEMPLATE)
    assert [
        (finding["symptom"], finding["class"], finding["severity"])
        for finding in json.loads(shown.stdout)["templates"][0]["findings"]
    ] == [(VISIBILITY.name, "standing_still", "error")]
    assert shown.exit_code == 1
    hidden = _run_lint("-", "--class", "exposed", "--json", given=FAULTY_TEMPLATE)
    assert json.loads(hidden.stdout)["findings"] == 0
    assert hidden.exit_code == 0


def test_lint_findings_of_several_queues_are_listed_worst_class_first() -> None:
    dead = {"Type": "AWS::SQS::Queue", "Properties": {"MessageRetentionPeriod": 60}}
    source: dict[str, Any] = {
        "Type": "AWS::SQS::Queue",
        "Properties": {"RedrivePolicy": {"deadLetterTargetArn": {"Fn::GetAtt": ["Dead", "Arn"]}}},
    }
    source["Properties"]["RedrivePolicy"]["maxReceiveCount"] = 5
    open_policy = {**ALLOW, "Principal": "*"}
    policy = {
        "Type": "AWS::SQS::QueuePolicy",
        "Properties": {
            "Queues": [{"Ref": "Source"}],
            "PolicyDocument": {"Statement": [{**open_policy, "Resource": "*"}]},
        },
    }
    resources = {"Plain": QUEUE, "Dead": dead, "Source": source, "Open": policy}
    result = _run_lint("-", "--json", given=json.dumps({"Resources": resources}))
    classes = [
        finding["class"] for finding in json.loads(result.stdout)["templates"][0]["findings"]
    ]
    assert list(dict.fromkeys(classes)) == ["exposed", "will_lose", "hygiene"]


def test_lint_ignore_option_with_an_unknown_name_exits_2_and_lists_the_known_names() -> None:
    result = _run_lint("-", "--ignore", "tls", given=SOURCE_BY_POLICY_PLACE["Own"])
    assert result.exit_code == 2
    assert "tls_not_enforced, not_encrypted" in result.stderr


def test_lint_error_exits_1_even_with_fail_on_error_unless_ignored() -> None:
    assert _run_lint("-", "--fail-on", "error", given=FAULTY_TEMPLATE).exit_code == 1
    ignoring = ("--ignore", VISIBILITY.name, "--json")
    result = _run_lint("-", *ignoring, given=FAULTY_TEMPLATE)
    document = json.loads(result.stdout)
    assert result.exit_code == 0
    assert document["findings"] == 0
    assert document["ignored"] == 2


@pytest.fixture
def hide_optional_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("mendq.lint.view", raising=False)
    monkeypatch.setitem(sys.modules, "mendq.lint.view", None)


@pytest.mark.usefixtures("hide_optional_packages")
def test_lint_without_its_optional_packages_exits_2_and_says_what_to_install() -> None:
    result = _run_lint(__file__)
    assert result.exit_code == 2
    assert "pip install '.[lint]'" in result.stderr


@pytest.mark.usefixtures("hide_optional_packages")
def test_lint_reports_a_missing_file_before_missing_packages() -> None:
    result = _run_lint("x")
    assert result.exit_code == 2
    assert "there is no x: name a" in result.stderr


def test_lint_judging_imports_neither_cfn_lint_nor_yaml() -> None:
    """The template hook's Lambda judges properties, and its zip holds neither package."""
    code = "import sys, mendq.lint.judging; sys.exit(bool({'cfnlint', 'yaml'} & {*sys.modules}))"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


@pytest.mark.parametrize("form", [[], ["--format", "github"], ["--format", "sarif"]])
@pytest.mark.parametrize(
    "given", [b"", b"Resources", b"Resources: []", b"\xff\xfe", TOO_COSTLY_TEMPLATE.encode()]
)
def test_lint_of_an_unreadable_template_exits_2_with_one_line_on_stderr(
    given: bytes, form: list[str]
) -> None:
    result = _run_lint("-", *form, given=given)
    assert (result.exit_code, result.stdout) == (2, "")
    (line,) = result.stderr.splitlines()
    assert line.startswith("mendq: (standard input): ")


def test_lint_output_escapes_terminal_control_characters_in_template_names() -> None:
    hostile = "\x1b[2J\x1b]0;owned\x07\r::error::x\n"
    queue = {"Type": "AWS::SQS::Queue", "Properties": {"SqsManagedSseEnabled": False}}
    policy = {
        "Type": "AWS::SQS::QueuePolicy",
        "Properties": {**POLICY_PROPERTIES, "Queues": [{"Ref": "B"}]},
    }
    resources = {hostile: queue, "B": {**queue, "Metadata": {"mendq": {"ignore": [hostile]}}}}
    resources[f"{hostile}p"] = policy
    text = json.dumps({"Transform": hostile, "Resources": resources})
    for options in ([], ["--format", "github"], ["--json"]):
        result = _run_lint("-", *options, given=text)
        assert result.exit_code == 0, result.output
        assert "tls_not_enforced" in result.output
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", result.output)
        assert not re.search(r"^::error::x", result.output, re.MULTILINE)


def test_lint_of_mendqs_own_stack_finds_nothing() -> None:
    result = _run_lint(str(folder_of("default")), "--json")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert document["not_judged"] == 0
    assert document["templates"][0]["queues"] > 5


def test_lint_page_links_every_check_and_shows_the_real_output_of_its_example() -> None:
    text = LINT_PAGE.read_text()
    for symptom in (*CONFIGURATION_SYMPTOMS, VISIBILITY):
        assert f"(runbooks/{symptom.name}.md)" in text
    result = _run_lint("-", given=FAULTY_TEMPLATE)
    assert result.exit_code == 1
    assert " ".join(FAULTY_OUTPUT.split()) in " ".join(result.stdout.split())

"""`mendq lint` as a pull request's job calls it: exits, text, --json, annotations; no account."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

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
from tests.lint.plans import change, plan, queue_there
from tests.source_files import ROOT

pytestmark = pytest.mark.usefixtures("no_account")
GOLDEN = Path(__file__).parent
NOT_THERE = yaml.safe_load((GOLDEN / "values.yaml").read_text())["not_there"]


def _lint(*arguments: str, given: str | bytes = "") -> Result:
    return CliRunner().invoke(app, ["lint", *arguments], input=given)


@pytest.mark.parametrize(("there", "argument", "says"), NOT_THERE)
def test_lint_of_a_missing_file_or_template_exits_2_and_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: str, argument: str, says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    stack = {"type": "aws:cloudformation:stack", "properties": {"templateFile": "gone.json"}}
    if there:
        (tmp_path / there).parent.mkdir(exist_ok=True)
        (tmp_path / there).write_text(json.dumps({"artifacts": {"Mendq": stack}}))
    result = _lint(argument, "--json")
    assert result.exit_code == 2
    assert json.loads(result.stdout)["error"] == {"code": "usage", "message": says}


@pytest.mark.parametrize("form", ["json", "github", "sarif"])
def test_lint_prints_the_documented_example_in_json_github_and_sarif_format(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop,100%.yaml").write_text(FAULTY_TEMPLATE)
    result = _lint("shop,100%.yaml", "--format", form)
    assert (result.exit_code, result.stdout) == (1, (GOLDEN / f"faulty.{form}").read_text())
    if form == "json":
        assert _lint("shop,100%.yaml", "--json").stdout == result.stdout
        (tmp_path / "sound.yaml").write_text(SOUND_TEMPLATE)
        assert _lint("sound.yaml").exit_code == 0


ALLOW = {"Effect": "Allow", "Principal": {"Service": "sns.amazonaws.com"}, "Action": "sqs:*"}
GRANTS = {"Statement": [{**ALLOW, "Resource": "*"}]}
QUEUE = {"Type": "AWS::SQS::Queue", "Properties": {}}
OWN = {"Queues": [{"Ref": "Orders"}], "PolicyDocument": GRANTS}
POLICY = {"Type": "AWS::SQS::QueuePolicy", "Properties": OWN}
ORDERS = queue_there("aws_sqs_queue.orders", "orders", policy=json.dumps(GRANTS))
BESIDE = queue_there("aws_sqs_queue.orders", "orders")
SETS = change(
    "aws_sqs_queue_policy.x",
    {"queue_url": BESIDE["change"]["after"]["url"], "policy": json.dumps(GRANTS)},
)
WITH_A_POLICY = {
    "Own": json.dumps({"Resources": {"Orders": QUEUE, "Own": POLICY}}),
    "aws_sqs_queue.orders.policy": plan(ORDERS).decode(),
    "aws_sqs_queue_policy.x": plan(BESIDE, SETS).decode(),
}
FORMS = [(named, form) for named in WITH_A_POLICY for form in ("text", "json", "github", "sarif")]


@pytest.mark.parametrize(("named", "form"), [*FORMS, ("Own", "cfn-lint")])
def test_lint_remedy_adds_a_tls_denial_to_an_existing_queue_policy_and_never_replaces_the_policy(
    named: str, form: str
) -> None:
    """Set in its place, the denial alone would take away what it grants."""
    text = WITH_A_POLICY[named]
    if form == "cfn-lint":
        said = " ".join(says for _, _, says in rules._list_messages(text.encode()))
    else:
        said = _lint("-", "--format", form, given=text).stdout.replace('\\"', '"')
    assert f"# add to the Statement of {named}" in said
    assert len(re.findall(r"(?:- |\{\"?)Effect\W+Deny", said)) == 1
    for whole in ("PolicyDocument:", "policy =", '"Statement"', "jsonencode"):
        assert whole not in said


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ([], 1),
        (["--fail-on", "error"], 0),
        (["--ignore", "dlq_missing"], 1),
        (["--ignore", "dlq_missing", "--ignore", "tls_not_enforced"], 0),
        (["--ignore", "tls"], 2),
    ],
)
def test_lint_exit_code_counts_only_findings_at_fail_on_severity_that_are_not_ignored(
    options: list[str], code: int
) -> None:
    result = _lint("-", *options, given=WITH_A_POLICY["Own"])
    assert result.exit_code == code
    if code == 2:
        assert "tls_not_enforced, not_encrypted" in result.stderr, "the names that there are"
    else:
        assert "tls_not_enforced" in result.stdout, "shown, also where it does not count"


def test_lint_error_exits_1_even_with_fail_on_error_unless_ignored() -> None:
    assert _lint("-", "--fail-on", "error", given=FAULTY_TEMPLATE).exit_code == 1
    ignoring = ("--ignore", VISIBILITY.name, "--json")
    result = _lint("-", *ignoring, given=FAULTY_TEMPLATE)
    document = json.loads(result.stdout)
    assert (result.exit_code, document["findings"], document["ignored"]) == (0, 0, 2)


def test_lint_without_its_optional_packages_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr("mendq.lint.view", raising=False)
    monkeypatch.setitem(sys.modules, "mendq.lint.view", None)
    for argument, says in ((__file__, "pip install '.[lint]'"), ("x", "there is no x: name a")):
        result = _lint(argument)
        assert (result.exit_code, says in result.stderr) == (2, True)


def test_lint_judging_imports_neither_cfn_lint_nor_yaml() -> None:
    """So that a function may judge resolved properties: its zip holds neither."""
    code = "import sys, mendq.lint.judging; sys.exit(bool({'cfnlint', 'yaml'} & {*sys.modules}))"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


@pytest.mark.parametrize("form", [[], ["--format", "github"], ["--format", "sarif"]])
@pytest.mark.parametrize(
    "given", [b"", b"Resources", b"Resources: []", b"\xff\xfe", TOO_COSTLY_TEMPLATE.encode()]
)
def test_lint_of_an_unreadable_template_exits_2_with_one_line_on_stderr(
    given: bytes, form: list[str]
) -> None:
    result = _lint("-", *form, given=given)
    assert (result.exit_code, result.stdout) == (2, "")
    (line,) = result.stderr.splitlines()
    assert line.startswith("mendq: (standard input): ")


def test_lint_output_escapes_terminal_control_characters_in_template_names() -> None:
    evil = "\x1b[2J\x1b]0;owned\x07\r::error::x\n"
    queue = {"Type": "AWS::SQS::Queue", "Properties": {"SqsManagedSseEnabled": False}}
    denied = {"Type": "AWS::SQS::QueuePolicy", "Properties": {**OWN, "Queues": [{"Ref": "B"}]}}
    resources = {evil: queue, "B": {**queue, "Metadata": {"mendq": {"ignore": [evil]}}}}
    resources[f"{evil}p"] = denied
    text = json.dumps({"Transform": evil, "Resources": resources})
    for more in ([], ["--format", "github"], ["--json"]):
        result = _lint("-", *more, given=text)
        assert result.exit_code == 1, result.output
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", result.output)
        assert not re.search(r"^::error::x", result.output, re.MULTILINE)


def test_lint_of_mendqs_own_stack_finds_nothing() -> None:
    result = _lint(str(folder_of("default")), "--json")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert document["not_judged"] == 0
    assert document["templates"][0]["queues"] > 5


def test_lint_page_links_every_check_and_shows_the_real_output_of_its_example() -> None:
    text = LINT_PAGE.read_text()
    for each in (*CONFIGURATION_SYMPTOMS, VISIBILITY):
        assert f"(runbooks/{each.name}.md)" in text
    result = _lint("-", given=FAULTY_TEMPLATE)
    assert result.exit_code == 1
    assert " ".join(FAULTY_OUTPUT.split()) in " ".join(result.stdout.split())

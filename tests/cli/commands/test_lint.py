"""`mendq lint` as a pull request's job calls it: exits, text, --json, annotations; no account."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from mendq.catalogue.visibility_timeout_too_short import VISIBILITY_TIMEOUT_TOO_SHORT as VISIBILITY
from mendq.cli.__main__ import app
from mendq.lint.judging import OF_CONFIGURATION
from mendq.lint.template import A_TEMPLATE, Work
from tests.infra.synthesized import SETTINGS, folder_of

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "lint.md"

# The page's own example: a finding, one that is ignored, and a place that is not judged.
FAULTY, SHOWN = re.findall(
    r"^```(?:yaml|text)\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL
)[:2]
SOUND = FAULTY.replace("Default: 20", "Default: 180")


LONG = {"Fn::Join": ["x" * 10_000, ["y"] * 5_000]}
REPEATING = {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": LONG}}
COSTING_TOO_MUCH = json.dumps({"Resources": {"Q": REPEATING}})


@pytest.fixture(autouse=True)
def _no_account(monkeypatch: pytest.MonkeyPatch) -> None:
    """Offline: whoever asks AWS for anything here fails at once."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name)


def _lint(*arguments: str, given: str | bytes = "") -> Result:
    return CliRunner().invoke(app, ["lint", *arguments], input=given)


def _document(text: str, code: int) -> Any:
    result = _lint("-", "--json", given=text)
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


def test_a_finding_ends_with_1_and_is_said_with_place_and_remedy() -> None:
    assert _document(SOUND, 0)["findings"] == 0
    document = _document(FAULTY, 1)
    assert (document["schema"], document["findings"], document["ignored"]) == (1, 1, 1)
    (template,) = document["templates"]
    (finding,) = template["findings"]
    assert finding == {
        "resource": "Orders",
        "symptom": "visibility_timeout_too_short",
        "severity": "error",
        "path": "Resources.Orders.Properties.VisibilityTimeout",
        "line": 8,
        "because": "the visibility timeout of 20 s ends before its consumers are done: its "
        "Lambda consumer "
        "may run 30 s and waits 0 s for a batch; AWS recommends 180 s",
        "remedy": ["VisibilityTimeout: 180"],
        "runbook": "docs/runbooks/visibility_timeout_too_short.md",
        "aws_page": VISIBILITY.aws_page,
    }
    assert template["defaults"] == [{"parameter": "Timeout", "value": "20"}]
    (not_judged,) = template["not_judged"]
    assert not_judged["line"] == 9
    assert "redrive_cycle" in not_judged["symptoms"]


@pytest.mark.parametrize(
    ("there", "argument", "says"),
    [
        ("", "cdk.out", "there is no cdk.out: make it with `make synth` or `cdk synth`"),
        ("", "app/cdk.out/", "there is no app/cdk.out/: make it with `make synth` or `cdk synth`"),
        (
            "",
            "orders.yaml",
            "there is no orders.yaml: name a template, a cdk.out folder, or - for standard input",
        ),
        (
            "cdk.out/manifest.json",
            "cdk.out",
            "there is no cdk.out/gone.json: write the folder with `make synth` or `cdk synth` anew",
        ),
        ("orders.yaml", "orders.yaml/x", "orders.yaml/x cannot be read: Not a directory"),
        ("", ".", ". holds no manifest.json: give a template or a cdk.out folder"),
        ("", "a\0.yaml", "a\0.yaml cannot be read: embedded null byte"),
    ],
)
def test_what_is_not_there_is_said_with_the_remedy(
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


def test_github_is_said_in_one_line_each_where_to_put_it(tmp_path: Path) -> None:
    path = tmp_path / "shop,100%.yaml"
    path.write_text(FAULTY)
    result = _lint(str(path), "--format", "github")
    assert result.exit_code == 1
    (line,) = result.stdout.splitlines()
    assert line.startswith("::error file=")
    assert (
        "shop%2C100%25.yaml,line=8,title=visibility_timeout_too_short::Orders: the visibility "
        "timeout of 20 s"
    ) in line
    assert "%0AVisibilityTimeout: 180%0Adocs/runbooks/visibility_timeout_too_short.md" in line


def test_sarif_names_the_rule_the_file_and_the_line(tmp_path: Path) -> None:
    path = tmp_path / "shop.yaml"
    path.write_text(FAULTY)
    result = _lint(str(path), "--format", "sarif")
    assert result.exit_code == 1
    (run,) = json.loads(result.stdout)["runs"]
    assert [each["id"] for each in run["tool"]["driver"]["rules"]] == [
        "visibility_timeout_too_short"
    ]
    (found,) = run["results"]
    assert (found["ruleId"], found["level"]) == ("visibility_timeout_too_short", "error")
    where = found["locations"][0]["physicalLocation"]
    assert where == {"artifactLocation": {"uri": str(path)}, "region": {"startLine": 8}}


def test_format_json_is_the_document_of_json() -> None:
    as_format = _lint("-", "--format", "json", given=FAULTY)
    assert json.loads(as_format.stdout) == _document(FAULTY, 1)


def test_only_lint_itself_loads_cfn_lint() -> None:
    code = "import sys, mendq.cli.__main__; sys.exit('cfnlint' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


@pytest.mark.parametrize("form", [[], ["--format", "github"], ["--format", "sarif"]])
@pytest.mark.parametrize(
    "given", [b"", b"Resources", b"Resources: []", b"\xff\xfe", COSTING_TOO_MUCH.encode()]
)
def test_what_cannot_be_judged_is_one_line_and_2(given: bytes, form: list[str]) -> None:
    result = _lint("-", *form, given=given)
    assert (result.exit_code, result.stdout) == (2, "")
    (line,) = result.stderr.splitlines()
    assert line.startswith("mendq: (standard input): ")


def test_a_template_that_is_named_over_and_over_costs_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mendq.lint.template.Work", lambda: Work(left_in_all=5 * A_TEMPLATE))
    stack = {"type": "aws:cloudformation:stack", "properties": {"templateFile": "a.json"}}
    (tmp_path / "a.json").write_text(json.dumps({"Resources": {}}))
    for times, code in ((3, 0), (30, 2)):
        artifacts = {f"S{n}": stack for n in range(times)}
        (tmp_path / "manifest.json").write_text(json.dumps({"artifacts": artifacts}))
        result = _lint(str(tmp_path), "--json")
        assert result.exit_code == code, result.output
    assert "name fewer at once" in json.loads(result.stdout)["error"]["message"]


def test_names_that_would_steer_a_terminal_are_spelled_out() -> None:
    evil = "\x1b[2J\x1b]0;owned\x07\r::error::x\n"
    queue = {"Type": "AWS::SQS::Queue", "Properties": {"SqsManagedSseEnabled": False}}
    resources = {evil: queue, "B": {**queue, "Metadata": {"mendq": {"ignore": [evil]}}}}
    text = json.dumps({"Transform": evil, "Resources": resources})
    for more in ([], ["--format", "github"], ["--json"]):
        result = _lint("-", *more, given=text)
        assert result.exit_code == 1, result.output
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", result.output)
        assert not re.search(r"^::error::x", result.output, re.MULTILINE)


@pytest.mark.parametrize("name", SETTINGS)
def test_mendqs_own_stack_is_clean(name: str) -> None:
    result = _lint(str(folder_of(name)), "--json")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert document["not_judged"] == 0
    assert document["templates"][0]["queues"] > 5


def test_the_page_names_every_check_and_its_own_example_says_what_it_shows() -> None:
    text = PAGE.read_text()
    for each in (*OF_CONFIGURATION, VISIBILITY):
        assert f"(runbooks/{each.name}.md)" in text
    result = _lint("-", given=FAULTY)
    assert result.exit_code == 1
    assert " ".join(SHOWN.split()) in " ".join(result.stdout.split())

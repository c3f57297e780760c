"""The same findings for who runs cfn-lint itself, and before each commit."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from mendq.cli.app import app
from mendq.cli.command_group import find_commands
from mendq.lint.judging import CHECKED_SYMPTOMS, LintSeverity
from mendq.lint.rules import RULES, make_rule_id
from tests.lint.builders import FAULTY_TEMPLATE, SOUND_TEMPLATE, TOO_COSTLY_TEMPLATE
from tests.source_files import ROOT

OURS = {each.id: each for each in RULES}


def _cfn_lint(*asked: str) -> list[dict[str, Any]]:
    """What cfn-lint says with our rules beside its own, of ours alone."""
    asked = ("-a", "mendq.lint.rules", "--format", "json", *asked)
    program = Path(sys.executable).with_name("cfn-lint")
    run = subprocess.run((program, *asked), capture_output=True, text=True, check=False)
    said = json.loads(run.stdout)
    assert not [each for each in said if each["Rule"]["Id"] == "E0002"], "no rule of ours fails"
    return [each for each in said if each["Rule"]["Id"] in {*OURS, "I9500", "W9500"}]


def test_cfn_lint_with_mendqs_rules_reports_the_findings_of_mendq_lint_on_the_same_lines(
    tmp_path: Path,
) -> None:
    path = tmp_path / "shop.yaml"
    sound, costly = path.with_name("sound.yaml"), path.with_name("costly.json")
    sound.write_text(SOUND_TEMPLATE)
    costly.write_text(TOO_COSTLY_TEMPLATE)
    path.write_text(FAULTY_TEMPLATE.replace("ignore: [tls_not_enforced]", "ignore: []"))
    linted = CliRunner().invoke(app, ["lint", str(path), "--json"]).stdout
    findings = json.loads(linted)["templates"][0]["findings"]
    assert len(findings) == 2
    wanted = {
        (make_rule_id(each["symptom"], LintSeverity(each["severity"])), each["line"])
        for each in findings
    }
    files = ("-t", *map(str, (sound, path, costly)))
    every = _cfn_lint("--include-checks", "I9500", *files)
    found, of_sound, (too_costly,) = (
        [each for each in every if each["Filename"] == str(file)] for file in (path, sound, costly)
    )
    assert [each["Rule"]["Id"] for each in of_sound] == ["I9500"]
    said = {(each["Rule"]["Id"], each["Location"]["Start"]["LineNumber"]) for each in found}
    assert said == wanted | {("I9500", 9)}
    (error,) = (each["Message"] for each in found if each["Level"] == "Error")
    assert "VisibilityTimeout: 180" in error
    assert too_costly["Rule"]["Id"] == "W9500"
    assert "takes more than" in too_costly["Message"]
    assert _cfn_lint("--ignore-checks", *(each for each, _ in wanted), "-t", str(path)) == []


def test_each_checked_symptom_has_its_own_cfn_lint_rule_id_between_9501_and_9999() -> None:
    assert len(OURS) == len(RULES)
    assert {each.shortdesc for each in RULES} == {each.name for each in CHECKED_SYMPTOMS}
    assert len({each.id[1:] for each in RULES}) == len(CHECKED_SYMPTOMS)
    assert all(each.id[0] in "EW" and 9500 < int(each.id[1:]) < 10_000 for each in RULES)


@pytest.mark.parametrize(
    ("second", "code"), [(SOUND_TEMPLATE, 0), (FAULTY_TEMPLATE, 1), ("Resources", 2)]
)
def test_pre_commit_hook_runs_mendq_lint_on_all_files_in_one_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, second: str, code: int
) -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    program, command = hook["entry"].split()
    assert (hook["id"], program in project["scripts"]) == ("mendq-lint", True)
    assert command in find_commands()
    (extra,) = hook["additional_dependencies"]
    assert extra.removeprefix(".[").removesuffix("]") in project["optional-dependencies"]
    monkeypatch.chdir(tmp_path)
    for name, text in (("a.yaml", SOUND_TEMPLATE), ("b.yaml", second)):
        Path(name).write_text(text)
    result = CliRunner().invoke(app, [command, "a.yaml", "b.yaml"])
    assert result.exit_code == code
    assert code == 0 or "b.yaml: " in result.output

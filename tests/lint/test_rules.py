"""The findings of `mendq lint` as rules of cfn-lint and as a pre-commit hook."""

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

RULE_BY_ID = {rule.id: rule for rule in RULES}


def _run_cfn_lint(*options: str) -> list[dict[str, Any]]:
    """Run cfn-lint with Mendq's rules added and return only the matches of Mendq's rules."""
    options = ("-a", "mendq.lint.rules", "--format", "json", *options)
    program = Path(sys.executable).with_name("cfn-lint")
    run = subprocess.run((program, *options), capture_output=True, text=True, check=False)
    matches = json.loads(run.stdout)
    assert not [match for match in matches if match["Rule"]["Id"] == "E0002"], (
        "a rule of Mendq raised an exception"
    )
    return [match for match in matches if match["Rule"]["Id"] in {*RULE_BY_ID, "I9500", "W9500"}]


def _select_matches(matches: list[dict[str, Any]], file: Path) -> list[dict[str, Any]]:
    return [match for match in matches if match["Filename"] == str(file)]


def _list_rule_ids(matches: list[dict[str, Any]], file: Path) -> list[str]:
    return [match["Rule"]["Id"] for match in _select_matches(matches, file)]


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a faulty template, a sound one, and one that is too costly to judge."""
    folder = tmp_path_factory.mktemp("templates")
    faulty = FAULTY_TEMPLATE.replace("ignore: [tls_not_enforced]", "ignore: []")
    (folder / "faulty.yaml").write_text(faulty)
    (folder / "sound.yaml").write_text(SOUND_TEMPLATE)
    (folder / "costly.json").write_text(TOO_COSTLY_TEMPLATE)
    return folder


@pytest.fixture(scope="module")
def matches(templates: Path) -> list[dict[str, Any]]:
    """The matches of Mendq's rules in the three templates, with undecided places."""
    files = [str(path) for path in sorted(templates.iterdir())]
    return _run_cfn_lint("--include-checks", "I", "-t", *files)


def _list_expected_rules(path: Path) -> set[tuple[str, int]]:
    """Return the rule id and the line of each finding of `mendq lint`."""
    linted = CliRunner().invoke(app, ["lint", str(path), "--json"]).stdout
    return {
        (make_rule_id(finding["symptom"], LintSeverity(finding["severity"])), finding["line"])
        for finding in json.loads(linted)["templates"][0]["findings"]
    }


def test_cfn_lint_with_mendqs_rules_reports_the_findings_of_mendq_lint_on_the_same_lines(
    templates: Path, matches: list[dict[str, Any]]
) -> None:
    path = templates / "faulty.yaml"
    expected = _list_expected_rules(path)
    assert len(expected) == 2
    faulty = _select_matches(matches, path)
    rules_and_lines = {
        (match["Rule"]["Id"], match["Location"]["Start"]["LineNumber"]) for match in faulty
    }
    assert rules_and_lines == expected | {("I9500", 9)}
    (error,) = (match for match in faulty if match["Level"] == "Error")
    assert "VisibilityTimeout: 180" in error["Message"]


def test_cfn_lint_reports_an_undecided_place_as_i9500_and_a_too_costly_template_as_w9500(
    templates: Path, matches: list[dict[str, Any]]
) -> None:
    costly = templates / "costly.json"
    assert _list_rule_ids(matches, templates / "sound.yaml") == ["I9500"]
    assert _list_rule_ids(matches, costly) == ["W9500"]
    assert "takes more than" in _select_matches(matches, costly)[0]["Message"]


def test_cfn_lint_option_ignore_checks_silences_mendqs_rules(templates: Path) -> None:
    path = templates / "faulty.yaml"
    rule_ids = [rule_id for rule_id, _ in _list_expected_rules(path)]
    assert rule_ids
    assert _run_cfn_lint("--ignore-checks", *rule_ids, "-t", str(path)) == []


def test_each_checked_symptom_has_its_own_cfn_lint_rule_id_between_9501_and_9999() -> None:
    assert len(RULE_BY_ID) == len(RULES)
    assert {rule.shortdesc for rule in RULES} == {symptom.name for symptom in CHECKED_SYMPTOMS}
    assert len({rule.id[1:] for rule in RULES}) == len(CHECKED_SYMPTOMS)
    assert all(rule.id[0] in "EWI" and 9500 < int(rule.id[1:]) < 10_000 for rule in RULES)


def test_symptom_whose_template_faults_are_all_errors_has_no_rule_for_warnings_or_notes() -> None:
    symptom_names = {"consumer_throttled", "messages_expire"}
    letters_by_symptom = {
        rule.shortdesc: rule.id[0] for rule in RULES if rule.shortdesc in symptom_names
    }
    rule_count = sum(rule.shortdesc in symptom_names for rule in RULES)
    assert (rule_count, set(letters_by_symptom.values())) == (2, {"E"})


def test_pre_commit_hook_names_the_packages_program_lint_command_and_extra() -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    program, command = hook["entry"].split()
    assert (hook["id"], command) == ("mendq-lint", "lint")
    assert program in project["scripts"]
    assert command in find_commands()
    (extra,) = hook["additional_dependencies"]
    assert extra.removeprefix(".[").removesuffix("]") in project["optional-dependencies"]


@pytest.mark.parametrize(
    ("second", "code"), [(SOUND_TEMPLATE, 0), (FAULTY_TEMPLATE, 1), ("Resources", 2)]
)
def test_lint_of_two_files_has_the_exit_code_of_the_worse_one_and_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, second: str, code: int
) -> None:
    """A pre-commit hook passes several files in one call."""
    monkeypatch.chdir(tmp_path)
    for name, text in (("a.yaml", SOUND_TEMPLATE), ("b.yaml", second)):
        Path(name).write_text(text)
    result = CliRunner().invoke(app, ["lint", "a.yaml", "b.yaml"])
    assert result.exit_code == code
    assert code == 0 or "b.yaml: " in result.output

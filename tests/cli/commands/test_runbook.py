"""Test `mendq runbook`: the right page for a symptom, an alarm and a refusal code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from infra.alarms import ALARMS_IN_COMPOSITES, NOTIFYING_ALARMS
from mendq.catalogue import CATALOGUE
from mendq.cli.app import app
from mendq.cli.exit_codes import Exit
from mendq.cli.look import runbook as runbook_command

RUNBOOKS = Path(__file__).parents[3] / "docs" / "runbooks"


def _run(*arguments: str, code: Exit = Exit.DONE) -> str:
    result = CliRunner().invoke(app, ["runbook", *arguments])
    assert result.exit_code == code, result.output
    return result.output


def _find_runbook(name: str) -> str:
    document: dict[str, str] = json.loads(
        CliRunner().invoke(app, ["runbook", name, "--json"]).stdout
    )
    return document["runbook"]


def test_runbook_of_each_symptom_is_its_own_page() -> None:
    assert CATALOGUE
    for symptom in CATALOGUE:
        assert _find_runbook(symptom.name) == symptom.name


def test_runbook_of_each_alarm_is_the_page_that_the_alarm_names() -> None:
    assert NOTIFYING_ALARMS
    for alarm in (*NOTIFYING_ALARMS, *ALARMS_IN_COMPOSITES):
        assert f"docs/runbooks/{_find_runbook(alarm.alarm_name())}.md" == alarm.runbook_path


def test_runbook_of_an_alarm_of_one_resource_is_that_of_the_alarm() -> None:
    assert _find_runbook("mendq-own-dlq-intake") == "own_dlq"


def test_runbook_accepts_the_path_that_a_notification_prints() -> None:
    assert _find_runbook("docs/runbooks/dlq_missing.md") == "dlq_missing"


def test_runbook_begins_with_what_to_do_and_prints_the_background_only_if_asked() -> None:
    printed = _run("consumer_failing")
    assert "Do now" in printed
    assert "A scan looks at the last six hours" not in printed
    assert "A scan looks at the last six hours" in _run("consumer_failing", "--why")


def test_runbook_prints_each_command_on_one_line_without_the_marks_of_its_file() -> None:
    printed = _run("dlq_missing")
    assert "```" not in printed
    assert "<!--" not in printed
    for name in ("consumer_failing", "policy_is_public"):
        commands = [
            line.strip()
            for line in (RUNBOOKS / f"{name}.md").read_text().splitlines()
            if line.strip().startswith("aws ")
        ]
        assert commands
        printed_lines = [line.strip() for line in _run(name).splitlines()]
        assert {*commands} <= {*printed_lines}


@pytest.mark.parametrize("name", ["mass_symptom", "refused: mass_symptom"])
def test_runbook_explains_a_refusal_code_of_any_symptom(name: str) -> None:
    printed = _run(name)
    assert "any symptom" in printed
    assert "limits.massSymptomShare" in printed


def test_runbook_of_a_code_prints_only_the_items_that_mention_it() -> None:
    printed = _run("frozen")
    assert "End the freeze when changes are safe" in printed
    assert "access_check_failed" not in printed


def test_runbook_of_a_misspelled_name_exits_4_and_suggests_the_right_one() -> None:
    assert "Did you mean consumer_stopped?" in _run("consumer_stoped", code=Exit.NOT_FOUND)


@pytest.mark.parametrize("name", ["README", "nothing-like-it", "../../pyproject", "mendq-"])
def test_runbook_of_an_unknown_name_exits_4_and_lists_the_runbooks(name: str) -> None:
    assert "dlq_missing" in _run(name, code=Exit.NOT_FOUND)


def test_installation_without_runbooks_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(runbook_command, "RUNBOOK_FOLDERS", (tmp_path / "none",))
    assert "install the wheel of Mendq again" in _run("dlq_missing", code=Exit.FAILED)

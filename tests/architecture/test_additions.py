"""What `make check` says about an addition that is not complete."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec
import pytest

from infra.alarms.health import TRAIL_BUSY_ALARM
from mendq.cli.command_group import HELP_PANELS
from mendq.cli.commands import list_commands
from mendq.model.limits import Range
from mendq.model.names import OwnMetric
from tests.architecture.additions import (
    HEADINGS,
    missing,
    missing_in_alarms,
    missing_in_commands,
    missing_in_lambdas,
    missing_in_settings,
    uncounted_metrics,
    unlisted_alarms,
    unmade_alarms,
    unread_commands,
)

ALARM = msgspec.structs.replace(TRAIL_BUSY_ALARM, name="cases_lost", runbook="")
WHOLE_PAGE = "".join(f"## {heading}\n\n`mendq-cases-lost`\n\n" for heading in HEADINGS)
COMMAND = '''
@command(
    12,
    CommandKind.LOOKING,
)
def where(call: Invocation) -> None:
    """Say where it is."""
'''


def test_repository_has_every_part_that_an_addition_needs() -> None:
    assert list(missing()) == []


@pytest.mark.parametrize(
    ("page", "says"),
    [
        (None, "has no runbook: write docs/runbooks/cases_lost.md with the headings `## Impact`"),
        (
            WHOLE_PAGE.replace("cases-lost", "x"),
            "does not name its alarm: write `mendq-cases-lost`",
        ),
        (WHOLE_PAGE.replace("## Undo", "Undo"), "it needs exactly Impact, Do now, Verify, Undo"),
        (WHOLE_PAGE, ""),
    ],
)
def test_make_check_says_which_part_of_its_runbook_an_alarm_lacks(
    tmp_path: Path, page: str | None, says: str
) -> None:
    if page is not None:
        path = tmp_path / ALARM.runbook_path
        path.parent.mkdir(parents=True)
        path.write_text(page)
    sentences = list(missing_in_alarms([ALARM], tmp_path))
    assert len(sentences) == bool(says)
    assert says in "".join(sentences)


def test_make_check_reports_an_alarm_without_a_severity_that_is_in_no_composite_alarm() -> None:
    silent = msgspec.structs.replace(TRAIL_BUSY_ALARM, severity=None, part="Parked")
    (sentence,) = missing_in_alarms([silent])
    assert "reaches nobody: give it a severity" in sentence
    joined = msgspec.structs.replace(silent, part="NightlyRuns")
    assert list(missing_in_alarms([joined])) == []


def test_make_check_reports_an_alarm_missing_in_the_list_of_descriptions() -> None:
    (sentence,) = unlisted_alarms({"LOST": ALARM}, [TRAIL_BUSY_ALARM])
    assert "The alarm LOST is described and not listed: add it to `DESCRIPTIONS`" in sentence
    assert list(unlisted_alarms({"LOST": ALARM}, [TRAIL_BUSY_ALARM, ALARM])) == []


def test_make_check_reports_an_alarm_that_no_stack_creates() -> None:
    described = "LOST = AlarmDescription()\nDESCRIPTIONS = (\n    LOST,\n)\n"
    (sentence,) = unmade_alarms(["LOST"], [described])
    assert "add its `Watch` to infra/alarms/health.py" in sentence
    assert list(unmade_alarms(["LOST"], [described, "yield Watch(LOST)\n"])) == []


def test_make_check_reports_a_metric_that_no_code_counts() -> None:
    metric = OwnMetric.REFUSALS
    (sentence,) = uncounted_metrics([metric], ["OwnMetric.REFUSALS_OF_A_KIND"])
    assert "OwnMetric.REFUSALS is never counted" in sentence
    assert list(uncounted_metrics([metric], ["count({OwnMetric.REFUSALS: 1})"])) == []


@pytest.mark.parametrize(
    ("source", "is_read"),
    [
        (COMMAND, True),
        (COMMAND.replace("\n    12,\n    CommandKind.LOOKING,\n", "12, CommandKind.LOOKING"), True),
        (COMMAND.replace("12", "position=12"), False),
        ("from mendq.cli.commands import command\n", True),
    ],
)
def test_make_check_reports_a_command_declaration_that_help_cannot_read(
    tmp_path: Path, source: str, *, is_read: bool
) -> None:
    """The formatter breaks a long declaration into lines; help must still find the command."""
    for panel in HELP_PANELS:
        (tmp_path / panel).mkdir()
    (tmp_path / HELP_PANELS[0] / "where.py").write_text(source)
    sentences = list(unread_commands(tmp_path))
    assert len(sentences) == (not is_read)
    assert all("mendq/cli/look/where.py declares a command" in sentence for sentence in sentences)


def test_make_check_reports_a_command_that_no_test_runs() -> None:
    command = next(declared for declared in list_commands() if declared.full_name == "doctor")
    (sentence,) = missing_in_commands([command], ['operator.mendq("cases")'])
    assert "No test runs `mendq doctor`: write tests/cli/commands/test_doctor.py" in sentence
    assert list(missing_in_commands([command], ['operator.mendq("doctor")'])) == []


def test_make_check_reports_a_command_whose_help_has_no_examples() -> None:
    command = next(declared for declared in list_commands() if declared.full_name == "doctor")

    def silent() -> None:
        """Say nothing."""

    (sentence,) = missing_in_commands(
        [msgspec.structs.replace(command, run_command=silent)], ['"silent']
    )
    assert "has 0 examples; write 2 or 3 below `Examples:`" in sentence


def test_make_check_reports_a_lambda_without_code_test_or_role_proof() -> None:
    assert list(missing_in_lambdas(["heal"])) == []
    code, test, role = missing_in_lambdas(["forecast"])
    assert "write functions/forecast.py" in code
    assert "write tests/functions/test_forecast.py" in test
    assert "`LAMBDAS` in tests/infra/test_roles.py" in role


@dataclass(frozen=True)
class Section:
    """A section of the settings."""

    whole: Annotated[int, Range(1, 9)] = 1
    """It lacks nothing."""
    untold: bool = True
    any_number: int = 2
    """It does not say from where to where."""
    any_text: str = ""
    """It does not say which."""


def test_make_check_reports_a_setting_without_a_sentence_or_bounds() -> None:
    sentence, number, text = missing_in_settings(Section)
    assert "The setting Section.untold has no sentence: write one below the field" in sentence
    assert "The setting Section.any_number does not say which values it takes" in number
    assert "Range(LEAST, MOST)" in number
    assert "The setting Section.any_text does not say which values it takes" in text

"""Runbooks: headings, commands, and every code of their symptom."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from math import ceil
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

import pytest

from mendq.catalogue import CATALOGUE
from mendq.catalogue.access.restore_policy import FINDING_BY_REFUSING_POLICY
from mendq.catalogue.symptom import Symptom
from tests.architecture.aws_commands import list_commands_in
from tests.architecture.documents import read_command_lines, read_inline_code
from tests.architecture.explained_codes import (
    OVERVIEW,
    RUNBOOKS,
    list_emitted_codes,
    read_explained_codes,
)
from tests.source_files import ROOT

PAGES = sorted({*RUNBOOKS.glob("*.md")} - {OVERVIEW})
PARTS = ("Impact", "Do now", "Verify", "Undo", "Why")
SCREEN = 45
COLUMNS = 100
# A complete command of `mendq`, `aws` or the shell.
_TYPED = re.compile(r"^ *(?:mendq|aws|gunzip) .+$|`(?:mendq|aws) [^`]+`", re.MULTILINE)
# The ceiling is asked of a visibility timeout that goes up, and this one goes down.
NEVER = {"visibility_timeout_too_long": {"over_ceiling", "over_retention", "over_in_flight"}}


def _read_parts(page: Path) -> dict[str, str]:
    """Return the text below each heading of the second level."""
    _, *rest = re.split(r"^## (.+)\n", page.read_text(), flags=re.MULTILINE)
    return dict(zip(rest[::2], rest[1::2], strict=True))


EACH_PAGE = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


@EACH_PAGE
def test_runbook_has_its_headings_in_order_with_text_below_each(page: Path) -> None:
    parts = _read_parts(page)
    assert tuple(parts) == PARTS, f"{page.name} needs the headings {', '.join(PARTS)} in this order"
    empty = [heading for heading, text in parts.items() if not text.strip()]
    assert not empty, f"{page.name}: write something below {', '.join(empty)}"


@EACH_PAGE
def test_impact_part_of_a_runbook_has_one_to_three_sentences(page: Path) -> None:
    parts = _read_parts(page)
    sentences = len(re.findall(r"\.(?=\s|$)", parts["Impact"]))
    assert 1 <= sentences <= 3, f"{page.name}: Impact has {sentences} sentences; write 1 to 3"


@EACH_PAGE
def test_do_now_part_of_a_runbook_has_a_command(page: Path) -> None:
    parts = _read_parts(page)
    assert _TYPED.search(parts["Do now"]), (
        f"{page.name}: `Do now` has no command: write one that begins with `mendq` or `aws`"
    )


@EACH_PAGE
def test_parts_of_a_runbook_before_why_fit_on_a_screen(page: Path) -> None:
    before, _, _ = page.read_text().partition("\n## Why\n")
    lines = sum(max(1, ceil(len(line) / COLUMNS)) for line in before.splitlines())
    assert lines <= SCREEN, (
        f"{page.name} takes {lines} lines before Why, and a screen has {SCREEN}: move what is not "
        "needed to act below Why"
    )


@EACH_PAGE
def test_commands_in_a_runbook_name_the_region(page: Path) -> None:
    """The operator's default region may be another than the alarm's."""
    texts = (*read_command_lines(page), *read_inline_code(page))
    typed = [command for text in texts for command in list_commands_in(text) if " --" in command]
    regional = [command for command in typed if not command.startswith("aws iam ")]
    without = [command for command in regional if "--region REGION" not in command]
    assert without == [], f"{page.name}: write `--region REGION` into these commands"


def _find_called_functions(function: object, seen: set[FunctionType]) -> set[FunctionType]:
    """Add `function` and all catalogue functions that it names, directly or not, to `seen`."""
    if not str(getattr(function, "__module__", "")).startswith("mendq.catalogue"):
        return seen
    if isinstance(function, type):
        for name in [name for name in vars(function) if not name.startswith("__")]:
            _find_called_functions(vars(function)[name], seen)
    if isinstance(function, FunctionType) and function not in seen:
        seen.add(function)
        for member in _list_named_members(function):
            _find_called_functions(member, seen)
    return seen


def _list_named_members(function: FunctionType) -> Iterator[object]:
    """Yield what the names in `function` mean in its module and in the modules that it imports."""
    names = {name for code in _iterate_code(function.__code__) for name in code.co_names}
    module = function.__globals__
    imported = [module[name] for name in names & module.keys()]
    spaces = [module, *(vars(value) for value in imported if isinstance(value, ModuleType))]
    for space in spaces:
        for name in names & space.keys():
            yield space[name]


def _iterate_code(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _iterate_code(constant)


def _find_string_literals(function: FunctionType) -> set[str]:
    return set(re.findall(r'"([a-z_]+)"', inspect.getsource(function)))


def _find_codes(symptom: Symptom) -> tuple[set[str], set[str]]:
    """Return all codes of the symptom's plan, and those that open a case or notify people."""
    functions = _find_called_functions(symptom.plan, set())
    codes = set().union(*map(_find_string_literals, functions)) & list_emitted_codes() - NEVER.get(
        symptom.name, set()
    )
    if symptom.name == "access_denied":
        codes |= {finding.code for finding in FINDING_BY_REFUSING_POLICY.values()}
    source = "".join(map(inspect.getsource, functions))
    silent = set(re.findall(r'(?:Ignore|Retry)\(\s*"([a-z_]+)"', source))
    heard = set(re.findall(r'(?:Escalate|Refuse)\(\s*"([a-z_]+)"', source))
    return codes, codes - (silent - heard)


PLANNED = [symptom for symptom in CATALOGUE if symptom.plan is not None]


@pytest.mark.parametrize("symptom", PLANNED, ids=lambda symptom: symptom.name)
def test_runbook_explains_every_code_of_its_symptom_and_notified_codes_before_why(
    symptom: Symptom,
) -> None:
    codes, heard = _find_codes(symptom)
    text = (ROOT / symptom.runbook).read_text()
    before, _, _ = text.partition("\n## Why\n")
    assert codes, "every plan may refuse"
    assert {code for code in codes if f"`{code}`" not in text} == set()
    assert {code for code in heard if f"`{code}`" not in before} == set()


def test_codes_of_a_symptom_include_those_of_the_functions_that_its_plan_calls() -> None:
    too_short = _find_codes(next(symptom for symptom in PLANNED if "too_short" in symptom.name))
    assert {"over_in_flight", "race_or_retries", "tag_unreadable"} <= too_short[1]
    waiting = _find_codes(
        next(symptom for symptom in PLANNED if symptom.name == "dlq_messages_waiting")
    )
    assert {"cause_first", "redrive_too_slow"} <= waiting[0]
    assert ("cause_first" in waiting[1], "redrive_too_slow" in waiting[1]) == (False, True)


def test_runbook_overview_explains_every_code_of_the_guardrails() -> None:
    source = (ROOT / "mendq" / "heal" / "guardrails.py").read_text()
    codes = set(re.findall(r'(?:Ignore|Retry|Refuse|Escalate|Override)\(\s*"([a-z_]+)"', source))
    assert len(codes) >= 10
    assert codes <= read_explained_codes(OVERVIEW.read_text())

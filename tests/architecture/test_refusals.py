"""Whoever meets a refusal's code, or the nightly job's reason, finds it explained."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from mendq.catalogue import CATALOGUE
from mendq.catalogue._restore_policy import FINDINGS
from mendq.catalogue.symptom import Caught, Detected
from mendq.model.plan import AWS_REFUSED
from mendq.report.outcomes import WHY

ROOT = Path(__file__).resolve().parents[2]
RUNBOOKS = ROOT / "docs" / "runbooks"
OVERVIEW = RUNBOOKS / "README.md"
# Where the code stands among the arguments of what makes a refusal.
KINDS = dict.fromkeys(("Ignore", "Retry", "Refuse", "Escalate", "Override"), 0)
MAKERS = {**KINDS, "declined": 0, "ClaimPart": 1}
# Of calls that are not taken up; our own are no incident.
_CATALOGUE = (ROOT / "mendq" / "catalogue" / "__init__.py").read_text()
IGNORED = frozenset(re.findall(r'^        "([a-z_]+)": ', _CATALOGUE, re.MULTILINE))
_TABLE_ROW = re.compile(r"^\| ((?:`[a-z_]+`(?:, )?)+)", re.MULTILINE)


def _codes(source: str) -> Iterator[str]:
    """The code of every refusal that is made, where it is spelled out."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            place = MAKERS.get(node.func.id, len(node.args))
            for each in node.args[place : place + 1]:
                if isinstance(each, ast.Constant):
                    yield str(each.value)


def _whys(file: str) -> set[str]:
    """The keys of the table `whys` of a file: the first that holds is the code."""
    tables = re.findall(r"whys = \{(.+?)\n +\}", (ROOT / file).read_text(), re.DOTALL)
    return {code for each in tables for code in re.findall(r'^ +"([a-z_]+)":', each, re.MULTILINE)}


@cache
def _emitted() -> set[str]:
    """By what looks after queues; why a nightly run is none of ours stands in a log alone."""
    files = (each for each in (ROOT / "mendq").rglob("*.py") if each.name != "watch.py")
    sources = (each.read_text() for each in files)
    answered = (each for entry in CATALOGUE for each in entry.examples())
    answers = (each.answer for each in answered if isinstance(each, Caught | Detected))
    examples = {each for each in answers if isinstance(each, str)}
    found = {code for source in sources for code in _codes(source)}
    found |= _whys("mendq/catalogue/__init__.py")
    return {*found, *examples, *(each.code for each in FINDINGS.values()), AWS_REFUSED}


def _explained(text: str) -> set[str]:
    """The codes at the beginning of a table's row."""
    return {code for row in _TABLE_ROW.findall(text) for code in re.findall(r"[a-z_]+", row)}


def test_every_refusal_s_code_is_explained_in_a_runbook() -> None:
    explained = set().union(*(_explained(page.read_text()) for page in RUNBOOKS.glob("*.md")))
    assert _emitted() - explained == set()


def test_the_overview_explains_no_code_that_is_never_given_and_none_twice() -> None:
    text = OVERVIEW.read_text()
    codes = [code for row in _TABLE_ROW.findall(text) for code in row.split(", ")]
    assert len(codes) == len(set(codes))
    assert _explained(text) <= _emitted() | IGNORED


def test_every_symptom_s_runbook_leads_to_the_overview() -> None:
    for entry in CATALOGUE:
        assert "](README.md)" in (ROOT / entry.runbook).read_text(), entry.name


def test_the_report_has_words_for_every_reason_of_the_nightly() -> None:
    """Neither sees the other."""
    emitted = _whys("mendq/catalogue/__init__.py") | _whys("analytics/incidents.py")
    assert {"unknown_code", "case_open"} <= emitted
    assert emitted - {"own_call"} | {"unknown"} <= set(WHY), "our own calls are no incidents"

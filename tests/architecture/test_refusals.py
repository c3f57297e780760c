"""Whoever meets a refusal's code, or the nightly job's reason, finds it explained."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

from mendq.catalogue import CATALOGUE
from mendq.catalogue.access.restore_policy import FINDING_BY_REFUSING_POLICY
from mendq.catalogue.symptom import CallExample, QueueExample
from mendq.model.case import QUEUE_DELETED_CODE
from mendq.model.harms import OWN_CHANGE_CODE
from mendq.model.plan import AWS_REFUSED
from mendq.model.state import State
from mendq.notifications.next_steps import (
    NEXT_STEP_BY_REFUSAL_CODE,
    NEXT_STEP_BY_STATE,
    choose_next_step,
)
from mendq.report.words import WORDS_BY_NO_CASE_REASON
from tests.architecture.aws_commands import mistake_in
from tests.architecture.refusal_codes import (
    codes_given,
    codes_returned,
    codes_spelled_out,
)
from tests.notifications.pages import CASE

ROOT = Path(__file__).resolve().parents[2]
RUNBOOKS = ROOT / "docs" / "runbooks"
OVERVIEW = RUNBOOKS / "README.md"
NAMED = (AWS_REFUSED, OWN_CHANGE_CODE, QUEUE_DELETED_CODE, "redrive_halted")
# The codes of failed calls that Mendq ignores.
IGNORED = codes_returned(
    (ROOT / "mendq" / "model" / "ignored_calls.py").read_text(), "find_ignore_reason"
)
_TABLE_ROW = re.compile(r"^\| ((?:`[a-z_]+`(?:, )?)+)", re.MULTILINE)


@cache
def emitted() -> set[str]:
    """By what looks after queues; why a nightly run is none of ours stands in a log alone."""
    files = (each for each in (ROOT / "mendq").rglob("*.py") if each.name != "watch.py")
    sources = (each.read_text() for each in files)
    found = {code for source in sources for code in codes_spelled_out(source)}
    return found | IGNORED | _named_elsewhere()


def _named_elsewhere() -> set[str]:
    """What a name stands for: an example has each as the answer."""
    answered = (each for entry in CATALOGUE for each in entry.examples())
    answers = (
        each.expected_outcome for each in answered if isinstance(each, CallExample | QueueExample)
    )
    examples = {each for each in answers if isinstance(each, str)}
    return {*examples, *(each.code for each in FINDING_BY_REFUSING_POLICY.values()), *NAMED}


def explained(text: str) -> set[str]:
    """The codes at the beginning of a table's row."""
    return {code for row in _TABLE_ROW.findall(text) for code in re.findall(r"[a-z_]+", row)}


def test_every_refusal_s_code_is_explained_in_a_runbook() -> None:
    pages = "".join(each.read_text() for each in RUNBOOKS.glob("*.md") if each != OVERVIEW)
    named = set(re.findall(r"`([a-z_]+)`", pages))
    assert emitted() - named - explained(OVERVIEW.read_text()) == set()


def test_the_overview_explains_no_code_that_is_never_given_and_none_twice() -> None:
    text = OVERVIEW.read_text()
    codes = [code for row in _TABLE_ROW.findall(text) for code in row.split(", ")]
    assert len(codes) == len(set(codes))
    assert explained(text) <= emitted() | IGNORED


# By the names that stand in the place of a code; what they stand for is known elsewhere.
NAMES = {
    "AWS_REFUSED",
    "OWN_CHANGE_CODE",
    "QUEUE_DELETED_CODE",
    "policy_finding.code",
    "refusal_code",
}


def test_every_code_that_a_case_can_open_with_has_a_next_step_and_no_other_has() -> None:
    opening = dict.fromkeys(("Refuse", "Escalate", "Override"), 0)
    sources = [each.read_text() for each in (ROOT / "mendq").rglob("*.py")]
    given = [each for source in sources for each in codes_given(source, opening)]
    assert {ast.unparse(each) for each in given if not isinstance(each, ast.Constant)} == NAMES
    codes = {code for source in sources for code in codes_spelled_out(source, opening)}
    assert set(NEXT_STEP_BY_REFUSAL_CODE) == codes | _named_elsewhere()
    assert set(NEXT_STEP_BY_STATE) == set(State)


def test_a_next_step_is_a_sentence_and_a_command_that_is_one() -> None:
    for code, (sentence, _) in NEXT_STEP_BY_REFUSAL_CODE.items():
        step = choose_next_step(replace(CASE, state=State.REFUSED, code=code))
        assert step["sentence"].endswith("."), code
        assert step["runbook"] == "docs/runbooks/visibility_timeout_too_short.md"
        tool = step["command"].partition(" ")[0]
        assert tool in {"aws", "mendq"} or code == QUEUE_DELETED_CODE, code
        assert tool != "aws" or mistake_in(step["command"].replace("=SECONDS", "=1")) == ""
        assert sentence in OVERVIEW.read_text(), code


def test_every_symptom_s_runbook_leads_to_the_overview() -> None:
    for entry in CATALOGUE:
        assert "](README.md)" in (ROOT / entry.runbook).read_text(), entry.name


def test_the_report_has_words_for_every_reason_of_the_nightly() -> None:
    """Neither sees the other."""
    emitted = IGNORED | codes_returned(
        (ROOT / "analytics/incidents.py").read_text(), "_explain_missing_case"
    )
    assert {"unknown_code", "case_open"} <= emitted
    assert emitted - {"own_call"} | {"unknown"} <= set(WORDS_BY_NO_CASE_REASON), (
        "our own calls are no incidents"
    )

"""Every refusal code and every reason of the nightly job is explained to people."""

from __future__ import annotations

import ast
import re
from dataclasses import replace

from mendq.catalogue import CATALOGUE
from mendq.model.case import QUEUE_DELETED_CODE
from mendq.model.state import State
from mendq.notifications.next_steps import (
    NEXT_STEP_BY_REFUSAL_CODE,
    NEXT_STEP_BY_STATE,
    choose_next_step,
)
from mendq.report.words import WORDS_BY_NO_CASE_REASON
from tests.architecture.aws_commands import find_mistake
from tests.architecture.explained_codes import (
    CODE_ROW,
    IGNORE_CODES,
    OVERVIEW,
    RUNBOOKS,
    list_codes_behind_names,
    list_emitted_codes,
    read_explained_codes,
)
from tests.architecture.refusal_codes import codes_given, codes_returned, codes_spelled_out
from tests.notifications.pages import CASE
from tests.source_files import ROOT


def test_every_refusal_code_is_explained_in_a_runbook() -> None:
    pages = "".join(page.read_text() for page in RUNBOOKS.glob("*.md") if page != OVERVIEW)
    mentioned = set(re.findall(r"`([a-z_]+)`", pages))
    emitted_codes = list_emitted_codes()
    assert emitted_codes
    assert emitted_codes - mentioned - read_explained_codes(OVERVIEW.read_text()) == set()


def test_runbook_overview_explains_only_codes_that_are_emitted_and_each_once() -> None:
    text = OVERVIEW.read_text()
    codes = [code for row in CODE_ROW.findall(text) for code in row.split(", ")]
    assert len(codes) == len(set(codes))
    assert read_explained_codes(text) <= list_emitted_codes() | IGNORE_CODES


# The constants and attributes that the source uses in place of a literal code.
CODE_NAMES = {
    "AWS_REFUSED",
    "OWN_CHANGE_CODE",
    "QUEUE_DELETED_CODE",
    "policy_finding.code",
    "refusal_code",
}


def test_exactly_the_refusal_codes_that_a_case_can_open_with_have_a_next_step() -> None:
    makers = dict.fromkeys(("Refuse", "Escalate", "Override"), 0)
    sources = [path.read_text() for path in (ROOT / "mendq").rglob("*.py")]
    given = [code for source in sources for code in codes_given(source, makers)]
    assert {ast.unparse(code) for code in given if not isinstance(code, ast.Constant)} == CODE_NAMES
    codes = {code for source in sources for code in codes_spelled_out(source, makers)}
    assert set(NEXT_STEP_BY_REFUSAL_CODE) == codes | list_codes_behind_names()


def test_every_case_state_has_a_next_step() -> None:
    assert set(NEXT_STEP_BY_STATE) == set(State)


def test_next_step_of_each_code_has_a_valid_command_and_a_sentence_of_the_runbook_overview() -> (
    None
):
    for code, next_step in NEXT_STEP_BY_REFUSAL_CODE.items():
        sentence = next_step.sentence
        step = choose_next_step(replace(CASE, symptom="a_symptom", state=State.REFUSED, code=code))
        assert step["sentence"].endswith("."), code
        assert step["runbook"] == "docs/runbooks/a_symptom.md"
        tool = step["command"].partition(" ")[0]
        assert tool in {"aws", "mendq"} or code == QUEUE_DELETED_CODE, code
        assert tool != "aws" or find_mistake(step["command"].replace("=SECONDS", "=1")) == ""
        assert sentence in OVERVIEW.read_text(), code


def test_runbook_of_each_symptom_with_a_plan_links_the_overview_of_refusals() -> None:
    for entry in CATALOGUE:
        if entry.plan:
            assert "](README.md)" in (ROOT / entry.runbook).read_text(), entry.name


def test_report_explains_every_reason_why_the_nightly_job_opened_no_case() -> None:
    """The report and the nightly job share no code, so nothing else keeps them in step."""
    reasons = IGNORE_CODES | codes_returned(
        (ROOT / "analytics/incidents.py").read_text(), "_explain_missing_case"
    )
    assert {"unknown_code", "case_open"} <= reasons
    assert reasons - {"own_call"} | {"unknown"} <= set(WORDS_BY_NO_CASE_REASON), (
        "Mendq's own calls are no incidents"
    )

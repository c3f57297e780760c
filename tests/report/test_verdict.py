"""Sentences of the verdict: complete vocabulary and correct sums."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics import recommendations
from mendq.model.state import State
from mendq.nightly.verdict import Verdict
from mendq.report import words
from mendq.report.not_seen import FAR_FEWER_RECORDS_VERDICT, NO_RECORDS_VERDICT
from mendq.report.summary_parts import FIXED_OUTCOMES, POSSIBLE_RACE_REASON
from mendq.report.tables import WORDS_BY_STATE
from mendq.report.to_do import (
    _SENTENCE_WITH_ATTRIBUTE_BY_KIND,
    _SENTENCE_WITHOUT_ATTRIBUTE_BY_KIND,
    SENTENCE_BY_RECOMMENDATION_REASON,
)
from mendq.report.verdict import describe_not_healed, make_headline
from mendq.report.words import WORDS_BY_OUTCOME, remove_marks
from tests.report.weeks import make_summary

STATES = {str(state) for state in State}


def test_report_has_words_for_every_outcome_of_an_incident() -> None:
    states_of_fixes = {"unverified", "verified", "watching", "closed"}
    outcomes = (STATES - states_of_fixes) | {"healed", "not_seen"}
    assert {*WORDS_BY_OUTCOME, *FIXED_OUTCOMES} == outcomes


def test_report_has_words_for_every_state_of_a_case() -> None:
    assert set(WORDS_BY_STATE) >= STATES


def test_report_knows_the_verdicts_of_the_nightly_job_about_missing_records() -> None:
    assert {FAR_FEWER_RECORDS_VERDICT, NO_RECORDS_VERDICT} <= set(Verdict)


def test_report_has_a_sentence_for_every_kind_of_recommendation() -> None:
    kinds = {
        *recommendations._KIND_BY_STATE.values(),
        *recommendations._TASK_KIND_BY_FINDING_SYMPTOM.values(),
        recommendations.WRITE_INTO_TEMPLATE_KIND,
        recommendations.FIX_CALLER_KIND,
        recommendations.NAME_CODE_KIND,
        "watch",
    }
    sentences = {*_SENTENCE_WITH_ATTRIBUTE_BY_KIND, *_SENTENCE_WITHOUT_ATTRIBUTE_BY_KIND}
    assert sentences == kinds


def test_report_has_a_sentence_for_every_reason_of_a_recommendation() -> None:
    reasons = {"applied", "unknown_code", "count_only", "found"}
    for state, kind in recommendations._KIND_BY_STATE.items():
        reasons.add("applied" if kind == "watch" else str(state))
    assert set(SENTENCE_BY_RECOMMENDATION_REASON) == reasons


def test_report_has_words_for_every_reason_why_an_incident_has_no_case() -> None:
    reasons_to_ignore_calls = {
        "unknown_code",
        "count_only",
        "unresolved_queue",
        "elsewhere",
        "no_evidence",
        POSSIBLE_RACE_REASON,
    }
    other_reasons = {
        "case_open",
        "not_managed",
        "not_tagged_in_time",
        "too_little_evidence",
        "muted",
        "event_lost",
        "unknown",
    }
    assert set(words.WORDS_BY_NO_CASE_REASON) == reasons_to_ignore_calls | other_reasons


@settings(max_examples=60)
@given(
    st.dictionaries(
        st.sampled_from(sorted({*WORDS_BY_OUTCOME, *FIXED_OUTCOMES, "a_word"})),
        st.integers(0, 3_000),
        min_size=1,
    ),
    st.integers(0, 9_000),
)
def test_counts_in_the_verdict_sentences_add_up_to_all_incidents(
    by_outcome: dict[str, int], notified: int
) -> None:
    incidents = sum(by_outcome.values())
    totals = {"failed_calls": 1, "queues": 1, "incidents": incidents}
    totals |= {"healed": by_outcome.get("healed", 0), "notified": min(notified, incidents)}
    week = make_summary(by_outcome=by_outcome, totals=totals)
    said = remove_marks(describe_not_healed(week)).partition(";")[0].partition(": ")[2].rstrip(".")
    clauses = [int(clause.split(" ")[0].replace(",", "")) for clause in said.split(", ") if clause]
    assert sum(clauses) + _count_healed(make_headline(week), incidents) == incidents


@pytest.mark.parametrize(
    ("urgent", "headline"),
    [
        (1, "3 incidents, 2 healed before anyone was paged."),
        (2, "3 incidents, 2 healed."),
        (3, "3 incidents, 2 healed."),
    ],
)
def test_headline_says_healed_before_anyone_was_paged_only_if_no_healed_incident_paged(
    urgent: int, headline: str
) -> None:
    totals = {
        "failed_calls": 1,
        "queues": 1,
        "incidents": 3,
        "healed": 2,
        "urgent": urgent,
        "notified": urgent,
    }
    week = make_summary(by_outcome={"healed": 2, "escalated": 1}, totals=totals)
    assert make_headline(week) == headline


def _count_healed(said: str, incidents: int) -> int:
    """How many the headline calls healed."""
    words = said.partition(", ")[2].rstrip(".")
    if number := re.match(r"([\d,]+) healed", words):
        return int(number[1].replace(",", ""))
    return incidents if re.match(r"(healed|both healed|all healed)\b", words) else 0

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from analytics.cases import Life, lives, shortened, steps_of
from analytics.days import days_of
from tests.analytics.authored import at
from tests.analytics.week_authored import WEEK, life

DAYS = days_of(WEEK)


def test_a_case_whose_opening_was_not_read_is_as_old_as_what_speaks_for_it() -> None:
    older = life(("escalated", "11-10 09:00"), first_n=4)
    assert older.opening is None
    assert older.opened_at == at("11-08 08:00")


@pytest.mark.parametrize(
    ("notified", "pages"), [(True, 1), (False, 0), (1, 0), ("true", 0), (None, 0)]
)
def test_only_true_is_a_page(notified: object, pages: int) -> None:
    (case,) = life(("escalated", "11-10 09:00")).transitions
    document = case.document() | {"notified": notified}
    (found,) = lives([type(case).from_document(json.loads(json.dumps(document)))])
    assert len(found.pages(DAYS)) == pages


@pytest.mark.parametrize(("failed_calls", "is_scanned"), [(3, False), (False, False), (0, True)])
def test_a_case_without_a_failed_call_is_a_scan_s(failed_calls: object, is_scanned: bool) -> None:
    (case,) = life(("escalated", "11-10 09:00")).transitions
    evidence = {**case.evidence, "failed_calls": failed_calls}
    assert Life((replace(case, evidence=evidence),)).is_scanned is is_scanned


def test_the_week_begins_and_ends_at_midnight_utc() -> None:
    edges = life(
        ("escalated", "11-08 23:59:59"),
        ("escalated", "11-09 00:00"),
        ("escalated", "11-15 23:59:59"),
        ("escalated", "11-16 00:00"),
        notified=(1, 2, 3, 4),
    )
    assert [each.n for each in edges.pages(DAYS)] == [2, 3]


def test_what_is_no_step_is_passed_over() -> None:
    case = life(("applied", "11-10 09:00")).newest
    odd = [None, "VisibilityTimeout", {"attribute": "A", "before": 1, "after": "2"}, {}]
    document = case.document()
    document["steps"] = [*odd, *document["steps"]]
    (step,) = steps_of(type(case).from_document(document))
    assert (step.attribute, step.before, step.after) == ("VisibilityTimeout", "30", "45")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        ("ten letter", "ten letter"),
        ("eleven lett", "eleven ..."),
        (None, ""),
        (7, ""),
        (["a"], ""),
        ("\ud800", "\\ud800"),
        ("\ud800\ud800", "\\ud800\\..."),
        ("\N{GREEK SMALL LETTER ALPHA}" * 10, "\N{GREEK SMALL LETTER ALPHA}" * 10),
    ],
)
def test_texts_are_bounded_and_can_be_spelled(text: object, shown: str) -> None:
    assert shortened(text, 10) == shown

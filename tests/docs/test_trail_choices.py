"""The tables of the trail's choices say what `mendq cost` says, and stand on both pages."""

from __future__ import annotations

import importlib
from types import ModuleType

import pytest

from cli.cost.calls import CHOICES, NO_RECEIVES, hidden_by
from functions.catalogue import CATALOGUE
from tests.bench.markdown import tables_of
from tests.docs.test_states_page import DOCS


@pytest.fixture
def trail_choices(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(DOCS)
    return importlib.import_module("trail_choices")


def test_leaving_receives_out_names_all_that_it_hides(trail_choices: ModuleType) -> None:
    (rows,) = tables_of(f"{trail_choices.trail_table()}\n")
    (seen,) = (row[1] for row in rows if "without `ReceiveMessage`" in row[0])
    hidden = hidden_by(NO_RECEIVES, trail_choices.QUEUES)
    assert len(hidden.in_part) > 3
    for name in (*hidden.wholly, *hidden.in_part):
        assert f"`{name}`" in seen
    assert "a consumer that is refused" in seen


def test_every_choice_has_a_row(trail_choices: ModuleType) -> None:
    (rows,) = tables_of(f"{trail_choices.hidden_table()}\n")
    assert [row[0] for row in rows[2:]] == [each.name for each in CHOICES]
    assert rows[2][1:] == ["-", "-"]


def test_the_queues_are_of_both_kinds(trail_choices: ModuleType) -> None:
    """What shows on one kind alone would else be missing."""
    for symptom in CATALOGUE:
        kinds = [any(each.on(arn) for each in symptom.seen_as) for arn in trail_choices.QUEUES]
        assert any(kinds) or not symptom.seen_as


@pytest.mark.parametrize("page", ["cost.md", "deploy.md"])
def test_each_page_has_the_marks_once(trail_choices: ModuleType, page: str) -> None:
    text = (DOCS / page).read_text()
    assert text.count(trail_choices.BEGIN) == text.count(trail_choices.END) == 1
    assert f"#{trail_choices.HIDDEN.partition('#')[2]}" in (DOCS / "cost.md").read_text()

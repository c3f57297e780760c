"""The false-alarm pages name every symptom. `make prove` checks their figures."""

from __future__ import annotations

from mendq.catalogue import CATALOGUE
from tests.prove.false_alarms import INDISTINCT, MARKED, PAGE, SCORE_SEEDS, SEEDS, draw_seeds


def test_false_alarm_page_lists_indistinct_symptoms_and_failure_modes_lists_every_symptom() -> None:
    text = PAGE.read_text()
    modes = PAGE.with_name("failure-modes.md").read_text()
    assert MARKED.search(text)
    assert [entry.name for entry in CATALOGUE if f"(runbooks/{entry.name}.md)" not in modes] == []
    assert [name for name, _ in INDISTINCT if f"*{name}*" not in text] == []


def test_fresh_seeds_are_none_of_the_page_and_repeat_only_with_the_same_number() -> None:
    seeds = draw_seeds("hidden faults", 7, 5)
    assert seeds == draw_seeds("hidden faults", 7, 5)
    assert not {*seeds} & {*draw_seeds("hidden faults", 8, 5), *SEEDS, *SCORE_SEEDS}

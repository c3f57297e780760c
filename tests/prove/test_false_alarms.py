"""The false-alarm pages name every symptom. `make prove` checks their figures."""

from __future__ import annotations

from pathlib import Path

from mendq.catalogue import CATALOGUE
from tests.prove.false_alarms import (
    INDISTINCT,
    MARKED,
    PAGE,
    SCORE_SEEDS,
    SEEDS,
    draw_seeds,
    fill_blocks,
)
from tests.prove.fresh_seeds import FreshRun, describe_runs, read_runs, store_run


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


def test_page_shows_the_stored_scores_of_fresh_seeds_with_date_and_seed() -> None:
    runs = read_runs()
    text = PAGE.read_text()
    assert fill_blocks({}, text) == text
    assert all(f"{run.seed} on {run.date}" in text for run in runs)
    assert all(miss in text for run in runs for miss in run.misses)


def test_scores_of_fresh_seeds_are_added_up_and_a_seed_that_is_played_again_counts_once(
    tmp_path: Path,
) -> None:
    path = tmp_path / "runs.json"
    path.write_text("[]")
    for seed, hits in ((1, 7), (2, 9), (1, 10)):
        store_run(FreshRun("2026-11-30", seed, 5, {"found": (hits, 10)}, ("*a*: `b`",)), path)
    text = describe_runs(read_runs(path))
    assert "| found | 19 of 20 | 0.95 (0.75-1.00) |" in text
    assert "- *a*: `b`: 2 times" in text

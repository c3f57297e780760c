"""The false-alarm pages name every symptom. `make prove` checks their figures."""

from __future__ import annotations

from mendq.catalogue import CATALOGUE
from tests.prove.false_alarms import INDISTINCT, MARKED, PAGE


def test_false_alarm_page_lists_indistinct_symptoms_and_failure_modes_lists_every_symptom() -> None:
    text = PAGE.read_text()
    modes = PAGE.with_name("failure-modes.md").read_text()
    assert MARKED.search(text)
    assert [entry.name for entry in CATALOGUE if f"(runbooks/{entry.name}.md)" not in modes] == []
    assert [name for name, _ in INDISTINCT if f"*{name}*" not in text] == []

"""The sentences that people read about each entry, and those in the golden `sentences.json`."""

from __future__ import annotations

import json
from typing import Any

from mendq.catalogue import CATALOGUE, examples
from mendq.catalogue.symptom import CallNearMiss, QueueNearMiss, Symptom
from tests.catalogue.asking import answer_to, facts_of, read_test_data, words_of

SENTENCES_FILE = "tests/catalogue/sentences.json"


def sentences_of(entry: Symptom) -> dict[str, Any]:
    """Return everything that people read of an entry: its notification and examples' answers."""
    sentences: dict[str, Any] = {
        "shows": list(entry.shown_attributes),
        "of many": [
            entry.advice_if_many.sentence,
            entry.advice_if_many.make_command(examples.STANDARD_ARN),
        ],
    }
    for example in entry.examples():
        if isinstance(example, CallNearMiss | QueueNearMiss) or example.facts is None:
            continue
        facts = facts_of(entry, example)
        answer: dict[str, Any] = {"found": facts.found} if facts.found else {}
        if entry.plan is not None:
            answer.update(words_of(answer_to(entry, facts)))
        sentences[example.title] = answer
    return sentences


def read_recorded_sentences(entry: Symptom) -> dict[str, Any] | None:
    """Return what `sentences.json` says of the entry, or None if it does not have it."""
    sentences: dict[str, Any] | None = read_test_data("sentences").get(entry.name)
    return sentences


def render_sentences() -> str:
    """Return the text of `sentences.json` as the catalogue is now."""
    sentences = {entry.name: sentences_of(entry) for entry in CATALOGUE}
    return json.dumps(sentences, indent=1) + "\n"

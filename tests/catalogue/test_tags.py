"""Test that every tag a symptom reads is declared and known to everything that lists tags."""

from __future__ import annotations

from dataclasses import replace

import pytest

from docs import symptom_tables
from mendq.catalogue import CATALOGUE, list_known_tags
from mendq.catalogue.configuration.tag_not_understood import describe_tag_mistakes
from mendq.catalogue.examples import queue
from mendq.catalogue.keys.not_encrypted import NOT_ENCRYPTED
from mendq.catalogue.symptom import (
    DetectedFault,
    Detection,
    QueueExample,
    QueueNearMiss,
    ReportedSymptom,
    Symptom,
)
from mendq.model.facts import Facts
from mendq.model.tags import TEAM_TAG, QueueTag, TagValueKind, read_seconds_tag
from tests.catalogue.recorded_tags import explain_undeclared_tags, explain_unread_tags

MAX_EXAMPLE = QueueTag(
    key="mendq:max-example-seconds", values=TagValueKind.SECONDS, meaning="The longest delay."
)


@pytest.mark.parametrize("entry", CATALOGUE, ids=lambda entry: entry.name)
def test_entry_declares_exactly_the_tags_that_its_examples_read(entry: Symptom) -> None:
    assert explain_undeclared_tags(entry) == ""
    assert explain_unread_tags(entry) == ""


def _detect_delay(facts: Facts) -> DetectedFault | None:
    return DetectedFault("too long") if read_seconds_tag(facts.tags, MAX_EXAMPLE.key) else None


def _make_example_symptom(*tags: QueueTag) -> ReportedSymptom:
    return replace(
        NOT_ENCRYPTED,
        name="example_too_long",
        detection=Detection(_detect_delay),
        tags=tags,
        examples=lambda: (
            QueueExample("above its tag", queue({MAX_EXAMPLE.key: "60"}, DelaySeconds=90)),
            QueueNearMiss("no tag", queue(DelaySeconds=90)),
        ),
    )


def test_undeclared_tag_is_reported_with_the_declaration_to_add() -> None:
    sentence = explain_undeclared_tags(_make_example_symptom())
    assert (
        "example_too_long reads the tag mendq:max-example-seconds and does not declare it"
        in sentence
    )
    assert 'tags=(QueueTag(key="mendq:max-example-seconds"' in sentence
    assert explain_undeclared_tags(_make_example_symptom(MAX_EXAMPLE)) == ""


def test_declared_tag_without_an_example_is_reported() -> None:
    assert "none of its examples reads it" in explain_unread_tags(
        replace(NOT_ENCRYPTED, tags=(MAX_EXAMPLE,))
    )


@pytest.fixture
def with_example_symptom(monkeypatch: pytest.MonkeyPatch) -> None:
    symptoms = (*CATALOGUE, _make_example_symptom(MAX_EXAMPLE))
    monkeypatch.setattr("mendq.catalogue.CATALOGUE", symptoms)
    monkeypatch.setattr("docs.symptom_tables.CATALOGUE", symptoms)


@pytest.mark.usefixtures("with_example_symptom")
def test_tag_declared_by_a_new_symptom_is_validated_and_listed_in_the_docs() -> None:
    assert list(describe_tag_mistakes({MAX_EXAMPLE.key: "60"})) == []
    (mistake,) = describe_tag_mistakes({MAX_EXAMPLE.key: "a minute"})
    assert mistake.startswith("the tag mendq:max-example-seconds must be a whole number")
    assert "| `mendq:max-example-seconds` | whole seconds, 1 to 43200 | The longest delay. |" in (
        symptom_tables.tags()
    )


@pytest.mark.parametrize("tag", list_known_tags().values(), ids=lambda tag: tag.key)
def test_every_known_tag_is_understood_with_a_value_of_its_kind(tag: QueueTag) -> None:
    if tag.key == TEAM_TAG:
        return  # only the settings know their teams
    texts = {
        TagValueKind.SECONDS: ("1", "43200"),
        TagValueKind.WORD: tag.words,
        TagValueKind.ANYTHING: ("", "true"),
    }
    for text in texts[tag.values]:
        assert list(describe_tag_mistakes({tag.key: text})) == []


@pytest.mark.parametrize("tag", list_known_tags().values(), ids=lambda tag: tag.key)
def test_every_known_tag_has_mendqs_prefix_a_sentence_and_words_only_if_it_takes_words(
    tag: QueueTag,
) -> None:
    assert tag.key == "mendq" or tag.key.startswith("mendq:")
    assert tag.meaning.endswith(".")
    assert bool(tag.words) is (tag.values is TagValueKind.WORD)


def test_tag_that_no_symptom_declares_is_reported_as_unknown() -> None:
    assert list(describe_tag_mistakes({MAX_EXAMPLE.key: "60"})) == [
        "mendq:max-example-seconds is no tag that Mendq knows"
    ]

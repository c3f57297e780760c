"""The night's words are the catalogue's."""

from __future__ import annotations

from analytics.labels import COUNT_ONLY, label_of
from functions.catalogue import CATALOGUE
from functions.healing import examples


def test_what_only_counts_is_what_the_catalogue_never_plans_for() -> None:
    assert COUNT_ONLY == ("caller_bug",)


def test_every_example_is_labelled_with_its_entry() -> None:
    for entry in CATALOGUE:
        labels = {label_of(each.call) for each in entry.caught}
        assert labels == ({entry.name} if entry.seen_as else set())


def test_a_code_that_nobody_knows_keeps_its_canonical_name() -> None:
    call = examples.failed_call("SendMessage", "com.amazonaws.sqs#TeapotException")
    assert label_of(call) == "unlabelled:Teapot"

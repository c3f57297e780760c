from __future__ import annotations

from typing import Any

import pytest

from functions.catalogue import CATALOGUE
from functions.report.outcomes import HABITS
from functions.report.verdict import standout
from functions.report.words import plain
from tests.functions.report.weeks import incident, summary

WHY = "the need is above the ceiling of 900 s"


# A label that no habit is known of.
def other(cases: list[Any]) -> list[Any]:
    return [each | {"label": "a_label"} for each in cases]


def refused(queue: str, *, count: int = 1, failed_calls: int = 12, **fields: Any) -> list[Any]:
    fields = {"outcome": "refused", "reason": WHY} | fields
    return [incident(queue, failed_calls=failed_calls, day=n % 7, **fields) for n in range(count)]


def healed(queue: str, count: int) -> list[Any]:
    return [incident(queue, day=n % 7) for n in range(count)]


@pytest.mark.parametrize(
    "cases",
    [
        pytest.param([], id="no incident"),
        pytest.param([*refused("a"), *refused("b")], id="one each"),
        pytest.param(
            [*refused("a", failed_calls=99), *refused("b")], id="one each, unlike in size"
        ),
        pytest.param([*refused("a", count=2), *refused("b", count=2)], id="a tie"),
        pytest.param(refused("a", count=3, why="count_only"), id="a caller's mistakes"),
        pytest.param(refused("a", count=3, queue_arn="unresolved"), id="nobody knows which"),
        pytest.param(healed("a", 2), id="healed twice"),
        pytest.param(refused("a", count=2, outcome="approved"), id="healed after approval"),
        pytest.param([*healed("a", 3), *healed("b", 3)], id="all healed, half of them"),
    ],
)
def test_nobody_stands_out(cases: list[Any]) -> None:
    assert standout(summary(cases)) is None


@pytest.mark.parametrize(
    ("cases", "sentence"),
    [
        (refused("a"), "a stands out: its one incident was not healed."),
        (refused("a", count=2), "a stands out: neither of its 2 incidents was healed."),
        (other(refused("a", count=3)), "a stands out: none of its 3 incidents was healed."),
        (
            other([*refused("a"), *healed("a", 3)]),
            "a stands out: 1 of its 4 incidents was not healed.",
        ),
        (
            other([*refused("a", count=2), *healed("a", 3), *refused("b")]),
            "a stands out: 2 of its 5 incidents were not healed.",
        ),
        (
            [*refused("a", count=2), *refused("b", count=2, failed_calls=13)],
            "b stands out: neither of its 2 incidents was healed.",
        ),
        (
            [*refused("a", count=2), *refused("b", count=9, why="count_only")],
            "a stands out: neither of its 2 incidents was healed.",
        ),
        (
            [*refused("a", count=2), *healed("b", 9)],
            "a stands out: neither of its 2 incidents was healed.",
        ),
        (
            other([*refused("a", outcome="approved"), *refused("a", count=2)]),
            "a stands out: 2 of its 3 incidents were not healed.",
        ),
        (
            other(refused("a", count=3, outcome="approved")),
            "a stands out: it had 3 of the 3, all healed.",
        ),
        (other(healed("a", 3)), "a stands out: it had 3 of the 3, all healed."),
        (
            other([*healed("a", 4), *healed("b", 3)]),
            "a stands out: it had 4 of the 7, all healed.",
        ),
        (
            refused("a", count=3),
            "a keeps outrunning its lease: all 3 lease_expired incidents came from it.",
        ),
        (
            [*refused("a"), *healed("a", 3), *healed("b", 2)],
            "a keeps outrunning its lease: 4 of 6 lease_expired incidents came from it.",
        ),
        (
            [*healed("a", 4), *healed("b", 3)],
            "a keeps outrunning its lease: 4 of 7 lease_expired incidents came from it.",
        ),
        (
            [*refused("a", count=2), *refused("a", label="access_denied")],
            "a stands out: none of its 3 incidents was healed.",
        ),
    ],
)
def test_one_queue_stands_out(cases: list[Any], sentence: str) -> None:
    found = standout(summary(cases))
    assert found is not None
    assert found.sentence == sentence


def test_a_list_that_was_cut_says_what_it_counts() -> None:
    found = standout(summary(refused("a", count=3), cases_left_out=4))
    assert found is not None
    assert found.says == "stands out: 3 of 3 incidents came from it, 3 not healed."
    nowhere = {"queues": [], "queues_left_out": 1, "incidents_left_out": 3}
    found = standout(summary(refused("a", count=3), cases_left_out=4, queue_days=nowhere))
    assert found is not None
    assert found.says == "stands out among the listed incidents: 3 incidents not healed."


def test_a_list_that_was_cut_counts_healed_ones_among_itself() -> None:
    found = standout(summary(healed("a", 3), cases_left_out=4))
    assert found is not None
    assert found.says == "stands out: 3 of the 3 listed incidents came from it, all healed."


@pytest.mark.parametrize(
    ("cases", "because"),
    [
        (refused("a"), f"lease_expired, 12 failed calls: {WHY}."),
        (refused("a", failed_calls=1), f"lease_expired, 1 failed call: {WHY}."),
        (refused("a", reason=""), "lease_expired, 12 failed calls."),
        (
            refused("a", why="not_managed"),
            "lease_expired, 12 failed calls: Mendq does not manage this queue.",
        ),
        (
            [*refused("a", count=2), *refused("a", label="access_denied", reason="its own")],
            f"lease_expired (2 of 3), 36 failed calls: {WHY}.",
        ),
        (
            [
                *refused("a", count=2, reason="b"),
                *refused("a", reason="c"),
                *refused("a", reason=""),
            ],
            "None of its 4 incidents was healed. lease_expired, 48 failed calls: b.",
        ),
        (
            [*refused("a", reason="b"), *refused("a", reason="a")],
            "lease_expired, 24 failed calls: a.",
        ),
        (healed("a", 3), "All healed. lease_expired, 36 failed calls."),
    ],
)
def test_and_says_why(cases: list[Any], because: str) -> None:
    found = standout(summary(cases))
    assert found is not None
    assert plain(found.because) == because


@pytest.mark.parametrize(
    ("label", "habit"),
    [
        ("lease_expired", "keeps outrunning its lease"),
        ("message_too_long", "keeps being sent messages that are too long for it"),
        ("dedup_id_missing", "keeps being sent messages without a deduplication ID"),
        ("fifo_throttled", "keeps outrunning its FIFO quota"),
        ("empty_receives", "keeps being polled faster than its messages come"),
        ("kms_throttled", "keeps exhausting the KMS quota"),
        ("kms_denied", "keeps being called without a grant on its key"),
        ("kms_key_unusable", "keeps a key that cannot be used"),
        ("access_denied", "keeps turning callers away"),
        ("queue_missing", "keeps being called although it is not there"),
        ("in_flight_limit", "keeps reaching its in-flight limit"),
    ],
)
def test_each_habit_has_its_words(label: str, habit: str) -> None:
    found = standout(summary(refused("a", count=3, label=label)))
    assert found is not None
    assert found.sentence == f"a {habit}: all 3 {label} incidents came from it."


def test_habits_are_those_of_symptoms() -> None:
    assert set(HABITS) <= {each.name for each in CATALOGUE}

"""What compare says of two records, without any recorder."""

from __future__ import annotations

from typing import Any

import pytest

from tests.before.differences import ABSENT, alike, differences, shown
from tests.before.names import Names
from tests.before.stored import NOT_HERE, plain


@pytest.mark.parametrize(
    ("before", "now", "paths"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}}, ["a/c"]),
        ({"a": 1}, {"b": 1}, ["a", "b"]),
        ({"a": [1, 2]}, {"a": [2, 1]}, ["a"]),
        ({"a": [{"b": 1}, {"b": 2}]}, {"a": [{"b": 1}, {"b": 3}]}, ["a/1/b"]),
        ({"a": [{"b": 1}]}, {"a": []}, ["a"]),
        ({"a": NOT_HERE}, {"a": {"b": 1}}, []),
    ],
)
def test_where_two_records_differ(before: Any, now: Any, paths: list[str]) -> None:
    assert [each.path for each in differences(before, now)] == paths


def test_what_differs_alike_is_shown_once_with_its_paths() -> None:
    before = dict.fromkeys("abc", "waits") | {"d": "gone"}
    (waits, gone) = alike(differences(before, dict.fromkeys("abc", "stays")))
    assert shown(*waits) == "a\nb\nc\n  - waits\n  + stays"
    assert gone[1].now is ABSENT
    assert shown(*gone) == "d\n  - gone"


def test_long_values_are_shown_by_their_lines() -> None:
    (only,) = alike(differences({"a": "one\ntwo\nthree\nfour"}, {"a": "one\n2\nthree\nfour"}))
    assert shown(*only).splitlines() == ["a", "    one", "  - two", "  + 2", "    three"]


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ({"sweep": "a sweep, sweeps and mendq-sweep"}, {"scan": "a scan, sweeps and mendq-scan"}),
        (["lease_expired", "lease"], ["visibility_timeout_too_short", "visibility timeout"]),
        (
            {"SweepFunction": "SweepFunctionRole, Sweeper"},
            {"ScanFunction": "ScanFunctionRole, Sweeper"},
        ),
        (["applied_unproven", 7, None, True], ["unverified", 7, None, True]),
        ("pulse", "probe"),
        ("probe", "taster"),
    ],
)
def test_old_names_are_translated_once_and_whole(before: Any, now: Any) -> None:
    words = {
        "sweep": "scan",
        "lease": "visibility timeout",
        "lease_expired": "visibility_timeout_too_short",
        "applied_unproven": "unverified",
        "pulse": "probe",
        "probe": "taster",
    }
    assert Names(words, {"Sweep": "Scan"}).translated(before) == now
    assert Names({}).translated(before) == before


def test_values_are_recorded_without_an_order_of_their_own() -> None:
    assert plain({"a": {3, 1}, "b": (1.0, 0.1 + 0.2), "c": b"x"}) == {
        "a": [1, 3],
        "b": [1, 0.3],
        "c": "x",
    }

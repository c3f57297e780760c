from __future__ import annotations

from typing import Any

import pytest

from functions.healing.nightly import FALLBACK, Verdict
from functions.report.names import plain
from functions.report.nights import SLOWER, nights_in_doubt, slower_reader
from tests.functions.report.week_parts import night
from tests.functions.report.weeks import DAYS, summary


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, []),
        (
            {"verdict": "far_fewer", "records": 900},
            ["Tue 10 Nov had far fewer records than usual: 900, where 181,000 are usual."],
        ),
        (
            {"verdict": "nothing_read", "records": 0, "usual_records": None},
            ["Tue 10 Nov had not one record: is the trail on?"],
        ),
        (
            {"verdict": "nothing_read", "records": 0, "usual_records": 1_204.5},
            ["Tue 10 Nov had not one record, where 1,204 are usual: is the trail on?"],
        ),
        ({"verdict": "failed"}, ["The run for Tue 10 Nov ended without writing anything."]),
        ({"verdict": "missing"}, []),
    ],
)
def test_a_night_in_doubt_is_named(fields: dict[str, Any], said: list[str]) -> None:
    week = summary(not_seen={"nights": [night(DAYS[0]), night(DAYS[1], **fields)]})
    assert list(nights_in_doubt(week)) == said


SLOW = {"reader": "spark_json", "why_fallback": "isal is missing on the driver"}


@pytest.mark.parametrize(
    ("nights", "said"),
    [
        ([], []),
        ([night(DAYS[0])], []),
        (
            [night(DAYS[0], **SLOW)],
            [
                (
                    "1 night (Mon 9 Nov) was read by Spark's JSON reader, which is slower: "
                    "isal is missing on the driver."
                )
            ],
        ),
        (
            [night(each, **SLOW) for each in DAYS],
            [
                (
                    "7 nights were read by Spark's JSON reader, which is slower: "
                    "isal is missing on the driver."
                )
            ],
        ),
        (
            [night(DAYS[0], **SLOW), night(DAYS[1], **(SLOW | {"why_fallback": ""}))],
            [
                "1 night (Tue 10 Nov) was read by Spark's JSON reader, which is slower.",
                (
                    "1 night (Mon 9 Nov) was read by Spark's JSON reader, which is slower: "
                    "isal is missing on the driver."
                ),
            ],
        ),
    ],
)
def test_the_slower_reader_says_why(nights: list[dict[str, Any]], said: list[str]) -> None:
    assert [plain(each) for each in slower_reader(summary(not_seen={"nights": nights}))] == said


def test_the_words_are_the_night_s_own() -> None:
    assert SLOWER == FALLBACK
    assert {"far_fewer", "nothing_read", "failed"} <= set(Verdict)

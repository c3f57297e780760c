from __future__ import annotations

from typing import Any

import pytest

from functions.report.tables import Row, healed_count, rows
from tests.functions.report.weeks import incident, summary


def row(**fields: Any) -> Row:
    return rows(summary([incident(**fields)]))[0]


def test_a_row_says_what_happened() -> None:
    assert row(reason="the lease of 30 s was too short") == Row(
        label="lease_expired",
        calls="12 failed calls, MessageNotInflight",
        caller="role/orders-consumer",
        queue="orders",
        place="",
        when="Mon 9 14:02\N{EN DASH}14:09",
        outcome="healed",
        tone="good",
        is_mended=True,
        paged=False,
        case_id="lease_expired-0a1b2c3d4e5f",
        why="the lease of 30 s was too short",
        healed_in="40 s",
    )


@pytest.mark.parametrize(
    ("why", "reason", "said"),
    [
        (None, "", ""),
        (None, "over the ceiling of 900 s", "over the ceiling of 900 s"),
        ("not_managed", "", "Mendq does not manage this queue"),
        ("count_only", "its own", "a caller's mistake, counted only"),
        ("a_new_word", "", "a_new_word"),
    ],
)
def test_why_is_that_of_no_case_or_what_the_case_said_last(
    why: str | None, reason: str, said: str
) -> None:
    assert row(outcome="refused", why=why, reason=reason).why == said


@pytest.mark.parametrize(
    ("outcome", "is_mended"),
    [("healed", True), ("approved", True), ("applied", False), ("proposed", False)],
)
def test_after_approval_is_healed_too(outcome: str, is_mended: bool) -> None:
    assert row(outcome=outcome).is_mended is is_mended


@pytest.mark.parametrize(
    ("codes", "calls"),
    [
        ([], "1 failed call"),
        (["A"], "1 failed call, A"),
        (["A", "B", "C", "D", "E"], "1 failed call, A, B, C, 2 more"),
    ],
)
def test_codes_are_cut(codes: list[str], calls: str) -> None:
    assert row(failed_calls=1, error_codes=codes).calls == calls


@pytest.mark.parametrize(
    ("principals", "caller"),
    [([], ""), (["a"], "a"), (["a", "b"], "a and 1 more"), (["a", "b", "c"], "a and 2 more")],
)
def test_the_first_caller_stands_for_the_others(principals: list[str], caller: str) -> None:
    assert row(principals=principals).caller == caller


@pytest.mark.parametrize(
    ("outcome", "tone"),
    [
        ("healed", "good"),
        ("approved", "good"),
        ("escalated", "waiting"),
        ("rolled_back", "plain"),
        ("good", "plain"),
        ('" onload="', "plain"),
    ],
)
def test_only_known_outcomes_stand_out(outcome: str, tone: str) -> None:
    assert row(outcome=outcome).tone == tone


def test_the_place_is_named_where_there_are_several() -> None:
    several = summary([incident()], regions=["eu-west-1", "us-east-1"])
    assert rows(several)[0].place == "123456789012, us-east-1"


def test_an_unresolved_queue_has_no_place() -> None:
    several = summary([incident(queue_arn="unresolved")], regions=["eu-west-1", "us-east-1"])
    assert (rows(several)[0].queue, rows(several)[0].place) == ("an unknown queue", "")


def test_the_order_is_the_summary_s() -> None:
    names = [each.queue for each in rows(summary([incident("b"), incident("a"), incident("c")]))]
    assert names == ["b", "a", "c"]


@pytest.mark.parametrize(
    ("healed", "said"),
    [(0, "0 healed incidents"), (1, "1 healed incident"), (3, "3 healed incidents")],
)
def test_what_is_folded_away_is_counted(healed: int, said: str) -> None:
    cases = [incident(outcome="refused"), *(incident(day=n) for n in range(healed))]
    assert healed_count(rows(summary(cases))) == said

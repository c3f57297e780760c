from __future__ import annotations

import json
import re
from contextlib import suppress
from copy import deepcopy
from datetime import UTC, date, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.report.read_summary import MOST_BYTES, SummaryUnreadable, read
from tests.report.week_parts import (
    nightly,
    notified,
    reached_a_person,
    recommendation,
    scanned,
    times,
    without_newer,
)
from tests.report.weeks import MONDAY, busy_week, incident, week

Document = dict[str, Any]


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        (2, "summary.json has schema 2 and this report reads schema 1; deploy the report and the "),
        ("1", "summary.json has schema '1' and this report reads schema 1;"),
        (True, "summary.json has schema True and"),
        (None, "summary.json has schema None and"),
    ],
)
def test_another_schema_is_refused_in_one_sentence(schema: object, says: str) -> None:
    with pytest.raises(SummaryUnreadable, match=rf"^{re.escape(says)}.*$"):
        read(week(schema=schema))


@pytest.mark.parametrize("document", [b"", b"{", b"\xff\xfe", b'{"schema": NaN}', b"[" * 100_000])
def test_what_is_not_json_is_refused(document: bytes) -> None:
    with pytest.raises(SummaryUnreadable, match=r"^summary\.json is not a JSON document$"):
        read(document)


@pytest.mark.parametrize("document", [b"[]", b"1", b"null", b'"schema"'])
def test_what_is_no_object_is_refused(document: bytes) -> None:
    with pytest.raises(SummaryUnreadable, match=r"the document must be an object$"):
        read(document)


def _put(document: Document, path: str, value: object) -> Document:
    *way, last = path.split(".")
    place: Any = document
    for each in way:
        place = place[int(each)] if each.isdigit() else place[each]
    place[int(last) if last.isdigit() else last] = value
    return document


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ("week", "46", "`week` must be a week such as 2026-W46"),
        ("week", "2026-W54", "`week` must be a week such as 2026-W46"),
        ("week", "2025-W53", "`week` must be a week such as 2026-W46"),
        ("week", "2026-W45", "`from` must be the Monday of 2026-W45"),
        ("week", "0000-W01", "`week` must be a week such as 2026-W46"),
        ("from", "2026-02-30", "from: Invalid RFC3339 encoded date"),
        ("to", "2026-11-16", "`to` must be six days after `from`"),
        ("to", "2026-11-02", "`to` must be six days after `from`"),
        ("made_at", "2026-11-16T06:00:00", "made_at: Expected `datetime` with a timezone componen"),
        ("made_at", "0001-01-01T00:00:00+14:00", "`made_at` is no time of this calendar"),
        ("accounts", "123456789012", "accounts: Expected `array`, got `str`"),
        ("regions", [7], "regions[0]: Expected `str`, got `int`"),
        ("totals", [], "totals: Expected `object`, got `array`"),
        ("totals.incidents", -1, "totals.incidents: Expected `int` >= 0"),
        ("totals.incidents", 1.5, "totals.incidents: Expected `int`, got `float`"),
        ("totals.incidents", True, "totals.incidents: Expected `int`, got `bool`"),
        ("totals.incidents", 2**63, "totals.incidents: Expected `int` <= 9223372036854775807"),
        ("by_outcome", {"healed": "3"}, "by_outcome[...]: Expected `int`, got `str`"),
        ("per_day.0.date", "2026-11-16", "2026-11-16 must be a day from `from` to `to`"),
        ("cases.0.seconds_to_heal", float("nan"), "cases[0].seconds_to_heal: Expected `float` >="),
        ("cases.0.seconds_to_heal", -0.1, "cases[0].seconds_to_heal: Expected `float` >= 0.0"),
        ("cases.0.seconds_to_heal", "40", "cases[0].seconds_to_heal: Expected `float | null`, got"),
        ("cases.0.notified", 1, "cases[0].notified: Expected `bool`, got `int`"),
        ("cases.0.why", 1, "cases[0].why: Expected `str | null`, got `int`"),
        (
            "not_seen.nightly_runs_missing",
            ["2026-11-16"],
            "2026-11-16 must be a day from `from` to `to`",
        ),
        (
            "not_seen.nightly_runs.0.day",
            "2026-11-08",
            "2026-11-08 must be a day from `from` to `to`",
        ),
        (
            "not_seen.nightly_runs_missing",
            ["x"],
            "not_seen.nightly_runs_missing[0]: Invalid RFC3339 encoded d",
        ),
        ("not_seen.unreadable_files", [{"file": "a"}], "not_seen.unreadable_files[0]: Object miss"),
    ],
)
def test_a_mistake_is_named_with_its_place(path: str, value: object, says: str) -> None:
    with pytest.raises(SummaryUnreadable, match=re.escape(f"summary.json: {says}")):
        read(_put(week([incident()]), path, value))


@pytest.mark.parametrize("field", list(without_newer(week())))
def test_a_field_that_is_missing_is_named(field: str) -> None:
    document = week()
    del document[field]
    with pytest.raises(SummaryUnreadable, match=rf"^summary\.json.* (schema None|`{field}`)"):
        read(document)


def test_a_hostile_value_stays_on_one_line_of_plain_characters() -> None:
    with pytest.raises(SummaryUnreadable) as caught:
        read(week(by_outcome={"a\nb\N{RIGHT-TO-LEFT OVERRIDE}" * 40: "\x1b[31m" * 1000}))
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 1200


WITH_EVERYTHING = {
    "reached_a_person": reached_a_person(
        notified(ended_at="2026-11-12T15:00:00Z", seconds_open=1.0)
    ),
    "scanned": scanned(visibility_timeout_too_short=1),
    "do_this_week": [recommendation()],
    "previous_weeks": [
        {
            "week": "2026-W45",
            "incidents": 1,
            "failed_calls": 1,
            "healed": 1,
            "notified": 0,
            "nightly_runs": 6,
        }
    ],
}


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ("times_to_heal", None, "times_to_heal: Expected `array`, got `null`"),
        ("times_to_heal.0.seconds.0", None, "times_to_heal[0].seconds[0]: Expected `float`, got `"),
        ("times_to_heal.0.p90_seconds", "4", "times_to_heal[0].p90_seconds: Expected `float | nul"),
        ("queue_days", [], "queue_days: Expected `object`, got `array`"),
        ("queue_days.queues.0.incidents", [1] * 6, "queue_days.queues[0].incidents: Expected `arr"),
        ("queue_days.queues.0.incidents.3", -1, "queue_days.queues[0].incidents[3]: Expected `int"),
        ("queue_days.queues_left_out", None, "queue_days.queues_left_out: Expected `int`, got `nu"),
        ("reached_a_person", None, "reached_a_person: Expected `object`, got `null`"),
        ("reached_a_person.cases.0.ended_at", 7, "reached_a_person.cases[0].ended_at: Expected `d"),
        (
            "reached_a_person.cases.0.notified_at",
            None,
            "reached_a_person.cases[0].notified_at: Expected",
        ),
        (
            "reached_a_person.cases.0.scanned",
            0,
            "reached_a_person.cases[0].scanned: Expected `bool`,",
        ),
        ("scanned.by_symptom", {"a": -1}, "scanned.by_symptom[...]: Expected `int` >= 0"),
        ("do_this_week", {}, "do_this_week: Expected `array`, got `object`"),
        ("do_this_week.0.owner", None, "do_this_week[0].owner: Expected `str`, got `null`"),
        ("do_this_week_left_out", "3", "do_this_week_left_out: Expected `int`, got `str`"),
        (
            "not_seen.nightly_runs.0.usual_records",
            "many",
            "not_seen.nightly_runs[0].usual_records: Expected `",
        ),
        ("not_seen.case_files_unreadable", None, "not_seen.case_files_unreadable: Expected `int`,"),
        ("totals.median_seconds_to_heal", "4", "totals.median_seconds_to_heal: Expected `float |"),
        (
            "previous_weeks.0.nightly_runs",
            "7",
            "previous_weeks[0].nightly_runs: Expected `int`, got `str`",
        ),
        ("not_seen.week_is_over", 1, "not_seen.week_is_over: Expected `bool`, got `int`"),
        ("not_seen.began", "today", "not_seen.began: Invalid RFC3339 encoded date"),
        ("not_seen.drill_incidents", None, "not_seen.drill_incidents: Expected `int`, got `null`"),
        ("cases.0.reason", None, "cases[0].reason: Expected `str`, got `null`"),
        ("previous_weeks.0.healed_with_time", 0.5, "previous_weeks[0].healed_with_time: Expected"),
    ],
)
def test_a_mistake_in_a_newer_part_is_named_with_its_place(
    path: str, value: object, says: str
) -> None:
    with pytest.raises(SummaryUnreadable, match=re.escape(f"summary.json: {says}")):
        read(_put(deepcopy(week([incident()], **WITH_EVERYTHING)), path, value))


def test_an_older_document_lacks_the_newer_parts() -> None:
    older = read(without_newer(busy_week()))
    assert not older.cases_were_read
    assert (older.times_to_heal, older.queue_days.queues, older.do_this_week) == ((), (), ())
    assert (older.reached_a_person.total, older.scanned.cases) == (0, 0)
    assert (older.totals.median_seconds_to_heal, older.totals.healed_with_time) == (None, 0)
    assert (older.not_seen.nightly_runs, older.not_seen.case_files_unreadable) == ((), 0)
    seen = older.not_seen
    assert (seen.week_is_over, seen.began, seen.drill_incidents) == (True, None, 0)
    assert {each.nightly_runs for each in older.previous_weeks} == {7}
    assert {each.reason for each in older.cases} == {""}
    newer = read(busy_week())
    assert newer.cases_were_read
    assert [each.incident_id for each in newer.cases] == [each.incident_id for each in older.cases]


def test_the_newer_parts_are_read() -> None:
    nightly_runs = [
        nightly(MONDAY, reader="standard_library", why_fallback="no isal", usual_records=None)
    ]
    summary = read(
        week(
            [incident(day=3, seconds_to_heal=each) for each in (9, 1, 5, 3, 7)],
            **WITH_EVERYTHING,
            do_this_week_left_out=4,
            not_seen={
                "nightly_runs": nightly_runs,
                "case_files_unreadable": 2,
                "week_is_over": False,
                "began": "2026-11-11",
                "drill_incidents": 3,
            },
        )
    )
    (healing,) = summary.times_to_heal
    assert (healing.symptom, healing.seconds) == ("visibility_timeout_too_short", (1, 3, 5, 7, 9))
    assert (healing.median_seconds, healing.p90_seconds) == (5, 9)
    assert summary.queue_days.queues[0].incidents == (0, 0, 0, 5, 0, 0, 0)
    (case,) = summary.reached_a_person.cases
    assert case.ended_at == datetime(2026, 11, 12, 15, tzinfo=UTC)
    assert (case.state, case.pages, case.is_scanned) == ("escalated", 1, False)
    assert summary.scanned.by_symptom == {"visibility_timeout_too_short": 1}
    assert summary.do_this_week[0].template_line == "VisibilityTimeout: 690"
    assert summary.do_this_week_left_out == 4
    assert (
        summary.not_seen.nightly_runs[0].day,
        summary.not_seen.nightly_runs[0].usual_records,
    ) == (
        MONDAY,
        None,
    )
    assert summary.not_seen.case_files_unreadable == 2
    seen = summary.not_seen
    assert (seen.week_is_over, seen.began, seen.drill_incidents) == (False, date(2026, 11, 11), 3)
    assert (summary.previous_weeks[0].nightly_runs, summary.previous_weeks[0].is_whole) == (
        6,
        False,
    )
    assert summary.totals.median_seconds_to_heal == 5


def test_that_nothing_exists_is_read_too() -> None:
    assert read(week(not_seen={"began": None})).not_seen.began is None


def test_what_a_page_has_no_room_for_counts_as_left_out() -> None:
    every = [incident(f"q{n:02}", day=n % 7) for n in range(23)]
    document = week(every, do_this_week=[recommendation()] * 13, do_this_week_left_out=2)
    listed = document["queue_days"]["queues"]
    document["queue_days"]["queues"] = [*listed, *listed[:3]]
    document["reached_a_person"] = reached_a_person(*[notified()] * 51, left_out=1)
    document["times_to_heal"] = [times("visibility_timeout_too_short", *range(300))]
    summary = read(document)
    assert len(summary.queue_days.queues) == 20
    assert (summary.queue_days.queues_left_out, summary.queue_days.incidents_left_out) == (6, 6)
    assert (len(summary.do_this_week), summary.do_this_week_left_out) == (10, 5)
    assert (len(summary.reached_a_person.cases), summary.reached_a_person.cases_left_out) == (50, 2)
    assert len(summary.times_to_heal[0].seconds) == 200


def test_unreadable_files_beyond_the_pages_room_are_not_listed() -> None:
    files = [{"file": f"f{n}", "reason": "truncated"} for n in range(21)]
    document = week(not_seen={"unreadable_files": files, "files_unreadable": 21})
    seen = read(document).not_seen
    assert (len(seen.unreadable_files), seen.files_unreadable) == (20, 21)


NAMES = {f"n{n}": 1 for n in range(1_001)}


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ("by_outcome", dict(list(NAMES.items())[:31]), "by_outcome: Expected `object` of length <"),
        ("by_symptom", NAMES, "by_symptom: Expected `object` of length <= 1000"),
        ("accounts", list(NAMES), "accounts: Expected `array` of length <= 1000"),
        ("regions", list(NAMES), "regions: Expected `array` of length <= 1000"),
        ("per_day", [{}] * 7_001, "per_day: Expected `array` of length <= 7000"),
        ("previous_weeks", [{}] * 5, "previous_weeks: Expected `array` of length <= 4"),
        ("times_to_heal", [{}] * 1_001, "times_to_heal: Expected `array` of length <= 1000"),
        ("scanned.by_symptom", NAMES, "scanned.by_symptom: Expected `object` of length <= 1000"),
        ("not_seen.unknown_code", NAMES, "not_seen.unknown_code: Expected `object` of length <"),
        (
            "not_seen.nightly_runs",
            [{}] * 8,
            "not_seen.nightly_runs: Expected `array` of length <= 7",
        ),
        (
            "not_seen.nightly_runs_missing",
            [""] * 8,
            "not_seen.nightly_runs_missing: Expected `array` of lengt",
        ),
    ],
)
def test_more_than_any_week_has_is_refused(path: str, value: object, says: str) -> None:
    with pytest.raises(SummaryUnreadable, match=re.escape(f"summary.json: {says}")):
        read(_put(deepcopy(week([incident()], **WITH_EVERYTHING)), path, value))


def test_a_heap_of_bytes_is_refused_unread() -> None:
    whole = json.dumps(week()).encode()
    assert read(whole + b" " * (MOST_BYTES - len(whole))).week == "2026-W46"
    with pytest.raises(SummaryUnreadable, match="larger than 5,000,000 bytes"):
        read(whole + b" " * (MOST_BYTES + 1 - len(whole)))


def test_bytes_and_a_mapping_read_alike() -> None:
    assert read(json.dumps(busy_week()).encode()) == read(busy_week())


def test_what_is_not_known_is_passed_over() -> None:
    assert read(week(owner="billing")) == read(week())


def test_values_have_their_types() -> None:
    summary = read(week([incident(case_id=None, why=None, seconds_to_heal=3)]))
    case = summary.cases[0]
    assert (case.case_id, case.why, case.seconds_to_heal) == (None, None, 3.0)
    assert case.first_failure == datetime(2026, 11, 9, 14, 2, 11, tzinfo=UTC)
    assert summary.first_day == date(2026, 11, 9)
    assert len(summary.days) == 7


def test_more_cases_than_the_page_lists_count_as_left_out() -> None:
    summary = read(week([incident() for _ in range(53)], cases_left_out=10))
    assert (len(summary.cases), summary.cases_left_out) == (50, 13)


def _paths(value: object, path: str = "") -> list[str]:
    if isinstance(value, dict):
        return [path] * bool(path) + [
            each for key in value for each in _paths(value[key], f"{path}.{key}".lstrip("."))
        ]
    if isinstance(value, list):
        return [path, *(each for n, it in enumerate(value) for each in _paths(it, f"{path}.{n}"))]
    return [path]


ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(), st.integers(), max_size=2),
)
# The dates of `cases.N` hold no dots, so a path is its own address.
PATHS = [
    each
    for each in _paths(week([incident()], **WITH_EVERYTHING))
    if each.rpartition(".")[2].replace("_", "").isalpha()
]


@given(st.sampled_from(PATHS), ODD)
def test_anything_anywhere_is_read_or_refused(path: str, odd: object) -> None:
    document = _put(deepcopy(week([incident()], **WITH_EVERYTHING)), path, odd)
    with suppress(SummaryUnreadable):
        assert read(document).week == "2026-W46" or path == "week"

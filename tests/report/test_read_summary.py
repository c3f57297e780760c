from __future__ import annotations

import json
import re
from contextlib import suppress
from copy import deepcopy
from datetime import UTC, date, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mendq.report.read_summary import MOST_BYTES, SummaryUnreadable, read
from tests.report.weeks import (
    HABITS,
    MONDAY,
    Document,
    busy_week,
    earlier,
    incident,
    nightly,
    notified,
    reached_a_person,
    recommendation,
    scanned,
    week,
    without_newer,
)


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


@pytest.mark.parametrize(
    ("documents", "says"),
    [
        ([b"", b"{", b"\xff\xfe", b'{"schema": NaN}', b"[" * 100_000], "is not a JSON document"),
        ([b"[]", b"1", b"null", b'"schema"'], "the document must be an object"),
    ],
)
def test_what_is_no_json_object_is_refused(documents: list[bytes], says: str) -> None:
    for document in documents:
        with pytest.raises(SummaryUnreadable, match=rf"^summary\.json:? {says}$"):
            read(document)


WITH_EVERYTHING: Document = {
    "reached_a_person": reached_a_person(
        notified(ended_at="2026-11-12T15:00:00Z", seconds_open=1.0)
    ),
    "scanned": scanned(visibility_timeout_too_short=1),
    "do_this_week": [recommendation()],
    "previous_weeks": earlier(1, nightly_runs=6),
}


def _everything() -> Document:
    return deepcopy(week([incident()], **WITH_EVERYTHING))


def _put(document: Document, path: str, value: object) -> Document:
    *way, last = path.split(".")
    place: Any = document
    for each in way:
        place = place[int(each)] if each.isdigit() else place[each]
    place[int(last) if last.isdigit() else last] = value
    return document


NO_WEEK = "`week` must be a week such as 2026-W46"
STRAY = "must be a day from `from` to `to`"
NAMES = {f"n{n}": 1 for n in range(1_001)}


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        *(("week", each, NO_WEEK) for each in ("46", "2026-W54", "2025-W53", "0000-W01")),
        ("week", "2026-W45", "`from` must be the Monday of 2026-W45"),
        ("from", "2026-02-30", "from: Invalid RFC3339 encoded date"),
        *(("to", each, "`to` must be six days after") for each in ("2026-11-16", "2026-11-02")),
        ("made_at", "2026-11-16T06:00:00", "made_at: Expected `datetime` with a timezone componen"),
        ("made_at", "0001-01-01T00:00:00+14:00", "`made_at` is no time of this calendar"),
        ("totals", [], "totals: Expected `object`, got `array`"),
        ("totals.incidents", -1, "totals.incidents: Expected `int` >= 0"),
        ("totals.incidents", 1.5, "totals.incidents: Expected `int`, got `float`"),
        ("totals.incidents", True, "totals.incidents: Expected `int`, got `bool`"),
        ("totals.incidents", 2**63, "totals.incidents: Expected `int` <= 9223372036854775807"),
        ("by_outcome", {"healed": "3"}, "by_outcome[...]: Expected `int`, got `str`"),
        ("per_day.0.date", "2026-11-16", f"2026-11-16 {STRAY}"),
        ("not_seen.nightly_runs_missing", ["2026-11-16"], f"2026-11-16 {STRAY}"),
        ("not_seen.nightly_runs.0.day", "2026-11-08", f"2026-11-08 {STRAY}"),
        ("cases.0.seconds_to_heal", float("nan"), "cases[0].seconds_to_heal: Expected `float` >="),
        ("cases.0.notified", 1, "cases[0].notified: Expected `bool`, got `int`"),
        ("queue_days.queues.0.incidents", [1] * 6, "queue_days.queues[0].incidents: Expected `arr"),
        ("not_seen.unreadable_files", [{"file": "a"}], "not_seen.unreadable_files[0]: Object miss"),
        ("reached_a_person", None, "reached_a_person: Expected `object`, got `null`"),
        # More than any week has, or than the nightly job lists.
        ("by_outcome", dict(list(NAMES.items())[:31]), "by_outcome: Expected `object` of length <"),
        *((name, NAMES, f"{name}: Expected `object` of length <= 1000") for name in (
            "by_symptom", "scanned.by_symptom", "not_seen.unknown_code")),
        ("habits", dict.fromkeys(NAMES, ""), "habits: Expected `object` of length <= 1000"),
        *((name, [{}] * (most + 1), f"{name}: Expected `array` of length <= {most}")
          for name, most in {
              "accounts": 1_000, "regions": 1_000, "per_day": 7_000, "previous_weeks": 4,
              "times_to_heal": 1_000, "times_to_heal.0.seconds": 200, "queue_days.queues": 20,
              "reached_a_person.cases": 50, "cases": 50, "do_this_week": 10,
              "not_seen.unreadable_files": 20}.items()),
        ("not_seen.nightly_runs", [{}] * 8, "not_seen.nightly_runs: Expected `array` of length"),
        ("not_seen.nightly_runs_missing", [""] * 8, "not_seen.nightly_runs_missing: Expected `a"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_place(path: str, value: object, says: str) -> None:

    pattern = re.escape(f"summary.json: {says}").replace(r"\.0\.", r"\[0\]\.")
    with pytest.raises(SummaryUnreadable, match=pattern):
        read(_put(_everything(), path, value))


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


def test_an_older_document_lacks_the_newer_parts() -> None:
    older = read(without_newer(busy_week()))
    seen = older.not_seen
    assert not older.cases_were_read
    assert (older.times_to_heal, older.queue_days.queues, older.do_this_week) == ((), (), ())
    assert (older.reached_a_person.total, older.scanned.cases, older.habits) == (0, 0, {})
    assert (older.totals.median_seconds_to_heal, older.totals.healed_with_time) == (None, 0)
    assert (seen.nightly_runs, seen.case_files_unreadable) == ((), 0)
    assert (seen.week_is_over, seen.began, seen.drill_incidents) == (True, None, 0)
    assert {each.nightly_runs for each in older.previous_weeks} == {7}
    assert {each.reason for each in older.cases} == {""}
    assert read(busy_week()).cases_were_read


def test_values_have_their_types_and_their_places() -> None:
    slow = nightly(MONDAY, reader="standard_library", why_fallback="no isal", usual_records=None)
    cases = [incident(day=3, seconds_to_heal=each) for each in (9, 1, 5, 3, 7)]
    told = {"nightly_runs": [slow], "week_is_over": False, "began": "2026-11-11"}
    summary = read(week(cases, **WITH_EVERYTHING, not_seen=told))
    (healing,) = summary.times_to_heal
    assert (healing.symptom, healing.seconds) == ("visibility_timeout_too_short", (1, 3, 5, 7, 9))
    assert (healing.median_seconds, healing.p90_seconds) == (5, 9)
    assert summary.queue_days.queues[0].incidents == (0, 0, 0, 5, 0, 0, 0)
    (case,) = summary.reached_a_person.cases
    assert case.ended_at == datetime(2026, 11, 12, 15, tzinfo=UTC)
    assert (case.state, case.pages, case.is_scanned) == ("escalated", 1, False)
    seen = summary.not_seen
    assert (seen.nightly_runs[0].day, seen.nightly_runs[0].usual_records) == (MONDAY, None)
    assert (seen.week_is_over, seen.began) == (False, date(2026, 11, 11))
    assert [each.is_whole for each in summary.previous_weeks] == [False]
    assert summary.habits == HABITS
    assert len(summary.days) == 7
    assert read(week(not_seen={"began": None})).not_seen.began is None


def test_a_heap_of_bytes_is_refused_unread() -> None:
    whole = json.dumps(busy_week()).encode()
    assert read(whole + b" " * (MOST_BYTES - len(whole))) == read(busy_week())
    with pytest.raises(SummaryUnreadable, match="larger than 5,000,000 bytes"):
        read(whole + b" " * (MOST_BYTES + 1 - len(whole)))


def test_what_is_not_known_is_passed_over() -> None:
    assert read(week(owner="billing")) == read(week())


def _paths(value: object, path: str = "") -> list[str]:
    if isinstance(value, dict):
        return [path] * bool(path) + [
            each for key in value for each in _paths(value[key], f"{path}.{key}".lstrip("."))
        ]
    if isinstance(value, list):
        return [path, *(each for n, it in enumerate(value) for each in _paths(it, f"{path}.{n}"))]
    return [path]


ODD = st.one_of(
    *(st.none(), st.booleans(), st.integers(), st.floats(), st.text()),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(), st.integers(), max_size=2),
)
# The dates of `cases.N` hold no dots, so a path is its own address.
PATHS = [
    each for each in _paths(_everything()) if each.rpartition(".")[2].replace("_", "").isalpha()
]


@settings(max_examples=60)
@given(st.sampled_from(PATHS), ODD)
def test_anything_anywhere_is_read_or_refused(path: str, odd: object) -> None:
    with suppress(SummaryUnreadable):
        assert read(_put(_everything(), path, odd)).week == "2026-W46" or path == "week"

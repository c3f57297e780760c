"""Reading summary.json: valid documents, refusals and limits."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mendq.report import summary
from mendq.report.summary import MOST_SUMMARY_BYTES, SummaryUnreadable
from tests.report.weeks import (
    Document,
    drop_newer_fields,
    make_busy_week,
    make_incident,
    make_notified_case,
    make_open_case,
    make_previous_weeks,
    make_reached_a_person,
    make_recommendation,
    make_week,
    read_document,
)

# Path, wrong value, and error message.
MISTAKES = json.loads(Path(__file__).with_name("mistakes.json").read_text())
# More than any week has, or than the nightly job lists.
MOST = {
    "accounts": 1_000, "regions": 1_000, "per_day": 7_000, "previous_weeks": 7,
    "times_to_heal": 1_000, "times_to_heal.0.seconds": 200, "queue_days.queues": 20,
    "reached_a_person.cases": 50, "cases": 50, "do_this_week": 10,
    "open_now": 50, "earned": 10, "does_it_help": 1_000,
    "not_seen.unreadable_files": 20, "not_seen.nightly_runs": 7,
    "by_outcome": 30, "by_symptom": 1_000, "habits": 1_000,
    "not_seen.unknown_code": 1_000,
}  # fmt: skip
COMPARISON = {
    "symptom": "s", "fixed": 1, "fixed_median_seconds": 2.5,
    "untouched": 2, "recovered": 0, "recovered_median_seconds": None,
}  # fmt: skip


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        (1, "summary.json has schema 1 and this report reads schema 2; deploy the report and the "),
        ("1", "summary.json has schema '1' and this report reads schema 2;"),
        (True, "summary.json has schema True and"),
        (None, "summary.json has schema None and"),
    ],
)
def test_summary_with_another_schema_version_is_refused_in_one_sentence(
    schema: object, says: str
) -> None:
    with pytest.raises(SummaryUnreadable, match=rf"^{re.escape(says)}.*$"):
        read_document(make_week(schema=schema))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        *((content, "is not a JSON document") for content in (
            b"", b"{", b"\xff\xfe", b'{"schema": NaN}', b'{"schema":' + b"[" * 100_000)),
        *((content, "Expected `object`, got `[a-z]+`") for content in (
            b"[" * 100_000, b"[]", b"1", b"null", b'"schema"')),
    ],
)  # fmt: skip
def test_summary_that_is_no_json_object_is_refused(content: bytes, says: str) -> None:
    with pytest.raises(SummaryUnreadable, match=rf"^summary\.json:? {says}$"):
        summary.read_summary(content)


def _make_full_document() -> Document:
    people = make_reached_a_person(make_notified_case(ended_at="2026-11-12T15:00:00Z"))
    unread = {"unreadable_files": [{"file": "a", "reason": "b"}], "unknown_code": {"a": 1}}
    made = make_week(
        [make_incident()],
        reached_a_person=people,
        do_this_week=[make_recommendation()],
        previous_weeks=make_previous_weeks(1, nightly_runs=6),
        open_now=[make_open_case()],
        earned=[{"queue_arn": "q", "symptom": "s", "approved": 5, "asked": 5}],
        does_it_help=[COMPARISON],
        not_seen=unread,
    )
    return deepcopy(made)


def _find(document: Document, path: str) -> tuple[Any, str | int]:
    """The list or mapping that holds the last of the path's names, and that name."""
    place: Any = document
    *way, last = [int(name) if name.isdigit() else name for name in path.split(".")]
    for name in way:
        place = place[name]
    return place, last


def _put(document: Document, path: str, value: object) -> Document:
    place, last = _find(document, path)
    place[last] = value
    return document


@pytest.mark.parametrize(("path", "value", "says"), MISTAKES)
def test_summary_with_a_wrong_value_is_refused_and_the_path_of_the_value_is_named(
    path: str, value: object, says: str
) -> None:
    with pytest.raises(SummaryUnreadable, match=re.escape(f"summary.json: {says}")):
        read_document(_put(_make_full_document(), path, value))


@pytest.mark.parametrize("path", MOST)
def test_summary_with_a_list_longer_than_the_nightly_job_writes_is_refused(path: str) -> None:
    document = _make_full_document()
    place, last = _find(document, path)
    whole = place[last]
    size = MOST[path] + 1
    one = next(iter(whole.values() if isinstance(whole, dict) else whole))
    place[last] = {f"{n}": one for n in range(size)} if isinstance(whole, dict) else [one] * size
    said = rf"{last}: Expected `(array|object)` of length <= {MOST[path]}$"
    with pytest.raises(SummaryUnreadable, match=said):
        read_document(document)


@pytest.mark.parametrize("field", list(drop_newer_fields(make_week())))
def test_summary_without_a_required_field_is_refused_and_the_field_is_named(field: str) -> None:
    document = make_week()
    del document[field]
    with pytest.raises(SummaryUnreadable, match=rf"^summary\.json.* (schema None|`{field}`)"):
        read_document(document)


def test_error_about_a_hostile_summary_value_is_one_short_printable_line() -> None:
    with pytest.raises(SummaryUnreadable) as caught:
        read_document(
            make_week(by_outcome={"a\nb\N{RIGHT-TO-LEFT OVERRIDE}" * 40: "\x1b[31m" * 1000})
        )
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 1200


def test_summary_of_an_older_version_is_read_with_the_defaults_of_newer_fields() -> None:
    older = read_document(drop_newer_fields(make_busy_week()))
    assert (older.cases_were_read, older.not_seen.week_is_over) == (False, True)
    assert read_document(make_busy_week()).cases_were_read


def test_unknown_field_of_a_summary_is_ignored() -> None:
    assert read_document(make_week(owner="billing")) == read_document(make_week())


def test_summary_times_are_converted_to_utc() -> None:
    assert (
        f"{read_document(make_week(made_at='2026-11-16T08:00:00+02:00')).made_at:%H:%M}" == "06:00"
    )


def test_summary_above_5_megabytes_is_refused() -> None:
    whole = json.dumps(make_busy_week()).encode()
    most = whole + b" " * (MOST_SUMMARY_BYTES - len(whole))
    assert summary.read_summary(most) == read_document(make_busy_week())
    with pytest.raises(SummaryUnreadable, match="larger than 5,000,000 bytes"):
        summary.read_summary(most + b" ")


@pytest.mark.parametrize(
    ("written", "read_as"),
    [
        (r"\ud800", "\uffff"),
        (r"a\ud83d\ude00\\ud800", "a\U0001f600\\ud800"),
        (r"\udE00\uD83dx", "\uffff\uffffx"),
    ],
)
def test_lone_surrogates_in_a_summary_are_replaced(written: str, read_as: str) -> None:
    document = json.dumps(make_week(accounts=["NAME"])).replace("NAME", written)
    assert summary.read_summary(document.encode()).accounts == (read_as,)


def _list_paths(value: object, path: str = "") -> list[str]:
    if isinstance(value, dict):
        return [path] * bool(path) + [
            nested_path
            for key in value
            for nested_path in _list_paths(value[key], f"{path}.{key}".lstrip("."))
        ]
    if isinstance(value, list):
        return [
            path,
            *(
                nested_path
                for n, item in enumerate(value)
                for nested_path in _list_paths(item, f"{path}.{n}")
            ),
        ]
    return [path]


ODD = st.one_of(
    *(st.none(), st.booleans(), st.integers(), st.floats(), st.text()),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(), st.integers(), max_size=2),
)
# The dates of `cases.N` hold no dots, so a path is its own address.
PATHS = [
    path
    for path in _list_paths(_make_full_document())
    if path.rpartition(".")[2].replace("_", "").isalpha()
]


@settings(max_examples=60)
@given(st.sampled_from(PATHS), ODD)
def test_any_value_in_any_summary_field_is_read_or_refused(path: str, odd: object) -> None:
    with suppress(SummaryUnreadable):
        assert (
            read_document(_put(_make_full_document(), path, odd)).week == "2026-W46"
            or path == "week"
        )

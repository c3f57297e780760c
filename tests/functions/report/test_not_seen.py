from __future__ import annotations

from typing import Any

import pytest

from functions.report.not_seen import not_seen, not_seen_in_short
from functions.report.read_summary import read
from functions.report.summary import Summary
from functions.report.words import plain
from tests.functions.report.week_parts import night, without_newer
from tests.functions.report.weeks import DAYS, incident, summary, week

BLIND = (
    "What no trail shows: calls that its selectors leave out, and batch calls that SQS answers "
    "with 200 although entries in them failed."
)
CASES_NOT_READ = (
    "Mendq's cases were not read: who was paged, what sweeps found and what to do this week are "
    "not known."
)
ALL_NIGHTS = "All 7 nights were read."
ALL_FILES = "412 trail files (81.2 MB): all were readable."
UNKNOWN = "that the catalogue does not know, so nothing acted on"
COUNTED = "a caller's mistake, counted only"
NOT_MANAGED = "Mendq does not manage this queue"


def sentences(week: Summary) -> list[str]:
    return [plain(each) for each in not_seen(week)]


def test_a_week_seen_whole_still_says_what_no_trail_shows() -> None:
    assert sentences(summary()) == [ALL_NIGHTS, ALL_FILES, BLIND]


@pytest.mark.parametrize(
    ("seen", "sentence"),
    [
        ({"nights_missing": ["2026-11-10"]}, "1 night was not read: Tue 10 Nov."),
        (
            {"nights_missing": ["2026-11-10", "2026-11-11", "2026-11-15"]},
            "3 nights were not read: Tue 10 Nov, Wed 11 Nov and Sun 15 Nov.",
        ),
        ({"nights_missing": [f"{each}" for each in DAYS]}, "No night of the week was read."),
        ({"files_read": 0, "bytes_read": 0}, "There was no trail file to read."),
        (
            {"files_read": 1, "bytes_read": 999},
            "1 trail file (999 bytes): it was readable.",
        ),
        (
            {"files_unreadable": 2, "bytes_unreadable": 1_250_000},
            "2 of 414 trail files could not be read (1.2 MB of 82.5 MB, 2 %).",
        ),
        (
            {"files_unreadable": 1, "bytes_unreadable": 0},
            "1 of 413 trail files could not be read (0 bytes of 81.2 MB, 0 %).",
        ),
        (
            {"files_read": 0, "bytes_read": 0, "files_unreadable": 1},
            "1 of 1 trail file could not be read (0 bytes of 0 bytes).",
        ),
        (
            {"unlabelled": {"unlabelled:Teapot": 1}},
            f"1 failed call has a code {UNKNOWN} it: Teapot (1).",
        ),
        (
            {"unlabelled": {"unlabelled:Teapot": 2, "unlabelled:Kettle": 1_000}},
            f"1,002 failed calls have codes {UNKNOWN} them: Kettle (1,000) and Teapot (2).",
        ),
    ],
)
def test_what_was_not_seen_is_counted(seen: dict[str, Any], sentence: str) -> None:
    week = summary(not_seen=seen)
    assert sentence in sentences(week)
    assert sentence in not_seen_in_short(week)


def test_an_older_night_or_one_without_the_cases_says_what_is_not_known() -> None:
    assert CASES_NOT_READ in not_seen(read(without_newer(week())))


@pytest.mark.parametrize(
    ("count", "sentence"),
    [(1, "1 case file could not be read."), (3, "3 case files could not be read.")],
)
def test_cases_that_could_not_be_read_are_counted(count: int, sentence: str) -> None:
    assert sentence in not_seen(summary(not_seen={"case_files_unreadable": count}))


def test_a_night_that_read_too_little_is_in_the_short_form_too() -> None:
    few = night(DAYS[1], records=900, verdict="far_fewer")
    said = not_seen_in_short(summary(not_seen={"nights": [few]}))
    assert "Tue 10 Nov had far fewer records than usual: 900, where 181,000 are usual." in said


def test_a_day_that_read_nothing_is_told_once() -> None:
    silent = night(DAYS[1], records=0, usual_records=None, verdict="nothing_read")
    week = summary(not_seen={"nights_missing": ["2026-11-10"], "nights": [silent]})
    for said in (" ".join(sentences(week)), not_seen_in_short(week)):
        assert said.count("Tue 10 Nov") == 1
        assert "Tue 10 Nov had not one record: is the trail on?" in said
        assert "All 7 nights" not in said


@pytest.mark.parametrize(
    ("incidents", "said"),
    [
        (0, []),
        (1, ["1 incident of drills is left out."]),
        (4, ["4 incidents of drills are left out."]),
    ],
)
def test_drills_that_are_left_out_are_counted(incidents: int, said: list[str]) -> None:
    found = sentences(summary(not_seen={"drill_incidents": incidents}))
    assert [each for each in found if "drill" in each] == said


@pytest.mark.parametrize(
    ("why", "said"),
    [
        ("not_managed", "Mendq does not manage this queue"),
        ("not_tagged_in_time", "the queue was tagged only after it failed"),
        ("event_lost", "CloudTrail recorded the calls, and probably no event reached Mendq"),
        ("case_open", "an earlier case of the queue was still open"),
        (
            "too_little_evidence",
            "too few failed calls, or too far apart, for Mendq to believe them",
        ),
        ("unresolved_queue", "the calls do not say which queue they were about"),
        ("unknown", "neither the logs nor the cases say why"),
        ("unlabelled", "no entry of the catalogue knows this error code"),
        ("count_only", "a caller's mistake, counted only"),
    ],
)
def test_why_an_incident_has_no_case(why: str, said: str) -> None:
    assert sentences(summary([unseen(why)]))[2] == f"1 incident has no case: {said}."


def test_many_unknown_codes_are_cut() -> None:
    codes = {f"unlabelled:C{n:02}": 1 for n in range(12)}
    assert sentences(summary(not_seen={"unlabelled": codes}))[2].endswith("C09 (1) and 2 more.")


def test_codes_that_the_summary_left_out_are_counted() -> None:
    seen = {"unlabelled": {"unlabelled:Teapot": 2}, "unlabelled_codes_left_out": 1_100,
            "unlabelled_calls_left_out": 3_000}  # fmt: skip
    assert sentences(summary(not_seen=seen))[2] == (
        f"3,002 failed calls have codes {UNKNOWN} them: Teapot (2) and 1,100 more."
    )


def unseen(why: str | None) -> Any:
    return incident(outcome="not_seen", why=why)


@pytest.mark.parametrize(
    ("whys", "sentence"),
    [
        (["not_managed"], f"1 incident has no case: {NOT_MANAGED}."),
        ([None], "1 incident has no case: no reason given."),
        (
            ["count_only", "not_managed", "not_managed"],
            f"3 incidents have no case: {NOT_MANAGED} (2) and {COUNTED} (1).",
        ),
    ],
)
def test_incidents_without_a_case_are_counted_by_reason(
    whys: list[str | None], sentence: str
) -> None:
    assert sentences(summary([unseen(each) for each in whys]))[2] == sentence


def test_reasons_beyond_the_list_are_not_made_up() -> None:
    sentence = sentences(summary([unseen("event_lost")], by_outcome={"not_seen": 3}))[2]
    assert sentence == (
        "3 incidents have no case: "
        "CloudTrail recorded the calls, and probably no event reached Mendq (1)."
    )
    assert sentences(summary(by_outcome={"not_seen": 3}))[2] == "3 incidents have no case."


@pytest.mark.parametrize(
    ("left_out", "ends"),
    [(1, "1 more is in the report bucket, "), (9_950, "9,950 more are in the report bucket, ")],
)
def test_a_list_that_was_cut_says_where_the_rest_is(left_out: int, ends: str) -> None:
    sentence = sentences(summary([incident()], cases_left_out=left_out))[2]
    assert sentence == f"The page lists the 1 worst incident; {ends}under incidents/."

from __future__ import annotations

import json
import re
import time
from typing import Any
from unittest.mock import Mock, patch

import pytest
from hypothesis import example, given, settings

from mendq.report.drawing import Picture
from mendq.report.html_page import page
from mendq.report.read_summary import read
from tests.report.hostile import PAYLOADS, hostile_weeks
from tests.report.large import largest_week
from tests.report.page_parts import PageParts
from tests.report.week_parts import notified, reached_a_person, recommendation
from tests.report.weeks import DAYS, arn, busy_week, earlier, incident, week

NO_BREAK = "\N{NO-BREAK SPACE}"
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
# Messages that no other text in a test uses, for the characters that mean something in HTML.
TAMED = str.maketrans("<>&\"'", "\U00010400\U00010401\U00010402\U00010403\U00010404")


def _tamed(value: Any) -> Any:
    if isinstance(value, dict):
        return {_tamed(key): _tamed(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_tamed(each) for each in value]
    return value.translate(TAMED) if isinstance(value, str) else value


def _parts(document: dict[str, Any]) -> PageParts:
    return PageParts(page(read(document)))


# Pictures hold no name, as their own tests show, and drawing them takes longest.
BLANK = Picture("data:image/svg+xml;base64,QQ==", 1, 1)


@patch("mendq.report.drawing.as_picture", return_value=BLANK)
@settings(max_examples=25)
@given(document=hostile_weeks())
@example(document=week([incident(symptom=it, why=it, queue_arn=arn(it)) for it in PAYLOADS]))
def test_no_name_becomes_markup(pictures: Mock, document: dict[str, Any]) -> None:
    """The elements and attributes are those of the same week in tame messages, one by one.

    But for where long names may break: those messages come in another order in the alphabet.
    """
    parts = _parts(document)
    assert _unbroken(parts) == _unbroken(_parts(_tamed(document)))
    assert {each for each in parts.elements if each[0] == "wbr"} <= {("wbr", ())}
    assert parts.alone == []
    _refuse_what_acts(parts)


def _unbroken(parts: PageParts) -> list[tuple[str, tuple[str, ...]]]:
    return [each for each in parts.elements if each[0] != "wbr"]


def _refuse_what_acts(parts: PageParts) -> None:
    assert not {tag for tag, _ in parts.elements} & {
        "script",
        "a",
        "link",
        "iframe",
        "base",
        "form",
    }
    for tag, name, value in parts.values:
        assert not name.startswith("on"), (tag, name)
        assert name not in {"href", "style", "action"}, (tag, name)
        if name == "src":
            assert re.fullmatch(r"data:image/svg\+xml;base64,[A-Za-z0-9+/=]+", value)
        elif name == "alt":
            continue
        elif name in {"id", "aria-labelledby"}:
            assert re.fullmatch(r"[a-z-]+", value)
        else:
            assert re.fullmatch(r"[\w .,:;'=()/#%-]*", value), (tag, name, value)


def test_no_mark_of_ours_is_left_in_the_text() -> None:
    for document in (busy_week(), week([incident(outcome="a_word", why="x", symptom="y")] * 3)):
        assert not re.search("[\ue000-\uf8ff]", page(read(document)))


def test_names_from_right_to_left_stand_apart() -> None:
    name = "\u05d0\u05d1\u05d2"
    parts = _parts(week([incident(name, symptom=name, why=name)] * 3))
    html = page(read(week([incident(name, symptom=name, why=name)] * 3)))
    body = html.partition("<body>")[2]
    alone = re.sub(rf'<bdi( class="[a-z]+")?>{name}</bdi>|alt="[^"]*"', "", body)
    assert name in parts.text
    around = [
        alone[max(0, found.start() - 40) : found.end() + 9] for found in re.finditer(name, alone)
    ]
    assert all("<bdi" in each for each in around), around


def test_a_name_is_shown_as_it_is_written() -> None:
    text = _parts(week([incident('<b>"orders" & co</b>', why="{{ 7 * 7 }}")])).text
    assert '<b>"orders" & co</b>' in text
    assert "{{ 7 * 7 }}" in text


@pytest.mark.parametrize("document", [busy_week(), week(), week([incident()])])
def test_the_page_needs_nothing_and_runs_nothing(document: dict[str, Any]) -> None:
    html = page(read(document))
    parts = PageParts(html)
    _refuse_what_acts(parts)
    policies = [value for tag, name, value in parts.values if value.startswith("default-src")]
    assert len(policies) == 1
    assert policies[0].startswith(POLICY)
    assert not re.search(r"url\(|@import|https?://", re.sub(r"base64,[\w+/=]+", "", html))


def test_the_policy_comes_before_anything_it_governs() -> None:
    tags = [tag for tag, _ in _parts(busy_week()).elements]
    assert tags[:5] == ["html", "head", "meta", "meta", "meta"]


def test_the_same_summary_gives_the_same_bytes() -> None:
    document = json.dumps(busy_week()).encode()
    assert page(read(document)) == page(read(document))


def test_the_verdict_comes_first_and_the_rest_in_order() -> None:
    text = _parts(busy_week()).text
    order = [
        (
            "26 incidents, 19 healed before anyone was paged. invoices keeps outrunning its "
            "visibility timeout"
        ),
        "The other 7: 1 only observed",
        "the need of 1,380 s is above the ceiling of 900 s",
        "Healed without a page 19 of 26",
        "Scans opened 2 cases where no call failed",
        "Do this week Set VisibilityTimeout of invoices to 690 s in its template.",
        "template VisibilityTimeout: 690",
        "run mendq show visibility_timeout_too_short-invoices --region us-east-1",
        "Incidents per day Fri 13 Nov had the most: 8.",
        "Time to heal A dot for each healed incident",
        "Which queue on which day invoices had the most: 13 of 26 incidents.",
        "Cases that reached a person 3 cases, 3 pages: 2 still open and 1 closed.",
        "Incidents that were not healed",
        "19 healed incidents",
        "What this report could not see",
        "2 of 414 trail files could not be read",
        "Made Mon 16 Nov 2026 06:00 UTC by Mendq from 412 trail files",
    ]
    places = [text.find(each) for each in order]
    assert places == sorted(places)
    assert -1 not in places


def test_the_picture_has_words_and_a_table() -> None:
    parts = _parts(busy_week())
    alts = {value for tag, name, value in parts.values if (tag, name) == ("img", "alt")}
    days = next(each for each in alts if each.startswith("Incidents per day."))
    assert days.startswith(
        "Incidents per day. Mon 9: 5 (visibility_timeout_too_short 4, kms_throttled 1)."
    )
    assert "Thu 12: 4 (visibility_timeout_too_short 4), 1 case reached a person." in days
    assert "16 healed incidents, from 20~s to 4~min 5~s".replace("~", NO_BREAK) in alts
    assert "The same as a table" in parts.text


def test_a_day_that_was_not_read_is_no_zero_in_the_table() -> None:
    cases = [incident(day=6), incident(day=6, symptom="access_denied")]
    missing = {"nightly_runs_missing": [f"{each}" for each in DAYS[:6]]}
    html = page(read(week(cases, not_seen=missing)))
    rows = re.findall(r'<tr><th scope="row">(\w+ \d+)</th>(.*?)</tr>', html)
    figures = {day: re.findall(r">([^<]+)</td>", cells) for day, cells in rows}
    assert figures["Mon 9"] == ["not read", *["\N{EN DASH}"] * 3]
    assert figures["Sun 15"] == ["2", "1", "1", "24"]
    assert len(figures) == 7


def test_the_heat_map_explains_its_question_mark() -> None:
    said = "?: that day was not read."
    assert said not in _parts(week([incident()])).text
    assert (
        said in _parts(week([incident()], not_seen={"nightly_runs_missing": [f"{DAYS[1]}"]})).text
    )


def test_a_number_stays_with_its_unit_but_for_what_is_to_be_copied() -> None:
    line = recommendation(template_line="VisibilityTimeout: 690 # 690 s", command="mendq show 9 s")
    over = "the need is above the ceiling of 900 s"
    cases = [incident("a 5 s", outcome="refused", reason=over)]
    html = page(read(week(cases, do_this_week=[line])))
    assert over.replace("900 s", f"900{NO_BREAK}s") in html
    assert f"to 690{NO_BREAK}s in its template" in html
    assert f"81.2{NO_BREAK}MB" in html
    for retained in ("690 # 690 s", "<bdi>a 5 s</bdi>", ">9</bdi> <bdi"):
        assert retained in html


def test_what_a_case_said_last_stands_beside_its_incident() -> None:
    over = "the need is above the ceiling"
    says_why = incident(outcome="refused", reason=over)
    parts = _parts(week([says_why, incident(day=1, outcome="refused")]))
    assert f"{over}case visibility_timeout_too_short-0a1b2c3d4e5f" in parts.text
    assert parts.text.count("case visibility_timeout_too_short-0a1b2c3d4e5f") == 2
    assert ("td", "data-label", "Case") not in parts.values


def test_the_tint_is_said_for_light_and_dark() -> None:
    text = _parts(busy_week()).text
    assert "A stronger colour means more incidents." in text
    assert "darker" not in text


def test_a_person_reads_what_became_of_the_queue() -> None:
    case = notified(state="refused", ended_at="2026-11-12T14:02:30Z", seconds_open=0.0)
    text = _parts(week(reached_a_person=reached_a_person(case))).text
    assert "1 case, 1 page: 1 left as it was." in text
    assert "Mendq left it as it was" in text
    assert "after 0" not in text
    assert "open for" not in text.lower()


def test_a_week_without_incidents_has_no_picture_and_reads_well() -> None:
    parts = _parts(week(previous_weeks=earlier(3, 4)))
    assert "img" not in {tag for tag, _ in parts.elements}
    for each in ("No incidents this week.", "3.5 below the 2\u2011week median of 3.5", "None."):
        assert each in parts.text


def test_a_week_in_which_nothing_was_read_shows_no_figures() -> None:
    missing = {
        "nightly_runs_missing": [f"{each}" for each in DAYS],
        "files_read": 0,
        "bytes_read": 0,
    }
    parts = _parts(week(not_seen=missing))
    assert "Nothing was read this week: whether there were incidents is not known." in parts.text
    assert "Incidents per day" not in parts.text
    assert "No nightly run of the week was read." in parts.text


def test_what_the_cases_say_is_shown_though_no_trail_was_read() -> None:
    missing = {
        "nightly_runs_missing": [f"{each}" for each in DAYS],
        "files_read": 0,
        "bytes_read": 0,
    }
    found: dict[str, Any] = {
        "reached_a_person": reached_a_person(notified()),
        "do_this_week": [recommendation("approve")],
    }
    text = _parts(week(not_seen=missing, **found)).text
    for each in ("Do this week Approve or decline:", "1 case, 1 page: 1 still open."):
        assert each in text
    assert "Time to heal" not in text


@pytest.mark.parametrize("incidents", [1, 10_000])
def test_the_page_stays_small(incidents: int) -> None:
    cases = [incident(f"queue-{n:02}" * 8, why="w" * 900) for n in range(50)]
    totals = week(cases)["totals"] | {"incidents": incidents}
    rows = [
        {"date": f"{day}", "symptom": f"unknown:{n}", "incidents": incidents, "failed_calls": 9}
        for day in DAYS
        for n in range(40)
    ]
    html = page(read(week(cases, totals=totals, per_day=rows, cases_left_out=incidents)))
    assert len(html.encode()) < 250_000


def test_the_largest_week_is_a_page_that_a_mail_program_could_carry() -> None:
    """500 queues, 10,000 incidents, and of everything as much as a summary lists."""
    started = time.monotonic()
    html = page(read(largest_week()))
    assert time.monotonic() - started < 10
    assert len(html.encode()) < 1_500_000

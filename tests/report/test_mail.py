"""The mail says what the page says, and none of it is markup, a link or a header of others."""

from __future__ import annotations

import re

import pytest
from hypothesis import HealthCheck, given, settings

from mendq.report import mail as mail_module
from mendq.report.mail import PICTURE_ID, Mail, mail, subject, text
from mendq.report.read_summary import read
from mendq.report.summary import Summary
from tests.report.hostile import PAYLOADS, hostile_weeks
from tests.report.large import largest_week
from tests.report.page_parts import PageParts
from tests.report.weeks import Document, busy_week, incident, summary, week

PLACE = "s3://reports/report/week=2026-W46/report.html"
COMMAND = "mendq report --week 2026-W46 --open --region us-east-1"
GMAIL_CUTS_AT_BYTES = 102 * 1024
SNS_TAKES_BYTES = 256 * 1024
ATTRIBUTES = {
    "html": {"lang"},
    "meta": {"charset", "name", "content"},
    "table": {"role", "class", "width", "cellpadding", "cellspacing", "border", "style"},
    "td": {"align", "class", "style"},
    "th": {"scope", "class", "align", "style"},
    "img": {"src", "width", "alt", "style"},
    **{
        name: {"class", "style"} for name in ("body", "div", "p", "h1", "h2", "span", "bdi", "code")
    },
    "strong": {"style"},
    **{name: set[str]() for name in ("head", "title", "style", "tr")},
}
_UNSEEN = re.compile(
    "[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u200b-\\u200f\\u202a-\\u202e\\ue000-\\ue002]"
)
_LINK = re.compile(r"://|www\.", re.IGNORECASE)


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mail_module, "as_png", lambda _: b"a picture")


def _mail(document: Document) -> Mail:
    return mail(read(document), PLACE, COMMAND)


def test_the_picture_is_a_png_of_the_incidents_per_day() -> None:
    drawn = _mail(busy_week())
    assert drawn.picture is not None
    assert drawn.picture.startswith(b"\x89PNG\r\n\x1a\n")
    assert 10_000 < len(drawn.picture) < 1_000_000
    assert ("img", "src", f"cid:{PICTURE_ID}") in PageParts(drawn.html).values


def test_a_week_without_incidents_has_none() -> None:
    quiet = _mail(week())
    assert quiet.picture is None
    assert "<img" not in quiet.html
    assert "No incidents this week." in PageParts(quiet.html).text


@pytest.mark.usefixtures("undrawn")
def test_it_says_the_verdict_the_figures_and_what_to_do_in_html_and_in_text() -> None:
    both = _mail(busy_week())
    html = PageParts(both.html).text
    for says in (
        "26 incidents, 19 healed before anyone was paged.",
        "6 above the 4-week median of 20",
        "Set VisibilityTimeout of invoices to 690 s in its template.",
        "VisibilityTimeout: 690",
        "All 7 nightly runs were read.",
        COMMAND,
        PLACE,
    ):
        assert says in html, says
        assert says in both.text, says


@pytest.mark.usefixtures("undrawn")
def test_nothing_to_do_is_no_heading() -> None:
    quiet = _mail(week([incident()]))
    assert "Do this week" not in quiet.html + quiet.text


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (summary(), "Mendq 2026-W46: no incidents"),
        (summary([incident()]), "Mendq 2026-W46: 1 incident, 1 healed, 0 paged"),
        (
            summary([incident(outcome="escalated"), incident(day=1)]),
            "Mendq 2026-W46: 2 incidents, 1 healed, 1 paged",
        ),
        (
            summary([incident(outcome="approved"), incident(day=1)]),
            "Mendq 2026-W46: 2 incidents, 2 healed, 0 paged",
        ),
        (
            summary(not_seen={"files_read": 0, "nightly_runs_missing": []}),
            "Mendq 2026-W46: nothing was read",
        ),
    ],
)
def test_the_subject_is_numbers(made: Summary, expected: str) -> None:
    assert subject(made) == expected


def test_numbers_as_large_as_they_get_fit_into_a_subject_of_sns() -> None:
    largest = 10**12
    totals = dict.fromkeys(("incidents", "failed_calls", "queues", "healed", "notified"), largest)
    made = subject(summary(totals={**busy_week()["totals"], **totals}))
    assert len(made) <= 100
    assert made.isascii()


_ANY = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.mark.usefixtures("undrawn")
@_ANY
@given(document=hostile_weeks())
def test_no_text_of_others_becomes_markup_a_link_or_a_header(document: Document) -> None:
    made = _mail(document)
    _require_ours(made)
    assert re.fullmatch(r"Mendq 2026-W46: [ -~]+", made.subject)


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("payload", PAYLOADS)
def test_each_payload_in_every_place_at_once(payload: str) -> None:
    _require_ours(_mail(_everywhere(payload)))


def _everywhere(text: str) -> Document:
    """A document with `text` for every string that is not a date, a time or a week."""
    retained = {"week", "from", "to", "date", "day"}
    document = busy_week()

    def filled(value: object, name: str) -> object:
        if isinstance(value, dict):
            return {key: filled(each, key) for key, each in value.items()}
        if isinstance(value, list):
            return [filled(each, name) for each in value]
        is_time = isinstance(value, str) and re.match(r"\d{4}-\d\d-\d\d", value)
        return text if isinstance(value, str) and name not in retained and not is_time else value

    return {key: filled(value, key) for key, value in document.items()}


def _require_ours(made: Mail) -> None:
    parts = PageParts(made.html)
    for tag, names in parts.elements:
        assert set(names) <= ATTRIBUTES[tag], tag
    assert parts.alone == []
    addresses = {value for _, name, value in parts.values if name in ("src", "href", "srcset")}
    assert addresses <= {f"cid:{PICTURE_ID}"}
    for says in (parts.text, made.text):
        assert not _LINK.search(says.replace(PLACE, ""))
        assert not _UNSEEN.search(says)
    assert len(made.html.encode()) < GMAIL_CUTS_AT_BYTES


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("worst", ["<" * 400, '"' * 400, "\N{ZERO WIDTH JOINER}" * 400])
def test_the_longest_names_fit_into_what_mail_programs_show(worst: str) -> None:
    document = _everywhere(worst)
    recommendations = document["do_this_week"]
    document["do_this_week"] = (recommendations * 10)[:10]
    made = _mail(document)
    assert len(made.html.encode()) < GMAIL_CUTS_AT_BYTES
    assert len(text(read(document), PLACE, COMMAND).encode()) < SNS_TAKES_BYTES


@pytest.mark.usefixtures("undrawn")
def test_a_line_that_would_be_a_link_is_left_to_the_page() -> None:
    document = busy_week()
    document["do_this_week"][0]["command"] = "curl https://evil.example/x"
    made = _mail(document)
    assert "evil.example" not in made.html + made.text


@pytest.mark.usefixtures("undrawn")
def test_what_to_run_is_whole() -> None:
    document = busy_week()
    command = document["do_this_week"][0]["command"] = "mendq redrive q --rate 5 s"
    made = _mail(document)
    assert f"   {command}\n" in made.text
    assert command in made.html


@pytest.mark.usefixtures("undrawn")
def test_no_number_is_torn_from_its_unit() -> None:
    assert "690\N{NO-BREAK SPACE}s in its template" in _mail(busy_week()).html


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(
    ("made", "holds"),
    [
        (week([incident(), incident(day=1)]), "The page, with every incident:"),
        (largest_week(), "The page, with the 50 worst incidents of 10,000:"),
        (week(), "The page:"),
    ],
)
def test_it_says_which_incidents_are_on_the_page(made: Document, holds: str) -> None:
    assert holds in PageParts(_mail(made).html).text


@pytest.mark.usefixtures("undrawn")
def test_the_legend_has_what_the_picture_has() -> None:
    part = week([incident()], not_seen={"nightly_runs_missing": ["2026-11-10"]})
    whole = _mail(week([incident()])).html
    assert "? not read" in PageParts(_mail(part).html).text
    assert "? not read" not in PageParts(whole).text
    assert "paged somebody" not in PageParts(whole).text
    assert "paged somebody" in PageParts(_mail(busy_week()).html).text


@pytest.mark.usefixtures("undrawn")
def test_it_needs_no_script_and_nothing_from_elsewhere() -> None:
    html = _mail(busy_week()).html
    for word in ("<script", "<link", "@import", "url(", "http:", "https:", "<a "):
        assert word not in html
    assert "prefers-color-scheme: dark" in html


def test_the_same_summary_gives_the_same_mail() -> None:
    assert _mail(busy_week()) == _mail(busy_week())

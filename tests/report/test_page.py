"""Report page and mail: escaping, size and reproducibility."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings

from mendq.report.html_page import make_page
from mendq.report.mail import CHART_CONTENT_ID, OutgoingReport
from tests.report.hostile import PAYLOADS, fill_every_text, make_hostile_weeks
from tests.report.page_parts import PageParts
from tests.report.weeks import (
    DAYS,
    HERE,
    REPORT_URI,
    Document,
    make_busy_week,
    make_incident,
    make_largest_week,
    make_outgoing_report,
    make_queue_arn,
    make_recommendation,
    make_week,
    read_document,
)

NO_BREAK = "\N{NO-BREAK SPACE}"
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
NOTHING = {"nightly_runs_missing": [f"{day}" for day in DAYS], "files_read": 0, "bytes_read": 0}
# Messages that no other text in a test uses, for the characters that mean something in HTML.
TAMED = str.maketrans("<>&\"'", "\U00010400\U00010401\U00010402\U00010403\U00010404")
_UNSEEN = re.compile(
    "[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u200b-\\u200f\\u202a-\\u202e\\ue000-\\ue002]"
)
# But for a mail's own words, "its setting report.recipients".
CASE_PLACE = r"case-[a-z_]{1,64}-[0-9a-f]{12}"
# A place of the page, a queue's page in the console, a runbook.
LINKED = re.compile(
    rf"#{CASE_PLACE}|https://us-east-1\.console\.aws\.amazon\.com/sqs/v3/home\?region=us-east-1"
    r"#/queues/https%3A%2F%2Fsqs\.us-east-1\.amazonaws\.com%2F[0-9]{12}%2F[\w.-]{1,80}"
    r"|https://docs\.example/mendq/runbooks/[a-z_]{1,64}\.md"
)
_LINK = re.compile(r"://|www\.|mailto:|\S[.](?!fifo|recipients)[a-z]{2}", re.IGNORECASE)
# What mail programs know.
ATTRIBUTES = {
    "html": {"lang"},
    "meta": {"charset", "name", "content"},
    "table": {"role", "class", "width", "cellpadding", "cellspacing", "border", "style"},
    "td": {"align", "class", "style"},
    "th": {"scope", "class", "align", "style"},
    "img": {"src", "width", "alt", "style"},
    **{tag: {"class", "style"} for tag in ("body", "div", "p", "h1", "h2", "span", "bdi", "code")},
    "strong": {"class", "style"},
    "a": {"class", "href", "style"},
    **{name: set[str]() for name in ("head", "title", "style", "tr", "tbody")},
}


def _tame(value: Any) -> Any:
    if isinstance(value, dict):
        return {_tame(key): _tame(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_tame(item) for item in value]
    return value.translate(TAMED) if isinstance(value, str) else value


def read_page_parts(document: Document) -> PageParts:
    return PageParts(make_page(read_document(document), HERE))


@pytest.mark.usefixtures("picture_stubs")
@settings(
    max_examples=15,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(document=make_hostile_weeks())
@example(
    document=make_week(
        [
            make_incident(symptom=payload, why=payload, queue_arn=make_queue_arn(payload))
            for payload in PAYLOADS
        ]
    )
)
def test_hostile_names_in_a_report_never_become_markup_links_or_mail_headers(
    document: Document,
) -> None:
    """The page's elements and attributes are those of the same week in tame messages, one by one.

    But for where long names may break: those messages come in another order in the alphabet.
    """
    parts = read_page_parts(document)
    assert _list_elements_without_breaks(parts) == _list_elements_without_breaks(
        read_page_parts(_tame(document))
    )
    assert {element for element in parts.elements if element[0] == "wbr"} <= {("wbr", ())}
    assert parts.alone == []
    _refuse_what_acts(parts)
    _require_a_mail_of_ours(make_outgoing_report(document))


@pytest.mark.usefixtures("picture_stubs")
@pytest.mark.parametrize("payload", PAYLOADS)
def test_hostile_payload_in_every_field_never_becomes_markup_or_a_link_in_the_mail(
    payload: str,
) -> None:
    _require_a_mail_of_ours(make_outgoing_report(fill_every_text(payload)))


def _list_elements_without_breaks(parts: PageParts) -> list[tuple[str, tuple[str, ...]]]:
    return [element for element in parts.elements if element[0] != "wbr"]


def _refuse_what_acts(parts: PageParts) -> None:
    acting = {"script", "link", "iframe", "base", "form"}
    assert not {tag for tag, _ in parts.elements} & acting
    for tag, name, value in parts.values:
        assert not name.startswith("on"), (tag, name)
        assert name not in {"style", "action"}, (tag, name)
        if name == "href":
            assert (tag, bool(LINKED.fullmatch(value))) == ("a", True), value
        elif name == "src":
            assert re.fullmatch(r"data:image/svg\+xml;base64,[A-Za-z0-9+/=]+", value)
        elif name in {"id", "aria-labelledby"}:
            assert re.fullmatch(rf"[a-z-]+|{CASE_PLACE}", value)
        elif name != "alt":
            assert re.fullmatch(r"[\w .,:;'=()/#%-]*", value), (tag, name, value)


def _require_a_mail_of_ours(mail: OutgoingReport) -> None:
    parts = PageParts(mail.html)
    for tag, names in parts.elements:
        assert set(names) <= ATTRIBUTES[tag], tag
    assert parts.alone == []
    addresses = {value for _, name, value in parts.values if name in ("src", "href", "srcset")}
    assert all(
        address == f"cid:{CHART_CONTENT_ID}" or LINKED.fullmatch(address) for address in addresses
    )
    for says in (parts.text, mail.mail_text):
        assert not _LINK.search(says.replace(REPORT_URI, ""))
        assert not _UNSEEN.search(says)
    assert len(mail.html.encode()) < 102 * 1024, "Gmail cuts there"
    assert re.fullmatch(r"Mendq 2026-W46: [ -~]+", mail.subject)
    verdict, _, _ = mail.short_text.partition("\n\n")
    assert len(verdict.split("\n")) <= 9
    assert all(line.isprintable() and line for line in verdict.split("\n"))
    assert len(verdict.encode()) < 8_000


@pytest.mark.usefixtures("picture_stubs")
def test_right_to_left_names_are_isolated_with_bdi_and_no_internal_mark_remains() -> None:
    name = "\u05d0\u05d1\u05d2"
    html = make_page(
        read_document(
            make_week([make_incident(name, symptom=name, why=name, outcome="a_word")] * 3)
        )
    )
    body = html.partition("<body>")[2]
    alone = re.sub(rf'<bdi( class="[a-z]+")?>{name}</bdi>|alt="[^"]*"', "", body)
    around = [
        alone[max(0, match.start() - 40) : match.end() + 9] for match in re.finditer(name, alone)
    ]
    assert name in body
    assert all("<bdi" in text for text in around), around
    assert not re.search("[\ue000-\uf8ff]", html + make_page(read_document(make_busy_week())))


@pytest.mark.usefixtures("picture_stubs")
def test_names_with_html_characters_are_shown_as_written() -> None:
    text = read_page_parts(
        make_week([make_incident('<b>"orders" & co</b>', why="{{ 7 * 7 }}")])
    ).text
    assert '<b>"orders" & co</b>' in text
    assert "{{ 7 * 7 }}" in text


def test_report_page_loads_nothing_runs_no_script_and_is_reproducible() -> None:
    html = make_page(read_document(make_busy_week()))
    parts = PageParts(html)
    _refuse_what_acts(parts)
    (policy,) = (value for _, _, value in parts.values if value.startswith("default-src"))
    assert policy.startswith(POLICY)
    assert [tag for tag, _ in parts.elements[:5]] == ["html", "head", "meta", "meta", "meta"]
    assert not re.search(
        r"url\(|@import|https?://", re.sub(r'base64,[\w+/=]+|href="[^"]*"', "", html)
    )
    assert make_page(read_document(make_busy_week())) == html


@pytest.mark.usefixtures("picture_stubs")
def test_number_and_unit_are_joined_by_a_no_break_space_except_in_queue_names() -> None:
    over = "the need is above the ceiling of 900 s"
    cases = [make_incident("a 5 s", outcome="refused", reason=over)]
    html = make_page(
        read_document(make_week(cases, do_this_week=[make_recommendation(queue="9 s")])), HERE
    )
    assert over.replace("900 s", f"900{NO_BREAK}s") in html
    assert f"to 690{NO_BREAK}s in its template" in html
    assert "<bdi>a 5 s</bdi>" in html


def test_report_page_of_the_largest_week_is_below_1_5_megabytes() -> None:
    """500 queues, 10,000 incidents, and of everything as much as a summary lists."""
    html = make_page(read_document(make_largest_week()))
    assert len(html.encode()) < 1_500_000

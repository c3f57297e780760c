"""Sentences of the report for the weeks in the golden files `sentences/*.json`."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from mendq.report.html_page import make_page
from mendq.report.mail import OutgoingReport
from tests.report.weeks import (
    HERE,
    drop_newer_fields,
    make_busy_week,
    make_incident,
    make_largest_week,
    make_scan_only_week,
    make_week,
    read_document,
    stub_pictures,
)

SENTENCES = Path(__file__).parent / "sentences"
# The parts of a page that each file is about; `mail` is the text for the topic.
# Where none is named: the whole page in its order, and both mails.
SECTIONS_BY_PART: dict[str, tuple[str, ...]] = {
    "verdict": ("top", "mail"),
    "standout": ("top",),
    "open_now": ("open-now", "mail"),
    "tiles": ("tiles",),
    "to_do": ("to-do",),
    "people": ("people",),
    "rows": ("cases",),
    "heat": ("heat",),
    "per_day": ("days",),
    "times": ("times",),
    "not_seen": ("not-seen", "mail"),
    "nightly_runs": ("not-seen", "mail"),
    "made_from": ("footer",),
    "places": ("heat", "cases"),
    "whole": (),
}
WEEKS = {"busy": make_busy_week, "scan-only": make_scan_only_week, "largest": make_largest_week}
LINES = {"p", "li", "h1", "h2", "tr", "summary", "img"}
# Classes that carry a meaning of their own.
MEANINGFUL = ("note", "pill", "heat-", "swatch")


class _Sections(HTMLParser):
    """The lines of a page by its parts; cells of a row stand apart."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.lines: dict[str, list[str]] = {}
        self._part = "top"
        self._text = ""
        self._quiet = False
        self.feed(html)
        self._end_line()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag in LINES:
            self._end_line()
        if tag in {"section", "footer"} or given.get("class") == "tiles":
            self._end_line()
            self._part = given.get("aria-labelledby") or given.get("class") or tag
            self._part = tag if tag == "footer" else self._part
        self._quiet = tag in {"style", "title"}
        self._text += " | " * (tag in {"td", "th"}) + " " * _stands_apart(given)
        if given.get("class", "").startswith(MEANINGFUL):
            self._text += f" [{given['class']}] "
        if tag == "img" and given.get("class") == "light":
            self._text += given["alt"]

    def handle_endtag(self, tag: str) -> None:
        self._quiet = False
        if tag in LINES:
            self._end_line()

    def handle_data(self, data: str) -> None:
        self._text += "" if self._quiet else data

    def _end_line(self) -> None:
        if (line := " ".join(self._text.split())) not in ("", "|"):
            self.lines.setdefault(self._part, []).append(line)
        self._text = ""


def _stands_apart(given: dict[str, str]) -> bool:
    return given.get("class") == "small" or "display: block" in given.get("style", "")


def _read_sentences(entry: dict[str, Any], parts: tuple[str, ...]) -> list[str]:
    incidents = [make_incident(**incident_fields) for incident_fields in entry["incidents"]]
    known = WEEKS.get(entry.get("week", ""))
    document = known() if known else make_week(incidents, **entry["changes"])
    summary = read_document(drop_newer_fields(document) if entry.get("older") else document)
    lines = _Sections(make_page(summary, HERE)).lines
    mail = OutgoingReport(summary, "PLACE", HERE, "")
    lines["mail"] = [f"Subject: {mail.subject}", *mail.short_text.splitlines()]
    lines["mail as HTML"] = _Sections(mail.html).lines["top"]
    return [line for part in entry.get("parts", parts) or lines for line in lines.get(part, [])]


def find_file(part: str) -> str:
    """Return the path of the golden file about one part of the report."""
    return f"tests/report/sentences/{part}.json"


def render_part(part: str) -> str:
    """Return the text of the part's golden file as the report is now, without pictures."""
    entries: list[dict[str, Any]] = json.loads((SENTENCES / f"{part}.json").read_text())
    with pytest.MonkeyPatch.context() as patch:
        stub_pictures(patch)
        for entry in entries:
            entry["says"] = _read_sentences(entry, SECTIONS_BY_PART[part])
    return _laid_out(entries)


def _laid_out(entries: list[dict[str, Any]]) -> str:
    """A line for what is given and one for each that is said."""
    blocks = []
    for entry in entries:
        given = [f'"{key}": {json.dumps(value)}' for key, value in entry.items() if key != "says"]
        says = ",\n  ".join(json.dumps(sentence, ensure_ascii=False) for sentence in entry["says"])
        blocks.append("{" + ",\n ".join([*given, f'"says": [\n  {says}]']) + "}")
    return "[\n" + ",\n".join(blocks) + "\n]\n"

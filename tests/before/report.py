"""The weekly report of fixed summaries: the page, the mail and the text, as people read them."""

from __future__ import annotations

import email
import email.policy
from collections.abc import Callable, Mapping
from html.parser import HTMLParser
from typing import Any

from mendq.report.html_page import page
from mendq.report.mail import outgoing
from mendq.report.read_summary import SummaryUnreadable, read
from mendq.report.verdict import verdict_text
from tests.report.hostile import PAYLOADS
from tests.report.large import largest_week
from tests.report.week_parts import nightly, notified, reached_a_person, recommendation
from tests.report.weeks import DAYS, arn, busy_week, incident, week

_PLACE = "s3://reports/report/week=2026-W46/report.html"
_UNSEEN_ELEMENTS = frozenset({"style", "script", "svg"})
_IN_LINE = frozenset({"b", "bdi", "code", "span", "strong", "wbr", "a", "em", "small", "time"})
_WORDS = ("alt", "aria-label", "title")
_ADDRESS = "sqs@example.com"


def _nightly_runs_missing() -> dict[str, Any]:
    """Two nightly runs are missing, one was doubtful and one fell back; the first report of a
    stack.
    """
    nightly_runs = [
        nightly(day, **({"verdict": "missing", "records": 0} if n in (1, 4) else {}))
        for n, day in enumerate(DAYS)
    ]
    nightly_runs[2] |= {"verdict": "doubtful", "records": 12}
    nightly_runs[3] |= {"reader": "spark", "why_fallback": "no native library loads"}
    missing = [f"{DAYS[1]}", f"{DAYS[4]}"]
    return week(
        [incident(), incident("invoices", day=5, outcome="not_seen", why="event_lost")],
        not_seen={
            "nightly_runs": nightly_runs,
            "nightly_runs_missing": missing,
            "began": f"{DAYS[0]}",
        },
    )


def _hostile() -> dict[str, Any]:
    """Every name and sentence is an attacker's."""
    payloads = [each for each in PAYLOADS if each and "\ud800" not in each]
    cases = [
        incident(symptom=each, why=each, queue_arn=arn(each), reason=each, outcome="refused")
        for each in payloads
    ]
    return week(
        cases,
        do_this_week=[recommendation(queue=each, reason=each) for each in payloads[:6]],
        reached_a_person=reached_a_person(
            *(notified(each, reason=each) for each in payloads[6:12])
        ),
        not_seen={
            "unreadable_files": [{"file": each, "reason": each} for each in payloads[12:18]],
            "files_unreadable": 6,
        },
    )


WEEKS: Mapping[str, Callable[[], dict[str, Any]]] = {
    "quiet": week,
    "one incident": lambda: week([incident()]),
    "busy": busy_week,
    "nightly runs missing": _nightly_runs_missing,
    "not over": lambda: week([incident()], not_seen={"week_is_over": False}),
    "hostile": _hostile,
    "largest": largest_week,
}
UNREADABLE: Mapping[str, Any] = {
    "nothing": {},
    "a list": [],
    "another schema": {**week(), "schema": 99},
    "no week": {**week(), "week": "week 46"},
    "no totals": {**week(), "totals": None},
    "a count below nothing": {**week(), "cases_left_out": -1},
    "no cases": {name: each for name, each in week().items() if name != "cases"},
}


def record() -> Any:
    """Each week as it goes out, and what is said of documents that are no summary."""
    return {
        "weeks": {name: _sent(made()) for name, made in WEEKS.items()},
        "unreadable": {name: _refused(document) for name, document in UNREADABLE.items()},
    }


def _sent(document: dict[str, Any]) -> dict[str, Any]:
    summary = read(document)
    out = outgoing(summary, _PLACE, "us-east-1", _ADDRESS)
    mail = email.message_from_bytes(out.message_to(_ADDRESS), policy=email.policy.default)
    html, plain = (mail.get_body((kind,)) for kind in ("html", "plain"))
    pictures = [each.get_content_type() for each in mail.walk() if each.get_filename()]
    made = page(summary)
    return {
        "subject": out.subject,
        "verdict": verdict_text(summary),
        "text": out.text.splitlines(),
        "page": _read_aloud(made),
        "page_pictures": made.count("data:image/"),
        "mail": _read_aloud(html.get_content() if html else ""),
        "mail_is_the_text": (plain.get_content() if plain else "").split() == out.text.split(),
        "mail_pictures": pictures,
    }


def _refused(document: Any) -> str:
    try:
        read(document)
    except SummaryUnreadable as unreadable:
        return str(unreadable)
    return "is read"


def _read_aloud(html: str) -> list[str]:
    """The texts of a document line by line, without its markup; what pictures say among them."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    lines = (" ".join(each.split()) for each in "".join(reader.texts).splitlines())
    return [each for each in lines if each]


class _Reader(HTMLParser):
    """Collects the texts that people see or have read to them."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self._unseen = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._unseen += tag in _UNSEEN_ELEMENTS
        if tag not in _IN_LINE:
            self.texts.append("\n")
        self.texts += [f"[{name}: {text}]" for name, text in attrs if name in _WORDS and text]

    def handle_endtag(self, tag: str) -> None:
        self._unseen -= tag in _UNSEEN_ELEMENTS
        if tag not in _IN_LINE:
            self.texts.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._unseen:
            # A line's end in the source is none for people.
            self.texts.append(" ".join(data.split("\n")))

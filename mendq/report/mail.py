"""The weekly report as a mail: subject, text, HTML and one picture, and the bytes for SES.

Mail programs only know tables and inline styles. Gmail cuts HTML off at 102 KB. Many programs make
a link of everything that looks like an address.
https://docs.aws.amazon.com/ses/latest/dg/send-email-raw.html
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from functools import cached_property
from typing import Any

from css_inline import CSSInliner
from markupsafe import Markup, escape
from msgspec import Struct

from mendq.report.days import make_per_day
from mendq.report.drawing import IN_A_MAIL, LIGHT, days_chart, make_png
from mendq.report.html_page import load_template
from mendq.report.links import ReportedAccount
from mendq.report.open_now import WaitingKind, group_waiting_cases
from mendq.report.summary import Summary
from mendq.report.to_do import ToDo, describe_left_out, list_to_do
from mendq.report.verdict import describe_accounts, verdict_text
from mendq.report.words import break_links, format_count, keep_units_together, remove_marks

PICTURE_ID = "incidents-per-day"
# Characters of an attached page: twice the largest week that was measured. SES takes 10 MB.
MOST_ATTACHED = 3_000_000
# The longest subject that SNS takes.
MOST_SUBJECT = 100
# Groups of waiting cases, and cases of each group, for which a mail of 102 KB has room.
_MOST_WAITING = 8
_MOST_OF_A_KIND = 3
_MOST_ALT = 1_500
# Width of the picture in pixels. The card in the template is a little wider.
_CARD_WIDTH = 492


def _prepare_for_mail(value: Any) -> Any:
    """Return a text without marks and links, and with no-break spaces before units.

    Mendq's own Markup and values that are no text stay unchanged.
    """
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return keep_units_together(break_links(remove_marks(value)))


_MAIL = load_template("mail.html.j2", _prepare_for_mail)
# Styles are written into each element, because Gmail drops the style sheet of a mail that it cuts
# off. Media queries cannot be inlined, so they stay in the style sheet.
_INLINER = CSSInliner(keep_at_rules=True, load_remote_stylesheets=False)


class Outgoing(Struct, frozen=True, dict=True):
    """The report of one week, ready to be sent."""

    summary: Summary
    # S3 address of the page.
    place: str
    here: ReportedAccount
    sender: str
    # The page as HTML; empty if it is not attached.
    page: str = ""

    @property
    def command(self) -> str:
        """Command that opens the page."""
        return f"mendq report --week {self.summary.week} --open --region {self.here.region}"

    @property
    def subject(self) -> str:
        """Subject of the mail. It has only numbers and Mendq's own words.

        So nobody can put text of their own into a mail header.
        """
        summary = self.summary
        name = f"Mendq {summary.week}"
        organization = summary.organization
        if organization:
            accounts = describe_accounts(organization).rstrip(".")
            return f"{name}: {accounts}"[:MOST_SUBJECT]
        if summary.nothing_was_read:
            return f"{name}: nothing was read"
        waiting = ""
        if summary.open_cases:
            verb = "needs" if summary.open_cases == 1 else "need"
            waiting = f"{summary.open_cases:,} {verb} you; "
        if not summary.totals.incidents:
            new = "new " if summary.has_other_news else ""
            return f"{name}: {waiting}no {new}incidents"
        figures = [
            format_count(summary.totals.incidents, "incident"),
            f"{summary.fixed_count:,} healed",
        ]
        if summary.totals.urgent:
            figures.append(f"{summary.totals.urgent:,} paged")
        if summary.informed_count:
            figures.append(f"{summary.informed_count:,} told")
        if not summary.totals.urgent and not summary.informed_count:
            figures.append("nobody paged")
        return f"{name}: {waiting}{', '.join(figures)}"[:MOST_SUBJECT]

    @property
    def text(self) -> str:
        """Short text for an SNS topic: the verdict, and where the page is and how to open it."""
        verdict = verdict_text(self.summary)
        return f"{verdict}\n\nThe page: {self.place}\nTo read it: {self.command}\n"

    @property
    def whole_text(self) -> str:
        """Text part of the mail: the short text, and the list of things to do."""
        recommendations = list_to_do(self.summary, self.here)
        if not recommendations:
            return self.text
        lines = ["\nDo this week"]
        for number, recommendation in enumerate(recommendations, 1):
            lines.append(_format_to_do(number, recommendation))
        if self.summary.do_this_week_left_out:
            lines.append(describe_left_out(self.summary))
        return self.text + "\n".join(lines) + "\n"

    @property
    def is_attached(self) -> bool:
        """True if the page is attached. A page that is too large stays in its bucket."""
        return 0 < len(self.page) <= MOST_ATTACHED

    @cached_property
    def picture(self) -> bytes | None:
        """The chart of the days as a PNG, drawn at the first use. None without incidents."""
        week = make_per_day(self.summary)
        return make_png(days_chart(week, IN_A_MAIL, LIGHT)) if week.total else None

    @cached_property
    def html(self) -> str:
        """HTML part of the mail, with inline styles."""
        waiting = group_waiting_cases(self.summary, self.here)
        html = _MAIL.render(
            summary=self.summary,
            is_attached=self.is_attached,
            here=self.here,
            recommended=list_to_do(self.summary, self.here),
            waiting=waiting,
            most_waiting=_MOST_WAITING,
            most_of_a_kind=_MOST_OF_A_KIND,
            more_waiting=_describe_more_waiting(self.summary, waiting),
            per_day=make_per_day(self.summary),
            picture_id=PICTURE_ID if self.picture else "",
            most_alt=_MOST_ALT,
            width=_CARD_WIDTH,
            palette=LIGHT,
            place=Markup(self.place),  # noqa: S704 - a bucket's name and our own key
            command=escape(self.command),
        )
        return _INLINER.inline(html)

    def message_to(self, recipient: str) -> bytes:
        """Return the mail to one recipient as bytes for SES.

        Raises ValueError if sender or recipient is no e-mail address.
        """
        mail = make_message(self.subject, self.whole_text, self.html, self.picture)
        if self.is_attached:
            attach_page(mail, f"mendq-{self.summary.week}.html", self.page)
        mail["From"] = _parse_address(self.sender)
        mail["To"] = _parse_address(recipient)
        return mail.as_bytes()


def _describe_more_waiting(summary: Summary, waiting: Sequence[WaitingKind]) -> str:
    """Return how many waiting cases only the page lists. Empty if the mail lists all."""
    listed = sum(len(kind.cases[:_MOST_OF_A_KIND]) for kind in waiting[:_MOST_WAITING])
    more = summary.open_cases - listed
    return f"{format_count(more, 'more case')} on the page." if more else ""


def _format_to_do(number: int, recommendation: ToDo) -> str:
    """Return a numbered item of the text part. Its owner and its command have their own lines."""
    sentences = [recommendation.what, recommendation.why, recommendation.effect]
    text = " ".join(sentence for sentence in sentences if sentence)
    lines = [f"{number}. {break_links(remove_marks(text))}"]
    if recommendation.owner:
        lines.append(f"owner: {break_links(recommendation.owner)}")
    if recommendation.command:
        lines.append(recommendation.command)
    return "\n   ".join(lines)


# Boundaries between the parts of a mail. They are constant, so that a report has the same bytes
# each time. No part can contain one: quoted-printable and base64 never contain "=_".
_ALTERNATIVE = "=_mendq-alternative"
_RELATED = "=_mendq-related"
_MIXED = "=_mendq-mixed"
_ENCODING = "quoted-printable"
_ADDRESS = re.compile(r"[\w!#$%&'*+/=?^`{|}~.-]+@[A-Za-z0-9.-]+", re.ASCII)


def make_message(subject: str, text: str, html: str, picture: bytes | None) -> EmailMessage:
    """Return a mail without sender and recipient, in lines of at most 76 ASCII characters.

    `picture` is a PNG, which the HTML shows by PICTURE_ID. Raises ValueError if the subject has two
    lines.
    """
    mail = EmailMessage(policy=SMTP)
    mail["Subject"] = subject
    # With this header no absence note is sent back (RFC 3834).
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(_make_encodable(text), cte=_ENCODING)
    mail.add_alternative(_make_encodable(html), subtype="html", cte=_ENCODING)
    mail.set_boundary(_ALTERNATIVE)
    if picture is not None:
        _, page = mail.iter_parts()
        assert isinstance(page, EmailMessage)  # noqa: S101 - what add_alternative makes
        names: dict[str, Any] = {"cid": f"<{PICTURE_ID}>", "filename": f"{PICTURE_ID}.png"}
        page.add_related(picture, "image", "png", disposition="inline", **names)
        page.set_boundary(_RELATED)
    return mail


def attach_page(mail: EmailMessage, name: str, page: str) -> None:
    """Attach the page for people who have no access to its bucket. `name` is the file name."""
    mail.add_attachment(_make_encodable(page), subtype="html", cte="base64", filename=name)
    mail.set_boundary(_MIXED)


def _parse_address(text: str) -> Address:
    """Return the e-mail address. Raises ValueError for any other text, such as a second header."""
    if not _ADDRESS.fullmatch(text):
        raise ValueError(f"no e-mail address: {ascii(text)[:80]}")
    return Address(addr_spec=text)


def _make_encodable(text: str) -> str:
    """Return the text with lone surrogates (halves of a character) written as escapes."""
    return text.encode("utf-8", "backslashreplace").decode()

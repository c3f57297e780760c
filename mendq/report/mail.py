"""The week as a mail: subject, text, HTML and one picture, and the bytes that SES takes.

Mail programs know tables and inline styles alone, Gmail cuts HTML off at 102 KB, and many make a
link of whatever looks like one.
https://docs.aws.amazon.com/ses/latest/dg/send-email-raw.html
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from functools import cached_property
from typing import Any

from markupsafe import Markup, escape

from mendq.report.days import IN_A_MAIL, NOT_READ, REACHED, caption, days_chart, in_words, per_day
from mendq.report.drawing import LIGHT, as_png
from mendq.report.html_page import opening, template
from mendq.report.not_seen import not_seen_in_short
from mendq.report.summary import Summary
from mendq.report.to_do import ToDo, left_out, to_do
from mendq.report.verdict import verdict_text
from mendq.report.words import counted, plain, together, unlinked

PICTURE_ID = "incidents-per-day"
_MOST_ALT = 1_500
# In the template a little more: the room that the card leaves.
_CARD_WIDTH = 492


def _in_a_mail(value: Any) -> Any:
    """Without marks, no link in it, no number apart from its unit; but for what is our own."""
    ours = isinstance(value, Markup) or not isinstance(value, str)
    return value if ours else together(unlinked(plain(value)))


_MAIL = template("mail.html.j2", _in_a_mail)


@dataclass(frozen=True)
class Mail:
    """What a mail program shows; `picture` is a PNG, None for a week without incidents."""

    subject: str
    text: str
    html: str
    picture: bytes | None


def subject(summary: Summary) -> str:
    """Numbers and our own words alone: nobody's text comes into a header."""
    name = f"Mendq {summary.week}"
    if summary.nothing_was_read:
        return f"{name}: nothing was read"
    totals = summary.totals
    if not totals.incidents:
        return f"{name}: no incidents"
    incidents = counted(totals.incidents, "incident")
    return f"{name}: {incidents}, {summary.fixed:,} healed, {totals.notified:,} paged"


def text(summary: Summary, place: str, command: str) -> str:
    """The verdict, where the page lies, and the `mendq` command that opens it."""
    return f"{verdict_text(summary)}\n\nThe page: {place}\nTo read it: {command}\n"


def _to_do_text(number: int, each: ToDo) -> str:
    """Lines to be copied stand alone."""
    says = unlinked(plain(" ".join(part for part in (each.what, each.why, each.effect) if part)))
    owner = f"   owner: {unlinked(each.owner)}" if each.owner else ""
    copied = (f"   {line}" for line in _to_copy(each))
    return "\n".join((f"{number}. {says}", *([owner] if owner else []), *copied))


def _to_copy(each: ToDo) -> list[str]:
    """A line in which a link would have to be broken stands on the page alone."""
    return [line for line in (each.template_line, each.command) if line and unlinked(line) == line]


def _whole_text(summary: Summary, place: str, command: str) -> str:
    recommendations = [_to_do_text(n, each) for n, each in enumerate(to_do(summary), 1)]
    more = left_out(summary)
    listed = "\n".join(("\nDo this week", *recommendations, *([more] if more else []))) + "\n"
    return text(summary, place, command) + (listed if recommendations else "")


def _page_holds(summary: Summary) -> str:
    """Which of the week's incidents stand on the page, one by one."""
    if summary.cases_left_out:
        worst = counted(len(summary.cases), "worst incident")
        return f"The page, with the {worst} of {summary.totals.incidents:,}:"
    return "The page, with every incident:" if summary.cases else "The page:"


def mail(summary: Summary, place: str, command: str) -> Mail:
    """The same summary gives the same mail."""
    week = per_day(summary)
    picture = as_png(days_chart(week, IN_A_MAIL, LIGHT)) if week.has_incidents else None
    begins = opening(summary)
    to_copy = [(each, [escape(line) for line in _to_copy(each)]) for each in begins["to_do"]]
    html = _MAIL.render(
        begins | {"to_do": to_copy},
        picture_id=PICTURE_ID if picture else "",
        alt=in_words(week)[:_MOST_ALT],
        width=_CARD_WIDTH,
        caption=caption(week),
        series=tuple(zip(LIGHT.series, week.series, strict=False)),
        reached=week.reached,
        reached_mark=REACHED,
        not_read=NOT_READ if week.has_unknown else "",
        look=LIGHT,
        read=not_seen_in_short(summary),
        place=Markup(place),  # noqa: S704 - a bucket's name and our own key
        command=escape(command),
        page_holds=_page_holds(summary),
    )
    return Mail(subject(summary), _whole_text(summary, place, command), html, picture)


# Quoted-printable and base64 never hold "=_", so no part can hold its boundary; and no randomness.
_ALTERNATIVE, _RELATED = "=_mendq-alternative", "=_mendq-related"
_ENCODING = "quoted-printable"
_ADDRESS = re.compile(r"[\w!#$%&'*+/=?^`{|}~.-]+@[A-Za-z0-9.-]+", re.ASCII)


def message(mail: Mail, sender: str, recipient: str) -> bytes:
    """The whole message with its headers; lines of 76 characters, ASCII alone.

    Raises ValueError for an address that is none, and for a subject of two lines.
    """
    made = EmailMessage(policy=SMTP)
    made["From"] = _address(sender)
    made["To"] = _address(recipient)
    made["Subject"] = mail.subject
    made["Auto-Submitted"] = "auto-generated"  # RFC 3834: nobody's absence note comes back
    made.set_content(_sendable(mail.text), cte=_ENCODING)
    made.add_alternative(_sendable(mail.html), subtype="html", cte=_ENCODING)
    made.set_boundary(_ALTERNATIVE)
    if mail.picture is not None:
        _, html = made.iter_parts()
        assert isinstance(html, EmailMessage)  # noqa: S101 - what add_alternative makes
        html.add_related(
            mail.picture,
            "image",
            "png",
            cid=f"<{PICTURE_ID}>",
            disposition="inline",
            filename=f"{PICTURE_ID}.png",
        )
        html.set_boundary(_RELATED)
    return made.as_bytes()


def _address(text: str) -> Address:
    if not _ADDRESS.fullmatch(text):
        raise ValueError(f"no e-mail address: {ascii(text)[:80]}")
    return Address(addr_spec=text)


def _sendable(text: str) -> str:
    """Half a character, which no encoding takes, is spelled out."""
    return text.encode("utf-8", "backslashreplace").decode()


@dataclass(frozen=True)
class Outgoing:
    """`place` is where the page lies, `command` how to read it; drawn when it is asked for."""

    summary: Summary
    place: str
    command: str
    sender: str

    @property
    def subject(self) -> str:
        return subject(self.summary)

    @property
    def text(self) -> str:
        return text(self.summary, self.place, self.command)

    def message_to(self, recipient: str) -> bytes:
        """Raises ValueError where sender or recipient are no address."""
        return message(self._mail, self.sender, recipient)

    @cached_property
    def _mail(self) -> Mail:
        return mail(self.summary, self.place, self.command)


def outgoing(summary: Summary, place: str, region: str, sender: str) -> Outgoing:
    """The report of a week whose page lies at `place`."""
    command = f"mendq report --week {summary.week} --open --region {region}"
    return Outgoing(summary, place, command, sender)

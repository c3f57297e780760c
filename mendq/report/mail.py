"""The week as a mail: subject, text, HTML and one picture, and the bytes that SES takes.

Mail programs know tables and inline styles alone, Gmail cuts HTML off at 102 KB, and many make a
link of whatever looks like one.
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

from mendq.report.days import per_day
from mendq.report.drawing import IN_A_MAIL, LIGHT, as_png, days_chart
from mendq.report.html_page import template
from mendq.report.links import Here
from mendq.report.open_now import Kind, kinds
from mendq.report.summary import Summary
from mendq.report.to_do import ToDo, left_out, to_do
from mendq.report.verdict import of_accounts, verdict_text
from mendq.report.words import counted, plain, together, unlinked

PICTURE_ID = "incidents-per-day"
# Characters, twice as many as the largest week's; SES takes 10 MB.
MOST_ATTACHED = 3_000_000
# SNS takes no longer one.
MOST_SUBJECT = 100
# Kinds of cases that wait, and of each so many: what a mail of 102 KB has room for.
_MOST_WAITING, _MOST_OF_A_KIND = 8, 3
_MOST_ALT = 1_500
# In the template a little more: the room that the card leaves.
_CARD_WIDTH = 492


def _in_a_mail(value: Any) -> Any:
    """Without marks, no link in it, no number apart from its unit; but for what is our own."""
    ours = isinstance(value, Markup) or not isinstance(value, str)
    return value if ours else together(unlinked(plain(value)))


_MAIL = template("mail.html.j2", _in_a_mail)
# Gmail drops the styles of a mail that it cannot read whole; what is in a media query stays there.
_INLINER = CSSInliner(keep_at_rules=True, load_remote_stylesheets=False)


class Outgoing(Struct, frozen=True, dict=True):
    """The report of a week whose `page` lies at `place`, in a bucket of the region `here`."""

    summary: Summary
    place: str
    here: Here
    sender: str
    page: str = ""

    @property
    def command(self) -> str:
        """How to read the page."""
        return f"mendq report --week {self.summary.week} --open --region {self.here.region}"

    @property
    def subject(self) -> str:
        """Numbers and our own words alone: nobody's text comes into a header."""
        name, totals = f"Mendq {self.summary.week}", self.summary.totals
        if every := self.summary.organization:
            return f"{name}: {of_accounts(every).rstrip('.')}"[:MOST_SUBJECT]
        if self.summary.nothing_was_read:
            return f"{name}: nothing was read"
        count = self.summary.open_cases
        waiting = f"{count:,} need{'s' * (count == 1)} you; " if count else ""
        if not totals.incidents:
            return f"{name}: {waiting}no {'new ' * self.summary.has_other_news}incidents"
        reached = [f"{totals.urgent:,} paged"] * bool(totals.urgent)
        reached += [f"{self.summary.informed:,} told"] * bool(self.summary.informed)
        healed = f"{self.summary.fixed:,} healed"
        parts = (counted(totals.incidents, "incident"), healed, *(reached or ["nobody paged"]))
        return f"{name}: {waiting}{', '.join(parts)}"[:MOST_SUBJECT]

    @property
    def text(self) -> str:
        """The verdict, where the page lies, and the `mendq` command that opens it: for a topic."""
        verdict = verdict_text(self.summary)
        return f"{verdict}\n\nThe page: {self.place}\nTo read it: {self.command}\n"

    @property
    def whole_text(self) -> str:
        """The same and what to do: for a mail."""
        asked = to_do(self.summary, self.here)
        recommendations = [_to_do_text(n, each) for n, each in enumerate(asked, 1)]
        more = [left_out(self.summary)] * bool(self.summary.do_this_week_left_out)
        listed = "\n".join(("\nDo this week", *recommendations, *more)) + "\n"
        return self.text + (listed if recommendations else "")

    @property
    def is_attached(self) -> bool:
        """A page that is larger than any week has made one stays in its bucket."""
        return 0 < len(self.page) <= MOST_ATTACHED

    @cached_property
    def picture(self) -> bytes | None:
        """A PNG; None for a week without incidents. Drawn when it is asked for."""
        week = per_day(self.summary)
        return as_png(days_chart(week, IN_A_MAIL, LIGHT)) if week.total else None

    @cached_property
    def html(self) -> str:
        made = _MAIL.render(
            summary=self.summary,
            is_attached=self.is_attached,
            here=self.here,
            recommended=to_do(self.summary, self.here),
            waiting=(waiting := kinds(self.summary, self.here)),
            most_waiting=_MOST_WAITING,
            most_of_a_kind=_MOST_OF_A_KIND,
            more_waiting=_more_waiting(self.summary, waiting),
            per_day=per_day(self.summary),
            picture_id=PICTURE_ID if self.picture else "",
            most_alt=_MOST_ALT,
            width=_CARD_WIDTH,
            look=LIGHT,
            place=Markup(self.place),  # noqa: S704 - a bucket's name and our own key
            command=escape(self.command),
        )
        return _INLINER.inline(made)

    def message_to(self, recipient: str) -> bytes:
        """Raises ValueError where sender or recipient are no address."""
        made = message(self.subject, self.whole_text, self.html, self.picture)
        if self.is_attached:
            attach(made, f"mendq-{self.summary.week}.html", self.page)
        made["From"], made["To"] = _address(self.sender), _address(recipient)
        return made.as_bytes()


def _more_waiting(summary: Summary, waiting: Sequence[Kind]) -> str:
    """How many cases a mail has no room for; the page lists them."""
    listed = sum(len(each.cases[:_MOST_OF_A_KIND]) for each in waiting[:_MOST_WAITING])
    more = summary.open_cases - listed
    return f"{counted(more, 'more case')} on the page." if more else ""


def _to_do_text(number: int, each: ToDo) -> str:
    """A command stands alone."""
    says = unlinked(plain(" ".join(part for part in (each.what, each.why, each.effect) if part)))
    owner = [f"owner: {unlinked(each.owner)}"] if each.owner else []
    return "\n   ".join((f"{number}. {says}", *owner, *filter(None, (each.command,))))


# Quoted-printable and base64 never hold "=_", so no part can hold its boundary; and no randomness.
_ALTERNATIVE, _RELATED, _MIXED = (f"=_mendq-{each}" for each in ("alternative", "related", "mixed"))
_ENCODING = "quoted-printable"
_ADDRESS = re.compile(r"[\w!#$%&'*+/=?^`{|}~.-]+@[A-Za-z0-9.-]+", re.ASCII)


def message(subject: str, text: str, html: str, picture: bytes | None) -> EmailMessage:
    """What a mail program shows, to nobody yet; lines of 76 characters, ASCII alone.

    `picture` is a PNG. Raises ValueError for a subject of two lines.
    """
    made = EmailMessage(policy=SMTP)
    made["Subject"] = subject
    made["Auto-Submitted"] = "auto-generated"  # RFC 3834: nobody's absence note comes back
    made.set_content(_sendable(text), cte=_ENCODING)
    made.add_alternative(_sendable(html), subtype="html", cte=_ENCODING)
    made.set_boundary(_ALTERNATIVE)
    if picture is not None:
        _, page = made.iter_parts()
        assert isinstance(page, EmailMessage)  # noqa: S101 - what add_alternative makes
        named: dict[str, Any] = {"cid": f"<{PICTURE_ID}>", "filename": f"{PICTURE_ID}.png"}
        page.add_related(picture, "image", "png", disposition="inline", **named)
        page.set_boundary(_RELATED)
    return made


def attach(made: EmailMessage, name: str, page: str) -> None:
    """What the bucket holds, for who has no access to it."""
    made.add_attachment(_sendable(page), subtype="html", cte="base64", filename=name)
    made.set_boundary(_MIXED)


def _address(text: str) -> Address:
    if not _ADDRESS.fullmatch(text):
        raise ValueError(f"no e-mail address: {ascii(text)[:80]}")
    return Address(addr_spec=text)


def _sendable(text: str) -> str:
    """Half a character, which no encoding takes, is spelled out."""
    return text.encode("utf-8", "backslashreplace").decode()

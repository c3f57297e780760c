"""The weekly report as a mail: subject, plain text, HTML and one picture, as bytes for SES.

Mail programs need care: they show only tables and inline styles, Gmail cuts HTML after 102 KB, and
many programs turn each text that looks like an address into a link.
https://docs.aws.amazon.com/ses/latest/dg/send-email-raw.html
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from email.errors import HeaderParseError
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from functools import cached_property
from typing import Any

from css_inline import CSSInliner
from markupsafe import Markup, escape
from msgspec import Struct

from mendq.report.days import make_incidents_per_day
from mendq.report.drawing import LIGHT_PALETTE, MAIL_CHART_SIZE, make_days_chart, make_png
from mendq.report.html_page import load_template
from mendq.report.links import ReportedAccount
from mendq.report.open_now import WaitingGroup, group_waiting_cases
from mendq.report.summary import Summary
from mendq.report.to_do import ToDo, describe_left_out, list_to_do
from mendq.report.verdict import describe_accounts, make_verdict_text
from mendq.report.words import break_links, format_count, keep_units_together, remove_marks

CHART_CONTENT_ID = "incidents-per-day"
# Characters of an attached page: twice the largest week that was measured. SES takes 10 MB.
MAXIMUM_ATTACHED_CHARACTERS = 3_000_000
# The longest subject that SNS takes.
MOST_SUBJECT_CHARACTERS = 100
# Groups of waiting cases, and cases of each group, for which a mail of 102 KB has room.
_MAXIMUM_WAITING_GROUPS = 8
_MAXIMUM_CASES_PER_GROUP = 3
_MOST_ALT_TEXT_CHARACTERS = 1_500
# Width of the picture in pixels. The card in the template is a little wider.
_PICTURE_WIDTH_PIXELS = 492


def _prepare_for_mail(template_value: Any) -> Any:
    """Prepare a value for the HTML part of a mail.

    A text loses its marks (see `words`) and its links, and gets no-break spaces before units.
    Mendq's own Markup and values that are not texts are returned unchanged.
    """
    if isinstance(template_value, Markup) or not isinstance(template_value, str):
        return template_value
    return keep_units_together(break_links(remove_marks(template_value)))


_MAIL_TEMPLATE = load_template("mail.html.j2", _prepare_for_mail)
# Styles are written into each element, because Gmail drops the style sheet of a mail that it cuts
# off. Media queries cannot be inlined, so they stay in the style sheet.
_STYLE_INLINER = CSSInliner(keep_at_rules=True, load_remote_stylesheets=False)


class OutgoingReport(Struct, frozen=True, dict=True):
    """The report of one week in the forms that are sent: an SNS text, and a mail for SES."""

    summary: Summary
    # S3 address of the page, such as `s3://bucket/key`.
    page_location: str
    reported_account: ReportedAccount
    sender: str
    # The page as HTML; empty if it is not attached.
    page_html: str = ""

    @property
    def command(self) -> str:
        """The `mendq report` command with which the reader opens the page."""
        region = self.reported_account.region
        return f"mendq report --week {self.summary.week} --open --region {region}"

    @property
    def subject(self) -> str:
        """Subject of the mail, at most MOST_SUBJECT_CHARACTERS long.

        It contains only numbers and Mendq's own words, because other people's text could forge a
        mail header.
        """
        summary = self.summary
        report_name = f"Mendq {summary.week}"
        organization = summary.organization
        if organization:
            accounts_sentence = describe_accounts(organization).rstrip(".")
            return f"{report_name}: {accounts_sentence}"[:MOST_SUBJECT_CHARACTERS]
        if summary.nothing_was_read:
            return f"{report_name}: nothing was read"
        waiting_text = ""
        if summary.open_case_count:
            verb_form = "needs" if summary.open_case_count == 1 else "need"
            waiting_text = f"{summary.open_case_count:,} {verb_form} you; "
        if not summary.totals.incidents:
            new_word = "new " if summary.has_other_news else ""
            return f"{report_name}: {waiting_text}no {new_word}incidents"
        count_texts = [
            format_count(summary.totals.incidents, "incident"),
            f"{summary.fixed_count:,} healed",
        ]
        if summary.totals.urgent:
            count_texts.append(f"{summary.totals.urgent:,} paged")
        if summary.informed_count:
            count_texts.append(f"{summary.informed_count:,} told")
        if not summary.totals.urgent and not summary.informed_count:
            count_texts.append("nobody paged")
        return f"{report_name}: {waiting_text}{', '.join(count_texts)}"[:MOST_SUBJECT_CHARACTERS]

    @property
    def short_text(self) -> str:
        """Text for an SNS topic: the verdict, the page's S3 address, and the command to open it."""
        verdict_text = make_verdict_text(self.summary)
        return f"{verdict_text}\n\nThe page: {self.page_location}\nTo read it: {self.command}\n"

    @property
    def mail_text(self) -> str:
        """Plain-text part of the mail: `short_text`, and the things to do if there are any."""
        to_dos = list_to_do(self.summary, self.reported_account)
        if not to_dos:
            return self.short_text
        to_do_lines = ["\nDo this week"]
        for item_number, to_do in enumerate(to_dos, 1):
            to_do_lines.append(_format_to_do(item_number, to_do))
        if self.summary.do_this_week_left_out:
            to_do_lines.append(describe_left_out(self.summary))
        return self.short_text + "\n".join(to_do_lines) + "\n"

    @property
    def is_attached(self) -> bool:
        """True if the page is attached to the mail.

        A page of more than MAXIMUM_ATTACHED_CHARACTERS is not attached. It is only in its bucket.
        """
        return 0 < len(self.page_html) <= MAXIMUM_ATTACHED_CHARACTERS

    @cached_property
    def picture(self) -> bytes | None:
        """The chart of the incidents per day, as the bytes of a PNG.

        None if no incident is known.
        """
        incidents_per_day = make_incidents_per_day(self.summary)
        return (
            make_png(make_days_chart(incidents_per_day, MAIL_CHART_SIZE, LIGHT_PALETTE))
            if incidents_per_day.total
            else None
        )

    @cached_property
    def html(self) -> str:
        """HTML part of the mail. All styles are inline, except those in media queries."""
        waiting_groups = group_waiting_cases(self.summary, self.reported_account)
        mail_html = _MAIL_TEMPLATE.render(
            summary=self.summary,
            is_attached=self.is_attached,
            reported_account=self.reported_account,
            recommended=list_to_do(self.summary, self.reported_account),
            waiting_groups=waiting_groups,
            most_groups=_MAXIMUM_WAITING_GROUPS,
            most_cases=_MAXIMUM_CASES_PER_GROUP,
            more_waiting=_describe_unlisted_waiting_cases(self.summary, waiting_groups),
            per_day=make_incidents_per_day(self.summary),
            picture_id=CHART_CONTENT_ID if self.picture else "",
            most_alt=_MOST_ALT_TEXT_CHARACTERS,
            width=_PICTURE_WIDTH_PIXELS,
            palette=LIGHT_PALETTE,
            place=Markup(self.page_location),  # noqa: S704 - a bucket's name and our own key
            command=escape(self.command),
        )
        return _STYLE_INLINER.inline(mail_html)

    def message_to(self, recipient: str) -> bytes:
        """Return the complete mail to one recipient, as bytes for SES.

        Raises ValueError if the sender or the recipient is not an e-mail address.
        """
        mail = make_message(self.subject, self.mail_text, self.html, self.picture)
        if self.is_attached:
            attach_page(mail, f"mendq-{self.summary.week}.html", self.page_html)
        mail["From"] = _parse_email_address(self.sender)
        mail["To"] = _parse_email_address(recipient)
        return mail.as_bytes()


def _describe_unlisted_waiting_cases(
    summary: Summary, waiting_groups: Sequence[WaitingGroup]
) -> str:
    """Return a sentence with the number of waiting cases that the mail does not list.

    Cases that the summary does not list are included, although the page only counts them. Empty if
    the mail lists all waiting cases.
    """
    listed_case_count = sum(
        len(waiting_group.cases[:_MAXIMUM_CASES_PER_GROUP])
        for waiting_group in waiting_groups[:_MAXIMUM_WAITING_GROUPS]
    )
    unlisted_case_count = summary.open_case_count - listed_case_count
    return (
        f"{format_count(unlisted_case_count, 'more case')} on the page."
        if unlisted_case_count
        else ""
    )


def _format_to_do(item_number: int, to_do: ToDo) -> str:
    """Return one numbered item of the plain-text list of things to do.

    The owner and the command, if there are any, are on lines of their own.
    """
    sentences = [to_do.action, to_do.reason, to_do.effect]
    item_text = " ".join(sentence for sentence in sentences if sentence)
    item_lines = [f"{item_number}. {break_links(remove_marks(item_text))}"]
    if to_do.owner:
        item_lines.append(f"owner: {break_links(to_do.owner)}")
    if to_do.command:
        item_lines.append(to_do.command)
    return "\n   ".join(item_lines)


# Boundaries between the parts of a mail. They are constant, so that a report has the same bytes
# each time. No part can contain one: quoted-printable and base64 never contain "=_".
_ALTERNATIVE_BOUNDARY = "=_mendq-alternative"
_RELATED_BOUNDARY = "=_mendq-related"
_MIXED_BOUNDARY = "=_mendq-mixed"
_TRANSFER_ENCODING = "quoted-printable"
_EMAIL_ADDRESS_REGEX = re.compile(r"[\w!#$%&'*+/=?^`{|}~.-]+@[A-Za-z0-9.-]+", re.ASCII)


def make_message(
    subject: str, plain_text: str, html_text: str, chart_png: bytes | None
) -> EmailMessage:
    """Return a mail without sender and recipient. Its lines have at most 78 ASCII characters.

    Args:
        subject: The subject, on one line.
        plain_text: The plain-text part.
        html_text: The HTML part.
        chart_png: A PNG that the HTML part shows by CHART_CONTENT_ID. None for no picture.

    Raises:
        ValueError: The subject has a line break.
    """
    mail = EmailMessage(policy=SMTP)
    mail["Subject"] = subject
    # With this header no absence note is sent back (RFC 3834).
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(_escape_lone_surrogates(plain_text), cte=_TRANSFER_ENCODING)
    mail.add_alternative(_escape_lone_surrogates(html_text), subtype="html", cte=_TRANSFER_ENCODING)
    mail.set_boundary(_ALTERNATIVE_BOUNDARY)
    if chart_png is not None:
        _, html_part = mail.iter_parts()
        assert isinstance(html_part, EmailMessage)  # noqa: S101 - what add_alternative makes
        image_options: dict[str, Any] = {
            "cid": f"<{CHART_CONTENT_ID}>",
            "filename": f"{CHART_CONTENT_ID}.png",
        }
        html_part.add_related(chart_png, "image", "png", disposition="inline", **image_options)
        html_part.set_boundary(_RELATED_BOUNDARY)
    return mail


def attach_page(mail: EmailMessage, file_name: str, page_html: str) -> None:
    """Attach the page to a mail as `file_name`, for people who have no access to the bucket."""
    mail.add_attachment(
        _escape_lone_surrogates(page_html), subtype="html", cte="base64", filename=file_name
    )
    mail.set_boundary(_MIXED_BOUNDARY)


def _parse_email_address(address_text: str) -> Address:
    """Parse an e-mail address.

    Raises ValueError if the text is not exactly one address.
    """
    if _EMAIL_ADDRESS_REGEX.fullmatch(address_text):
        # Python refuses, for example, a dot at the end of the domain.
        with suppress(HeaderParseError, ValueError, IndexError):
            return Address(addr_spec=address_text)
    raise ValueError(
        f"{ascii(address_text)[:80]} is no e-mail address: write report.sender and "
        "report.recipients as sqs@example.com"
    )


def _escape_lone_surrogates(text: str) -> str:
    """Replace lone surrogates (halves of a character) by escapes that UTF-8 can encode."""
    return text.encode("utf-8", "backslashreplace").decode()

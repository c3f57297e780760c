"""The bytes that SES gets: three parts, our own headers, and no others."""

from __future__ import annotations

from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default

import pytest

from mendq.report.mail import PICTURE_ID, Mail, message

MAIL = Mail("Mendq 2026-W46: 2 incidents", "text: ü\n", "<p>ü</p>", b"\x89PNG\r\n\x1a\n" * 9_000)
SENDER, RECIPIENT = "reports@example.com", "ada@example.com"
# https://docs.aws.amazon.com/ses/latest/dg/quotas.html
SES_TAKES_BYTES = 10_000_000


def _parsed(mail: Mail) -> EmailMessage:
    parsed = message_from_bytes(message(mail, SENDER, RECIPIENT), policy=default)
    assert isinstance(parsed, EmailMessage)
    return parsed


def test_readers_of_text_html_and_pictures_each_find_theirs() -> None:
    parsed = _parsed(MAIL)
    assert [each.get_content_type() for each in parsed.walk()] == [
        "multipart/alternative",
        "text/plain",
        "multipart/related",
        "text/html",
        "image/png",
    ]
    *_, text, related, html, picture = parsed.walk()
    del related
    assert text.get_content().splitlines() == MAIL.text.splitlines()
    assert html.get_content().strip() == MAIL.html
    assert picture.get_content() == MAIL.picture
    assert picture["Content-ID"] == f"<{PICTURE_ID}>"
    assert picture.get_content_disposition() == "inline"


def test_without_a_picture_it_is_text_and_html() -> None:
    quiet = Mail(MAIL.subject, MAIL.text, MAIL.html, None)
    assert [each.get_content_type() for each in _parsed(quiet).walk()] == [
        "multipart/alternative",
        "text/plain",
        "text/html",
    ]


def test_its_headers_are_these() -> None:
    parsed = _parsed(MAIL)
    assert set(parsed.keys()) == {
        "From",
        "To",
        "Subject",
        "Auto-Submitted",
        "MIME-Version",
        "Content-Type",
    }
    assert (parsed["From"], parsed["To"]) == (SENDER, RECIPIENT)
    assert parsed["Subject"] == MAIL.subject


@pytest.mark.parametrize(
    "address",
    [
        "",
        "ada",
        "a@b\nBcc: c@d.io",
        "a@b\r\n\r\nbody",
        "a@b.io, c@d.io",
        "M <a@b.io>",
        "a b@c.io",
    ],
)
def test_what_is_no_address_is_none(address: str) -> None:
    for sender, recipient in ((address, RECIPIENT), (SENDER, address)):
        with pytest.raises(ValueError, match=r"^no e-mail address"):
            message(MAIL, sender, recipient)


@pytest.mark.parametrize("subject", ["a\nBcc: c@d.io", "a\r\nX-Evil: 1", "a\rb"])
def test_a_subject_of_two_lines_is_refused(subject: str) -> None:
    with pytest.raises(ValueError, match="linefeed"):
        message(Mail(subject, "", "", None), SENDER, RECIPIENT)


@pytest.mark.parametrize(
    "text",
    ["--=_mendq-alternative--\n", "\n.\n", "From me\n", "x" * 5_000 + "\n", "\ud800\n", "\x00\n"],
)
def test_no_text_ends_its_part_or_breaks_a_line_of_mail(text: str) -> None:
    made = message(Mail("s", text, text, b"png"), SENDER, RECIPIENT)
    assert made.isascii()
    assert max(map(len, made.split(b"\r\n"))) <= 78
    assert b"\n" not in made.replace(b"\r\n", b"")
    assert len(list(message_from_bytes(made, policy=default).walk())) == 5


def test_what_ses_takes_holds_it_many_times() -> None:
    assert len(message(MAIL, SENDER, RECIPIENT)) < SES_TAKES_BYTES / 10


def test_the_same_mail_gives_the_same_bytes() -> None:
    assert message(MAIL, SENDER, RECIPIENT) == message(MAIL, SENDER, RECIPIENT)

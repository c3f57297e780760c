"""The report mail: content, MIME parts, headers and limits."""

from __future__ import annotations

from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default

import pytest
from msgspec.structs import replace

from mendq.report.links import make_console_url, make_runbook_url
from mendq.report.mail import CHART_CONTENT_ID, MAXIMUM_ATTACHED_CHARACTERS, make_message
from tests.report.hostile import fill_every_text
from tests.report.page_parts import PageParts
from tests.report.weeks import HERE, make_busy_week, make_outgoing_report, make_queue_arn, make_week

PNG = b"\x89PNG\r\n\x1a\n" * 9_000
SENDER = "reports@example.com"
RECIPIENT = "ada@example.com"


def _parse(made: bytes) -> EmailMessage:
    parsed = message_from_bytes(made, policy=default)
    assert isinstance(parsed, EmailMessage)
    return parsed


def test_mail_of_a_busy_week_embeds_its_picture() -> None:
    mail = make_outgoing_report(make_busy_week())
    assert mail.picture is not None
    assert mail.picture.startswith(b"\x89PNG\r\n\x1a\n")
    assert 10_000 < len(mail.picture) < 1_000_000
    assert ("img", "src", f"cid:{CHART_CONTENT_ID}") in PageParts(mail.html).values


def test_mail_loads_nothing_and_links_only_to_the_console_and_the_runbooks() -> None:
    mail = make_outgoing_report(make_busy_week())
    for word in ("<script", "<link", "@import", "url(", "http:"):
        assert word not in mail.html
    linked = {value for *place, value in PageParts(mail.html).values if place == ["a", "href"]}
    queues = ("invoices", "exports-dlq", "emails-dlq")
    pages = ("dlq_messages_arriving", "visibility_timeout_too_short")
    assert linked == {
        *(make_console_url(make_queue_arn(queue)) for queue in queues),
        *(make_runbook_url(f"docs/runbooks/{page}.md", HERE) for page in pages),
    }


def test_mail_has_colours_for_a_dark_mail_program() -> None:
    assert "prefers-color-scheme: dark" in make_outgoing_report(make_busy_week()).html


def test_mail_of_one_week_is_made_twice_with_the_same_bytes() -> None:
    first = make_outgoing_report(make_busy_week()).message_to(RECIPIENT)
    assert make_outgoing_report(make_busy_week()).message_to(RECIPIENT) == first


def test_mail_of_a_busy_week_begins_its_to_do_list_with_the_change_and_its_command() -> None:
    mail = make_outgoing_report(make_busy_week())
    assert "690&nbsp;s in its template" in mail.html
    first = mail.mail_text.partition("Do this week\n")[2].partition("\n2. ")[0]
    assert first.startswith("1. Set VisibilityTimeout of invoices to 690 s in its template.")
    command = "mendq show visibility_timeout_too_short-491dabd42b00 --region us-east-1"
    assert first.endswith(f"\n   {command}")


def test_mail_of_a_quiet_week_has_no_picture_and_no_to_do_list() -> None:
    quiet = make_outgoing_report(make_week())
    assert quiet.picture is None
    assert "<img" not in quiet.html
    assert "Do this week" not in quiet.html + quiet.mail_text


def test_longest_mail_subject_fits_the_100_characters_of_sns() -> None:
    names = ("incidents", "failed_calls", "queues", "healed", "notified")
    totals = {**make_busy_week()["totals"], **dict.fromkeys(names, 10**12)}
    assert len(make_outgoing_report(make_week(totals=totals)).subject) <= 100


@pytest.mark.usefixtures("picture_stubs")
@pytest.mark.parametrize("worst", ["<" * 400, '"' * 400, "\N{ZERO WIDTH JOINER}" * 400])
def test_mail_with_the_longest_names_stays_below_the_size_limits_of_gmail_and_sns(
    worst: str,
) -> None:
    document = fill_every_text(worst)
    document["do_this_week"] = (document["do_this_week"] * 10)[:10]
    assert len(make_outgoing_report(document).html.encode()) < 102 * 1024
    assert len(make_outgoing_report(document).short_text.encode()) < 256 * 1024


PARTS_WITH_PICTURE = [
    "multipart/alternative",
    "text/plain",
    "multipart/related",
    "text/html",
    "image/png",
]


def test_mail_message_of_a_busy_week_has_text_html_and_picture_parts() -> None:
    made = make_outgoing_report(make_busy_week())
    parsed = _parse(made.message_to(RECIPIENT))
    assert [part.get_content_type() for part in parsed.walk()] == PARTS_WITH_PICTURE
    _, text, _, html, picture = parsed.walk()
    assert text.get_content().splitlines() == made.mail_text.splitlines()
    assert html.get_content().splitlines() == made.html.splitlines()
    assert picture.get_content() == made.picture
    assert picture["Content-ID"] == f"<{CHART_CONTENT_ID}>"
    assert picture.get_content_disposition() == "inline"


def test_mail_message_of_a_quiet_week_has_text_and_html_parts_only() -> None:
    quiet = _parse(make_outgoing_report(make_week()).message_to(RECIPIENT))
    parts = [part.get_content_type() for part in quiet.walk()]
    assert parts == ["multipart/alternative", "text/plain", "text/html"]


def test_mail_message_has_its_sender_recipient_and_subject_and_no_unexpected_header() -> None:
    made = make_outgoing_report(make_busy_week())
    parsed = _parse(made.message_to(RECIPIENT))
    headers = {"From", "To", "Subject", "Auto-Submitted", "MIME-Version", "Content-Type"}
    assert set(parsed.keys()) == headers
    addresses = [parsed[header] for header in ("From", "To", "Subject")]
    assert addresses == [SENDER, RECIPIENT, made.subject]


def test_mail_message_with_a_picture_stays_far_below_the_size_limit_of_ses() -> None:
    """https://docs.aws.amazon.com/ses/latest/dg/quotas.html"""
    ses_limit_bytes = 10_000_000
    assert len(make_message("s", "", "", PNG).as_bytes()) < ses_limit_bytes / 10


def test_report_page_is_attached_to_the_mail_with_its_exact_text() -> None:
    page = "<!doctype html>\N{EN DASH} --=_mendq-mixed--\n" * 9_000
    made = make_outgoing_report(make_busy_week(), page)
    message = made.message_to(RECIPIENT)
    parsed = _parse(message)
    body, attached = parsed.iter_parts()
    assert parsed.get_content_type() == "multipart/mixed"
    assert body.get_content_type() == "multipart/alternative"
    assert attached.get_content_type() == "text/html"
    assert attached.get_filename() == "mendq-2026-W46.html"
    assert attached.get_content().splitlines() == page.splitlines()
    assert "is attached, and opened by:" in made.html


def test_character_of_the_report_page_that_utf8_lacks_is_attached_as_its_escape() -> None:
    message = make_outgoing_report(make_busy_week(), "<p>\ud800</p>").message_to(RECIPIENT)
    _, attached = _parse(message).iter_parts()
    assert attached.get_content().splitlines() == ["<p>\\ud800</p>"]


def test_mail_with_an_attached_page_is_made_twice_with_the_same_bytes() -> None:
    first, second = (
        make_outgoing_report(make_busy_week(), "<p>week</p>").message_to(RECIPIENT)
        for _ in range(2)
    )
    assert first == second


def test_report_page_above_the_size_limit_is_neither_attached_nor_mentioned_in_the_mail() -> None:
    large = make_outgoing_report(make_busy_week(), "x" * (MAXIMUM_ATTACHED_CHARACTERS + 1))
    assert _parse(large.message_to(RECIPIENT)).get_content_type() == "multipart/alternative"
    assert "is attached" not in large.html


HOSTILE = ("", "ada", "a@b\nBcc: c@d.io", "a@b\r\n\r\nbody", "a@b.io, c@d.io", "M <a@b.io>",
           "a b@c.io", '"x a@b"@c.io', "a@b.io.", "a@.b.io", "a@b..io", "a@.", ".a@b.io",
           "a..b@c.io",
           "a@b\x00.io", "a@" + "b" * 9_999 + "..io")  # fmt: skip


@pytest.mark.parametrize("address", HOSTILE)
def test_malformed_mail_address_of_sender_or_recipient_is_refused(address: str) -> None:
    for sender, recipient in ((address, RECIPIENT), (SENDER, address)):
        with pytest.raises(
            ValueError,
            match=r"is no e-mail address: write report\.sender and report\.recipients as ",
        ):
            replace(make_outgoing_report(make_week()), sender=sender).message_to(recipient)


@pytest.mark.parametrize("subject", ["a\nBcc: c@d.io", "a\r\nX-Evil: 1", "a\rb"])
def test_mail_subject_with_a_line_break_is_refused(subject: str) -> None:
    with pytest.raises(ValueError, match="linefeed"):
        make_message(subject, "", "", None)


@pytest.mark.parametrize(
    "text",
    ["--=_mendq-alternative--\n", "\n.\n", "From me\n", "x" * 5_000 + "\n", "\ud800\n", "\x00\n"],
)
def test_mail_text_cannot_end_its_mime_part_or_exceed_the_line_length(text: str) -> None:
    made = make_message("s", text, text, b"png").as_bytes()
    assert made.isascii()
    assert max(map(len, made.split(b"\r\n"))) <= 78
    assert b"\n" not in made.replace(b"\r\n", b"")
    assert len(list(_parse(made).walk())) == 5

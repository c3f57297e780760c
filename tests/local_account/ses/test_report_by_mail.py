"""The deployed stack mails its report: rule, Lambda, role and SES together."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from email import message_from_string
from email.message import EmailMessage
from email.policy import default
from typing import Any

import pytest

from local_account.process import LocalAccount
from tests.local_account.queues import eventually
from tests.report.weeks import DAYS, busy_week

pytestmark = pytest.mark.account
SENDER, READERS = "reports@example.com", ["ada@example.com", "grace@example.org"]
PATIENCE_SECONDS = 60


@pytest.fixture(scope="module")
def mailing() -> Iterator[LocalAccount]:
    with LocalAccount({"report": {"sender": SENDER, "recipients": READERS}}) as running:
        yield running


def _put(account: LocalAccount, week: str, text: str) -> None:
    account.client("s3").put_object(
        Bucket=account.outputs["ReportBucket"],
        Key=f"summary/week={week}/summary.json",
        Body=text.encode(),
    )


def _a_week_earlier(text: str) -> str:
    for number in range(40, 47):
        text = text.replace(f"2026-W{number}", f"2026-W{number - 1}")
    for day in DAYS:
        text = text.replace(str(day), str(day - timedelta(days=7)))
    return text


def _marked(account: LocalAccount, week: str) -> list[str]:
    s3, bucket = account.client("s3"), account.outputs["ReportBucket"]
    listed = s3.list_objects_v2(Bucket=bucket, Prefix=f"report/week={week}/delivered/")
    return [
        json.loads(s3.get_object(Bucket=bucket, Key=each["Key"])["Body"].read())["state"]
        for each in listed.get("Contents", [])
    ]


def _parts(mail: dict[str, Any]) -> list[str]:
    parsed = message_from_string(mail["raw"], policy=default)
    assert isinstance(parsed, EmailMessage)
    assert parsed["Subject"] == mail["subject"]
    return [each.get_content_type() for each in parsed.walk() if not each.is_multipart()]


def test_a_summary_is_mailed_to_each_reader_once(mailing: LocalAccount) -> None:
    before = len(mailing.mails)
    for _ in range(2):
        _put(mailing, "2026-W46", json.dumps(busy_week()))
    eventually(lambda: _marked(mailing, "2026-W46") == ["sent"] * 3, PATIENCE_SECONDS)
    mails = mailing.mails[before:]
    assert sorted(each["to"] for each in mails) == [[each] for each in READERS]
    for each in mails:
        assert each["from"] == SENDER
        assert _parts(each) == ["text/plain", "text/html", "image/png"]


def test_a_sender_that_is_not_verified_is_said_and_nothing_is_mailed(mailing: LocalAccount) -> None:
    """Its last try leaves a record for a person."""
    ses = mailing.client("sesv2")
    before = len(mailing.mails)
    ses.delete_email_identity(EmailIdentity=SENDER)
    try:
        _put(mailing, "2026-W45", _a_week_earlier(json.dumps(busy_week())))
        eventually(
            lambda: sorted(_marked(mailing, "2026-W45")) == ["failed", "failed", "sent", "sent"],
            PATIENCE_SECONDS,
        )
        assert len(mailing.mails) == before
    finally:
        ses.create_email_identity(EmailIdentity=SENDER)

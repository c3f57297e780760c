"""Mails that moto's SES has sent."""

from __future__ import annotations

from email import message_from_string
from email.message import EmailMessage
from email.policy import default
from typing import Any

from moto.ses.models import RawMessage, ses_backends

from tests.account.account import ACCOUNT, REGION, Account

SENDER = "reports@example.com"


def verify_identity(account: Account, identity: str = SENDER) -> None:
    account.clients.mail.create_email_identity(EmailIdentity=identity)


def read_sent_mails(account: Account) -> list[EmailMessage]:
    """Return all mails, oldest first. `account` must be a moto account."""
    assert account.clients.region == REGION
    found: list[Any] = ses_backends[ACCOUNT][REGION].sent_messages
    assert all(isinstance(message, RawMessage) for message in found)
    return [_parse(message) for message in found]


def list_recipients(account: Account) -> list[str]:
    return [str(message["To"]) for message in read_sent_mails(account)]


def _parse(each: RawMessage) -> EmailMessage:
    parsed = message_from_string(each.raw_data, policy=default)
    assert isinstance(parsed, EmailMessage)
    return parsed

"""A mail as the bytes that SES takes: text, and the same as HTML with its picture.

https://docs.aws.amazon.com/ses/latest/dg/send-email-raw.html
"""

from __future__ import annotations

import re
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP

from functions.report.mail import PICTURE_ID, Mail

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

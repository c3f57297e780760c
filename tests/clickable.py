"""What mail programs, chats and terminals make links of, written without the product's rules."""

from __future__ import annotations

import re

from hypothesis import strategies as st

# Top-level domains that anybody can register, of all lengths, and one with other letters.
TOP_LEVEL_DOMAINS = (
    "com", "net", "io", "co", "me", "id", "md", "zip", "dev", "name", "email", "example",
    "download", "photography", "international", "xn--p1ai",
)  # fmt: skip
_HOST = rf"[a-z0-9_-]\.(?:{'|'.join(TOP_LEVEL_DOMAINS)})(?![a-z0-9])"
# `www...` at the end of a text that was cut is no link.
_SCHEME_OR_WWW = r"[a-z][a-z0-9+.-]*://|\bwww\.(?!\.\.)|\b(?:mailto|tel|sms|skype|sip):"
# Addresses and names that lead to no page of an attacker.
_HARMLESS = re.compile(
    r"https://sqs\.(?!s3)[a-z0-9-]+\.amazonaws\.(?:com\.cn|com|eu)/[0-9]{12}/"
    r"[A-Za-z0-9_-]+(?:\.fifo)?(?=[^\s\w./@:?#%;&=+~!$*\\|-]*(?:\s|$))"
    # Only AWS has hosts right under amazonaws.com. Behind s3 anybody's buckets follow.
    r"|(?<![\w.@-])(?!s3\.|www\.)(?:sqs\.)?[a-z0-9-]+\.amazonaws\.com(?![\w/@-])"
    r"|https?://(?:localhost|127\.0\.0\.1)(?::[0-9]+)?/?(?=[^\s\w./@:?#%;&=+~!$*\\|-]*(?:\s|$))"
    r"|docs/runbooks/[a-z_]+\.md|s3://mendq-[a-z-]+/report",
    re.IGNORECASE,
)
_ANY_LINK = re.compile(f"{_SCHEME_OR_WWW}|{_HOST}", re.IGNORECASE)
_TERMINAL_LINK = re.compile(_SCHEME_OR_WWW, re.IGNORECASE)


def find_links(text: str) -> list[str]:
    """Return what a mail program or a chat would make clickable."""
    return _ANY_LINK.findall(_HARMLESS.sub(" ", text))


def find_terminal_links(text: str) -> list[str]:
    """Return what a terminal would make clickable."""
    return _TERMINAL_LINK.findall(_HARMLESS.sub(" ", text))


_LABELS = st.sampled_from(("evil", "login", "a", "x-1", "9", "www", "amazonaws", "s3", "orders"))
DOMAINS = st.builds(
    lambda labels, ending: ".".join((*labels, ending)),
    st.lists(_LABELS, min_size=1, max_size=3),
    st.sampled_from(TOP_LEVEL_DOMAINS),
)
LINKS = st.one_of(
    DOMAINS,
    DOMAINS.map(str.upper),
    DOMAINS.map("www.{}".format),
    DOMAINS.map("WWW.{}".format),
    DOMAINS.map("http://{}/x?a=b".format),
    DOMAINS.map("https://user:word@{}".format),
    DOMAINS.map("ftp://{}".format),
    DOMAINS.map("mailto:a@{}".format),
    DOMAINS.map("john.doe@{}".format),
    st.sampled_from(
        (
            "www.",
            "s3.amazonaws.com/evil",
            "x.s3.amazonaws.com",
            "sns.amazonaws.com.co",
            "https://sqs.s3.amazonaws.com/123456789012/x",
            "https://sqs.eu-west-1.amazonaws.com/123456789012/orders?Action=DeleteQueue",
            "http://localhost:3000/admin?delete=1",
            "https://s3.amazonaws.eu/evil",
            "https://localhost@evil.com/",
            "s3.amazonaws.eu/evil",
            "sns.amazonaws.eu.com",
        )
    ),
)
# Control characters, text direction, quotes, backticks, newlines, shell and markup.
_NUISANCES = st.sampled_from((
    "\n", "\r\n", "\u2028", "\x00", "\x1b[31m", "\x9b", "\N{RIGHT-TO-LEFT OVERRIDE}",
    "\N{ZERO WIDTH SPACE}", "\ud800", "'", '"', "`", "\\", "$(id)", "`id`", ";rm -rf /", "|sh",
    "&&", ">x", "<b>", "[x](", ")", "](https:", "*", "%0A", "{{", "@here", "", " ",
))  # fmt: skip
HOSTILE_NAMES = st.builds("".join, st.lists(LINKS | _NUISANCES, min_size=1, max_size=5))
# Characters that IAM allows in the name of a role or user, with at least one link.
HOSTILE_ROLE_NAMES = st.builds(
    lambda before, domain, after: f"{before}{domain}{after}"[:64],
    st.sampled_from(("", "www.", "a@", "x=", "p,", "docs/", "+")),
    DOMAINS,
    st.sampled_from(("", "-role", "_x", "=", ".", "/r")),
)

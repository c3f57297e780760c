"""Find what programs turn into a link, and break it in texts, shell commands and JSON.

Names of roles, sessions, tags and policies may contain an address of an attacker. Mail programs and
chats make a link of more than `https://`: of `www.evil.com`, of `mailto:`, and of a bare domain. So
there are two sets of rules:

1. Text for mails and chats (notifications) has no link at all. A domain that only AWS can own, such
   as `sns.amazonaws.com`, stays readable.
2. Text for terminals, which link only what has a scheme or begins with `www.`, keeps bare domains:
   `body.id` and `john.doe@example.com` look like domains too, and people must be able to copy them.
   Addresses of SQS queues and of the local account stay too, because sentences contain commands.

In a text, brackets break a link (`www[.]evil[.]com`). A command must stay exact, so there the
character is quoted for the shell (`www'.'evil'.'com`). In JSON it is escaped (`www\\u002eevil`).
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator

from mendq.model.partitions import DNS_SUFFIX_REGEX
from mendq.model.queue import refuse_repeated_keys

# The characters that make an address. Terminals and mail programs link what has a scheme and what
# begins with `www.`.
_SCHEME_PATTERN = r"(?P<scheme>:(?=//))"
_SLASHES_PATTERN = r"(?P<slashes>(?<=:)//)"
_SHORT_SCHEME_PATTERN = (
    r"(?P<short_scheme>(?<=\bmailto):|(?<=\btel):|(?<=\bsms):|(?<=\bskype):|(?<=\bsip):)"
)
_WWW_PATTERN = r"(?P<www>(?<=www)\.)"
# The last part of a dotted word that is no domain: there is no such top-level domain.
_ENDINGS_OF_NO_DOMAIN = r"(?:fifo|arn|json|jsonl|html|ya?ml|csv|txt)(?![A-Za-z0-9_.-])"
# A top-level domain that anybody can register has 2 to 14 letters, or begins with xn--. Longer
# words, as in AWS.SimpleQueueService.NonExistentQueue, are none.
_DOMAIN_PATTERN = (
    rf"(?P<domain>(?<=[A-Za-z0-9_-])\.(?!{_ENDINGS_OF_NO_DOMAIN})"
    r"(?=xn--|[A-Za-z]{2,14}(?![A-Za-z])))"
)
_NO_HOST_BEFORE = r"(?<![A-Za-z0-9_.@-])"
_NO_HOST_AFTER = r"(?![A-Za-z0-9_/@-]|\.[A-Za-z0-9])"
# Names that lead only to AWS, or to no web page. A path may follow none of them, because a path of
# s3.amazonaws.com leads to anybody's bucket. Only AWS can make roles under `aws-service-role/`.
# Terraform's references, such as `aws_sqs_queue.orders.policy`, end in no top-level domain, and
# neither does the field of a KMS key that a command selects.
_OWN_NAME_PATTERN = (
    rf"(?:{_NO_HOST_BEFORE}(?!s3|www\.)(?:sqs\.(?!s3))?[a-z0-9-]+\.{DNS_SUFFIX_REGEX}{_NO_HOST_AFTER}"
    rf"|(?<=:role/aws-service-role/)(?!s3\.|www\.)[a-z0-9-]+\.{DNS_SUFFIX_REGEX}(?=/)"
    r"|(?<![\w.@-])aws_[a-z_]{1,40}\.[A-Za-z0-9_-]{1,80}\.(?:arn|policy|url)(?![\w.@/-])"
    r"|(?<=--query )KeyMetadata\.KeyId(?![\w./@-])"
    r"|(?<![\w./@-])docs/(?:runbooks/)?[a-z_-]{1,64}\.md(?![\w/@-]))"
)
# Addresses that a command may contain as they are: those of SQS queues, and of the local account.
# Only closing marks and a blank may follow: `?Action=DeleteQueue` behind a queue's address is a
# call of SQS, and a path of localhost leads to any program on the reader's machine.
_ADDRESS_END = r"(?=['\"`)\]}>,]*(?:\s|$))"
_OWN_ADDRESS_PATTERN = (
    rf"(?:https://sqs\.(?!s3)[a-z0-9-]+\.{DNS_SUFFIX_REGEX}/[0-9]{{12}}/"
    rf"(?!www\.)[A-Za-z0-9_-]{{1,80}}(?:\.fifo)?{_ADDRESS_END}"
    rf"|https?://(?:localhost|127\.0\.0\.1)(?::[0-9]{{1,5}})?/?{_ADDRESS_END})"
)
_TEXT_PATTERN = re.compile(
    rf"{_OWN_NAME_PATTERN}|{_SLASHES_PATTERN}|{_SHORT_SCHEME_PATTERN}|{_WWW_PATTERN}"
    rf"|{_DOMAIN_PATTERN}",
    re.IGNORECASE,
)
_TERMINAL_TEXT_PATTERN = re.compile(
    rf"{_OWN_ADDRESS_PATTERN}|{_SLASHES_PATTERN}|{_SHORT_SCHEME_PATTERN}|{_WWW_PATTERN}",
    re.IGNORECASE,
)
_COMMAND_PATTERN = re.compile(
    rf"{_OWN_ADDRESS_PATTERN}|{_OWN_NAME_PATTERN}|{_SCHEME_PATTERN}|{_SHORT_SCHEME_PATTERN}"
    rf"|{_WWW_PATTERN}|{_DOMAIN_PATTERN}",
    re.IGNORECASE,
)
_TERMINAL_COMMAND_PATTERN = re.compile(
    rf"{_OWN_ADDRESS_PATTERN}|{_SCHEME_PATTERN}|{_SHORT_SCHEME_PATTERN}|{_WWW_PATTERN}",
    re.IGNORECASE,
)


def break_links(text: str) -> str:
    """Return `text` without anything that a mail program or a chat makes a link of."""
    return _TEXT_PATTERN.sub(_bracket_character, text)


def break_terminal_links(text: str) -> str:
    """Return `text` without addresses that have a scheme or begin with `www.`.

    Addresses of SQS queues and of the local account stay.
    """
    return _TERMINAL_TEXT_PATTERN.sub(_bracket_character, text)


def _bracket_character(match: re.Match[str]) -> str:
    """Return the matched character in brackets. Keep a match without a group: an allowed name."""
    return match.group() if match.lastgroup is None else f"[{match.group()}]"


def escape_links_in_json(json_text: str) -> str:
    """Return JSON text of the same document that contains no link.

    The characters that make links are in strings only, where JSON allows to escape them.
    """
    return _TEXT_PATTERN.sub(_escape_character, json_text)


def list_json_lines(text: str) -> list[str]:
    """Return a JSON text as indented lines without a link, with every character visible.

    A text that is no JSON, or repeats a key, is returned as one JSON string.
    """
    try:
        document = json.loads(text, object_pairs_hook=refuse_repeated_keys)
    except (ValueError, RecursionError):
        json_text = json.dumps(text)
    else:
        json_text = json.dumps(document, indent=2)
    return [escape_links_in_json(line) for line in json_text.splitlines()]


def _escape_character(match: re.Match[str]) -> str:
    if match.lastgroup is None:
        return match.group()
    return f"\\u{ord(match.group()[0]):04x}{match.group()[1:]}"


def has_link(command: str) -> bool:
    """Return True if a mail program or a chat makes a link of a part of the command.

    Addresses of SQS queues and of the local account do not count: nobody can put a page there.
    """
    return bool(_find_characters(_COMMAND_PATTERN, command))


def has_terminal_link(command: str) -> bool:
    """Return True if a terminal makes a link of a part of the command. See `has_link`."""
    return bool(_find_characters(_TERMINAL_COMMAND_PATTERN, command))


def quote_links(command: str) -> str:
    """Return a shell command that means the same, and that mails and chats make no link of.

    The command is returned unchanged if it is no complete shell command or contains a command
    substitution. Check the result with `has_link`.
    """
    return _quote_characters(command, _COMMAND_PATTERN)


def quote_terminal_links(command: str) -> str:
    """Return a shell command that means the same, and that terminals make no link of."""
    return _quote_characters(command, _TERMINAL_COMMAND_PATTERN)


def _find_characters(pattern: re.Pattern[str], text: str) -> list[int]:
    """Return the positions of the characters that make links."""
    return [match.start() for match in pattern.finditer(text) if match.lastgroup is not None]


def _quote_characters(command: str, pattern: re.Pattern[str]) -> str:
    positions = set(_find_characters(pattern, command))
    if not positions or "$(" in command or "`" in command:
        return command
    quoted_characters: list[str] = []
    for position, (character, quote_mark) in enumerate(_read_shell_characters(command)):
        if position in positions:
            quoted_characters.append(f"{quote_mark}'{character}'{quote_mark}")
        else:
            quoted_characters.append(character)
    quoted_command = "".join(quoted_characters)
    return quoted_command if _mean_the_same(command, quoted_command) else command


def _read_shell_characters(command: str) -> Iterator[tuple[str, str]]:
    """Yield each character with the quotation mark that encloses it; empty if there is none.

    The marks themselves count as outside.
    """
    quote_mark = ""
    is_escaped = False
    for character in command:
        if is_escaped:
            is_escaped = False
            yield character, quote_mark
        elif character == "\\" and quote_mark != "'":
            is_escaped = True
            yield character, quote_mark
        elif quote_mark:
            if character == quote_mark:
                quote_mark = ""
            yield character, quote_mark
        else:
            yield character, ""
            if character in "'\"":
                quote_mark = character


def _mean_the_same(first_command: str, second_command: str) -> bool:
    """Return True if a POSIX shell reads the same words in both commands."""
    try:
        return shlex.split(first_command) == shlex.split(second_command)
    except ValueError:
        return False

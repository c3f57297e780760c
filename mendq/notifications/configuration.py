"""Compare two configurations of a queue, with one line of text for each difference.

Policies are compared as parsed JSON documents. Some differences do not count, because both forms
mean the same to SQS: another order, white space, a list with one value in place of the value, and a
text in place of a number.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from mendq.model.policy import digest_of_policy
from mendq.model.queue import parse_json_object
from mendq.notifications.text import format_value, to_plain_text, to_printable_json

# Names that are no configuration: counters, times, the queue's own ARN, and Mendq's own name for a
# DLQ that it made.
_UNCONFIGURABLE_NAME_PATTERN = re.compile(
    r"ApproximateNumber.*|.*Timestamp|QueueArn|DeadLetterQueue", re.DOTALL
)
# Attributes whose values are JSON documents.
_JSON_ATTRIBUTES = frozenset({"Policy", "RedrivePolicy", "RedriveAllowPolicy"})
# The largest numbers of characters of a value, a digest, a name and a path in a line.
_MOST_DOCUMENT_CHARACTERS = 500
_DIGEST_CHARACTERS = 12
_MOST_NAME_CHARACTERS = 64
_MOST_PATH_CHARACTERS = 200
NOT_SET_TEXT = "not set"


@dataclass(frozen=True)
class Baseline:
    """A queue's configuration at a time when a scan found nothing wrong with the queue.

    Attributes:
        at: The time.
        attributes: The queue's attributes, tags and consumers, by the names that
            `describe_configuration` gives to them.
    """

    at: datetime
    attributes: Mapping[str, str]


def select_configuration(attributes: Mapping[str, str]) -> dict[str, str]:
    """Return the attributes that can be configured, sorted by name.

    Attributes with default values are included. Counters, times, `QueueArn`, `DeadLetterQueue` and
    empty values are left out.
    """
    return {
        name: value_text
        for name, value_text in sorted(attributes.items())
        if value_text and not _UNCONFIGURABLE_NAME_PATTERN.fullmatch(name)
    }


def describe_differences(
    attributes_before: Mapping[str, str], attributes_after: Mapping[str, str]
) -> tuple[str, ...]:
    """Return one line for each difference, with the value of `attributes_before` first.

    The result is empty if the two configurations mean the same.
    """
    configuration_before = select_configuration(attributes_before)
    configuration_after = select_configuration(attributes_after)
    difference_lines: list[str] = []
    for name in sorted(configuration_before.keys() | configuration_after.keys()):
        if configuration_before.get(name) != configuration_after.get(name):
            difference_lines.extend(
                _compare_attribute(
                    name, configuration_before.get(name), configuration_after.get(name)
                )
            )
    return tuple(difference_lines)


def format_policy(attribute: str, policy_text: str, most_characters: int) -> str | None:
    """Return a policy as compact JSON, cut at `most_characters`.

    `attribute` is the attribute's name: Policy, RedrivePolicy or RedriveAllowPolicy. Return None
    for any other attribute, or if the text is not a JSON object, is an empty one, or has too many
    levels.
    """
    document = parse_json_object(policy_text) if attribute in _JSON_ATTRIBUTES else None
    try:
        return to_printable_json(document, most_characters) if document else None
    except RecursionError:
        return None


def summarize_attribute_value(attribute: str, value_text: str) -> str:
    """Return an attribute's value as text for a sentence; `nothing` if the value is empty.

    For a policy, the text has only the number of statements and a digest, because the policy is too
    long and someone else wrote it.
    """
    if attribute not in _JSON_ATTRIBUTES or not value_text:
        return value_text or "nothing"
    statements = _wrap_in_list((parse_json_object(value_text) or {}).get("Statement") or [])
    statement_count_text = f" of {len(statements)} statement(s)" if statements else ""
    return (
        f"a policy{statement_count_text} (sha256 "
        f"{digest_of_policy(value_text)[:_DIGEST_CHARACTERS]})"
    )


def _compare_attribute(name: str, value_before: str | None, value_after: str | None) -> list[str]:
    """Return one line for each difference of an attribute.

    A value is None if the attribute was not set, or is not set any more. A JSON document with too
    many levels is compared as text.
    """
    printable_name = to_plain_text(name, _MOST_NAME_CHARACTERS)
    try:
        return list(
            _compare_json_members(
                printable_name, _parse_value(name, value_before), _parse_value(name, value_after)
            )
        )
    except RecursionError:
        return [
            f"{printable_name}: {_format_document(value_before)} -> {_format_document(value_after)}"
        ]


def _parse_value(attribute: str, value_text: str | None) -> Any:
    """Return an attribute's value in the form in which two values are compared.

    This is for Policy a mapping with the statements by name, and for RedrivePolicy and
    RedriveAllowPolicy the parsed JSON object. All other values are returned unchanged, also a text
    that is not a JSON object, and an empty object (`{}`) as a redrive policy.
    """
    if attribute == "Policy":
        policy = parse_json_object(value_text)
        return value_text if policy is None else _map_statements_by_sid(policy)
    if attribute in _JSON_ATTRIBUTES and value_text:
        return parse_json_object(value_text) or value_text
    return value_text


def _map_statements_by_sid(policy: Mapping[str, Any]) -> dict[str, Any]:
    """Return a policy whose statements are members with the statement's Sid as name.

    Statements with the same Sid become one member with a list; so do statements without a Sid.
    """
    statements_by_name: dict[str, list[Any]] = defaultdict(list)
    for statement in _wrap_in_list(policy.get("Statement") or []):
        sid = statement.get("Sid") if isinstance(statement, dict) else None
        statement_name = (
            f"statement {format_value(sid, _MOST_NAME_CHARACTERS)}"
            if sid
            else "statement without Sid"
        )
        statements_by_name[statement_name].append(statement)
    member_by_name = {key: member for key, member in policy.items() if key != "Statement"}
    for statement_name, statements in statements_by_name.items():
        member_by_name[statement_name] = statements[0] if len(statements) == 1 else statements
    return member_by_name


def _compare_json_members(path: str, value_before: Any, value_after: Any) -> Iterator[str]:
    """Yield one line for each inner value that differs.

    Each line begins with the path to the inner value: `path` and the names below it.
    """
    if _make_canonical_text(value_before) == _make_canonical_text(value_after):
        return
    if isinstance(value_before, dict) and isinstance(value_after, dict):
        for member_name in sorted(value_before.keys() | value_after.keys()):
            inner_path = f"{path} {to_plain_text(member_name, _MOST_NAME_CHARACTERS)}"[
                :_MOST_PATH_CHARACTERS
            ]
            yield from _compare_json_members(
                inner_path, value_before.get(member_name), value_after.get(member_name)
            )
    elif (
        value_before
        and value_after
        and (isinstance(value_before, list) or isinstance(value_after, list))
    ):
        yield from _compare_lists(path, _wrap_in_list(value_before), _wrap_in_list(value_after))
    else:
        yield f"{path}: {_format_document(value_before)} -> {_format_document(value_after)}"


def _compare_lists(
    path: str, members_before: Sequence[Any], members_after: Sequence[Any]
) -> Iterator[str]:
    """Yield one line for each value that only one of the two lists has, whatever the order."""
    text_by_canonical_text = {
        _make_canonical_text(member): _format_document(member)
        for member in (*members_before, *members_after)
    }
    text_counts_before = Counter(_make_canonical_text(member) for member in members_before)
    text_counts_after = Counter(_make_canonical_text(member) for member in members_after)
    for canonical_text in (text_counts_before - text_counts_after).elements():
        yield f"{path}: {text_by_canonical_text[canonical_text]} is gone"
    for canonical_text in (text_counts_after - text_counts_before).elements():
        yield f"{path}: {text_by_canonical_text[canonical_text]} is new"


def _wrap_in_list(document: Any) -> list[Any]:
    """Return a list unchanged, and any other value as a list with this value."""
    return document if isinstance(document, list) else [document]


def _format_document(document: Any) -> str:
    """Return a value as one line of printable text; `not set` for None."""
    if document is None:
        return NOT_SET_TEXT
    return (
        format_value(document)
        if isinstance(document, str)
        else to_printable_json(document, _MOST_DOCUMENT_CHARACTERS)
    )


def _make_canonical_text(document: Any) -> str:
    """Return a text that is equal for two documents if they mean the same to SQS."""
    return json.dumps(_normalize_document(document), sort_keys=True)


def _normalize_document(document: Any) -> Any:
    """Return the document in the one form that all documents with the same meaning have.

    Lists are sorted, a list with one value becomes this value, whole numbers and booleans become
    texts, and members without a value (null) are left out.
    """
    if isinstance(document, dict):
        members = document.items()
        return {key: _normalize_document(member) for key, member in members if member is not None}
    if isinstance(document, list):
        if len(document) == 1:
            return _normalize_document(document[0])
        return sorted(_make_canonical_text(member) for member in document)
    if isinstance(document, bool):
        return str(document).lower()
    return str(document) if isinstance(document, int) else document

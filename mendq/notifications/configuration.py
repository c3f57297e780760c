"""Compare two configurations of a queue, with one line of text for each difference.

Policies are compared as parsed JSON documents. These differences do not count, because they mean
the same to SQS: order, white space, one value or a list with one value, a number or its text.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from mendq.model.policy import digest_of
from mendq.model.queue import parse_json_object
from mendq.notifications.text import compact_json, plain, value

# Names that are no configuration: counters, times, the queue's own ARN, and Mendq's own name for a
# DLQ that it made.
_NOT_CONFIGURED = re.compile(r"ApproximateNumber.*|.*Timestamp|QueueArn|DeadLetterQueue", re.DOTALL)
# Attributes whose values are JSON documents.
_DOCUMENTS = frozenset({"Policy", "RedrivePolicy", "RedriveAllowPolicy"})
# The largest numbers of characters of a value, a digest, a name and a path in a line.
_MOST_STATEMENT = 500
_DIGEST = 12
_MOST_NAME = 64
_MOST_PATH = 200
NOT_SET = "not set"


@dataclass(frozen=True)
class Baseline:
    """A queue's configuration at one moment when a scan found nothing wrong with the queue.

    `attributes` are the attributes by name, with tags and consumers as `describe_configuration`
    names them.
    """

    at: datetime
    attributes: Mapping[str, str]


def select_configuration(attributes: Mapping[str, str]) -> dict[str, str]:
    """Return the attributes that can be configured, sorted by name, also those with defaults.

    Counters, times, `QueueArn`, `DeadLetterQueue` and empty values are left out.
    """
    return {
        name: text
        for name, text in sorted(attributes.items())
        if text and not _NOT_CONFIGURED.fullmatch(name)
    }


def differences(known: Mapping[str, str], now: Mapping[str, str]) -> tuple[str, ...]:
    """Return one line for each difference, with the value of `known` first.

    Return no lines if the two configurations mean the same.
    """
    before = select_configuration(known)
    after = select_configuration(now)
    lines: list[str] = []
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            lines.extend(_compare_attribute(name, before.get(name), after.get(name)))
    return tuple(lines)


def as_json(name: str, text: str, most: int) -> str | None:
    """Return a policy as compact JSON, cut at `most` characters.

    Return None if the attribute `name` is no policy, or if the text is no JSON object.
    """
    document = parse_json_object(text) if name in _DOCUMENTS else None
    try:
        return compact_json(document, most) if document else None
    except RecursionError:
        return None


def summarize_value(name: str, text: str) -> str:
    """Return an attribute's value for a sentence.

    For a policy, return only its length and a digest, because its content is too long and someone
    else wrote it.
    """
    if name not in _DOCUMENTS or not text:
        return text or "nothing"
    statements = _to_list((parse_json_object(text) or {}).get("Statement") or [])
    how_long = f" of {len(statements)} statement(s)" if statements else ""
    return f"a policy{how_long} (sha256 {digest_of(text)[:_DIGEST]})"


def _compare_attribute(name: str, was: str | None, now: str | None) -> list[str]:
    """Return the lines about one attribute. A document with too many levels is compared as text."""
    title = plain(name, _MOST_NAME)
    try:
        return list(_compare_members(title, _parse_value(name, was), _parse_value(name, now)))
    except RecursionError:
        return [f"{title}: {_show(was)} -> {_show(now)}"]


def _parse_value(name: str, text: str | None) -> Any:
    """Return an attribute's value in the form in which it is compared.

    A policy becomes a mapping with its statements by name. Another JSON document is parsed. Any
    other value, and a document that cannot be parsed, stays a text.
    """
    if name == "Policy":
        policy = parse_json_object(text)
        return text if policy is None else _name_statements(policy)
    if name in _DOCUMENTS and text:
        return parse_json_object(text) or text
    return text


def _name_statements(policy: Mapping[str, Any]) -> dict[str, Any]:
    """Return a policy with its statements as members that are named after their Sid.

    Statements of the same name, and those without a Sid, become one member with a list.
    """
    statements_by_name: dict[str, list[Any]] = defaultdict(list)
    for statement in _to_list(policy.get("Statement") or []):
        sid = statement.get("Sid") if isinstance(statement, dict) else None
        name = f"statement {value(sid, _MOST_NAME)}" if sid else "statement without Sid"
        statements_by_name[name].append(statement)
    members = {key: member for key, member in policy.items() if key != "Statement"}
    for name, statements in statements_by_name.items():
        members[name] = statements[0] if len(statements) == 1 else statements
    return members


def _compare_members(path: str, was: Any, now: Any) -> Iterator[str]:
    """Yield one line for each member that differs. `path` names the member that is compared."""
    if _canonical(was) == _canonical(now):
        return
    if isinstance(was, dict) and isinstance(now, dict):
        for key in sorted(was.keys() | now.keys()):
            inner_path = f"{path} {plain(key, _MOST_NAME)}"[:_MOST_PATH]
            yield from _compare_members(inner_path, was.get(key), now.get(key))
    elif was and now and (isinstance(was, list) or isinstance(now, list)):
        yield from _compare_lists(path, _to_list(was), _to_list(now))
    else:
        yield f"{path}: {_show(was)} -> {_show(now)}"


def _compare_lists(path: str, was: Sequence[Any], now: Sequence[Any]) -> Iterator[str]:
    """Yield one line for each value that only one of the two lists has. Their order is ignored."""
    shown = {_canonical(member): _show(member) for member in (*was, *now)}
    had = Counter(_canonical(member) for member in was)
    has = Counter(_canonical(member) for member in now)
    for canonical in (had - has).elements():
        yield f"{path}: {shown[canonical]} is gone"
    for canonical in (has - had).elements():
        yield f"{path}: {shown[canonical]} is new"


def _to_list(document: Any) -> list[Any]:
    """Return a list as it is, and any other value as a list of one."""
    return document if isinstance(document, list) else [document]


def _show(document: Any) -> str:
    """Return a value as safe text for a line."""
    if document is None:
        return NOT_SET
    return value(document) if isinstance(document, str) else compact_json(document, _MOST_STATEMENT)


def _canonical(document: Any) -> str:
    """Return a text that is the same for all documents that mean the same to SQS."""
    return json.dumps(_normalize(document), sort_keys=True)


def _normalize(document: Any) -> Any:
    """Return the document with sorted lists, without lists of one, and with numbers as texts."""
    if isinstance(document, dict):
        members = document.items()
        return {key: _normalize(member) for key, member in members if member is not None}
    if isinstance(document, list):
        if len(document) == 1:
            return _normalize(document[0])
        return sorted(_canonical(member) for member in document)
    if isinstance(document, bool):
        return str(document).lower()
    return str(document) if isinstance(document, int) else document

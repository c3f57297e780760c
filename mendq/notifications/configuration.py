"""How a queue was and is configured, and what differs, one line per difference.

Policies are compared as parsed documents: their order, their white space, one value or a list of
one, a number or its text mean the same to SQS.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from mendq.model.policy import digest_of
from mendq.model.queue import parse_json_object
from mendq.notifications.text import compact_json, plain, value

# Not configuration: counters, clocks, the queue's own name, and whether another queue exists.
_NOT_CONFIGURED = re.compile(r"ApproximateNumber.*|.*Timestamp|QueueArn|DeadLetterQueue", re.DOTALL)
_DOCUMENTS = frozenset({"Policy", "RedrivePolicy", "RedriveAllowPolicy"})
_MOST_STATEMENT = 500
_DIGEST = 12
_MOST_NAME = 64
_MOST_PATH = 200
NOT_SET = "not set"


@dataclass(frozen=True)
class Baseline:
    """How a queue was configured at that moment."""

    at: datetime
    attributes: Mapping[str, str]


def select_configuration(attributes: Mapping[str, str]) -> dict[str, str]:
    """What somebody chose: without counters, timestamps and what is empty; in order."""
    return {
        name: text
        for name, text in sorted(attributes.items())
        if text and not _NOT_CONFIGURED.fullmatch(name)
    }


def differences(known: Mapping[str, str], now: Mapping[str, str]) -> tuple[str, ...]:
    """One line per difference, what stood there first; empty where there is none."""
    before, after = select_configuration(known), select_configuration(now)
    return tuple(
        line
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
        for line in _of_attribute(name, before.get(name), after.get(name))
    )


def as_json(name: str, text: str, most: int) -> str | None:
    """A policy or the like as compact JSON, cut; None for other attributes and what is no JSON."""
    document = parse_json_object(text) if name in _DOCUMENTS else None
    try:
        return compact_json(document, most) if document else None
    except RecursionError:
        return None


def summarize_value(name: str, text: str) -> str:
    """A value for a sentence: of a policy how long it is and a digest, never what stands in it."""
    if name not in _DOCUMENTS or not text:
        return text or "nothing"
    statements = _listed((parse_json_object(text) or {}).get("Statement") or [])
    how_long = f" of {len(statements)} statement(s)" if statements else ""
    return f"a policy{how_long} (sha256 {digest_of(text)[:_DIGEST]})"


def _of_attribute(name: str, was: str | None, now: str | None) -> list[str]:
    title = plain(name, _MOST_NAME)
    try:
        return list(_of_members(title, _document(name, was), _document(name, now)))
    except RecursionError:
        return [f"{title}: {_shown(was)} -> {_shown(now)}"]


def _document(name: str, text: str | None) -> Any:
    """What is compared: a policy's statements by their names, another document, or the text."""
    if name == "Policy":
        policy = parse_json_object(text)
        return text if policy is None else _by_statement(policy)
    return (parse_json_object(text) or text) if name in _DOCUMENTS and text else text


def _by_statement(policy: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = defaultdict(list)
    for each in _listed(policy.get("Statement") or []):
        sid = each.get("Sid") if isinstance(each, dict) else None
        name = f"statement {value(sid, _MOST_NAME)}" if sid else "statement without Sid"
        found[name].append(each)
    statements = {name: each[0] if len(each) == 1 else each for name, each in found.items()}
    return {key: each for key, each in policy.items() if key != "Statement"} | statements


def _of_members(path: str, was: Any, now: Any) -> Iterator[str]:
    if _canonical(was) == _canonical(now):
        return
    if isinstance(was, dict) and isinstance(now, dict):
        for key in sorted(was.keys() | now.keys()):
            inner = f"{path} {plain(key, _MOST_NAME)}"[:_MOST_PATH]
            yield from _of_members(inner, was.get(key), now.get(key))
    elif was and now and (isinstance(was, list) or isinstance(now, list)):
        shown = {_canonical(each): _shown(each) for each in _listed(was) + _listed(now)}
        had, has = (Counter(map(_canonical, _listed(each))) for each in (was, now))
        yield from (f"{path}: {shown[each]} is gone" for each in (had - has).elements())
        yield from (f"{path}: {shown[each]} is new" for each in (has - had).elements())
    else:
        yield f"{path}: {_shown(was)} -> {_shown(now)}"


def _listed(document: Any) -> list[Any]:
    return document if isinstance(document, list) else [document]


def _shown(document: Any) -> str:
    if document is None:
        return NOT_SET
    return value(document) if isinstance(document, str) else compact_json(document, _MOST_STATEMENT)


def _canonical(document: Any) -> str:
    return json.dumps(_ordered(document), sort_keys=True)


def _ordered(document: Any) -> Any:
    if isinstance(document, dict):
        return {key: _ordered(each) for key, each in document.items() if each is not None}
    if isinstance(document, list):
        return _ordered(document[0]) if len(document) == 1 else sorted(map(_canonical, document))
    if isinstance(document, bool):
        return str(document).lower()
    return str(document) if isinstance(document, int) else document

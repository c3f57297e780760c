"""Sort a sample of DLQ messages into groups, each with the filter that takes exactly its messages.

A filter is given only where, asked of the sample, it takes the group and nothing else. Groups and
outlines show names and kinds of what is in a body, and never a part of it unless that is asked for.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import groupby, islice
from operator import attrgetter
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mendq.notifications.text import compact_json, counted, plain, value
from mendq.redrive.message_filter import (
    SOURCE,
    Misread,
    document_of,
    json_in,
    literal,
    message_filter,
    named,
)
from mendq.redrive.messages import QUARANTINED, REDRIVEN, Message

# The largest of each way; an attribute with more values is about single messages, not groups.
MOST_GROUPS = 5
_MOST_VALUES = 10
_MOST_TEXT = 120
_LONGEST_WHERE = 900
# By what a message is grouped, in the order in which that is shown.
WAYS = ("body", "error", "attribute", "source", "message group", "receive count")
# An attribute so called says why a message is there: Lambda's ErrorMessage, EventBridge's
# ERROR_CODE and EXHAUSTED_RETRY_CONDITION, frameworks' x-exception-message and the like.
# https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html
# https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-rule-dlq.html
ERROR_NAMES = re.compile("error|exception|exhausted|failure|reason", re.IGNORECASE)
_VARYING = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[0-9a-fA-F]{16,}|\d+")
_KINDS = {bool: "boolean", int: "number", float: "number", str: "string"}
_KINDS |= {dict: "object", list: "array", type(None): "null"}
Label = tuple[str, str, str]


class MessageGroup(Struct, frozen=True):
    """Messages that are alike in one way; `where` is empty where no filter takes exactly these."""

    by: str
    what: str
    where: str
    messages: tuple[Message, ...]


def groups_of(
    messages: Sequence[Message], now: datetime, *, bodies: bool = False
) -> list[MessageGroup]:
    """The largest groups by each way; `bodies` sorts texts by what they say."""
    documents = [document_of(each, now) for each in messages]
    values = {each for document in documents for each in document["attributes"].items()}
    varied = Counter(name for name, _ in values)
    alike = defaultdict[Label, list[Message]](list)
    for message, document in zip(messages, documents, strict=True):
        for label in _labels(document, varied, bodies=bodies):
            alike[label].append(message)
    groups = [MessageGroup(*label, tuple(members)) for label, members in alike.items()]
    groups.sort(key=lambda each: (WAYS.index(each.by), -len(each.messages), each.what))
    ways = groupby(groups, attrgetter("by"))
    largest = (each for _, of_way in ways for each in islice(of_way, MOST_GROUPS))
    return [replace(each, where=_exact(each, messages, now)) for each in largest]


def _exact(group: MessageGroup, messages: Sequence[Message], now: datetime) -> str:
    """The filter that takes these messages of the sample and no other; empty where it does not."""
    wanted = {each.message_id for each in group.messages}
    with suppress(Misread):
        judge = message_filter(group.where).judge
        if all(judge(each, now).matches is (each.message_id in wanted) for each in messages):
            return group.where
    return ""


def outline(body: str) -> str:
    """A body without a single value: of JSON the keys and kinds, of a text its form."""
    found = json_in(body)
    if found is not None:
        return compact_json(_kinds(found, 4))
    return plain(re.sub(r"\d", "9", re.sub(r"[^\W\d_]", "a", body[:_MOST_TEXT])))


def _kinds(found: Any, depth: int) -> Any:
    """The names in an object, also one that stands as JSON in a text, and the kinds of values."""
    within = _within(found)
    if within is None or not depth:
        return _KINDS[type(found)]
    return {name: _kinds(each, depth - 1) for name, each in sorted(within.items())}


def _within(found: Any) -> dict[str, Any] | None:
    inside = json_in(found) if isinstance(found, str) else found
    return inside if isinstance(inside, dict) and (inside or inside is found) else None


def _labels(document: Mapping[str, Any], varied: Counter[str], *, bodies: bool) -> Iterator[Label]:
    body, path = document["body"], f"system.{SOURCE}"
    text = body is None and bodies
    yield "body", *(_pattern(document["body_text"], "body_text") if text else _shape(body))
    for name, found in document["attributes"].items():
        if name not in (REDRIVEN, QUARANTINED):
            yield _attribute(name, found, is_varied=varied[name] > _MOST_VALUES)
    if source_arn := document["system"].get(SOURCE):
        yield "source", source_arn, f"{path} == {literal(source_arn)}"
    else:
        yield "source", "SQS names none: it was sent here", f"!exists({path})"
    if group := document["group_id"]:
        yield "message group", group, f"group_id == {literal(group)}"
    yield "receive count", counted(document["receive_count"], "receive"), ""


def _shape(body: Any) -> tuple[str, str]:
    """As deep as a filter of a bearable length can say."""
    kind = _KINDS[type(body)]
    for depth in (2, 1):
        where = " && ".join((f"body | type(@) == {literal(kind)}", *_terms(body, "", depth)))
        if len(where) <= _LONGEST_WHERE:
            what = "not JSON" if body is None else compact_json(_kinds(body, depth), 400).strip('"')
            return what, where
    of_length = f"length(@) == `{len(body)}`"
    return f"{kind} of length {len(body):,}", f"body | type(@) == {literal(kind)} && {of_length}"


def _terms(found: Any, path: str, depth: int) -> Iterator[str]:
    """What asks for the names in an object and their kinds.

    Of an object in a text JMESPath can ask by name alone, so that further names are not seen.
    """
    within = _within(found)
    if within is None or not depth:
        return
    names = sorted(within)
    ways = [f"{path}.{named(each)}".lstrip(".") for each in names]
    if within is found:
        yield f"sort(keys({path or '@'})) == {literal(names)}"
    if names:
        kinds = [_KINDS[type(within[each])] for each in names]
        yield f"[{', '.join(f'type({each})' for each in ways)}] == {literal(kinds)}"
    for name, way in zip(names, ways, strict=True):
        yield from _terms(within[name], way, depth - 1)


def _attribute(name: str, found: Any, *, is_varied: bool) -> Label:
    path = f"attributes.{named(name)}"
    if isinstance(found, str) and ERROR_NAMES.search(name):
        what, where = _pattern(found, path)
        return "error", f"{name}: {what}", where
    if is_varied or isinstance(found, bytes):
        return "attribute", f"{name}, whatever its value", f"exists({path})"
    return "attribute", f"{name} = {value(found)}", f"{path} == {literal(found)}"


def _pattern(text: str, path: str) -> tuple[str, str]:
    """The first line of a text with what varies as `#`, and what asks for the parts between."""
    head = text[:_MOST_TEXT].partition("\n")[0]
    first, *others = _VARYING.split(head)
    if not others and head == text:
        return text, f"{path} == {literal(text)}"
    parts = [("starts_with", first), *(("contains", each) for each in others)]
    terms = (f"{asks}({path}, {literal(each)})" for asks, each in parts if each.strip())
    return "#".join((first, *others)), " && ".join(terms)

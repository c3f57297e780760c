"""Sort a sample of DLQ messages into groups, each with the filter that takes exactly its messages.

A filter is given only where, asked of the sample, it takes the group and nothing else. Groups and
outlines show names and kinds of what is in a body, and never a part of it unless that is asked for.
"""

from __future__ import annotations

import json
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

from mendq.notifications.text import counted, plain, value
from mendq.redrive.message_filter import (
    SOURCE,
    UNREADABLE,
    MessageFilter,
    Misread,
    document_of,
    json_in,
    literal,
    message_filter,
    named,
    shape,
)
from mendq.redrive.messages import QUARANTINED, REDRIVEN, Message

# The largest of each way; an attribute with more values is about single messages, not groups.
MOST_GROUPS = 5
_MOST_VALUES = 10
_MOST_TEXT = 120
_MOST_SHAPE = 400
# By what a message is grouped, in the order in which that is shown.
WAYS = ("body", "error", "attribute", "source", "message group", "receive count")
# An attribute so called says why a message is there: Lambda's ErrorMessage, EventBridge's
# ERROR_CODE and EXHAUSTED_RETRY_CONDITION, frameworks' x-exception-message and the like.
# https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html
# https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-rule-dlq.html
ERROR_NAMES = re.compile("error|exception|exhausted|failure|reason", re.IGNORECASE)
_VARYING = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[0-9a-fA-F]{16,}|\d+")
# The shape of what is none, or `null`.
NO_JSON = shape(None)
_NO_OUTLINE = "JSON that holds NaN, Infinity or too large a number"
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
    documents = [_in_outline(document_of(each, now)) for each in messages]
    values = {each for document in documents for each in document["attributes"].items()}
    varied = Counter(name for name, _ in values)
    alike = defaultdict[Label, list[Message]](list)
    for message, document in zip(messages, documents, strict=True):
        for label in _labels(document, varied, bodies=bodies):
            alike[label].append(message)
    groups = [MessageGroup(*label, tuple(members)) for label, members in alike.items()]
    groups.sort(key=lambda each: (WAYS.index(each.by), -len(each.messages), each.what))
    ways = groupby(groups, attrgetter("by"))
    largest = [each for _, of_way in ways for each in islice(of_way, MOST_GROUPS)]
    exact = _exact(largest, messages, now)
    return [replace(each, where=each.where if n in exact else "") for n, each in enumerate(largest)]


def _in_outline(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """With the shape of the body in its place: a sample's bodies, parsed, can fill the memory."""
    return {**document, "body": shape(document["body"])}


def _exact(groups: Sequence[MessageGroup], messages: Sequence[Message], now: datetime) -> set[int]:
    """The places of those whose filter takes their messages of the sample and no other.

    Each message is read once for all of them: a body may be 1 MiB of JSON.
    """
    filters, wanted = dict[int, MessageFilter](), list[set[str]]()
    for n, group in enumerate(groups):
        wanted.append({each.message_id for each in group.messages})
        with suppress(Misread):
            filters[n] = message_filter(group.where)
    for message in messages:
        document = document_of(message, now)
        for n, found in [*filters.items()]:
            is_wanted = message.message_id in wanted[n]
            if found.judge(message, now, document).matches is not is_wanted:
                del filters[n]
    return {*filters}


def outline(body: str) -> str:
    """A body without a single value: of JSON the keys and kinds, of a text its form."""
    found = json_in(body)
    if found is not None:
        outlined = shape(found)
        return _NO_OUTLINE if outlined == UNREADABLE else _said(outlined)
    return plain(re.sub(r"\d", "9", re.sub(r"[^\W\d_]", "a", body[:_MOST_TEXT])))


def _said(of: Any) -> str:
    """A shape in words that a terminal can break between."""
    return plain(json.dumps(of).strip('"'), _MOST_SHAPE)


def _labels(document: Mapping[str, Any], varied: Counter[str], *, bodies: bool) -> Iterator[Label]:
    outlined, path = document["body"], f"system.{SOURCE}"
    if outlined == NO_JSON and bodies:
        yield "body", *_pattern(document["body_text"], "body_text")
    elif outlined == UNREADABLE:
        # A filter that looks into such a body takes none of them.
        yield "body", _NO_OUTLINE, ""
    else:
        what = "not JSON" if outlined == NO_JSON else _said(outlined)
        yield "body", what, f"shape(body) == {literal(outlined)}"
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

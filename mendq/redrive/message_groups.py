"""Sort a sample of DLQ messages into groups, each with a filter that matches exactly its messages.

The filter of a group is tried on the sample. The group keeps it only if it matches all messages of
the group and no other message. Groups and outlines show the names and types in a body. They show no
part of its content, unless the operator asks for it.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mendq.notifications.text import format_count, plain, value
from mendq.redrive.message_filter import (
    SOURCE,
    UNREADABLE,
    MessageFilter,
    Misread,
    document_of,
    json_in,
    literal,
    message_filter,
    shape,
    spell_name,
)
from mendq.redrive.messages import QUARANTINED, REDRIVEN, Message

# At most this many groups are shown for each way of grouping.
MOST_GROUPS = 5
# An attribute with more different values than this identifies messages and does not form groups.
_MOST_VALUES = 10
# Only this many characters of a text are used.
_MOST_TEXT = 120
# Only this many characters of a shape are shown.
_MOST_SHAPE = 400
# The ways in which messages are grouped, in the order in which they are shown.
WAYS = ("body", "error", "attribute", "source", "message group", "receive count")
# An attribute with such a name says why the message failed: Lambda's ErrorMessage, EventBridge's
# ERROR_CODE and EXHAUSTED_RETRY_CONDITION, frameworks' x-exception-message and the like.
# https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html
# https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-rule-dlq.html
ERROR_NAMES = re.compile("error|exception|exhausted|failure|reason", re.IGNORECASE)
# Parts of a text that differ from message to message: UUIDs, long hexadecimal numbers, and numbers.
_VARYING = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[0-9a-fA-F]{16,}|\d+")
# The shape of a body that is not JSON, or is `null`.
NO_JSON = shape(None)
_NO_OUTLINE = "JSON that holds NaN, Infinity or too large a number"
# A group as a triple: the way of grouping (one of WAYS), the group's name, and a filter for it.
Label = tuple[str, str, str]


class MessageGroup(Struct, frozen=True):
    """Messages that are alike in one way.

    Attributes:
        by: The property by which messages are grouped, one of `WAYS`.
        what: The group's name, for operators.
        where: A filter that matches exactly these messages of the sample; empty if there is none.
        messages: The messages.
    """

    by: str
    what: str
    where: str
    messages: tuple[Message, ...]


def group_messages(
    messages: Sequence[Message], now: datetime, *, bodies: bool = False
) -> list[MessageGroup]:
    """Return the largest groups of messages, at most MOST_GROUPS for each of WAYS.

    Args:
        messages: The sample.
        now: The present time, from which filters calculate a message's age.
        bodies: True to group bodies that are not JSON by their text. The groups then show parts of
            it.
    """
    documents = [_with_outline(document_of(message, now)) for message in messages]
    varied = _count_attribute_values(documents)
    messages_by_label = defaultdict[Label, list[Message]](list)
    for message, document in zip(messages, documents, strict=True):
        for label in _labels(document, varied, bodies=bodies):
            messages_by_label[label].append(message)
    groups = [MessageGroup(*label, tuple(members)) for label, members in messages_by_label.items()]
    groups.sort(key=lambda group: (-len(group.messages), group.what))
    largest = list[MessageGroup]()
    for way in WAYS:
        groups_of_way = [group for group in groups if group.by == way]
        largest += groups_of_way[:MOST_GROUPS]
    exact = _find_exact_filters(largest, messages, now)
    return [
        group if index in exact else replace(group, where="") for index, group in enumerate(largest)
    ]


def _count_attribute_values(documents: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """Return the number of different values of each attribute."""
    values = set[tuple[str, Any]]()
    for document in documents:
        values.update(document["attributes"].items())
    return Counter(name for name, _ in values)


def _with_outline(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the document with the shape of its body in place of the body, to save memory."""
    return {**document, "body": shape(document["body"])}


def _find_exact_filters(
    groups: Sequence[MessageGroup], messages: Sequence[Message], now: datetime
) -> set[int]:
    """Return the indexes of groups whose filter matches their messages and no other one.

    Each message is parsed once for all groups: a body may be 1 MiB of JSON.
    """
    filters = dict[int, MessageFilter]()
    wanted = list[set[str]]()
    for index, group in enumerate(groups):
        wanted.append({message.message_id for message in group.messages})
        with suppress(Misread):
            filters[index] = message_filter(group.where)
    for message in messages:
        document = document_of(message, now)
        for index, group_filter in list(filters.items()):
            is_wanted = message.message_id in wanted[index]
            if group_filter.judge(message, now, document).matches is not is_wanted:
                del filters[index]
    return set(filters)


def outline(body: str) -> str:
    """Return a body without its values: the keys and types of JSON, or the form of a text."""
    value_in_body = json_in(body)
    if value_in_body is not None:
        outlined = shape(value_in_body)
        return _NO_OUTLINE if outlined == UNREADABLE else _describe_shape(outlined)
    without_letters = re.sub(r"[^\W\d_]", "a", body[:_MOST_TEXT])
    return plain(re.sub(r"\d", "9", without_letters))


def _describe_shape(outlined: Any) -> str:
    """Return a shape as text that a terminal can wrap."""
    return plain(json.dumps(outlined).strip('"'), _MOST_SHAPE)


def _labels(document: Mapping[str, Any], varied: Counter[str], *, bodies: bool) -> Iterator[Label]:
    """Yield a label for each group to which the message belongs."""
    yield _body_label(document, bodies=bodies)
    for name, attribute in document["attributes"].items():
        if name not in (REDRIVEN, QUARANTINED):
            yield _attribute_label(name, attribute, is_varied=varied[name] > _MOST_VALUES)
    source_path = f"system.{SOURCE}"
    if source_arn := document["system"].get(SOURCE):
        yield "source", source_arn, f"{source_path} == {literal(source_arn)}"
    else:
        yield "source", "SQS names none: it was sent here", f"!exists({source_path})"
    if group := document["group_id"]:
        yield "message group", group, f"group_id == {literal(group)}"
    yield "receive count", format_count(document["receive_count"], "receive"), ""


def _body_label(document: Mapping[str, Any], *, bodies: bool) -> Label:
    """Return the group of a message by the shape of its body.

    With `bodies`, a body that is not JSON is grouped by its text.
    """
    outlined = document["body"]
    if outlined == NO_JSON and bodies:
        return "body", *_find_pattern(document["body_text"], "body_text")
    if outlined == UNREADABLE:
        # A filter that looks into such a body does not match.
        return "body", _NO_OUTLINE, ""
    what = "not JSON" if outlined == NO_JSON else _describe_shape(outlined)
    return "body", what, f"shape(body) == {literal(outlined)}"


def _attribute_label(name: str, attribute: Any, *, is_varied: bool) -> Label:
    """Return the group of a message by one attribute.

    `is_varied` is True if the attribute has too many values to show a group for each.
    """
    path = f"attributes.{spell_name(name)}"
    if isinstance(attribute, str) and ERROR_NAMES.search(name):
        what, where = _find_pattern(attribute, path)
        return "error", f"{name}: {what}", where
    if is_varied or isinstance(attribute, bytes):
        return "attribute", f"{name}, whatever its value", f"exists({path})"
    return "attribute", f"{name} = {value(attribute)}", f"{path} == {literal(attribute)}"


def _find_pattern(text: str, path: str) -> tuple[str, str]:
    """Return the first line of a text, and a filter for similar texts.

    In the line, `#` stands for each number or id.
    """
    head = text[:_MOST_TEXT].partition("\n")[0]
    parts = _VARYING.split(head)
    if len(parts) == 1 and head == text:
        return text, f"{path} == {literal(text)}"
    terms = list[str]()
    for index, part in enumerate(parts):
        if part.strip():
            function = "contains" if index else "starts_with"
            terms.append(f"{function}({path}, {literal(part)})")
    return "#".join(parts), " && ".join(terms)

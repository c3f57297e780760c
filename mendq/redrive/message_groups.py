"""Sort a sample of DLQ messages into groups, with a filter for each group that can have one.

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

from mendq.notifications.text import format_count, format_value, to_terminal_text
from mendq.redrive.message_filter import (
    SHAPE_OF_UNREADABLE_JSON,
    SOURCE_ARN_ATTRIBUTE,
    FilterUnreadable,
    MessageFilter,
    format_field_name,
    format_literal,
    make_document,
    make_shape,
    parse_filter,
    parse_json,
)
from mendq.redrive.messages import QUARANTINE_MARK_NAME, REDRIVE_MARK_NAME, Message

# At most this many groups are shown for each way of grouping.
MAXIMUM_GROUPS_PER_GROUPING_WAY = 5
# An attribute with more different values than this identifies messages and does not form groups.
_MOST_DISTINCT_ATTRIBUTE_VALUES = 10
# Only this many characters of a text are used.
_MAXIMUM_EXAMINED_TEXT_CHARACTERS = 120
# Only this many characters of a shape are shown.
_MOST_SHAPE_CHARACTERS = 400
# The ways in which messages are grouped, in the order in which they are shown.
GROUPING_WAYS = ("body", "error", "attribute", "source", "message group", "receive count")
# An attribute with such a name says why the message failed: Lambda's ErrorMessage, EventBridge's
# ERROR_CODE and EXHAUSTED_RETRY_CONDITION, frameworks' x-exception-message and the like.
# https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html
# https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-rule-dlq.html
ERROR_NAME_PATTERN = re.compile("error|exception|exhausted|failure|reason", re.IGNORECASE)
# Parts of a text that differ from message to message: UUIDs, long hexadecimal numbers, and numbers.
_VARYING_PART_PATTERN = re.compile(
    r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[0-9a-fA-F]{16,}|\d+"
)
# The shape of a body that is not JSON, or is `null`.
SHAPE_OF_BODY_WITHOUT_JSON = make_shape(None)
_UNREADABLE_JSON_GROUP_NAME = "JSON that holds NaN, Infinity or too large a number"
# A group: the way of grouping (one of GROUPING_WAYS), the group's name, and its filter.
GroupLabel = tuple[str, str, str]


class MessageGroup(Struct, frozen=True):
    """Messages that are alike in one way.

    Attributes:
        by: The property by which messages are grouped, one of `GROUPING_WAYS`.
        what: The group's name, for operators.
        where: A filter that matches exactly these messages of the sample; empty if there is none.
        messages: The messages.
    """

    by: str
    what: str
    where: str
    messages: tuple[Message, ...]


def group_messages(
    messages: Sequence[Message], now: datetime, *, should_group_by_text: bool = False
) -> list[MessageGroup]:
    """Return the largest groups of messages, at most MAXIMUM_GROUPS_PER_GROUPING_WAY for each way
    of grouping.

    Args:
        messages: The sample.
        now: The present time, from which filters calculate a message's age.
        should_group_by_text: True to group bodies that are not JSON by their text. The groups then
            show parts of it.
    """
    documents = [_replace_body_by_shape(make_document(message, now)) for message in messages]
    value_count_by_name = _count_attribute_values(documents)
    messages_by_group_label = defaultdict[GroupLabel, list[Message]](list)
    for message, document in zip(messages, documents, strict=True):
        for group_label in _list_group_labels(
            document, value_count_by_name, should_group_by_text=should_group_by_text
        ):
            messages_by_group_label[group_label].append(message)
    groups = [
        MessageGroup(*group_label, tuple(labelled_messages))
        for group_label, labelled_messages in messages_by_group_label.items()
    ]
    groups.sort(key=lambda group: (-len(group.messages), group.what))
    largest_groups = list[MessageGroup]()
    for grouping_way in GROUPING_WAYS:
        groups_of_grouping_way = [group for group in groups if group.by == grouping_way]
        largest_groups += groups_of_grouping_way[:MAXIMUM_GROUPS_PER_GROUPING_WAY]
    indexes_of_groups_with_exact_filter = _find_exact_filters(largest_groups, messages, now)
    return [
        group if index in indexes_of_groups_with_exact_filter else replace(group, where="")
        for index, group in enumerate(largest_groups)
    ]


def _count_attribute_values(documents: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """Return the number of different values of each attribute, by the attribute's name."""
    distinct_values = set[tuple[str, Any]]()
    for document in documents:
        distinct_values.update(document["attributes"].items())
    return Counter(name for name, _ in distinct_values)


def _replace_body_by_shape(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the document with the shape of its body in place of the body, to save memory."""
    return {**document, "body": make_shape(document["body"])}


def _find_exact_filters(
    groups: Sequence[MessageGroup], messages: Sequence[Message], now: datetime
) -> set[int]:
    """Return the indexes of the groups whose filter selects all their messages and no others.

    Only messages of the sample count. A group whose filter cannot be parsed is left out. Each
    message is parsed once for all groups: a body may be 1 MiB of JSON.
    """
    filter_by_group_index = dict[int, MessageFilter]()
    message_ids_by_group_index = list[set[str]]()
    for index, group in enumerate(groups):
        message_ids_by_group_index.append({message.message_id for message in group.messages})
        with suppress(FilterUnreadable):
            filter_by_group_index[index] = parse_filter(group.where)
    for message in messages:
        document = make_document(message, now)
        for index, group_filter in list(filter_by_group_index.items()):
            is_in_group = message.message_id in message_ids_by_group_index[index]
            if group_filter.match_message(message, now, document).matches is not is_in_group:
                del filter_by_group_index[index]
    return set(filter_by_group_index)


def describe_body_outline(body: str) -> str:
    """Return a body without its values: the keys and types of JSON, or the form of a text.

    JSON with a value that Mendq cannot read, such as NaN, gets a fixed sentence.
    """
    body_value = parse_json(body)
    if body_value is not None:
        body_shape = make_shape(body_value)
        return (
            _UNREADABLE_JSON_GROUP_NAME
            if body_shape == SHAPE_OF_UNREADABLE_JSON
            else _describe_shape(body_shape)
        )
    masked_text = re.sub(r"[^\W\d_]", "a", body[:_MAXIMUM_EXAMINED_TEXT_CHARACTERS])
    return to_terminal_text(re.sub(r"\d", "9", masked_text))


def _describe_shape(body_shape: Any) -> str:
    """Return a shape as text that a terminal can wrap, cut to _MOST_SHAPE_CHARACTERS."""
    return to_terminal_text(json.dumps(body_shape).strip('"'), _MOST_SHAPE_CHARACTERS)


def _list_group_labels(
    document: Mapping[str, Any], value_count_by_name: Counter[str], *, should_group_by_text: bool
) -> Iterator[GroupLabel]:
    """Yield a label for each group to which the message belongs."""
    yield _make_body_label(document, should_group_by_text=should_group_by_text)
    for name, attribute in document["attributes"].items():
        if name not in (REDRIVE_MARK_NAME, QUARANTINE_MARK_NAME):
            yield _make_attribute_label(
                name,
                attribute,
                has_many_values=value_count_by_name[name] > _MOST_DISTINCT_ATTRIBUTE_VALUES,
            )
    source_path = f"system.{SOURCE_ARN_ATTRIBUTE}"
    if source_arn := document["system"].get(SOURCE_ARN_ATTRIBUTE):
        yield "source", source_arn, f"{source_path} == {format_literal(source_arn)}"
    else:
        yield "source", "SQS names none: it was sent here", f"!exists({source_path})"
    if group_id := document["group_id"]:
        yield "message group", group_id, f"group_id == {format_literal(group_id)}"
    yield "receive count", format_count(document["receive_count"], "receive"), ""


def _make_body_label(document: Mapping[str, Any], *, should_group_by_text: bool) -> GroupLabel:
    """Return the label of a message's group by the shape of its body.

    With `should_group_by_text`, a body that is not JSON is grouped by its text.
    """
    body_shape = document["body"]
    if body_shape == SHAPE_OF_BODY_WITHOUT_JSON and should_group_by_text:
        return "body", *_find_text_pattern(document["body_text"], "body_text")
    if body_shape == SHAPE_OF_UNREADABLE_JSON:
        # A filter that looks into such a body does not match.
        return "body", _UNREADABLE_JSON_GROUP_NAME, ""
    group_name = (
        "not JSON" if body_shape == SHAPE_OF_BODY_WITHOUT_JSON else _describe_shape(body_shape)
    )
    return "body", group_name, f"shape(body) == {format_literal(body_shape)}"


def _make_attribute_label(name: str, attribute: Any, *, has_many_values: bool) -> GroupLabel:
    """Return the label of a message's group by one attribute, or by the error that it names.

    `has_many_values` is True if the attribute has too many values to show a group for each.
    """
    attribute_path = f"attributes.{format_field_name(name)}"
    if isinstance(attribute, str) and ERROR_NAME_PATTERN.search(name):
        group_name, filter_text = _find_text_pattern(attribute, attribute_path)
        return "error", f"{name}: {group_name}", filter_text
    if has_many_values or isinstance(attribute, bytes):
        return "attribute", f"{name}, whatever its value", f"exists({attribute_path})"
    return (
        "attribute",
        f"{name} = {format_value(attribute)}",
        f"{attribute_path} == {format_literal(attribute)}",
    )


def _find_text_pattern(text: str, text_path: str) -> tuple[str, str]:
    """Return the first line of a text with `#` for each number or id, and a filter for such texts.

    `text_path` is the text's JMESPath path. If the text is one short line without numbers and ids,
    the filter matches only this text. The filter is empty if the line has nothing but numbers, ids
    and spaces.
    """
    first_line = text[:_MAXIMUM_EXAMINED_TEXT_CHARACTERS].partition("\n")[0]
    unvarying_parts = _VARYING_PART_PATTERN.split(first_line)
    if len(unvarying_parts) == 1 and first_line == text:
        return text, f"{text_path} == {format_literal(text)}"
    filter_terms = list[str]()
    for index, unvarying_part in enumerate(unvarying_parts):
        if unvarying_part.strip():
            function_name = "contains" if index else "starts_with"
            filter_terms.append(f"{function_name}({text_path}, {format_literal(unvarying_part)})")
    return "#".join(unvarying_parts), " && ".join(filter_terms)

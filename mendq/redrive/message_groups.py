"""Sort a sample of DLQ messages into groups, with a filter for each group that can have one.

The filter of a group is tried on the sample. The group keeps it only if it matches all messages of
the group and no other message. Groups and outlines show the names and types in a body. They show
its content only if the operator asks for it.

Senders choose bodies and attributes, and SQS accepts messages of 1 MiB. So memory and time are
limited:

1. Each body is parsed once, when its message arrives. Mendq keeps its outline, its label and its
   first 16,384 characters, and the first 1,024 characters of each attribute with a digest.
2. An object with more than 400 names is not examined further. All such bodies are one group, which
   has no filter.
3. A filter by a text is not shown if it might match the part that was cut from another message.
4. A group by an attribute's value that was cut has no filter.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from hashlib import sha256
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mendq.notifications.text import format_count, format_value, to_terminal_text
from mendq.redrive.kept_messages import KeptLength, KeptMessage
from mendq.redrive.message_filter import (
    LONGEST_EXPRESSION_CHARACTERS,
    SHAPE_FUNCTION_NAME,
    SHAPE_OF_UNREADABLE_JSON,
    SOURCE_ARN_ATTRIBUTE,
    FilterUnreadable,
    MessageFilter,
    format_field_name,
    format_literal,
    make_document,
    make_shape,
    may_be_json_object,
    parse_filter,
    parse_json,
)
from mendq.redrive.messages import (
    QUARANTINE_MARK_NAME,
    REDRIVE_MARK_NAME,
    Message,
    MessageAttribute,
)

# How much of each message is kept.
KEPT_LENGTH = KeptLength(body_characters=16_384, attribute_characters=1_024)
# A body with more names than this on the levels that a shape shows gets no shape and no filter. Its
# filter would be too long in any case.
MOST_SHAPE_NAMES = 400
# At most this many groups are shown for each way of grouping.
MAXIMUM_GROUPS_PER_GROUPING_WAY = 5
# An attribute with more different values than this does not form a group for each value, because it
# identifies single messages.
_MOST_DISTINCT_ATTRIBUTE_VALUES = 10
# The most characters of a text that are used for a group's name and filter.
_MAXIMUM_EXAMINED_TEXT_CHARACTERS = 120
# Only this many characters of a shape are shown.
_MOST_SHAPE_CHARACTERS = 400
# The ways in which messages are grouped, in the order in which they are shown.
GROUPING_WAYS = ("body", "error", "attribute", "source", "message group", "receive count")
# Names of attributes that say why a message failed, such as Lambda's ErrorMessage, EventBridge's
# ERROR_CODE and EXHAUSTED_RETRY_CONDITION, or x-exception-message of frameworks.
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
_MANY_NAMES_GROUP_NAME = f"JSON with more than {MOST_SHAPE_NAMES} names"
# A group: the way of grouping (one of GROUPING_WAYS), the group's name, and its filter.
GroupLabel = tuple[str, str, str]


class MessageGroup(Struct, frozen=True):
    """Messages that are alike in one way.

    Attributes:
        by: The property by which messages are grouped, one of `GROUPING_WAYS`.
        what: The group's name, for operators.
        where: A filter that matches exactly these messages of the sample; empty if there is none.
        messages: The messages, with long parts cut to KEPT_LENGTH.
        first_outline: The outline of the first message's body, from `describe_body_outline`.
    """

    by: str
    what: str
    where: str
    messages: tuple[Message, ...]
    first_outline: str = ""


class SampledMessage(Struct, frozen=True):
    """A message of a sample, without the rest of a long body and of long attributes.

    Attributes:
        kept: The message, with long parts cut to KEPT_LENGTH.
        body_label: The label of the group by body.
        body_outline: The body without its values, from `describe_body_outline`.
    """

    kept: KeptMessage
    body_label: GroupLabel
    body_outline: str

    @property
    def message(self) -> Message:
        """The message, with long parts cut to KEPT_LENGTH."""
        return self.kept.message

    @classmethod
    def create(cls, message: Message, *, should_group_by_text: bool) -> SampledMessage:
        """Return the sampled message. Its body is parsed here, and not again for the groups.

        `should_group_by_text` is True to label a body that is not JSON by its text.
        """
        shape = _make_bounded_shape(parse_json(message.body))
        return cls(
            KeptMessage.keep(message, KEPT_LENGTH),
            _make_body_label(shape, message.body, should_group_by_text=should_group_by_text),
            _describe_outline(shape, message.body),
        )


def group_messages(
    messages: Iterable[Message], now: datetime, *, should_group_by_text: bool = False
) -> list[MessageGroup]:
    """Group complete (not shortened) messages, and return the largest groups.

    See `group_sample`.
    """
    sample = [
        SampledMessage.create(message, should_group_by_text=should_group_by_text)
        for message in messages
    ]
    return group_sample(sample, now)


def group_sample(sample: Sequence[SampledMessage], now: datetime) -> list[MessageGroup]:
    """Return the largest groups of messages, in the order of GROUPING_WAYS.

    Each way of grouping has at most MAXIMUM_GROUPS_PER_GROUPING_WAY groups. `now` is the present
    time, from which filters calculate a message's age.
    """
    documents = [_make_kept_document(sampled, now) for sampled in sample]
    value_count_by_name = _count_attribute_values(sample, documents)
    sample_by_group_label = defaultdict[GroupLabel, list[SampledMessage]](list)
    for sampled, document in zip(sample, documents, strict=True):
        sample_by_group_label[sampled.body_label].append(sampled)
        for group_label in _list_other_labels(sampled.kept, document, value_count_by_name):
            sample_by_group_label[group_label].append(sampled)
    groups = []
    for group_label, labelled_sample in sample_by_group_label.items():
        messages_of_group = tuple(sampled.message for sampled in labelled_sample)
        groups.append(
            MessageGroup(*group_label, messages_of_group, labelled_sample[0].body_outline)
        )
    groups.sort(key=lambda group: (-len(group.messages), group.what))
    largest_groups = list[MessageGroup]()
    for grouping_way in GROUPING_WAYS:
        groups_of_grouping_way = [group for group in groups if group.by == grouping_way]
        largest_groups += groups_of_grouping_way[:MAXIMUM_GROUPS_PER_GROUPING_WAY]
    indexes_of_groups_with_exact_filter = _find_exact_filters(largest_groups, sample, now)
    return [
        group if index in indexes_of_groups_with_exact_filter else replace(group, where="")
        for index, group in enumerate(largest_groups)
    ]


def _make_kept_document(sampled: SampledMessage, now: datetime) -> Mapping[str, Any]:
    """Return the document of a message without the value in its body."""
    return {**make_document(replace(sampled.message, body=""), now), "body": None}


def _count_attribute_values(
    sample: Iterable[SampledMessage], documents: Iterable[Mapping[str, Any]]
) -> Counter[str]:
    """Return the number of different values of each attribute, by the attribute's name."""
    distinct_values = set[tuple[str, Any, str]]()
    for sampled, document in zip(sample, documents, strict=True):
        digest_by_name = sampled.kept.digest_by_cut_attribute_name
        for name, value in document["attributes"].items():
            distinct_values.add((name, value, digest_by_name.get(name, "")))
    return Counter(name for name, _, _ in distinct_values)


def _find_exact_filters(
    groups: Sequence[MessageGroup], sample: Sequence[SampledMessage], now: datetime
) -> set[int]:
    """Return the indexes of the groups whose filter selects all their messages and no others.

    The filters are tried on the messages of the sample, and each message is parsed once for all
    groups. A group whose filter cannot be parsed is left out.
    """
    filter_by_group_index = dict[int, MessageFilter]()
    message_ids_by_group_index = list[set[str]]()
    for index, group in enumerate(groups):
        message_ids_by_group_index.append({message.message_id for message in group.messages})
        with suppress(FilterUnreadable):
            filter_by_group_index[index] = parse_filter(group.where)
    for sampled in sample:
        message = sampled.message
        document = make_document(message, now)
        for index, group_filter in list(filter_by_group_index.items()):
            group = groups[index]
            is_in_group = message.message_id in message_ids_by_group_index[index]
            if not _is_group_about_cut_part(group, sampled.kept):
                is_match = group_filter.match_message(message, now, document).matches
                is_exact = is_match is is_in_group
            elif is_in_group:
                # The filter was made from the kept part, or from the shape of the whole body.
                is_exact = True
            else:
                is_exact = not _may_match_cut_message(group, group_filter, sampled.kept, now)
            if not is_exact:
                del filter_by_group_index[index]
    return set(filter_by_group_index)


def _is_group_about_cut_part(group: MessageGroup, kept: KeptMessage) -> bool:
    """Return True if the group's filter reads a part of the message that was cut."""
    if group.by == "body":
        return kept.is_body_cut
    return group.by in ("error", "attribute") and bool(kept.digest_by_cut_attribute_name)


def _may_match_cut_message(
    group: MessageGroup, group_filter: MessageFilter, kept: KeptMessage, now: datetime
) -> bool:
    """Return True if the filter of another group may match a message that was cut.

    A filter by shape matches no other shape. But the part that was cut may contain the parts of a
    filter by text. So the filter is tried on the kept beginning, followed by the text from which
    the filter was made.
    """
    if group.where.startswith(f"{SHAPE_FUNCTION_NAME}("):
        return False
    message = kept.message
    first_message = group.messages[0]
    if group.by == "body":
        possible_message = replace(message, body=_join_texts(message.body, first_message.body))
        return group_filter.match_message(possible_message, now).matches
    possible_attributes = dict(message.attributes)
    for name in kept.digest_by_cut_attribute_name:
        filter_value = first_message.attributes.get(name, message.attributes[name]).value
        cut_value = message.attributes[name].value
        if isinstance(cut_value, str) and isinstance(filter_value, str):
            possible_attributes[name] = MessageAttribute(
                "String", _join_texts(cut_value, filter_value)
            )
    # The body is left out, because parsing it takes time and the filter does not read it.
    possible_message = replace(message, body="", attributes=possible_attributes)
    return group_filter.match_message(possible_message, now).matches


def _join_texts(beginning: str, text_of_filter: str) -> str:
    """Return the beginning of a text, followed by the part of another text that filters use."""
    return f"{beginning}\n{text_of_filter[:_MAXIMUM_EXAMINED_TEXT_CHARACTERS]}"


class _TextParser:
    """Parses the JSON objects in texts, each text once."""

    def __init__(self) -> None:
        self._value_by_text = dict[str, Any]()

    def parse(self, text: str) -> Any:
        """Return the value of the JSON in a text, as `parse_json` does."""
        if text not in self._value_by_text:
            self._value_by_text[text] = parse_json(text)
        return self._value_by_text[text]

    def count_names(self, value: Any) -> int:
        """Return the number of names in an object, or in the JSON object in a text; else 0."""
        if isinstance(value, str) and may_be_json_object(value):
            value = self.parse(value)
        return len(value) if isinstance(value, dict) else 0


def _make_bounded_shape(body_value: Any) -> Any:
    """Return the shape of a body's value; None if it has more than MOST_SHAPE_NAMES names."""
    text_parser = _TextParser()
    name_count = text_parser.count_names(body_value)
    body_object = text_parser.parse(body_value) if isinstance(body_value, str) else body_value
    if isinstance(body_object, dict) and name_count <= MOST_SHAPE_NAMES:
        name_count += sum(map(text_parser.count_names, body_object.values()))
    if name_count > MOST_SHAPE_NAMES:
        return None
    return make_shape(body_value, parse_text=text_parser.parse)


def describe_body_outline(body: str) -> str:
    """Return a body without its values: the keys and types of JSON, or the form of a text.

    The outline is a fixed sentence for JSON that has too many names, or a value that Mendq cannot
    read, such as NaN.
    """
    return _describe_outline(_make_bounded_shape(parse_json(body)), body)


def _describe_outline(body_shape: Any, body: str) -> str:
    """Return the outline of a body by its shape from `_make_bounded_shape`."""
    if body_shape == SHAPE_OF_BODY_WITHOUT_JSON:
        masked_text = re.sub(r"[^\W\d_]", "a", body[:_MAXIMUM_EXAMINED_TEXT_CHARACTERS])
        return to_terminal_text(re.sub(r"\d", "9", masked_text))
    if body_shape is None:
        return _MANY_NAMES_GROUP_NAME
    if body_shape == SHAPE_OF_UNREADABLE_JSON:
        return _UNREADABLE_JSON_GROUP_NAME
    return _describe_shape(body_shape)


def _describe_shape(body_shape: Any) -> str:
    """Return a shape as text that a terminal can wrap, cut to _MOST_SHAPE_CHARACTERS."""
    return to_terminal_text(json.dumps(body_shape).strip('"'), _MOST_SHAPE_CHARACTERS)


def _list_other_labels(
    kept: KeptMessage, document: Mapping[str, Any], value_count_by_name: Counter[str]
) -> Iterator[GroupLabel]:
    """Yield a label for each group to which the message belongs, except the group by body."""
    for name, attribute in document["attributes"].items():
        if name not in (REDRIVE_MARK_NAME, QUARANTINE_MARK_NAME):
            yield _make_attribute_label(
                name,
                attribute,
                digest_of_cut_value=kept.digest_by_cut_attribute_name.get(name, ""),
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


def _make_body_label(body_shape: Any, body: str, *, should_group_by_text: bool) -> GroupLabel:
    """Return the label of a message's group by the shape of its body.

    With `should_group_by_text`, a body that is not JSON is grouped by its text. Labels must be
    short, because each message keeps one. So if the shape's filter would be too long, the label has
    the shape's first names, and a digest in place of the filter.
    """
    if body_shape == SHAPE_OF_BODY_WITHOUT_JSON and should_group_by_text:
        return "body", *_find_text_pattern(body, "body_text")
    if body_shape is None:
        return "body", _MANY_NAMES_GROUP_NAME, ""
    if body_shape == SHAPE_OF_UNREADABLE_JSON:
        # A filter that looks into such a body does not match.
        return "body", _UNREADABLE_JSON_GROUP_NAME, ""
    group_name = (
        "not JSON" if body_shape == SHAPE_OF_BODY_WITHOUT_JSON else _describe_shape(body_shape)
    )
    filter_text = f"{SHAPE_FUNCTION_NAME}(body) == {format_literal(body_shape)}"
    return "body", group_name, _shorten_filter(filter_text)


def _shorten_filter(filter_text: str) -> str:
    """Return the filter, or a digest that is not a filter if the filter is too long to be used."""
    if len(filter_text) <= LONGEST_EXPRESSION_CHARACTERS:
        return filter_text
    return _make_filter_substitute(sha256(filter_text.encode()).hexdigest())


def _make_filter_substitute(digest: str) -> str:
    """Return a text that distinguishes groups without a filter. It cannot be parsed as a filter."""
    return f"too long: {digest}"


def _make_attribute_label(
    name: str, attribute: Any, *, digest_of_cut_value: str, has_many_values: bool
) -> GroupLabel:
    """Return the label of a message's group by one attribute, or by the error in the attribute.

    Args:
        name: The attribute's name.
        attribute: The attribute's value, or the beginning of a long value.
        digest_of_cut_value: The digest of the whole value if it was cut; otherwise empty.
        has_many_values: True if the attribute has too many values to show a group for each.
    """
    attribute_path = f"attributes.{format_field_name(name)}"
    if isinstance(attribute, str) and ERROR_NAME_PATTERN.search(name):
        group_name, filter_text = _find_text_pattern(attribute, attribute_path)
        return "error", f"{name}: {group_name}", filter_text
    if has_many_values or isinstance(attribute, bytes):
        return "attribute", f"{name}, whatever its value", f"exists({attribute_path})"
    filter_text = f"{attribute_path} == {format_literal(attribute)}"
    if digest_of_cut_value:
        filter_text = _make_filter_substitute(digest_of_cut_value)
    return "attribute", f"{name} = {format_value(attribute)}", _shorten_filter(filter_text)


def _find_text_pattern(text: str, text_path: str) -> tuple[str, str]:
    """Return the first line of a text with `#` for each number or id, and a filter for such texts.

    `text_path` is the text's JMESPath path. If the text is one short line without numbers and ids,
    the filter matches only this text. The filter is empty if the line has only numbers, ids and
    spaces.
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

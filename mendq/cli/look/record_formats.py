"""Find the CloudTrail records in a file, in the forms in which AWS's tools write them.

- One record, or an EventBridge event around it.
- A trail file: an object with the list `Records`.
- The output of `aws cloudtrail lookup-events`: the list `Events`, whose `CloudTrailEvent` holds the
  record as JSON in a text.
- The output of `aws cloudtrail get-query-results` for CloudTrail Lake: `QueryResultRows`. A row is
  a list of columns. The column `eventJson` holds the whole record; without it, the columns are the
  record's fields, and structures are texts such as `{queueUrl=https://..., maxNumber=1}`.
- A list of these, JSON lines of these, or several JSON documents one after the other.

Anybody may have written the file. Its size is limited by the caller, the length of a record in a
text by CloudTrail's own limit, and the nesting by constants below. An entry that cannot be read
costs only itself: it is returned with its place in the file and the reason.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from mendq.model.failed_call import MAXIMUM_EVENT_BYTES, UnreadableRecord
from mendq.model.json_text import parse_finite_float, refuse_nan_constant

# A record in a text, in a row, in a list, in a line: real files nest less.
_MOST_NESTED_ENTRIES = 6
_MOST_NESTED_MAPS = 8
_LIST_KEYS = ("Records", "Events", "QueryResultRows")

# The names of the fields that Mendq reads. CloudTrail Lake may return them in lower case.
_FIELD_NAMES = (
    *("eventID", "eventTime", "eventName", "eventSource", "errorCode", "errorMessage"),
    *("awsRegion", "userAgent", "sourceIPAddress", "requestID", "recipientAccountId"),
    *("requestParameters", "userIdentity", "resources"),
)
_IDENTITY_FIELD_NAMES = (
    *("type", "principalId", "arn", "accountId", "invokedBy", "userName"),
    *("sessionContext", "sessionIssuer", "attributes", "creationDate"),
)
_RESOURCE_FIELD_NAMES = ("ARN", "accountId", "type")
_STRUCTURE_NAMES = ("requestParameters", "userIdentity", "resources")
# CloudTrail Lake's times are in UTC and do not say so.
_TIME_WITHOUT_ZONE_PATTERN = re.compile(
    r"(?P<time>[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8}(?:\.[0-9]{1,6})?)[0-9]{0,3}(?: UTC)?"
)
_PAIR_START_PATTERN = re.compile(r"(?:\A|, )(?P<key>[A-Za-z][A-Za-z0-9_.:/-]{0,127})=")
_NESTING_CHANGE = {"{": 1, "[": 1, "}": -1, "]": -1}


@dataclass(frozen=True)
class RecordEntry:
    """An entry of a file that should be a CloudTrail record.

    Attributes:
        place: Where the entry is, such as `Events[3]` or `line 7`; empty if it is the whole file.
        record: The record or the EventBridge event, or the reason why there is none.
    """

    place: str
    record: object


def find_record_entries(file_content: bytes) -> Iterator[RecordEntry]:
    """Return the records of a file in the order of the file.

    Raises:
        ValueError: The file holds no JSON.
    """
    try:
        document = _parse_json(file_content)
    except (ValueError, RecursionError):
        return _find_entries_of_documents(file_content)
    return _find_entries(document, "", 0)


def _parse_json(json_text: str | bytes) -> Any:
    return json.loads(json_text, parse_constant=refuse_nan_constant, parse_float=parse_finite_float)


def _find_entries_of_documents(file_content: bytes) -> Iterator[RecordEntry]:
    """Return the records of a file with several JSON documents.

    Bytes that are no UTF-8 make only their line unreadable.
    """
    text = file_content.decode(json.detect_encoding(file_content), "surrogateescape")
    lines = text.split("\n")
    # If each document has a line, one that is cut must not spoil the next. Otherwise a document
    # begins at each line that starts with a bracket.
    if any(map(_is_document, lines)):
        starts = list(range(len(lines)))
    else:
        starts = [index for index, line in enumerate(lines) if line.startswith(("{", "["))]
        documents = ("\n".join(lines[start:end]) for start, end in _list_parts(starts, lines))
        if not any(map(_is_document, documents)):
            raise ValueError("neither the file nor a line of it is a JSON document")
    return _find_entries_of_parts(lines, starts)


def _list_parts(starts: list[int], lines: list[str]) -> Iterator[tuple[int, int]]:
    """Yield the first line of each document, and the line after its last."""
    return zip(starts, [*starts[1:], len(lines)], strict=True)


def _find_entries_of_parts(lines: list[str], starts: list[int]) -> Iterator[RecordEntry]:
    for start, end in _list_parts(starts, lines):
        text = "\n".join(lines[start:end]).strip()
        place = f"line {start + 1}"
        if not text:
            continue
        documents = _parse_documents(text)
        if documents is None:
            yield RecordEntry(place, UnreadableRecord("no_json"))
            continue
        for document in documents:
            yield from _find_entries(document, place, 0)


def _is_document(text: str) -> bool:
    """Return True if the text holds JSON documents, of which the first is an object or a list."""
    if not text.lstrip().startswith(("{", "[")):
        return False
    documents = _parse_documents(text)
    return bool(documents and documents[0])


def _parse_documents(text: str) -> list[Any] | None:
    """Return the JSON documents that follow each other in a text; None if one is no JSON.

    The AWS CLI's text output separates them by tabs.
    """
    decoder = json.JSONDecoder(parse_constant=refuse_nan_constant, parse_float=parse_finite_float)
    documents = []
    remaining_text = text.strip()
    position = 0
    try:
        remaining_text.encode()
        while position < len(remaining_text):
            document, position = decoder.raw_decode(remaining_text, position)
            documents.append(document)
            while remaining_text[position : position + 1].isspace():
                position += 1
    except (ValueError, RecursionError):
        return None
    return documents


def _find_entries(document: object, place: str, depth: int) -> Iterator[RecordEntry]:
    """Yield the records in a JSON document, which may be nested in lists and texts."""
    if depth > _MOST_NESTED_ENTRIES:
        yield RecordEntry(place, UnreadableRecord("nested_too_deep"))
    elif isinstance(document, list):
        # The whole file is no row, but may be a list with one record.
        row = _merge_columns(document) if place else None
        if row is not None:
            yield from _find_entries(row, place, depth + 1)
            return
        for index, entry in enumerate(document):
            yield from _find_entries(entry, f"{place}[{index}]", depth + 1)
    elif isinstance(document, str):
        yield from _find_entries_of_text(document, place, depth)
    elif isinstance(document, dict):
        yield from _find_entries_of_object(document, place, depth)
    else:
        yield RecordEntry(place, document)


def _find_entries_of_text(text: str, place: str, depth: int) -> Iterator[RecordEntry]:
    if len(text) > MAXIMUM_EVENT_BYTES:
        yield RecordEntry(place, UnreadableRecord("too_large"))
        return
    try:
        document = _parse_json(text)
    except (ValueError, RecursionError):
        yield RecordEntry(place, UnreadableRecord("no_json"))
        return
    yield from _find_entries(document, place, depth + 1)


def _find_entries_of_object(entry: dict[str, Any], place: str, depth: int) -> Iterator[RecordEntry]:
    if "eventSource" not in entry:
        for list_key in _LIST_KEYS:
            if isinstance(entry.get(list_key), list):
                list_place = f"{place} {list_key}".strip()
                yield from _find_entries(entry[list_key], list_place, depth + 1)
                return
    key_by_lower_case = {key.lower(): key for key in entry}
    for text_key in ("cloudtrailevent", "eventjson"):
        if text_key in key_by_lower_case:
            record_text = entry[key_by_lower_case[text_key]]
            yield from _find_entries(record_text, place, depth + 1)
            return
    if {"EventId", "EventName"} <= entry.keys():
        # An event of lookup-events, printed without its record.
        yield RecordEntry(place, UnreadableRecord("without_record"))
    elif _is_row(entry, key_by_lower_case):
        yield RecordEntry(place, _make_record_of_row(entry))
    else:
        yield RecordEntry(place, entry)


def _merge_columns(columns: list[Any]) -> dict[str, Any] | None:
    """Return a row of CloudTrail Lake as one object; None if the list is no row.

    A row is a list of objects with one column each.
    """
    row: dict[str, Any] = {}
    for column in columns:
        if not isinstance(column, dict) or len(column) != 1 or row.keys() & column.keys():
            return None
        if not all(value is None or isinstance(value, str) for value in column.values()):
            return None
        row.update(column)
    return row or None


def _is_row(entry: dict[str, Any], key_by_lower_case: Mapping[str, str]) -> bool:
    """Return True if the object is a row of CloudTrail Lake, and not a record."""
    if "eventsource" not in key_by_lower_case:
        return False
    event_time = entry.get("eventTime")
    return (
        "eventSource" not in entry
        or any(isinstance(entry.get(name), str) for name in _STRUCTURE_NAMES)
        or bool(isinstance(event_time, str) and _TIME_WITHOUT_ZONE_PATTERN.fullmatch(event_time))
    )


def _make_record_of_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of CloudTrail Lake as a CloudTrail record."""
    record: dict[str, Any] = _rename_fields(row, _FIELD_NAMES)
    for structure_name in _STRUCTURE_NAMES:
        structure = record.get(structure_name)
        if isinstance(structure, str):
            record[structure_name] = _parse_structure(structure)
    record["userIdentity"] = _rename_fields(record.get("userIdentity"), _IDENTITY_FIELD_NAMES)
    resources = record.get("resources")
    record["resources"] = [
        _rename_fields(resource, _RESOURCE_FIELD_NAMES)
        for resource in (resources if isinstance(resources, list) else [])
    ]
    request_parameters = record.get("requestParameters")
    if isinstance(request_parameters, dict):
        seconds_text = request_parameters.get("visibilityTimeout")
        if isinstance(seconds_text, str) and re.fullmatch("[0-9]{1,5}", seconds_text):
            request_parameters["visibilityTimeout"] = int(seconds_text)
    event_time = record.get("eventTime")
    time_match = (
        _TIME_WITHOUT_ZONE_PATTERN.fullmatch(event_time) if isinstance(event_time, str) else None
    )
    if time_match:
        record["eventTime"] = f"{time_match['time']}+00:00"
    return record


def _rename_fields(value: object, names: tuple[str, ...], depth: int = 0) -> Any:
    """Return a structure with CloudTrail's spelling of the names, also in nested structures."""
    if not isinstance(value, Mapping) or depth > _MOST_NESTED_MAPS:
        return value
    name_by_lower_case = {name.lower(): name for name in names}
    renamed_fields = {}
    for key, field_value in value.items():
        name = name_by_lower_case.get(key.lower(), key)
        renamed_fields[name] = _rename_fields(field_value, names, depth + 1)
    return renamed_fields


def _parse_structure(text: str) -> Any:
    """Return the structure in a column's text: JSON, or CloudTrail Lake's own form.

    Return the text itself if it is neither.
    """
    if len(text) > MAXIMUM_EVENT_BYTES:
        return None
    try:
        return _parse_json(text)
    except (ValueError, RecursionError):
        return _parse_map_text(text, 0)


def _parse_list_text(inner_text: str, nesting: Sequence[int], depth: int) -> list[Any]:
    """Return the values in the inner text of a list.

    `nesting` has the number of open brackets before each letter.
    """
    separators = [
        match.start() for match in re.finditer(", ", inner_text) if nesting[match.start()] == 0
    ]
    bounds = zip([0, *(start + 2 for start in separators)], [*separators, None], strict=True)
    return [_parse_map_text(inner_text[start:end], depth + 1) for start, end in bounds]


def _parse_map_text(text: str, depth: int) -> Any:
    """Return the value in a text of the form `{key=value, list=[{key=value}]}`.

    The form does not quote texts, so a caller's text can imitate a key. A key that occurs twice is
    therefore left out.
    """
    if text == "null":
        return None
    if depth > _MOST_NESTED_MAPS or text[:1] + text[-1:] not in ("{}", "[]"):
        return text
    inner_text = text[1:-1]
    nesting = list(accumulate((_NESTING_CHANGE.get(letter, 0) for letter in inner_text), initial=0))
    if text.startswith("["):
        return _parse_list_text(inner_text, nesting, depth)
    pairs = [
        match for match in _PAIR_START_PATTERN.finditer(inner_text) if nesting[match.start()] == 0
    ]
    if not pairs or pairs[0].start() != 0:
        return text
    ends = [*(pair.start() for pair in pairs[1:]), len(inner_text)]
    count_by_key = Counter(pair["key"] for pair in pairs)
    return {
        pair["key"]: _parse_map_text(inner_text[pair.end() : end], depth + 1)
        for pair, end in zip(pairs, ends, strict=True)
        if count_by_key[pair["key"]] == 1
    }

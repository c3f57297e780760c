"""summary.json, version 1, read whole or refused."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NoReturn

import msgspec

from mendq.report.summary import SCHEMA, Summary

# The largest week that was tried has half of one megabyte.
MOST_BYTES = 5_000_000
_HALF_A_CHARACTER = re.compile("[\ud800-\udfff]")


class SummaryUnreadable(Exception):
    """A summary that this report cannot read; one line that names the place and what is wrong."""


def read(summary: Mapping[str, Any] | bytes) -> Summary:
    """Read a parsed summary.json or its bytes.

    Raises SummaryUnreadable, one line, for the first thing that is wrong.
    """
    document = _encodable(_parsed(summary) if isinstance(summary, bytes) else summary)
    if not isinstance(document, Mapping):
        raise SummaryUnreadable("summary.json: the document must be an object")
    schema = document.get("schema")
    if schema != SCHEMA or isinstance(schema, bool):
        raise SummaryUnreadable(
            f"summary.json has schema {ascii(schema)[:40]} and this report reads schema {SCHEMA}; "
            "deploy the report and the nightly job of one release"
        )
    try:
        return msgspec.convert(document, Summary)
    except msgspec.ValidationError as error:
        wrong, _, place = str(error).partition(" - at `$")
        where = f"{place.strip('.`')}: " if place.strip(".`") else ""
        raise SummaryUnreadable(f"summary.json: {where}{wrong}") from None


def read_under(key: str, content: bytes) -> Summary:
    """The same of what lies under a key, whose week it is: another's page is not its to replace."""
    summary = read(content)
    if key != f"summary/week={summary.week}/summary.json":
        raise SummaryUnreadable(f"summary.json: week {summary.week} lies under another week's key")
    return summary


def _parsed(document: bytes) -> object:
    if len(document) > MOST_BYTES:
        raise SummaryUnreadable(f"summary.json is larger than {MOST_BYTES:,} bytes")
    try:
        return json.loads(document, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise SummaryUnreadable("summary.json is not a JSON document") from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _encodable(value: Any) -> Any:
    """Half a character, which msgspec cannot take, as one that nobody can see either."""
    if isinstance(value, str):
        return _HALF_A_CHARACTER.sub("\uffff", value)
    if isinstance(value, Mapping):
        return {_encodable(key): _encodable(each) for key, each in value.items()}
    return [_encodable(each) for each in value] if isinstance(value, list | tuple) else value

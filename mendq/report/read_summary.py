"""summary.json, version 1, read whole or refused."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from mendq.report.summary import SCHEMA, Summary

# The largest week that was tried has half of one megabyte.
MOST_BYTES = 5_000_000
# JSON's escape for half a character, which no text holds; the group is what stays: any other
# escape, and two halves together.
_HALF_A_CHARACTER = re.compile(
    rb"(\\(?:[^u]|u[dD][89abAB]..\\u[dD][c-fC-F]..))|\\u[dD][89a-fA-F]..", re.DOTALL
)


class SummaryUnreadable(Exception):
    """A summary that this report cannot read; one line that names the place and what is wrong."""


class _Versioned(msgspec.Struct):
    """What every release's document says."""

    schema: Any = None


def read(content: bytes) -> Summary:
    """Read summary.json; half a character becomes one that nobody can see either.

    Raises SummaryUnreadable, one line, for the first thing that is wrong.
    """
    if len(content) > MOST_BYTES:
        raise SummaryUnreadable(f"summary.json is larger than {MOST_BYTES:,} bytes")
    content = _HALF_A_CHARACTER.sub(lambda found: found[1] or rb"\uffff", content)
    try:
        schema = msgspec.json.decode(content, type=_Versioned).schema
        if schema != SCHEMA or isinstance(schema, bool):
            raise SummaryUnreadable(
                f"summary.json has schema {ascii(schema)[:40]} and this report reads schema "
                f"{SCHEMA}; deploy the report and the nightly job of one release"
            )
        return msgspec.json.decode(content, type=Summary)
    except msgspec.ValidationError as error:
        wrong, _, place = str(error).partition(" - at `$")
        where = f"{place.strip('.`')}: " if place.strip(".`") else ""
        raise SummaryUnreadable(f"summary.json: {where}{wrong}") from None
    except (ValueError, RecursionError):
        raise SummaryUnreadable("summary.json is not a JSON document") from None


def read_under(key: str, content: bytes) -> Summary:
    """The same of what lies under a key, whose week it is: another's page is not its to replace."""
    summary = read(content)
    if key != f"summary/week={summary.week}/summary.json":
        raise SummaryUnreadable(f"summary.json: week {summary.week} lies under another week's key")
    return summary

"""What operators say on a queue's tags."""

from __future__ import annotations

from collections.abc import Mapping


class TagUnreadable(Exception):
    """A tag of ours holds no number of seconds; names the tag and the cure."""


def seconds_tag(tags: Mapping[str, str], key: str) -> int | None:
    """The seconds a tag names; None where it is absent. Raises TagUnreadable."""
    text = tags.get(key)
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and 1 <= int(text[:6]) <= 43_200 and len(text) < 6):
        raise TagUnreadable(f"the tag {key} must be a whole number from 1 to 43200: {text[:40]!r}")
    return int(text)

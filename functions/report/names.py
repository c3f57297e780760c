"""Somebody else's words within a sentence: marked, so that each sink can set them apart.

The marks are private characters, which `visible` spells out wherever somebody else's text has
them: nobody can forge one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from functions.report.visible import CUT, MOST_NAME, MOST_SENTENCE, visible
from functions.report.words import queue_name

_NAME, _QUOTE, _END = "\ue000", "\ue001", "\ue002"
_MARKED = re.compile(f"([{_NAME}{_QUOTE}])([^{_END}]*){_END}")


def marked(name: str, most: int = MOST_NAME) -> str:
    """A name or a value as it may stand in a sentence."""
    return f"{_NAME}{visible(name, most)}{_END}"


def marked_queue(queue_arn: str) -> str:
    return f"{_NAME}{queue_name(queue_arn)}{_END}"


def quoted(sentence: str) -> str:
    """A reason that somebody else worded."""
    return f"{_QUOTE}{visible(sentence, MOST_SENTENCE)}{_END}"


def plain(sentence: str) -> str:
    """The sentence for a sink that has nothing but text."""
    return _MARKED.sub(r"\2", _ended(sentence))


def _ended(sentence: str) -> str:
    """What was cut ends in dots of its own."""
    return sentence.replace(f"{CUT}{_END}.", f"{CUT}{_END}")


def parts(sentence: str) -> Iterator[tuple[str, str]]:
    """The sentence piece by piece: `text`, `name` or `quote`, and the piece."""
    sentence, at = _ended(sentence), 0
    for found in _MARKED.finditer(sentence):
        if at < found.start():
            yield "text", sentence[at : found.start()]
        yield "name" if found[1] == _NAME else "quote", found[2]
        at = found.end()
    if at < len(sentence):
        yield "text", sentence[at:]

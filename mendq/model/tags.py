"""Mendq's own tags on a queue: what each means, and which values it may have.

This file declares the tags that several packages read. A tag that one symptom reads is declared in
that symptom's file. Each symptom lists the tags that it reads in the field `tags` of its entry.
The tags in `TAGS_OF_EVERY_QUEUE` do not belong to a symptom. Code that must know all tags, such as
the symptom `tag_not_understood` and the table in docs/symptoms.md, gets them from these two lists.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from mendq.model.limits import DRILL_TAG, MODE_TAG, OFF, TEAM_TAG, Mode


class TagValues(StrEnum):
    """The kind of value that a tag may have; the text is for docs/symptoms.md."""

    SECONDS = "whole seconds, 1 to 43200"
    WORD = "one of a few words"
    TEAM = "a team of the settings"
    ANYTHING = "anything"


@dataclass(frozen=True, kw_only=True)
class QueueTag:
    """A tag that Mendq reads on a queue.

    Attributes:
        key: The tag's key. It begins with `mendq:`.
        values: The kind of value.
        meaning: What the tag does: sentences for docs/symptoms.md.
        words: The values of a tag of kind `TagValues.WORD`. Any other value counts as the last one.
    """

    key: str
    values: TagValues
    meaning: str
    words: tuple[str, ...] = ()


ON = "on"
MAX_PROCESSING = QueueTag(
    key="mendq:max-processing-seconds",
    values=TagValues.SECONDS,
    meaning="The longest that your consumers work on one message.",
)
MAX_VISIBILITY = QueueTag(
    key="mendq:max-visibility-seconds",
    values=TagValues.SECONDS,
    meaning="The longest visibility timeout that you accept.",
)
REDRIVE_PERMISSION = QueueTag(
    key="mendq:redrive",
    values=TagValues.WORD,
    words=(ON, OFF),
    meaning="`off` on a queue or on its DLQ forbids moving messages out of it or into it, by Mendq "
    "or by `mendq redrive`. Any word other than `on` does the same.",
)

TAGS_OF_EVERY_QUEUE = (
    QueueTag(
        key=MODE_TAG,
        values=TagValues.WORD,
        words=(str(Mode.HEAL), str(Mode.PROPOSE), OFF, str(Mode.OBSERVE)),
        meaning="How far Mendq may go on this queue, as the table above says.",
    ),
    QueueTag(
        key=TEAM_TAG,
        values=TagValues.TEAM,
        meaning="Sends notifications about the queue to that "
        "[team's topic](integrations.md#teams) too.",
    ),
    QueueTag(
        key=DRILL_TAG,
        values=TagValues.ANYTHING,
        meaning="[Nobody is paged](runbooks/README.md#the-tag-mendqdrill) about this queue. "
        "Leave it to `mendq drill`.",
    ),
)

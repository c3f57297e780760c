"""The tags that Mendq reads on a queue, with their meanings and values.

This file declares the tags that several packages read. A tag that only one symptom reads is
declared in that symptom's file. Code that must know all tags, such as the symptom
`tag_not_understood` and the table in docs/symptoms.md, gets them from two places: the field `tags`
of each symptom, and `TAGS_OF_EVERY_QUEUE` for the tags that belong to no symptom.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from mendq.model.mode import Mode

# The tag that says how far Mendq may go on the queue: a mode, or `off`.
MODE_TAG = "mendq"
MODE_OFF_VALUE = "off"
# The tag that names a team, whose topic also gets the queue's notifications.
TEAM_TAG = "mendq:notify"
# The tag of a queue that `mendq drill` uses for a test. Its failing calls prove nothing about other
# queues.
DRILL_TAG = "mendq:drill"
# The beginning of the default name of a drill's queue. Logs show names, but no tags.
DRILL_QUEUE_PREFIX = "mendq-drill-"


class TagValueKind(StrEnum):
    """The kind of value that a tag may have, in the words of docs/symptoms.md."""

    SECONDS = "whole seconds, 1 to 43200"
    WORD = "one of a few words"
    TEAM = "a team of the settings"
    ANYTHING = "anything"


@dataclass(frozen=True, kw_only=True)
class QueueTag:
    """A tag that Mendq reads on a queue.

    Attributes:
        key: The tag's key: `mendq`, or a text that begins with `mendq:`.
        values: The kind of value.
        meaning: Sentences for docs/symptoms.md that say what the tag does.
        words: The values of a tag of kind `TagValueKind.WORD`. Any other value means the last word.
    """

    key: str
    values: TagValueKind
    meaning: str
    words: tuple[str, ...] = ()


REDRIVE_ALLOWED_VALUE = "on"
MAX_PROCESSING = QueueTag(
    key="mendq:max-processing-seconds",
    values=TagValueKind.SECONDS,
    meaning="The longest that your consumers work on one message.",
)
MAX_VISIBILITY = QueueTag(
    key="mendq:max-visibility-seconds",
    values=TagValueKind.SECONDS,
    meaning="The longest visibility timeout that you accept.",
)
REDRIVE_PERMISSION_TAG = QueueTag(
    key="mendq:redrive",
    values=TagValueKind.WORD,
    words=(REDRIVE_ALLOWED_VALUE, MODE_OFF_VALUE),
    meaning="`off` on a queue or on its DLQ forbids moving messages out of it or into it, by Mendq "
    "or by `mendq redrive`. Any word other than `on` does the same.",
)

TAGS_OF_EVERY_QUEUE = (
    QueueTag(
        key=MODE_TAG,
        values=TagValueKind.WORD,
        words=(str(Mode.HEAL), str(Mode.PROPOSE), MODE_OFF_VALUE, str(Mode.OBSERVE)),
        meaning="How far Mendq may go on this queue, as the table above says.",
    ),
    QueueTag(
        key=TEAM_TAG,
        values=TagValueKind.TEAM,
        meaning="Sends notifications about the queue to that "
        "[team's topic](integrations.md#teams) too.",
    ),
    QueueTag(
        key=DRILL_TAG,
        values=TagValueKind.ANYTHING,
        meaning="[Nobody is paged](runbooks/README.md#the-tag-mendqdrill) about this queue. "
        "Leave it to `mendq drill`.",
    ),
)


class TagUnreadable(Exception):
    """The value of a tag is not a valid number of seconds.

    The message names the tag, its value and the allowed numbers.
    """


def read_seconds_tag(tags: Mapping[str, str], key: str) -> int | None:
    """Return the number of seconds in the tag `key`; None if the tag is missing.

    Raise TagUnreadable if the value is not a whole number from 1 to 43200.
    """
    seconds_text = tags.get(key)
    if seconds_text is None:
        return None
    is_whole_number = seconds_text.isascii() and seconds_text.isdecimal() and len(seconds_text) < 6
    if not is_whole_number or not 1 <= int(seconds_text) <= 43_200:
        raise TagUnreadable(
            f"the tag {key} must be a whole number from 1 to 43200: {seconds_text[:40]!r}"
        )
    return int(seconds_text)


# CloudFormation's own tags, which people cannot set. ListQueueTags returns them like any other tag.
# https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-properties-resource-tags.html
_STACK_NAME_TAG = "aws:cloudformation:stack-name"
_LOGICAL_ID_TAG = "aws:cloudformation:logical-id"
# Longer values are cut.
_MAXIMUM_TAG_VALUE_LENGTH = 255


def find_cloudformation_resource(tags: Mapping[str, str]) -> dict[str, str]:
    """Return the CloudFormation stack that owns the queue, by the queue's tags.

    The keys are `stack` and, if known, `resource` (the logical id). The result is empty if no stack
    owns the queue.
    """
    stack_name = tags.get(_STACK_NAME_TAG)
    if not stack_name:
        return {}
    stack_and_resource = {"stack": stack_name[:_MAXIMUM_TAG_VALUE_LENGTH]}
    logical_id = tags.get(_LOGICAL_ID_TAG)
    if logical_id:
        stack_and_resource["resource"] = logical_id[:_MAXIMUM_TAG_VALUE_LENGTH]
    return stack_and_resource

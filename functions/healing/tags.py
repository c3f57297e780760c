"""What operators, and CloudFormation, say on a queue's tags."""

from __future__ import annotations

from collections.abc import Mapping

# CloudFormation's own tags, which people cannot set; ListQueueTags gives them like any other.
# https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-properties-resource-tags.html
_STACK = "aws:cloudformation:stack-name"
_RESOURCE = "aws:cloudformation:logical-id"
_MOST = 255


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


def deployed_by(tags: Mapping[str, str]) -> dict[str, str]:
    """`stack` and `resource`, its logical id: each where a CloudFormation stack owns the queue."""
    named = {"stack": tags.get(_STACK), "resource": tags.get(_RESOURCE)}
    return {name: text[:_MOST] for name, text in named.items() if text and named["stack"]}

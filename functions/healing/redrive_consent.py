"""Whether letters may be moved out of a dead-letter queue, and into a source, of these facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from functions.healing.dead_letters import unfit
from functions.healing.facts import Facts
from functions.healing.managed import Consent
from functions.healing.mode import Mode
from functions.healing.plain_text import counted
from functions.healing.queue_names import parts_of

REDRIVE_TAG = "mendq:redrive"
ON = "on"


def redrive_is_off(tags: Mapping[str, str]) -> bool:
    """Whether the tag forbids it; a word that is not `on` is taken for `off`."""
    return tags.get(REDRIVE_TAG, ON).strip().lower() != ON


def why_not_to_move(queue: Facts, consent: Consent) -> str | None:
    """Why Mendq may not by itself move letters out of this queue or into it."""
    mode = consent.mode_of(parts_of(queue.queue_arn).name, queue.tags)
    if mode is None:
        return f"{queue.queue_arn} is not managed"
    if mode is Mode.OBSERVE:
        return f"{queue.queue_arn} is only observed"
    if redrive_is_off(queue.tags):
        return f"the tag {REDRIVE_TAG} of {queue.queue_arn} forbids it"
    return None


def why_not_between(
    dead_letters: Facts, source: Facts, source_arns: Sequence[str], consent: Consent
) -> str | None:
    """Why letters may not go from the one to the other; `source_arns` are those that name it."""
    for each in (dead_letters, source):
        if not each.exists:
            return f"there is no queue {each.queue_arn} any more"
    if source.dead_letter_arn != dead_letters.queue_arn:
        return f"{source.queue_arn} does not name it as its dead-letter queue any more"
    if set(source_arns) - {source.queue_arn}:
        return f"it is the dead-letter queue of {counted(len(source_arns), 'queue')} by now"
    if dead_letters.attributes.get("RedrivePolicy"):
        return "it has a dead-letter queue itself"
    return (
        unfit(source.queue_arn, dead_letters.queue_arn)
        or why_not_to_move(dead_letters, consent)
        or why_not_to_move(source, consent)
    )

"""Whether letters may be moved out of a dead-letter queue, and into a source, of these facts."""

from __future__ import annotations

from collections.abc import Mapping

from functions.healing.facts import Facts
from functions.healing.managed import Consent
from functions.healing.mode import Mode
from functions.healing.queue_names import parts_of

REDRIVE_TAG = "mendq:redrive"
_ON = "on"


def redrive_is_off(tags: Mapping[str, str]) -> bool:
    """Whether the tag forbids it; a word that is not `on` is taken for `off`."""
    return tags.get(REDRIVE_TAG, _ON).strip().lower() != _ON


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

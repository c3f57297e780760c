"""Which queues Mendq looks after, and how far it may go on each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from functions.healing.mode import Mode
from functions.healing.quarantines import is_quarantine

MODE_TAG = "mendq"
OFF = "off"
# On the queue of a drill, whose failing calls say nothing about other queues.
DRILL_TAG = "mendq:drill"
# What a drill calls its queue unless it is told another name: logs tell no tags.
DRILL_QUEUE = "mendq-drill-"


def counted_as(symptom: str, tags: Mapping[str, str]) -> str:
    """Under which word a queue's symptom counts as one of many.

    Drills count among themselves: they stop nobody else's queue, and a tag set on every queue
    frees none of them from being counted.
    """
    return f"drill#{symptom}" if DRILL_TAG in tags else symptom


@dataclass(frozen=True)
class Consent:
    """What the account's settings allow; empty `queues` manage nothing."""

    mode: Mode
    tag_may_raise_to: Mode
    queues: tuple[str, ...] = ()

    def mode_of(self, queue_name: str, tags: Mapping[str, str]) -> Mode | None:
        """The queue's mode; None: not managed.

        The tag lowers the account's mode freely and raises it only as far as the setting lets it.
        A tag that cannot be read manages the queue in the lowest mode. A quarantine is nobody's to
        mend, whatever names or tags it: letters go in, and people alone take them out.
        """
        if is_quarantine(queue_name):
            return None
        tag = tags.get(MODE_TAG)
        if tag is None:
            return self.mode if self._names(queue_name) else None
        if tag == OFF:
            return None
        wanted = Mode.read(tag)
        if wanted is None:
            return Mode.OBSERVE
        return min(wanted, max(self.mode, self.tag_may_raise_to))

    def names_exactly(self, queue_name: str) -> bool:
        """A start of names and a `*` also fits queues that never were."""
        return queue_name in self.queues

    def _names(self, queue_name: str) -> bool:
        return any(_fits(queue_name, pattern) for pattern in self.queues)


def _fits(queue_name: str, pattern: str) -> bool:
    """A bare `*` fits nothing: every queue of an account is managed by saying so on each."""
    prefix = pattern.removesuffix("*")
    return queue_name == pattern or (prefix not in ("", pattern) and queue_name.startswith(prefix))

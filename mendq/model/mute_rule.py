"""The rule by which a mute applies to a queue. The nightly job needs it without the mutes' types.

A mute names a queue, or the start of names with a `*`, and holds up to and including its last day.
"""

from __future__ import annotations

from datetime import date


def is_name_of_several_queues(mute_queue: str) -> bool:
    """Return True if a mute's queue is the start of names with a `*`."""
    return mute_queue.endswith("*")


def is_queue_named(mute_queue: str, *queue_names: str) -> bool:
    """Return True if one of these names is the mute's queue, or begins with its start of names."""
    if is_name_of_several_queues(mute_queue):
        return any(name.startswith(mute_queue[:-1]) for name in queue_names)
    return mute_queue in queue_names


def has_ended(last_day: date, today: date) -> bool:
    """Return True if a mute with this last day does not hold any more."""
    return today > last_day

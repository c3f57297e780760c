"""Count the queues that show a symptom at the same time.

If many managed queues show a symptom at once, Mendq suspects a common cause and fixes none of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Self

from msgspec import Struct

from mendq.model.mode import Mode
from mendq.model.tags import DRILL_TAG

# After a queue was noted, it counts as showing the symptom for this long.
SYMPTOM_NOTE_LIFETIME = timedelta(hours=1)
# A note's time is rounded down to a multiple of this, so that repeated notes become one.
NOTE_SLOT_DURATION = timedelta(minutes=10)
# The most queues that are noted. DynamoDB allows 400 KB in one item, and this many queues are a
# mass symptom in any account.
MAXIMUM_NOTED_QUEUES = 2_000


def mass_symptom_key(symptom: str, tags: Mapping[str, str]) -> str:
    """Return the key under which queues with a symptom are counted, to recognize a mass symptom.

    A mass symptom is one that many queues show at once. Queues with the drill tag have a separate
    key, so that a drill cannot make the symptom of other queues a mass symptom. They are still
    counted, so that a drill tag on every queue does not switch this check off.
    """
    return f"drill#{symptom}" if DRILL_TAG in tags else symptom


class Spread(Struct, frozen=True):
    """Notes that queues showed one symptom.

    A note is a time and a queue's ARN. The time is rounded down to ten minutes, so that repeated
    notes become one.
    """

    notes: frozenset[tuple[datetime, str]] = frozenset()

    @classmethod
    def from_texts(cls, note_texts: Iterable[str]) -> Self:
        """Read the notes from the texts in the case store.

        Leave out an unreadable text, because one bad note must not stop all fixes of an account.
        """
        notes = set[tuple[datetime, str]]()
        for note_text in note_texts:
            slot_start_text, _, queue_arn = note_text.partition(" ")
            with suppress(ValueError):
                if (noted_at := datetime.fromisoformat(slot_start_text)).tzinfo:
                    notes.add((noted_at, queue_arn))
        return cls(frozenset(notes))

    def list_queue_arns(self, now: datetime) -> frozenset[str]:
        """Return the queues that showed the symptom in the last hour.

        Times are rounded down to ten minutes, so a note counts for up to 70 minutes.
        """
        oldest_slot_start = _find_slot_start(now) - SYMPTOM_NOTE_LIFETIME
        return frozenset(
            queue_arn for slot_start, queue_arn in self.notes if slot_start >= oldest_slot_start
        )

    def make_new_notes(self, queue_arns: Iterable[str], now: datetime) -> list[str]:
        """Return the notes to add for these queues.

        A queue that keeps failing is noted again in every second slot. Without that, the notes of a
        lasting mass symptom would expire together, and few queues would seem to show it. All stored
        notes together are at most MAXIMUM_NOTED_QUEUES.
        """
        slot_start = _find_slot_start(now)
        recently_noted_queue_arns = {
            queue_arn
            for noted_slot_start, queue_arn in self.notes
            if noted_slot_start >= slot_start - NOTE_SLOT_DURATION
        }
        maximum_new_notes = max(
            0, MAXIMUM_NOTED_QUEUES - len(self.notes) + len(self.list_outdated_notes(now))
        )
        queue_arns_to_note = sorted(set(queue_arns) - recently_noted_queue_arns)[:maximum_new_notes]
        return [f"{slot_start.isoformat()} {queue_arn}" for queue_arn in queue_arns_to_note]

    def list_outdated_notes(self, now: datetime) -> list[str]:
        """Return the notes to remove: too old ones, and ones whose queue has a newer note."""
        oldest_slot_start = _find_slot_start(now) - SYMPTOM_NOTE_LIFETIME
        newest_slot_start_by_queue_arn = {
            queue_arn: slot_start for slot_start, queue_arn in sorted(self.notes)
        }
        return [
            f"{slot_start.isoformat()} {queue_arn}"
            for slot_start, queue_arn in self.notes
            if slot_start < max(oldest_slot_start, newest_slot_start_by_queue_arn[queue_arn])
        ]


def _find_slot_start(time: datetime) -> datetime:
    """Return the start of the ten-minute slot that contains `time`."""
    return time.replace(minute=time.minute // 10 * 10, second=0, microsecond=0)


class Reach(Struct, frozen=True):
    """The queues that showed a symptom in the last hour, and how many queues are managed.

    Args:
        queue_arns: The queues that showed the symptom. Only managed queues, if those were counted.
        managed_queue_count: The number of managed queues; 0 if they were not counted.
        queue_count_in_mode: The number of `queue_arns` whose mode is at least the mode of the queue
            to decide about.
        managed_queue_count_in_mode: The number of managed queues whose mode is at least that.
    """

    queue_arns: frozenset[str] = frozenset()
    managed_queue_count: int = 0
    queue_count_in_mode: int = 0
    managed_queue_count_in_mode: int = 0

    @classmethod
    def count_among(
        cls,
        spread: frozenset[str],
        mode_by_queue_arn: Mapping[str, Mode],
        mode: Mode = Mode.OBSERVE,
    ) -> Self:
        """Return the counts of managed queues in `spread` and in all, for any mode and for `mode`.

        A queue counts for `mode` if its own mode is the same or higher. Queues that were deleted or
        are no longer managed do not count.

        Args:
            spread: The queues that show the symptom.
            mode_by_queue_arn: The mode of each managed queue, by ARN.
            mode: The mode of the queue to decide about.
        """
        showing_queue_arns = spread & mode_by_queue_arn.keys()
        queue_arns_in_mode = {
            queue_arn for queue_arn, queue_mode in mode_by_queue_arn.items() if queue_mode >= mode
        }
        return cls(
            showing_queue_arns,
            len(mode_by_queue_arn),
            len(showing_queue_arns & queue_arns_in_mode),
            len(queue_arns_in_mode),
        )

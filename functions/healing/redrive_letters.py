"""Which of a dead-letter queue's letters are to go back, and which came back already."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Self

from functions.healing.letters import Letter
from functions.healing.redrive_course import Course
from functions.healing.redrive_look import SKEW, Census


class Standing(Enum):
    """What a letter is to a redrive."""

    WAITS = auto()
    RETURNED = auto()
    NEWLY_DEAD = auto()
    STUCK = auto()


@dataclass(frozen=True)
class Sorted:
    """Letters by what is to become of them, each in the order they were received in."""

    returned: tuple[Letter, ...] = ()
    waiting: tuple[Letter, ...] = ()
    newly_dead: int = 0
    stuck: int = 0
    fingerprints: tuple[str, ...] = ()

    def census(self, *, is_whole: bool) -> Census:
        """Before any of them was moved."""
        returned = len(self.returned)
        seen = returned + len(self.waiting) + self.stuck
        return Census(
            seen,
            returned,
            0,
            self.newly_dead,
            self.stuck,
            is_whole=is_whole,
            fingerprints=self.fingerprints,
        )


@dataclass
class Known:
    """Letters that went without a mark, by their fingerprints; each is known once."""

    left: Counter[str]
    found: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, course: Course) -> Self:
        return cls(Counter(course.fingerprints))

    def finds(self, letter: Letter, course: Course) -> bool:
        """Whether it is one of them. What waited all along was not sent since it began."""
        if not self.left or letter.sent_at < course.began_at - SKEW:
            return False
        fingerprint = letter.fingerprint
        if self.left[fingerprint] < 1:
            return False
        self.left[fingerprint] -= 1
        self.found.append(fingerprint)
        return True


def standing_of(
    letter: Letter, course: Course, known: Known, *, is_fifo: bool, most_bytes: int
) -> Standing:
    """A letter that a move task sent back bears no mark.

    A standard queue's is known by when it was sent: SQS keeps that in the dead-letter queue, and a
    task sends anew. So a letter that producers sent since, and that died by itself, is taken for
    one that came back. A FIFO queue's time begins anew; no task of ours ever moves its letters.
    """
    if letter.source_arn != course.source_arn:
        return Standing.STUCK
    if letter.hops or known.finds(letter, course):
        return Standing.RETURNED
    task_at = course.first_task_at
    if task_at is not None and not is_fifo and letter.sent_at >= task_at:
        return Standing.RETURNED
    if letter.size_bytes > most_bytes:
        return Standing.STUCK
    return Standing.NEWLY_DEAD if letter.sent_at > course.began_at else Standing.WAITS


def sorted_out(
    letters: Iterable[Letter], course: Course, *, is_fifo: bool, most_bytes: int
) -> Sorted:
    """What stands behind a stuck letter of its FIFO group is stuck as well: order is theirs."""
    returned, waiting = list[Letter](), list[Letter]()
    newly_dead = stuck = 0
    blocked, known = set[str](), Known.of(course)
    for letter in letters:
        standing = standing_of(letter, course, known, is_fifo=is_fifo, most_bytes=most_bytes)
        if standing is Standing.RETURNED:
            returned.append(letter)
        elif standing is Standing.STUCK or letter.group_id in blocked:
            stuck += 1
            blocked |= {letter.group_id} if is_fifo else set()
        else:
            waiting.append(letter)
            newly_dead += standing is Standing.NEWLY_DEAD
    return Sorted(tuple(returned), tuple(waiting), newly_dead, stuck, tuple(known.found))


def fingerprints_of(unmarkable: Sequence[Letter], course: Course, most: int) -> tuple[str, ...]:
    """Those that the course is to know letters by that bear no mark; the oldest go first."""
    return (*course.fingerprints, *(each.fingerprint for each in unmarkable))[-most:]

"""One tick of a redrive, whoever's hands do it: what is about to be done is written down first."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from functions.healing.redrive import (
    counted,
    decide,
    moved,
    not_cancelled,
    refused,
    settled,
    started,
)
from functions.healing.redrive_bounds import Bounds
from functions.healing.redrive_course import Course
from functions.healing.redrive_deeds import Next
from functions.healing.redrive_look import (
    CancelTask,
    Census,
    End,
    Look,
    MoveByHand,
    StartTask,
    TakeCensus,
)

# From one look no more rows than this ever fit one after the other.
MOST_STEPS = 12


@dataclass(frozen=True)
class Put:
    """What became of letters that were to be sent on.

    `unsure` may have gone or not; `refused` is why one of the others stays, `for_good` where asking
    again would not help.
    """

    moved: int = 0
    unsure: int = 0
    refused: str = ""
    for_good: bool = False


@dataclass(frozen=True)
class Picked:
    """So many letters in hand that are to go back, and the fingerprints to know them by."""

    letters: int
    fingerprints: tuple[str, ...] = ()


@dataclass(frozen=True)
class Refused:
    """SQS did not do it, or did not say that it did; `for_good`: its owner's own word."""

    because: str
    for_good: bool = False


class Hands(Protocol):
    """What a tick does to the world; what one of them raises ends it where it is."""

    def save(self, course: Course) -> Course:
        """Write the course down; as it stands there."""

    def take_census(self, course: Course) -> Census | Refused:
        """Take letters in hand and count them."""

    def quarantine(self, course: Course) -> Put:
        """Move those in hand that came back."""

    def pick(self, course: Course, letters: int) -> Picked:
        """Choose at most so many of those in hand that wait."""

    def send_back(self, course: Course) -> Put:
        """Move those that were picked."""

    def start(self, course: Course, per_second: int) -> str | Refused:
        """Let go of everything in hand and start a move task; its handle."""

    def cancel(self, handle: str) -> Refused | None:
        """Ask SQS to cancel it."""


@dataclass
class Drive:
    """A tick under way; `course` is always as it is written down."""

    course: Course
    look: Look
    bounds: Bounds
    hands: Hands
    census: Census | None = None

    def go(self) -> End | None:
        """What ends the case, or None where it goes on at the next tick."""
        for _ in range(MOST_STEPS):
            going = decide(self.course, self.look, self.census, self.bounds)
            if isinstance(going.action, MoveByHand):
                self._send_back(going.course, going.action.letters)
                if self.course.left_in_stage:
                    return None
                continue
            self._write(going.course)
            if isinstance(going.action, TakeCensus):
                self._count()
            elif isinstance(going.action, End):
                return going.action
            elif going.action is not None:
                self._ask_sqs(going)
                return None
        return None

    @property
    def _now(self) -> datetime:
        return self.look.now

    def _write(self, course: Course) -> None:
        if course != self.course or not course.n:
            self.course = self.hands.save(course)

    def _count(self) -> None:
        census = self.hands.take_census(self.course)
        if isinstance(census, Refused):
            self._see_no_more(census.because, for_good=census.for_good)
            return
        self._write(counted(self.course, census))
        put = self.hands.quarantine(self.course)
        self.census = replace(census, quarantined=put.moved)
        self._write(settled(self.course, self.census, self.look.waiting))
        if self.census.still_back:
            refused = put.refused or "there was no time for all of it"
            reason = f"what came back cannot be quarantined: {refused}"
            self._see_no_more(reason, for_good=put.for_good)

    def _see_no_more(self, because: str, *, for_good: bool) -> None:
        look = self.look
        self.look = (
            replace(look, forbidden=look.forbidden or because)
            if for_good
            else replace(look, hindered=look.hindered or because)
        )

    def _send_back(self, course: Course, letters: int) -> None:
        picked = self.hands.pick(course, letters)
        self._write(replace(course, in_hand=picked.letters, fingerprints=picked.fingerprints))
        put = self.hands.send_back(self.course)
        is_short = picked.letters < letters and not put.refused
        after = moved(self.course, put.moved, unsure=put.unsure, is_short=is_short)
        if not put.moved and not put.unsure:
            after = replace(after, fingerprints=course.fingerprints)
        if put.refused and not put.moved:
            after = refused(after, put.refused, self._now)
        self._write(after)

    def _ask_sqs(self, going: Next) -> None:
        if isinstance(going.action, StartTask):
            handle = self.hands.start(self.course, going.action.per_second)
            if isinstance(handle, Refused):
                self._write(refused(self.course, handle.because, self._now))
            else:
                self._write(started(self.course, handle))
        elif isinstance(going.action, CancelTask):
            failed = self.hands.cancel(going.action.handle)
            if failed is not None:
                self._write(not_cancelled(self.course, failed.because))

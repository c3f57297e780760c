"""The redrive as it is deployed, tick by tick, with consumers that it cannot hurt."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from functions.aws.course_ledger import CourseLedger
from functions.healing.redrive_course import Course
from functions.healing.redrive_course import Stage as At
from functions.healing.states import State
from local_account.demo.acts import A_MINUTE
from local_account.demo.consumers import careful
from local_account.demo.consumers.careful import Careful
from local_account.demo.redrive.fleet import consuming
from local_account.demo.redrive.floors import LOWERED, SHIPPED
from local_account.demo.redrive.picture import LettersPicture, sent_by
from local_account.demo.redrive.queue_counts import Whereabouts, is_there, messages_in
from local_account.demo.redrive.shop import Shop
from local_account.demo.stage import LOOK_EVERY_SECONDS, ActFailed, Stage
from local_account.demo.story import BadQueue

CAREFUL_WORKERS = 4
HELD_SECONDS = 2
PATIENCE_SECONDS = 180.0
# As long as a tick may take until the ledger shows it.
A_TICK_SECONDS = 8.0
TICK_AGAIN_SECONDS = 1.0
ENDED = (State.VERIFIED, State.ESCALATED)


@dataclass
class GoingBack:
    """One redrive that is watched; `at` is for when the follow-up was fired last."""

    stage: Stage
    shop: Shop
    source: BadQueue
    letters: BadQueue
    picture: LettersPicture
    at: datetime
    _said: tuple[str, int] = ("", -1)
    _would_halt: bool = False
    _soaked: int = 0

    def tell(self) -> Course:
        """Until its case has ended; as the redrive stands then. Raises ActFailed."""
        consumer = Careful(
            self.shop.sqs,
            self.stage.seen(self.source.name).queue_url,
            self.shop.careful,
            self.shop.payments.charge,
            seconds=HELD_SECONDS,
        )
        self.stage.also.append(self.picture.shown)
        began = time.monotonic()
        with _unlogged(), consuming(consumer.consume, CAREFUL_WORKERS):
            while not self._has_ended():
                if time.monotonic() - began > PATIENCE_SECONDS:
                    raise ActFailed(f"the redrive did not end within {PATIENCE_SECONDS:.0f} s")
                self._tick()
        self._look()
        assert self.picture.course is not None  # noqa: S101 - it has ended
        return self.picture.course

    def _has_ended(self) -> bool:
        return any(each in ENDED for each in self.stage.states(self.letters.name))

    def _tick(self) -> None:
        """Have the follow-up fired; return when there is something to be seen at the next."""
        before = self._n
        self.at += A_MINUTE
        self.stage.follow_up.fire(self.at)
        deadline = time.monotonic() + A_TICK_SECONDS
        while self._n == before and not self._has_ended() and time.monotonic() < deadline:
            self._look()
        self._until(time.monotonic() + TICK_AGAIN_SECONDS)
        soak_ends_at = self.picture.course and self.picture.course.soak_ends_at
        if self._is_at(At.SOAK) and soak_ends_at:
            self._until(time.monotonic() + (soak_ends_at - datetime.now(UTC)).total_seconds())
        elif self._is_at(At.RAMP) and self.picture.course and self.picture.course.by_task:
            self._until(time.monotonic() + LOWERED.tick_seconds, unless_task_ends=True)

    @property
    def _n(self) -> int:
        return self.picture.course.n if self.picture.course else 0

    def _is_at(self, at: At) -> bool:
        return self.picture.course is not None and self.picture.course.stage is at

    def _until(self, deadline: float, *, unless_task_ends: bool = False) -> None:
        while time.monotonic() < deadline and not self._has_ended():
            if unless_task_ends and not self._task_runs():
                return
            self._look()

    def _task_runs(self) -> bool:
        answer = self.shop.sqs.list_message_move_tasks(SourceArn=self._dead_arn, MaxResults=1)
        return any(each.get("Status") == "RUNNING" for each in answer.get("Results", []))

    @property
    def _dead_arn(self) -> str:
        return self.stage.seen(self.letters.name).queue_arn

    def _look(self) -> None:
        time.sleep(LOOK_EVERY_SECONDS)
        account = self.stage.account
        ledger = CourseLedger(account.client("dynamodb"), account.outputs["LedgerTable"])
        self.picture.course = ledger.course_of(self._dead_arn)
        self.picture.whereabouts = self._whereabouts()
        self.stage.look()
        if self.picture.course is not None:
            self._say(self.picture.course)

    @property
    def _has_quarantine(self) -> bool:
        name = f"{self.source.name}-quarantine"
        return bool(self.picture.whereabouts.quarantine) or is_there(self.shop.sqs, name)

    def _whereabouts(self) -> Whereabouts:
        sqs, url = self.shop.sqs, self.stage.seen(self.source.name).queue_url
        return Whereabouts(
            source=messages_in(sqs, url),
            dead_letters=messages_in(sqs, self.stage.seen(self.letters.name).queue_url),
            quarantine=messages_in(sqs, f"{url}-quarantine") if self._has_quarantine else 0,
            handled=len(self.shop.careful.noted),
        )

    def _say(self, course: Course) -> None:
        """Each stage once; and once that the shipped bounds would end it here."""
        if (course.stage, course.number) != self._said:
            self._said = (course.stage, course.number)
            self.stage.say("redrive", sentence(course), "bold")
        if not self._would_halt and would_halt(self._soaked, course.returned):
            self._would_halt = True
            self.stage.say("bounds", as_shipped(self._soaked, course.returned), "yellow")
        if course.stage is At.SOAK:
            self._soaked = course.moved


def sentence(course: Course) -> str:
    """What a stage does, or what one has done."""
    counts = f"{course.moved} in all, {course.returned} came back"
    if course.stage is At.SOAK:
        length = (course.soak_ends_at or course.stage_at) - course.stage_at
        waits = f"waits {length.total_seconds():.1f} s for what may come back"
        return f"{sent_by(course)}: {course.moved_in_stage} went back ({counts}); {waits}"
    if course.stage is At.CANARY:
        return f"canary: {course.size} letters go back first, by hand, each marked"
    if course.stage is At.RAMP:
        how = "by a move task of SQS's own" if course.by_task else "by hand, each marked"
        return f"ramp {course.number}: up to {course.size} go back {how}"
    return f"{course.stage}: {course.because or counts}"


def would_halt(moved: int, returned: int) -> bool:
    """Whether the shipped bounds end it, once so many came back of those that were soaked."""
    return moved > 0 and returned >= SHIPPED.halts_at(moved)


def as_shipped(moved: int, returned: int) -> str:
    return (
        f"as shipped it halts here, with a page: of {moved} that went back {returned} came back, "
        f"and at {SHIPPED.halts_at(moved)} it stops; the story lets {LOWERED.halt_share:.0%} pass"
    )


@contextmanager
def _unlogged() -> Iterator[None]:
    """A poison order fails by design, each time with a trace."""
    logger = logging.getLogger(careful.__name__)
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(before)

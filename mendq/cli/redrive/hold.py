"""Keep Mendq's own redrives off some messages for as long as a person's runs, and show theirs.

What is held is the claim that each of Mendq's ticks takes as well. One that finds it taken comes
again a minute later; of a command that died nothing is left when the claim is over.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Event, Thread
from time import monotonic
from uuid import uuid4

from mendq.aws.errors import CaseStoreUnavailable, CaseStoreUnreadable
from mendq.cli.account import Account
from mendq.cli.exit_codes import Exit, Stopped
from mendq.cli.output import Line, minute
from mendq.model.case import Case
from mendq.model.plan import owner_of_case
from mendq.model.queue import parts_of
from mendq.model.steps import Owner
from mendq.notifications.text import counted
from mendq.redrive.progress import RedriveProgress, Stage
from mendq.redrive.store import CLAIM_SECONDS, CourseStore

# Twice in vain, and there is time left to end what is under way.
BEAT_SECONDS = CLAIM_SECONDS / 3


@dataclass
class Hold:
    """Of one DLQ's messages; `fault` says why they are held no more, if so."""

    case_store: CourseStore
    dlq_arn: str
    fault: str = field(default="", init=False)
    _owner: str = field(default_factory=lambda: f"a person's {uuid4().hex}", init=False)
    _stop: Event = field(default_factory=Event, init=False)
    _over: Event = field(default_factory=Event, init=False)

    def claim(self) -> Stopped | None:
        """None where it holds for CLAIM_SECONDS now. Raises what the case store raises."""
        claimed = self.case_store.claim(self.dlq_arn, self._owner, datetime.now(UTC))
        if claimed is None:
            return Stopped(
                f"another run is at work on the messages of {parts_of(self.dlq_arn).name}: "
                f"Mendq's, or somebody's `mendq redrive`. One that died ends in {CLAIM_SECONDS} s",
                word="redrive_running",
            )
        if claimed.damage:
            raise CaseStoreUnreadable(claimed.damage)
        return under_way(claimed.course)

    def ends(self, stop: Event) -> None:
        """Set `stop` once the messages are held no more."""
        self._stop = stop
        if self.fault:
            stop.set()

    @contextmanager
    def beating(self) -> Iterator[None]:
        """Claimed again and again on a thread of its own, let go of at the end."""
        heart = Thread(target=self._beat, name="hold", daemon=True)
        heart.start()
        try:
            yield
        finally:
            self._over.set()
            heart.join()

    def release(self) -> None:
        with suppress(CaseStoreUnavailable):
            self.case_store.release(self.dlq_arn, self._owner)

    def _beat(self) -> None:
        answered_at = monotonic()
        while not self.fault and not self._over.wait(BEAT_SECONDS):
            lost: Exception | None = None
            try:
                lost = self.claim()
                answered_at = monotonic()
            except CaseStoreUnreadable as error:
                lost = error
            except CaseStoreUnavailable as error:
                is_late = monotonic() - answered_at > CLAIM_SECONDS - BEAT_SECONDS
                lost = error if is_late else None
            if lost is not None:
                self.fault = f"stopped, and what was in hand is visible again: {lost}"
                self._stop.set()


@contextmanager
def held(account: Account, dlq_arn: str) -> Iterator[Hold | None]:
    """None where there is no such queue (empty), or no Mendq that could redrive its messages.

    Raises Stopped where one is under way, and what the case store raises.
    """
    case_store = course_store(account) if dlq_arn else None
    if case_store is None:
        yield None
        return
    hold = Hold(case_store, dlq_arn)
    try:
        if refused := hold.claim():
            raise refused
        with hold.beating():
            yield hold
    finally:
        hold.release()


def under_way(course: RedriveProgress | None) -> Stopped | None:
    """What to say where Mendq sends these messages back itself."""
    if course is None or course.is_over:
        return None
    return Stopped(
        f"Mendq is sending back the messages of {parts_of(course.dlq_arn).name} itself "
        f"({course.stage}): wait until `mendq show {course.case_id}` says it is over, or end it "
        f"with `mendq rollback {course.case_id}`",
        word="redrive_running",
    )


def course_store(account: Account) -> CourseStore | None:
    """None where there is no stack: then nothing of Mendq's runs."""
    try:
        table = account.output("CaseTable")
    except Stopped as without:
        if without.code is Exit.NOT_FOUND:
            return None
        raise
    return CourseStore(account.clients.dynamodb, table)


_STYLES = {Stage.DONE: "green", Stage.HALTED: "red"}
_ENDED = {Stage.DONE: "ended", Stage.HALTED: "halted"}


def course_of(account: Account, case: Case) -> RedriveProgress | None:
    """The case's own; None where it redrives nothing, or another case's came after it.

    Raises CaseStoreUnavailable or CaseStoreUnreadable.
    """
    if owner_of_case(case.steps) is not Owner.REDRIVE:
        return None
    case_store = CourseStore(account.clients.dynamodb, account.output("CaseTable"))
    course = case_store.course_of(case.queue_arn)
    return course if course is not None and course.case_id == case.case_id else None


def course_lines(course: RedriveProgress) -> Iterator[Line]:
    """A label, its style and what it says."""
    where = f"{parts_of(course.dlq_arn).name} -> {parts_of(course.source_arn).name}"
    yield "way", "dim", where
    since = f"{minute(course.current.began_at)}, begun {minute(course.began_at)}"
    stage = f"{course.stage} since {since}"
    yield "stage", _STYLES.get(course.stage, "cyan"), stage
    if course.stage is Stage.SOAK and course.current.soak_ends_at is not None:
        yield "soak", "dim", f"until {minute(course.current.soak_ends_at)}"
    yield "sent", "dim", _sent(course)
    yield "came back", "dim", f"{course.returned:,}, {course.quarantined:,} are in quarantine"
    if course.rate_per_second:
        yield "rate", "dim", f"{course.rate_per_second:,.2f} a second"
    if course.because:
        yield _ENDED.get(course.stage, "stands so"), "dim", f"because {course.because}"


def _sent(course: RedriveProgress) -> str:
    """A stage counts once something of it went."""
    current = course.current
    stages = current.number + (current.moved > 0)
    if not course.moved and not current.moved:
        return "nothing was sent" if course.is_over else "nothing sent yet"
    sent = f"{counted(course.moved, 'message')} sent back in {counted(stages, 'stage')}"
    return f"{sent}, {current.moved:,} of at most {current.size:,} in this"

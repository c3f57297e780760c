"""Decide what a redrive does next: what is seen of it, and the table of conditions and actions.

Nothing is done before the progress that says so is written down. So a run that dies at any point
leaves a progress from which the next one finds out what became of it. The docstrings of the
conditions and actions stand in docs/redrive-stages.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from enum import Enum, auto
from typing import NamedTuple, Protocol

from msgspec import Struct, field, structs
from msgspec.structs import replace

from mendq.model.dlq import arn_of_quarantine
from mendq.model.facts import Facts
from mendq.model.limits import Bounds
from mendq.model.queue import LONGEST_RETENTION_SECONDS, number_in, parts_of
from mendq.notifications.text import counted
from mendq.redrive.messages import Message, MoveResult
from mendq.redrive.progress import (
    GOING_ON,
    SENDING,
    DlqSample,
    RedriveProgress,
    Stage,
    StageProgress,
    Waits,
)

# Ticks in a row that moved nothing and did not know what they waited for.
HALT_FRUITLESS = 3
# From one look no more rows than this ever fit one after the other.
MOST_STEPS = 12
NOBODY = "no message was deleted from the source lately: nobody would handle what is sent back"
UNREAD = "what was sent back still stands in the source: nobody has handled it"
FOREIGN = "somebody else's message movement task runs on the DLQ"
FRUITLESS = "tick after tick was cut short: its run ended on the way, or the case store was silent"
NONE_TO_SEND = "tick after tick moved no message: the last that looked found none to send"
HELD = ", because others hold those that wait, or it had no time to look"
TOO_OLD = "it has gone on for longer than SQS keeps any message"


class Blocked(Struct, frozen=True):
    """Why something may not or cannot be done, empty where nothing is in its way.

    `for_good` where asking again would not help: its owner's own word, or a queue that is gone.
    """

    because: str = ""
    for_good: bool = False

    def __or__(self, other: Blocked) -> Blocked:
        """The first that lasts, else the first."""
        return other if not self.because or (other.for_good and not self.for_good) else self


class RedriveSituation(Struct, frozen=True):
    """A progress beside what is seen at this tick; `sample` is None until one was taken.

    A queue without attributes is gone, or was not shown. `deleted_since` are the messages deleted
    at the source since the last went there; None where nobody asked or CloudWatch does not say.
    `frozen` says why nothing may be changed for now. `blocked` for good: a queue is not managed any
    more, its tag says no, or its cause is back; for now: it cannot see what it has to, or keep
    apart what came back.
    """

    progress: RedriveProgress
    now: datetime
    dlq: Facts
    source: Facts
    bounds: Bounds = field(default_factory=Bounds)
    deletes_per_second: float | None = None
    deleted_since: int | None = None
    sample: DlqSample | None = None
    has_foreign_task: bool = False
    frozen: str = ""
    blocked: Blocked = Blocked()

    @property
    def waiting(self) -> int:
        """The messages in the DLQ."""
        delayed = self.dlq.attributes.get("ApproximateNumberOfMessagesDelayed", "0")
        return self.dlq.visible + self.dlq.in_flight + int(delayed)

    @property
    def came_back(self) -> int:
        """How many of those that were sent back have returned."""
        return self.progress.returned + self.seen.still_back

    @property
    def unseen(self) -> int:
        """After a soak, messages more than there should be that no sample can have seen.

        Of a FIFO queue's group the first messages alone are handed out until they are gone.
        """
        sample = self.sample
        if sample is None or not self.is_soaked or (sample.is_whole and not self.source.is_fifo):
            return 0
        seen = len(sample.returned) + sample.newly_dead
        return max(0, self.waiting - self.progress.current.expected - seen)

    @property
    def seen(self) -> DlqSample:
        return self.sample or DlqSample()

    @property
    def left_waiting(self) -> int:
        """What waited when it looked, without what went to quarantine since."""
        return max(0, self.waiting - self.seen.quarantined)

    @property
    def left(self) -> int:
        """Messages that could still be sent back; what is in flight counts."""
        sample = self.seen
        return max(0, max(self.left_waiting, sample.seen - sample.quarantined) - len(sample.stays))

    @property
    def is_soaked(self) -> bool:
        ends_at = self.progress.current.soak_ends_at
        return self.progress.stage is Stage.SOAK and ends_at is not None and self.now >= ends_at

    def is_long_ago(self, since: datetime | None) -> bool:
        """True once patience is over."""
        patience = timedelta(seconds=self.bounds.patience_seconds)
        return since is not None and self.now >= since + patience

    @property
    def rate_per_second(self) -> float:
        return self.bounds.rate_per_second(self.deletes_per_second or 0)

    @property
    def messages_now(self) -> int:
        """How many the mover may send at this tick."""
        progress, bounds = self.progress, self.bounds
        if progress.stage is Stage.CANARY:
            return progress.current.left
        since = (self.now - (progress.moved_at or progress.began_at)).total_seconds()
        least = bounds.least_per_tick * round(since / bounds.tick_seconds)
        in_a_tick = int(self.rate_per_second * bounds.tick_seconds)
        most = min(max(bounds.least_per_tick, in_a_tick), bounds.mover_per_tick)
        return min(max(least, int(self.rate_per_second * since)), most, progress.current.left)

    def after_a_crash(self) -> RedriveSituation:
        """What a run that died had in flight may have gone: it is spent, and proves nothing."""
        current, lost = self.progress.current, self.progress.current.in_flight
        if not lost:
            return self
        spent = self.progress.with_stage(
            moved=current.moved + lost,
            unsure=current.unsure + lost,
            expected=max(0, current.expected - lost),
            in_flight=0,
        ).with_waits(fruitless=self.progress.waits.fruitless + 1)
        return structs.replace(self, progress=spent)


class Then(Enum):
    """What a tick does once the progress is written down."""

    ASK_AGAIN = auto()
    # Look at the messages; those that came back go to quarantine.
    SAMPLE = auto()
    # As many as are `in_flight`, each with its mark.
    SEND = auto()
    REST = auto()


Words = Callable[[RedriveSituation], str]
Change = Callable[[RedriveSituation], RedriveProgress]


# The conditions.


def always(_seen: RedriveSituation) -> bool:
    """always"""
    return True


def blocked(seen: RedriveSituation) -> bool:
    """a queue is not managed any more, its tag says no, or the cause is back"""
    return seen.blocked.for_good


def frozen(seen: RedriveSituation) -> bool:
    """changes are frozen, or a change calendar is closed"""
    return bool(seen.frozen)


def too_old(seen: RedriveSituation) -> bool:
    """no message can be older than the redrive"""
    return seen.now >= seen.progress.began_at + timedelta(seconds=LONGEST_RETENTION_SECONDS)


def foreign_task(seen: RedriveSituation) -> bool:
    """somebody else's message movement task runs"""
    return seen.has_foreign_task


def fruitless(seen: RedriveSituation) -> bool:
    """ticks in a row have moved nothing, and no row says what they waited for"""
    return seen.progress.waits.fruitless >= HALT_FRUITLESS


def not_sampled(seen: RedriveSituation) -> bool:
    """no sample was taken at this tick, and one can be"""
    return seen.sample is None and not seen.blocked.because


def too_many_back(seen: RedriveSituation) -> bool:
    """as many are back as halt it"""
    moved, bounds = seen.progress.moved, seen.bounds
    is_many = seen.came_back + seen.unseen >= bounds.halts_at(moved)
    # Whoever drops the mark may have failed all that were sent back.
    return is_many or seen.seen.newly_dead >= min(bounds.halt_returned, max(1, moved))


def blocked_for_now(seen: RedriveSituation) -> bool:
    """it cannot see what it has to, or keep apart what came back"""
    return bool(seen.blocked.because)


def nothing_left(seen: RedriveSituation) -> bool:
    """no message is left that could be sent back"""
    return seen.left == 0


def refused_for_long(seen: RedriveSituation) -> bool:
    """SQS takes nothing, until patience is over"""
    waits = seen.progress.waits
    return waits.is_refused and seen.is_long_ago(waits.refused_since)


def stage_is_over(seen: RedriveSituation) -> bool:
    """the stage's messages were moved, or its time is over"""
    # One that has moved nothing yet proves nothing, however long it takes; nor is one over by
    # itself while SQS takes nothing.
    current = seen.progress.current
    is_late = seen.now >= current.began_at + timedelta(seconds=seen.bounds.stage_seconds)
    goes_on = current.moved > 0 and not seen.progress.waits.is_refused
    return current.left == 0 or (is_late and goes_on)


def not_soaked(seen: RedriveSituation) -> bool:
    """a poison message may not be back yet"""
    return not seen.is_soaked


def unread(seen: RedriveSituation) -> bool:
    """what was sent may still stand in the source unread"""
    progress = seen.progress
    if not progress.current.moved or not seen.source.visible:
        return False
    return (seen.deleted_since or 0) < progress.current.stood - progress.returned


def nobody(seen: RedriveSituation) -> bool:
    """the source's deletes are 0 or not measured"""
    return not seen.deletes_per_second


def nobodys_turn(seen: RedriveSituation) -> bool:
    """at its share of what the source's consumers delete, no message's turn has come"""
    return seen.messages_now == 0


# The actions.


def halting(because: Words) -> Change:
    def halt(seen: RedriveSituation) -> RedriveProgress:
        """end the case with a page"""
        return seen.progress.now_in(Stage.HALTED, seen.now, because(seen))

    return halt


def resting(because: str) -> Change:
    def rest(seen: RedriveSituation) -> RedriveProgress:
        """wait"""
        return replace(seen.progress, because=because)

    return rest


def wait_for_others(seen: RedriveSituation) -> RedriveProgress:
    """wait until that is over"""
    because = f"changes are frozen: {seen.frozen}" if seen.frozen else FOREIGN
    return replace(seen.progress, waits=Waits(), because=because)


def with_patience(since: str, because: Words) -> Change:
    """`since` is the name among `Waits` that says when the wait began."""

    def wait(seen: RedriveSituation) -> RedriveProgress:
        """wait; once patience is over, end the case with a page"""
        began_at = getattr(seen.progress.waits, since) or seen.now
        if seen.is_long_ago(began_at):
            return halting(because)(seen)
        # It is known what it waits for: its patience ends that, and no count of ticks.
        waits = {since: began_at, "fruitless": 0}
        return replace(seen.progress.with_waits(**waits), because=because(seen))

    return wait


def sample(seen: RedriveSituation) -> RedriveProgress:
    """look at the messages: what came back goes to quarantine"""
    # Counted before, so that a run that dies of looking is counted.
    return seen.progress.with_waits(fruitless=seen.progress.waits.fruitless + 1)


def soak(seen: RedriveSituation) -> RedriveProgress:
    """wait until a poison message must be back"""
    rate = seen.deletes_per_second
    length = seen.bounds.soak(
        receives=seen.source.max_receive_count or 1,
        needed_seconds=number_in(seen.source.attributes, "VisibilityTimeout"),
        delay_seconds=number_in(seen.source.attributes, "DelaySeconds"),
        drain_seconds=seen.source.visible / rate if rate else 0,
    )
    progress = seen.progress.now_in(Stage.SOAK, seen.now).with_waits(consumers_since=None)
    stood = seen.source.visible + progress.current.moved
    return progress.with_stage(soak_ends_at=seen.now + length, stood=stood)


def finish(seen: RedriveSituation) -> RedriveProgress:
    """end the case as verified"""
    progress, newly_dead = seen.progress, seen.seen.newly_dead
    came_back = "and none of them came back"
    if progress.returned:
        came_back = f"{progress.returned} of them came back and are in {_quarantine(progress)}"
    if newly_dead:
        came_back += f"; {counted(newly_dead, 'message')} came to the DLQ without its mark"
    because = f"{counted(progress.moved, 'message')} went back, {came_back}{_who_stays(seen)}"
    return progress.now_in(Stage.DONE, seen.now, because)


def _who_stays(seen: RedriveSituation) -> str:
    """How many cannot go back, and whose they are; empty where all can."""
    arns = (each.source_arn or "" for each in seen.seen.stays)
    whose = Counter(f"of {arn.rpartition(':')[2]}" if arn else "sent there by hand" for arn in arns)
    said = ", ".join(f"{number:,} {words}" for words, number in sorted(whose.items()))
    return f"; {whose.total():,} cannot go back there and stay: {said}" if whose else ""


def ramp(seen: RedriveSituation) -> RedriveProgress:
    """begin the next stage"""
    # Some times what the stage before has proven; where it moved nothing, a canary again.
    before, bounds = seen.progress.current, seen.bounds
    proven = min(before.size, before.moved - before.unsure)
    current = StageProgress(
        seen.now,
        size=bounds.growth * proven or bounds.canary,
        number=before.number + 1,
        expected=seen.left_waiting,
    )
    progress = seen.progress.now_in(Stage.RAMP, seen.now)
    progress = progress.with_waits(consumers_since=None, is_refused=False)
    return replace(progress, current=current, rate_per_second=seen.rate_per_second)


def move(seen: RedriveSituation) -> RedriveProgress:
    """send messages back"""
    messages = seen.messages_now
    progress = seen.progress.with_stage(in_flight=messages).with_waits(consumers_since=None)
    if progress.moved_at is None:
        progress = progress.with_stage(expected=seen.left_waiting)
    return replace(progress, moved_at=seen.now, rate_per_second=seen.rate_per_second)


def how_many_are_back(seen: RedriveSituation) -> str:
    progress, newly_dead = seen.progress, seen.seen.newly_dead
    more = f", {newly_dead:,} have newly died or were sent there" if newly_dead else ""
    more += f", and the queue holds {seen.unseen:,} more than it should" if seen.unseen else ""
    went = f"{progress.moved:,}{' or more' if progress.current.unsure else ''} messages"
    where = f"; what came back is in {_quarantine(progress)}" if progress.quarantined else ""
    return (
        f"of {went} that went back {seen.came_back:,} came back{more}; "
        f"at {seen.bounds.halts_at(progress.moved):,} it stops: the cause is not fixed{where}"
    )


def _what_blocks(seen: RedriveSituation) -> str:
    return seen.blocked.because


def _why_fruitless(seen: RedriveSituation) -> str:
    because = seen.progress.because
    return because if because.startswith(NONE_TO_SEND) else FRUITLESS


def _quarantine(progress: RedriveProgress) -> str:
    return parts_of(arn_of_quarantine(progress.source_arn)).name


class Row(NamedTuple):
    """One line of the table: at one of these stages, when, to which stage (None: the same), how."""

    out_of: tuple[Stage, ...]
    into: Stage | None
    when: Callable[[RedriveSituation], bool]
    does: Change
    then: Then = Then.ASK_AGAIN


_BLOCKED = with_patience("blocked_since", _what_blocks)
_UNREAD = with_patience("consumers_since", lambda _: UNREAD)
_NOBODY = with_patience("consumers_since", lambda _: NOBODY)
# Of a stage's rows the first that fits is taken.
TABLE = (
    Row(GOING_ON, Stage.HALTED, blocked, halting(_what_blocks)),
    Row(GOING_ON, None, frozen, wait_for_others, Then.REST),
    Row(GOING_ON, Stage.HALTED, too_old, halting(lambda _: TOO_OLD)),
    Row(GOING_ON, None, foreign_task, wait_for_others, Then.REST),
    Row(GOING_ON, Stage.HALTED, fruitless, halting(_why_fruitless)),
    Row(GOING_ON, None, not_sampled, sample, Then.SAMPLE),
    Row(GOING_ON, Stage.HALTED, too_many_back, halting(how_many_are_back)),
    Row(GOING_ON, Stage.HALTED, blocked_for_now, _BLOCKED, Then.REST),
    Row(SENDING, Stage.SOAK, nothing_left, soak),
    Row(SENDING, Stage.HALTED, refused_for_long, halting(lambda seen: seen.progress.because)),
    Row(SENDING, Stage.SOAK, stage_is_over, soak),
    Row((Stage.SOAK,), None, not_soaked, resting("it waits for what may come back"), Then.REST),
    Row((Stage.SOAK,), Stage.HALTED, unread, _UNREAD, Then.REST),
    Row(GOING_ON, Stage.HALTED, nobody, _NOBODY, Then.REST),
    Row((Stage.SOAK,), Stage.DONE, nothing_left, finish),
    Row((Stage.SOAK,), Stage.RAMP, always, ramp),
    Row((Stage.RAMP,), None, nobodys_turn, resting("no message's turn has come"), Then.REST),
    Row(SENDING, None, always, move, Then.SEND),
)


def decide(situation: RedriveSituation) -> tuple[RedriveProgress, Then]:
    """The progress that the first row which fits asks for, and what is done after that."""
    seen = situation.after_a_crash()
    rows = (each for each in TABLE if seen.progress.stage in each.out_of)
    row = next(each for each in rows if each.when(seen))
    return row.does(seen), row.then


# What becomes of the progress when an action was tried.


def sampled(progress: RedriveProgress, found: DlqSample) -> RedriveProgress:
    """With a sample, before any of it is moved: a run that dies may count a message twice."""
    return replace(progress, returned=progress.returned + len(found.returned))


def settled(progress: RedriveProgress, found: DlqSample) -> RedriveProgress:
    """With what went to quarantine; what could not is found again by the next sample."""
    if found.quarantined or not found.still_back:
        progress = progress.with_waits(blocked_since=None)
    progress = progress.with_waits(fruitless=max(0, progress.waits.fruitless - 1))
    returned = progress.returned - found.still_back
    quarantined = progress.quarantined + found.quarantined
    return replace(progress, returned=returned, quarantined=quarantined)


def moved(
    progress: RedriveProgress, put: MoveResult, now: datetime, *, is_short: bool, why: str = ""
) -> RedriveProgress:
    """After the mover; `is_short`: there were no more for now; `why` none was to be sent."""
    current = progress.current
    spent = current.moved + put.moved + put.unsure
    after = progress.with_stage(
        moved=spent,
        unsure=current.unsure + put.unsure,
        expected=max(0, current.expected - put.moved),
        size=spent if is_short else current.size,
        in_flight=0,
    )
    after = replace(after, moved=progress.moved + put.moved, because=why)
    if put.moved:
        return after.with_waits(refused_since=None, is_refused=False, fruitless=0)
    if not put.failed:
        return after.with_waits(fruitless=progress.waits.fruitless + 1)
    waits = {"refused_since": progress.waits.refused_since or now, "is_refused": True}
    return replace(after.with_waits(**waits, fruitless=0), because=put.reason)


class Effects(Protocol):
    """What a tick does to the world; what one of them raises ends it where it is."""

    def save(self, progress: RedriveProgress) -> RedriveProgress:
        """Write it down; as it stands there."""

    def take_sample(self, progress: RedriveProgress) -> DlqSample | Blocked:
        """Receive messages and sort them out."""

    def quarantine(self, messages: tuple[Message, ...]) -> MoveResult:
        """Move what came back."""

    def send_back(self, progress: RedriveProgress, messages: tuple[Message, ...]) -> MoveResult:
        """Move what waits."""


class Tick(Struct):
    """A tick under way; `situation.progress` is always as it is written down."""

    situation: RedriveSituation
    effects: Effects

    def run(self) -> RedriveProgress:
        """As far as it comes at this tick."""
        for _ in range(MOST_STEPS):
            if self.progress.is_over:
                break
            progress, then = decide(self.situation)
            if then is Then.SEND:
                self._send_back(progress)
                if self.progress.current.left:
                    break
                continue
            self._write(progress)
            if then is Then.REST:
                break
            if then is Then.SAMPLE:
                self._sample()
        return self.progress

    @property
    def progress(self) -> RedriveProgress:
        return self.situation.progress

    def _write(self, progress: RedriveProgress) -> None:
        if progress != self.progress or not progress.n:
            self.situation = structs.replace(self.situation, progress=self.effects.save(progress))

    def _sample(self) -> None:
        found = self.effects.take_sample(self.progress)
        if isinstance(found, Blocked):
            self._block(found)
            return
        self._write(sampled(self.progress, found))
        put = self.effects.quarantine(found.returned)
        found = replace(found, quarantined=put.moved)
        self._write(settled(self.progress, found))
        self.situation = structs.replace(self.situation, sample=found)
        if found.still_back:
            refused = put.reason or "there was no time for all of it, or changes were frozen"
            reason = f"what came back cannot be quarantined: {refused}"
            self._block(Blocked(reason, put.is_refused_for_good))

    def _block(self, blocked: Blocked) -> None:
        self.situation = structs.replace(self.situation, blocked=self.situation.blocked | blocked)

    def _send_back(self, progress: RedriveProgress) -> None:
        wanted = progress.current.in_flight
        picked = self.situation.seen.waiting[:wanted]
        self._write(progress.with_stage(in_flight=len(picked)))
        put = self.effects.send_back(self.progress, picked)
        is_short = len(picked) < wanted and not put.failed
        why = "" if picked else f"{NONE_TO_SEND}{_who_stays(self.situation) or HELD}"
        self._write(moved(self.progress, put, self.situation.now, is_short=is_short, why=why))

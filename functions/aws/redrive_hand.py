"""The letters that a tick of a redrive has in hand: counted, then quarantined or sent back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from functions.aws.hand import Hand
from functions.aws.letter_batches import UNANSWERED, Destination
from functions.aws.move_tasks import cancel_task, start_task
from functions.aws.moved import Moved
from functions.aws.quarantine import quarantine_of
from functions.aws.queue_look import queue_url
from functions.aws.redrive_looks import Faults, Queues
from functions.aws.redrive_run import RedriveRun
from functions.healing.letters import Letter
from functions.healing.marks import hopped, kept_apart
from functions.healing.plan import Refusal
from functions.healing.redrive_course import Course
from functions.healing.redrive_drive import Picked, Put, Refused
from functions.healing.redrive_letters import Sorted, fingerprints_of, sorted_out
from functions.healing.redrive_look import Census

# As many at a time; what they weigh is known when they are there.
TAKEN_AT_ONCE = 100
MOST_BYTES_IN_HAND = 100_000_000
# What is in hand is to be let go and written down before the run is ended.
SECONDS_TO_LET_GO = 15
WHY = "it came back after it was sent back to its source"


@dataclass
class RedriveHand:
    """The hands of a tick; leaving the context makes visible again whatever they still hold.

    Never raise for what SQS answers; `save` raises what the ledger raises.
    """

    dead_letter_arn: str
    queues: Queues
    run: RedriveRun
    _sorted: Sorted = field(default_factory=Sorted)
    _picked: tuple[Letter, ...] = ()

    def __enter__(self) -> Self:
        sqs = self.run.clients.sqs
        self._hand = Hand(sqs, queue_url(self.run.clients, self.dead_letter_arn))
        self._hand.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._hand.__exit__(kind, error, traceback)

    def save(self, course: Course) -> Course:
        return self.run.courses.save(course, self.run.owner)

    def take_census(self, course: Course) -> Census | Refused:
        """Of as many letters as bounds, memory and time allow; all of them stay in hand."""
        faults = Faults()
        with faults.met():
            return self._census(course)
        return Refused(faults.refused or faults.hindered, for_good=bool(faults.refused))

    def _census(self, course: Course) -> Census:
        letters, is_whole = list[Letter](), False
        most, weight = self.run.settings.bounds.census, 0
        while len(letters) < most and weight < MOST_BYTES_IN_HAND and self._has_time(half=True):
            asked = min(TAKEN_AT_ONCE, most - len(letters))
            taken = self._hand.take(asked)
            letters += taken
            weight += sum(each.size_bytes for each in taken)
            if is_whole := len(taken) < asked:
                break
        source, most_bytes = self.queues.source, self.queues.most_bytes
        self._sorted = sorted_out(letters, course, is_fifo=source.is_fifo, most_bytes=most_bytes)
        return self._sorted.census(is_whole=is_whole)

    def quarantine(self, course: Course) -> Put:
        """Makes the quarantine where there is none yet."""
        letters = self._sorted.returned
        if not letters:
            return Put()
        faults = Faults()
        quarantine_arn: str | Refusal = ""
        with faults.met():
            quarantine_arn = quarantine_of(self.run.clients, self.queues.source)
        if not quarantine_arn:
            because = faults.refused or faults.hindered
            return Put(refused=because, for_good=bool(faults.refused))
        if isinstance(quarantine_arn, Refusal):
            return Put(refused=quarantine_arn.reason, for_good=True)
        return self._put(letters, self._quarantine(quarantine_arn, course))

    def pick(self, course: Course, letters: int) -> Picked:
        """The first so many; the fingerprints of those that cannot bear the mark."""
        to = self._source(course)
        self._picked = self._sorted.waiting[:letters]
        unmarkable = [each for each in self._picked if not to.can_mark(each)]
        most = self.run.settings.bounds.most_fingerprints
        return Picked(len(self._picked), fingerprints_of(unmarkable, course, most))

    def send_back(self, course: Course) -> Put:
        return self._put(self._picked, self._source(course))

    def start(self, course: Course, per_second: int) -> str | Refused:
        """A move task takes only what is visible."""
        self._hand.__exit__(None, None, None)
        self._hand.__enter__()
        return start_task(self.run.clients, course.dead_letter_arn, per_second)

    def cancel(self, handle: str) -> Refused | None:
        return cancel_task(self.run.clients, handle)

    def _put(self, letters: Sequence[Letter], to: Destination) -> Put:
        done = Moved()
        for moved in self._hand.put(letters, to):
            done += moved
            if not self._has_time():
                break
        unanswered = sum(each.code == UNANSWERED for each in done.failed)
        failed = next(iter(done.failed), None)
        return Put(
            done.moved,
            done.copied + unanswered,
            (failed.reason or failed.code) if failed else "",
            for_good=failed is not None and not done.moved and not failed.passes,
        )

    def _source(self, course: Course) -> Destination:
        arn, url = course.source_arn, queue_url(self.run.clients, course.source_arn)
        return Destination(arn, url, course.case_id, hopped, self.queues.most_bytes)

    def _quarantine(self, queue_arn: str, course: Course) -> Destination:
        def kept(letter: Letter) -> Letter:
            source_arn, case_id = course.source_arn, course.case_id
            return kept_apart(letter, WHY, at=self.run.now, source_arn=source_arn, case_id=case_id)

        return Destination(queue_arn, queue_url(self.run.clients, queue_arn), course.case_id, kept)

    def _has_time(self, *, half: bool = False) -> bool:
        """`half`: what is taken is to be sent on as well."""
        return self.run.remaining_seconds() > SECONDS_TO_LET_GO * (2 if half else 1)

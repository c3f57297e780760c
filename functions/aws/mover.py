"""Moves letters from one queue to another: first sent, then deleted, so that none is ever lost.

A crash between the two leaves a second copy, never none. Whatever is in hand and was not moved is
visible again as soon as the hand is open; after a crash, when its lease is over.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ReceiveMessage.html
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Self

from functions.aws.errors import looking
from functions.aws.groups_in_hand import GroupsInHand
from functions.aws.lease import Lease
from functions.aws.letter_batches import Destination, Lanes, NotMoved, Sent, send, too_long
from functions.aws.letters_look import letter_of
from functions.healing.companions import FIFO
from functions.healing.letters import Letter

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.literals import QueueAttributeNameType

MOST_RECEIVED = 10
# What a crash costs: nobody sees what was in hand for so long.
LEASE_SECONDS = 120
# How many letters are looked at, and held, at once.
MOST_IN_HAND = 5_000


@dataclass(frozen=True)
class Moved:
    """What became of some letters.

    `copied` were sent and could not be deleted: SQS hands them out again, and a hand that sees one
    again deletes it. `copies` are message ids at the destination; `unmarked` are fingerprints of
    letters that went without the mark, because it does not fit.
    """

    moved: int = 0
    copied: int = 0
    copies: tuple[str, ...] = ()
    unmarked: tuple[str, ...] = ()
    failed: tuple[NotMoved, ...] = ()

    def __add__(self, other: Moved) -> Moved:
        return Moved(
            self.moved + other.moved,
            self.copied + other.copied,
            self.copies + other.copies,
            self.unmarked + other.unmarked,
            self.failed + other.failed,
        )


class Hand:
    """Letters taken out of one queue and kept from everybody else until they are put somewhere.

    A context manager; leaving it makes visible again whatever is still in hand. `lease_seconds` is
    what a crash hides them for. A receive waits `wait_seconds` for a first letter: SQS asks all of
    its servers then, so that an empty answer means that there is none. Looking is receiving: a
    queue with a RedrivePolicy of its own would have letters taken from it for being looked at.
    """

    def __init__(
        self,
        sqs: SQSClient,
        queue_url: str,
        *,
        lease_seconds: int = LEASE_SECONDS,
        wait_seconds: int = 1,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._sqs, self._queue_url, self._clock = sqs, queue_url, clock
        self._lease_seconds, self._wait_seconds = lease_seconds, wait_seconds
        self._lease = Lease(sqs, queue_url, seconds=lease_seconds, clock=clock)
        self._groups, self._is_opening = GroupsInHand(), False
        self._ready: list[Letter] = []
        self._given: set[str] = set()
        self._sent: set[str] = set()
        self._copies: set[str] = set()
        self._going: frozenset[str] = frozenset()
        self._is_abandoned = False

    def __enter__(self) -> Self:
        self._lease.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if not self._is_abandoned:
                self._lease.release()
        finally:
            self._lease.__exit__(kind, error, traceback)

    def take(self, most: int) -> list[Letter]:
        """At most so many more letters, fewer only where the queue shows no others.

        Each is given once: one that comes again stays in hand, one that was sent already is
        deleted, and the copies that this hand has sent are not given either. Of a FIFO group no
        more than the first ten that stay can be seen. Raises FactsUnavailable or QueueRefusesUs.
        """
        while len(self._ready) < most:
            received = self._shown(most - len(self._ready))
            if not received:
                break
            new = [each for each in received if self._is_new(each)]
            self._groups.note(received, {each.message_id for each in new})
            self._ready += new
        letters, self._ready = self._ready[:most], self._ready[most:]
        return letters

    def put(self, letters: Sequence[Letter], to: Destination) -> Iterator[Moved]:
        """Send them on and delete them here; yields after every batch, so that one can slow down.

        Letters that this hand holds no more are not sent. Never raises for what SQS answers.
        """
        lanes = Lanes(letters, to)
        while batch := lanes.next_batch():
            yield self._put(batch, lanes, to)

    def release(self, letters: Iterable[Letter]) -> None:
        """Let others have these at once."""
        ids = [each.message_id for each in letters]
        if ids:
            self._lease.release(*ids)

    def let_go(self) -> Iterator[int]:
        """Let others have whatever is in hand, ten by ten: yields how many are so far, first 0."""
        ids = sorted(self._lease.held)
        yield 0
        for at in range(0, len(ids), MOST_RECEIVED):
            self._going = frozenset(ids[at : at + MOST_RECEIVED])
            self._lease.release(*self._going)
            self._going = frozenset()
            yield min(at + MOST_RECEIVED, len(ids))

    def abandon(self) -> int:
        """How many letters stay hidden until their lease is over: for whoever cannot wait."""
        self._is_abandoned = True
        return self.in_hand

    @property
    def in_hand(self) -> int:
        """How many letters are kept from everybody else now, at most."""
        return len(self._lease.held | self._going)

    def delete(self, letters: Iterable[Letter]) -> frozenset[str]:
        """Delete these where they are in hand still; the message ids of those that are gone."""
        ids = [each.message_id for each in letters]
        return self._lease.delete(*ids) if ids else frozenset()

    def _shown(self, most: int) -> list[Letter]:
        """What SQS shows by itself, and of a FIFO queue what it hides behind what is in hand."""
        if not self._is_opening:
            received = self._receive(most)
            self._is_opening = not received and self._hides_some()
            if not self._is_opening:
                return received
        while (ids := self._groups.next_to_open()) is not None:
            if in_hand := ids & self._lease.held:
                self._lease.release(*in_hand)
                if received := self._receive(MOST_RECEIVED):
                    return received
        self._is_opening = False
        return self._receive(most)

    def _hides_some(self) -> bool:
        if not (self._queue_url.endswith(FIFO) and self._groups):
            return False
        name: QueueAttributeNameType = "ApproximateNumberOfMessages"
        with looking(f"attributes of {self._queue_url}"):
            answer = self._sqs.get_queue_attributes(QueueUrl=self._queue_url, AttributeNames=[name])
        return int(answer["Attributes"][name]) > 0

    def _receive(self, most: int) -> list[Letter]:
        received_at = self._clock()
        with looking(f"letters in {self._queue_url}"):
            answer = self._sqs.receive_message(
                QueueUrl=self._queue_url,
                MaxNumberOfMessages=min(most, MOST_RECEIVED),
                VisibilityTimeout=self._lease_seconds,
                WaitTimeSeconds=self._wait_seconds,
                MessageAttributeNames=["All"],
                MessageSystemAttributeNames=["All"],
            )
        messages = answer.get("Messages", [])
        self._lease.add(*messages, received_at=received_at)
        return [letter_of(each) for each in messages]

    def _is_new(self, letter: Letter) -> bool:
        if letter.message_id in self._sent:
            self._lease.delete(letter.message_id)
            return False
        if letter.message_id in self._given | self._copies:
            return False
        self._given.add(letter.message_id)
        return True

    def _put(self, batch: Sequence[Letter], lanes: Lanes, to: Destination) -> Moved:
        held = self._lease.held
        stays = [each for letter in batch if (each := _unfit(letter, held, to))]
        unfit = {each.message_id for each in stays}
        goes = [each for each in batch if each.message_id not in unfit]
        sent = send(self._sqs, goes, to) if goes else Sent({})
        self._sent |= sent.copies.keys()
        self._copies |= set(sent.copies.values())
        gone = self._lease.delete(*sent.copies) if sent.copies else frozenset[str]()
        self._groups.lose(letter for letter in goes if letter.message_id in gone)
        passing = frozenset(each.message_id for each in (*stays, *sent.refused) if each.passes)
        waits = tuple(
            _settle(batch, gone, lanes, passing | sent.copies.keys(), is_hopeless=sent.is_hopeless)
        )
        went = [each for each in goes if each.message_id in sent.copies]
        return Moved(
            moved=len(gone),
            copied=len(sent.copies) - len(gone),
            copies=tuple(sent.copies.values()),
            unmarked=tuple(each.fingerprint for each in went if not to.can_mark(each)),
            failed=(*stays, *sent.refused, *waits),
        )


def _unfit(letter: Letter, held: frozenset[str], to: Destination) -> NotMoved | None:
    if letter.message_id not in held:
        reason = "its lease was over before it was sent"
        return NotMoved(letter.message_id, "lost", reason, passes=True)
    return too_long(letter, to)


def _settle(
    batch: Sequence[Letter],
    gone: frozenset[str],
    lanes: Lanes,
    passing: frozenset[str],
    *,
    is_hopeless: bool,
) -> Iterator[NotMoved]:
    """What has to wait because of what did not go; `passing` are those that may go later."""
    for letter in batch:
        if letter.message_id in gone:
            lanes.take_out(letter)
            continue
        for each in lanes.close(letter):
            reason = f"{letter.message_id} of the same group did not go, and is to go first"
            passes = letter.message_id in passing
            yield NotMoved(each.message_id, "waits_for_neighbour", reason, passes)
    passes = any(each.message_id in passing for each in batch)
    for each in lanes.close_all() if is_hopeless else ():
        reason = "what was refused before it would be again"
        yield NotMoved(each.message_id, "not_tried", reason, passes)

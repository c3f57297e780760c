"""Takes letters out of one queue and puts them into another: first sent, then deleted.

So none is ever lost: a crash between the two leaves a second copy, never none. Whatever is in hand
and was not moved is visible again as soon as the hand is open; after a crash, when its lease is
over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Self

from functions.aws.groups_in_hand import GroupsInHand
from functions.aws.lease import Lease
from functions.aws.letter_batches import Destination, Lanes, Sent, send
from functions.aws.letters_shown import MOST_RECEIVED, LettersShown
from functions.aws.moved import Moved, settle, why_unfit
from functions.healing.letters import Letter

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

# What a crash costs: nobody sees what was in hand for so long.
LEASE_SECONDS = 120
# How many letters are looked at, and held, at once.
MOST_IN_HAND = 5_000


class Hand:
    """Letters taken out of one queue and kept from everybody else until they are put somewhere.

    A context manager; leaving it makes visible again whatever is still in hand. `lease_seconds` is
    what a crash hides them for, `wait_seconds` how long a receive waits for a first letter. Looking
    is receiving: a queue with a RedrivePolicy of its own would have letters taken from it for being
    looked at.
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
        self._sqs, self._groups = sqs, GroupsInHand()
        self._lease = Lease(sqs, queue_url, seconds=lease_seconds, clock=clock)
        self._shown = LettersShown(
            sqs, queue_url, self._lease, self._groups, wait_seconds=wait_seconds
        )
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
            received = self._shown.more(most - len(self._ready))
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
        stays = [each for letter in batch if (each := why_unfit(letter, held, to))]
        unfit = {each.message_id for each in stays}
        goes = [each for each in batch if each.message_id not in unfit]
        sent = send(self._sqs, goes, to) if goes else Sent({})
        self._sent |= sent.copies.keys()
        self._copies |= set(sent.copies.values())
        gone = self._lease.delete(*sent.copies) if sent.copies else frozenset[str]()
        self._groups.lose(letter for letter in goes if letter.message_id in gone)
        passing = frozenset(each.message_id for each in (*stays, *sent.refused) if each.passes)
        waits = tuple(
            settle(batch, gone, lanes, passing | sent.copies.keys(), is_hopeless=sent.is_hopeless)
        )
        went = [each for each in goes if each.message_id in sent.copies]
        return Moved(
            moved=len(gone),
            copied=len(sent.copies) - len(gone),
            copies=tuple(sent.copies.values()),
            unmarked=tuple(each.fingerprint for each in went if not to.can_mark(each)),
            failed=(*stays, *sent.refused, *waits),
        )

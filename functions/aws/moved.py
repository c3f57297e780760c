"""What became of letters that were to go on: moved, copied, or why not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from functions.aws.letter_batches import Destination, Lanes, NotMoved, too_long
from functions.healing.letters import Letter


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


def why_unfit(letter: Letter, held: frozenset[str], to: Destination) -> NotMoved | None:
    """Why it is not even to be sent; `held` are the message ids that are in hand still."""
    if letter.message_id not in held:
        reason = "its lease was over before it was sent"
        return NotMoved(letter.message_id, "lost", reason, passes=True)
    return too_long(letter, to)


def settle(
    batch: Sequence[Letter],
    gone: frozenset[str],
    lanes: Lanes,
    passing: frozenset[str],
    *,
    is_hopeless: bool,
) -> Iterator[NotMoved]:
    """Take what has gone out of the lanes; yields what has to wait because of what did not go.

    `passing` are those that may go later; where it `is_hopeless`, nothing else is to be tried.
    """
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

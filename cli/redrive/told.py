"""How a redrive ended, in numbers and words."""

from __future__ import annotations

from dataclasses import dataclass

from cli.exit_codes import Exit
from cli.output import Output
from cli.redrive.cures import cure
from cli.redrive.passes import Done
from cli.redrive.route import Route
from functions.healing.letters import HOPS
from functions.healing.plain_text import counted, plain

_MOST_FAILURES = 5


@dataclass(frozen=True)
class Ended:
    """`matched` letters were asked for of all that are `there`; `fault` says why it ended early.

    `hidden` of those that are there were in somebody else's hand, and nobody could look at them.
    """

    done: Done
    matched: int
    there: int
    hidden: int = 0
    fault: str = ""

    @property
    def moved(self) -> int:
        return self.done.moved + self.done.copied

    @property
    def left(self) -> int:
        """Those that are still there and that were not tried."""
        return self.there - self.moved - len(self.done.failed)

    @property
    def matching_left(self) -> int:
        """Those of them that are known to match."""
        return max(0, min(self.left, self.matched - self.done.tried))

    @property
    def exit(self) -> Exit:
        return Exit.FAILED if self.fault or self.done.failed else Exit.DONE

    def document(self, done: str = "moved") -> dict[str, int]:
        """`done` is what the letters were that did not stay."""
        failed = len(self.done.failed)
        return {"matched": self.matched, done: self.moved, "left": self.left, "failed": failed}


def told_of_nothing(out: Output, ended: Ended, done: str = "moved") -> Exit:
    """Where nothing is done: what would be, or that there is nothing."""
    out.document(ended.document(done))
    if not ended.matched:
        which = "letter that can be seen" if ended.hidden else "letter"
        out.say(f"no {which} matches: there is nothing to do", "yellow")
    out.say(f"nothing was {done}; each letter that was looked at counts a receive more", "dim")
    return Exit.DONE


def tell(out: Output, route: Route, ended: Ended) -> Exit:
    """What became of the letters that were to go back."""
    out.document(ended.document())
    done = ended.done
    out.say(
        f"{counted(ended.moved, 'letter')} sent back, {len(done.failed):,} failed, "
        f"{left_in(route, ended)}",
        "green" if ended.exit is Exit.DONE else "red",
    )
    if done.copied:
        out.say(
            f"{done.copied:,} of them could not be deleted from {route.letters.name} and are there "
            "as well: delete them there, or they are handled twice",
            "yellow",
        )
    if done.unmarked:
        out.say(f"{done.unmarked:,} of them had no room for {HOPS} and went without it", "yellow")
    tell_faults(out, route, ended)
    return ended.exit


def left_in(route: Route, ended: Ended) -> str:
    """How many stay, how many of them were asked for, and how many nobody could look at."""
    matching, hidden = ended.matching_left, ended.hidden
    verb = "matches" if matching == 1 else "match"
    more = [f"{matching:,} of them {verb}"] if matching else []
    more += [f"{hidden:,} of them hidden in somebody else's hand"] if hidden else []
    return ", ".join([f"{ended.left:,} left in {route.letters.name}", *more])


def tell_faults(out: Output, route: Route, ended: Ended) -> None:
    """What did not go and why, and what would let it."""
    done = ended.done
    for each in list(done.failed.values())[:_MOST_FAILURES]:
        out.under(plain(f"{each.message_id}: {each.code}: {each.reason}", 400), "red")
    if len(done.failed) > _MOST_FAILURES:
        out.under(f"and {len(done.failed) - _MOST_FAILURES:,} more", "red")
    cures = (cure(each.code, each.reason, route) for each in done.failed.values())
    for words in dict.fromkeys(each for each in cures if each):
        out.under(words)
    if ended.fault:
        out.say(ended.fault, "red")

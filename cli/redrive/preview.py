"""What a redrive would send back, for whoever is asked: counts and a few ids, never a body."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice

from rich.text import Text

from cli.output import Output, table
from cli.redrive.route import Route
from cli.redrive.selection import AGES, MOST_SAMPLES, Standing, Tally
from functions.healing.letters import HOPS
from functions.healing.plain_text import counted, plain
from functions.healing.retention_clock import left_of

_MOST_ROWS = 10
_MOST_ERRORS = 3


def print_preview(out: Output, route: Route, tally: Tally, limit: int | None) -> None:
    """What was seen, what of it goes, and what whoever says yes should know.

    A route that leads nowhere else is that of letters that are to be deleted.
    """
    chosen, seen = len(tally.chosen), len(tally.seen)
    to = "deleted" if route.leads_nowhere else route.source.name
    out.say(f"{route.letters.name} -> {to}", "bold")
    first = "" if limit is None or limit >= chosen else f", the first {limit:,} go"
    out.say(f"{counted(seen, 'letter')} seen, {counted(chosen, 'matches', 'match')}{first}")
    _hidden(out, route, tally)
    _first_to_expire(out, route, tally)
    if chosen:
        _groups(out, tally)
        out.say("for example", "dim")
        for each in islice(tally.chosen, MOST_SAMPLES):
            out.whole(each, indent=2)
    notes = (*_of_what_stays(route, tally), *_of_what_goes(route, tally))
    out.lines(("-", "dim", each) for each in notes)


def _first_to_expire(out: Output, route: Route, tally: Tally) -> None:
    """In colour where there is no time to lose."""
    kept = route.letters.attributes.get("MessageRetentionPeriod")
    if tally.oldest_at is None or kept is None:
        return
    left = left_of(tally.oldest_at, int(kept), tally.selection.now)
    words = f"the oldest expires {left}" if left.at_most else "the oldest may expire any moment"
    out.say(words, "yellow" if left.is_urgent else "dim")


def _groups(out: Output, tally: Tally) -> None:
    shown = table("LETTERS", "WHICH")
    for written, values in tally.values.items():
        for words, number in _most(values):
            shown.add_row(Text(f"{number:>7,}"), Text(plain(f"{written} {words}", 160)))
    for _, words in (*AGES, (0, "over 4 d")):
        if number := tally.ages[words]:
            shown.add_row(Text(f"{number:>7,}"), Text(f"age {words}"))
    out.show(shown)


def _hidden(out: Output, route: Route, tally: Tally) -> None:
    """They may match as well, and nobody can look at them now."""
    letters = route.letters
    if hidden := letters.unseen(len(tally.seen)):
        seconds = int(letters.attributes.get("VisibilityTimeout", "30"))
        after = f"{counted(seconds, 'second')} after they were received where nobody said otherwise"
        words = "more are hidden, in somebody else's hand: they can be seen again when that is over"
        out.say(f"{hidden:,} {words}, {after}", "yellow")


def _most(values: Counter[str]) -> Iterator[tuple[str, int]]:
    yield from values.most_common(_MOST_ROWS)
    rest = values.most_common()[_MOST_ROWS:]
    if rest:
        yield f"({len(rest)} other values)", sum(number for _, number in rest)


def _of_what_stays(route: Route, tally: Tally) -> Iterable[str]:
    name = route.letters.name
    judged = counted(
        tally.standings[Standing.CHOSEN] + tally.standings[Standing.NOT_MATCHING], "letter"
    )
    for way, missing in tally.missing.items():
        yield f"{way} is missing in {missing:,} of {judged}"
    for error, failed in tally.errors.most_common(_MOST_ERRORS):
        yield f"the filter could not be evaluated for {failed:,} of {judged}: {plain(error, 200)}"
    if others := tally.standings[Standing.OF_ANOTHER_SOURCE]:
        stay = f"{_it(others)} here"
        yield f"{counted(others, 'letter')} died in another queue that shares {name}: {stay}"
    if unsaid := tally.standings[Standing.OF_NO_SOURCE]:
        yield (
            f"somebody sent {counted(unsaid, 'letter')} to {name} by hand: SQS does not say for "
            f"which of its {len(route.others) + 1} sources, so {_it(unsaid)} here. Whoever knows "
            "receives them and sends them there by hand"
        )


def _it(letters: int, one: str = "stays", many: str = "stay") -> str:
    return f"it {one}" if letters == 1 else f"they {many}"


def _of_what_goes(route: Route, tally: Tally) -> Iterable[str]:
    if not tally.chosen:
        return
    if route.leads_nowhere:
        yield from _of_what_is_deleted(route, tally)
        return
    source = route.source
    if tally.unsigned:
        yield (
            f"somebody sent {tally.unsigned:,} of them to {route.letters.name} by hand: its only "
            f"source is {source.name}, so {_it(tally.unsigned, 'goes', 'go')} there as well"
        )
    if tally.sent_back_before:
        yield (
            f"{tally.sent_back_before:,} of them were sent back before ({HOPS}) and died again: "
            "see first whether their cause is mended"
        )
    yield "each gets a new message id and a new time of sending"
    if source.is_fifo:
        yield (
            f"their order mixes with newer messages: {counted(len(tally.chosen), 'letter')} of "
            f"{counted(len(tally.groups), 'group')} go behind the {source.waiting:,} that wait in "
            f"{source.name} and whatever is sent meanwhile"
        )
        yield (
            "a FIFO queue shows no more of a group than its first ten letters: what stands behind "
            "them is looked at when they have gone"
        )


def _of_what_is_deleted(route: Route, tally: Tally) -> Iterable[str]:
    yield "what is deleted is in the file alone: nothing brings it back into a queue by itself"
    if route.letters.is_fifo:
        letters, groups = counted(len(tally.chosen), "letter"), counted(len(tally.groups), "group")
        yield f"they are {letters} of {groups}, and more may stand behind a group's first ten"

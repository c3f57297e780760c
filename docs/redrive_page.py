"""The page of a redrive's stages, from the table that moves them."""

from __future__ import annotations

from collections.abc import Iterable

from states_page import table

from functions.healing.redrive_bounds import LOWEST_SOAK_FACTOR, Bounds
from functions.healing.redrive_machine import TABLE
from functions.healing.redrive_progress import ENDED, Stage

BOUNDS = Bounds()
HEAD = f"""# The stages of a redrive

<!-- Derived from functions/healing by `make docs`: change it there. -->

Dead-letter messages go back a few at first, and more only while they stay away. `follow_up` calls
the redrive Lambda each minute; each call looks at both queues and at what the case store says, and
does what the first row that fits says. It writes down what it is about to do before it does it: a
call that dies half-way leaves no message lost, at worst one twice, which is what SQS promises too.

- **Canary.** {BOUNDS.canary} messages. Each next stage is {BOUNDS.growth} times what the one before
  has proven. Mendq's own mover sends them all, each with the attribute `mendq.hops`.
- **Soak.** After every stage, for `timing.soakFactor` (at least {LOWEST_SOAK_FACTOR}, as shipped)
  times maxReceiveCount times the visibility timeout, for the source's delay, and for as long as its
  consumers need for what stood before it: so long a poison message may take until it is back. A
  consumer that extends its messages' visibility timeouts makes it take longer; what comes back
  later still counts while the redrive lasts.
- **Speed.** {BOUNDS.rate_share:.0%} of what the source's consumers deleted in the last
  {BOUNDS.measuring_seconds // 60} minutes, or since messages went back last where that is longer
  ago; {BOUNDS.mover_per_tick:,} a minute at most, and one a minute at least. Where nothing is
  deleted, nothing is sent; after {BOUNDS.patience_seconds // 60} minutes of that it halts.
  A redrive that could not end at that speed before messages expire is refused before it begins.
- **Somebody else's redrive.** While a message movement task of SQS's own runs on the dead-letter
  queue, nothing is looked at and nothing is sent; it goes on when that is over.
- **Halt.** When {BOUNDS.halt_returned} came back, or {BOUNDS.halt_share:.0%} of what was moved and
  at least one; or when {BOUNDS.halt_returned} messages have newly died. The rest stays where it is.
- **Out of sight.** While AWS does not let it see the queues or their messages, or keep apart what
  came back, nothing is sent. It goes on when that has passed; after
  {BOUNDS.patience_seconds // 60} minutes it halts, as it does where SQS takes none of the messages
  that are left. What a queue's own policy forbids, a queue that was deleted and made again, or a
  progress that cannot be read halts it at once.

## What stays

Messages of which SQS does not say that they died in the source: somebody has sent them to the
dead-letter queue by hand, or they were another's. Those longer than the source takes stay as well.
A redrive leaves them where they are, and says at its end how many; `mendq redrive SOURCE --all`
takes along what was sent there by hand, where the queue has one source alone.

## What counts as back

A message with the mark; one that could bear none, because it has ten attributes or is as long as
the queue allows, by its fingerprint in the case store, as often as such messages went and where it
was sent since. What came back lies in `<source>-quarantine` with why and when, and never goes back
by itself.

Of a FIFO queue's group SQS hands out the first messages alone until they are gone. There, and in a
queue of more than {BOUNDS.census:,} messages, those more than there should be count as well, once
the soak is over.
"""


def redrive_page() -> str:
    """Markdown: the rules in words, a picture, the rows."""
    legend = "Of a stage's rows the first that fits is taken. Where no stage follows, it stays.\n"
    parts = (HEAD, "## The picture\n", _picture(), "## The rows\n", legend)
    return "\n".join([*parts, table(("at", "when", "it does", "then"), _rows())])


def _rows() -> Iterable[tuple[str, ...]]:
    for row in TABLE:
        at = ", ".join(f"`{each}`" for each in row.out_of)
        then = f"`{row.into}`" if row.into else ""
        yield at, row.when.__doc__ or "", row.does.__doc__ or "", then


def _picture() -> str:
    """As GitHub draws it."""
    moves = dict.fromkeys(
        (out, row.into) for row in TABLE if row.into for out in row.out_of if out is not row.into
    )
    lines = [f"    {out} --> {into}" for out, into in moves]
    ends = [f"    {each} --> [*]" for each in Stage if each in ENDED]
    picture = ["```mermaid", "stateDiagram-v2", f"    [*] --> {Stage.CANARY}", *lines, *ends]
    return "\n".join([*picture, "```", ""])

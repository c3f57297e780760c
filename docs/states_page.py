"""The page of a case's states, from the tables that move cases."""

from __future__ import annotations

from collections.abc import Iterable

from functions.healing.advance import TABLE
from functions.healing.case import SILENT_DAYS, longest_in
from functions.healing.limits import Timing
from functions.healing.moves import MOVES, Who
from functions.healing.signs import CLOUDTRAIL_LAG, PROVING
from functions.healing.states import FINAL, State

HEAD = f"""# The states of a case

<!-- Derived from functions/healing by `make docs`: change it there. -->

A case is the life of one (queue, symptom). Each change of its state is written into the ledger and
the case bucket, and only where nobody else has moved it meanwhile. `follow_up` looks at the open
cases each minute, and what it does is the first of its rows that fits; everything else is the doing
of heal or of a person, who ask the queue anew.

A change has arrived after `propagationSeconds`, and where it was a visibility timeout after the
longer of the two leases besides. CloudTrail's time is {CLOUDTRAIL_LAG.seconds // 60} minutes. The
days of silence are {SILENT_DAYS}.

Sending dead letters back takes as long as it takes: such a case stays `applied` meanwhile, and
`follow_up`, which has only the row of a queue that is gone for it, calls the owner each minute.
"""

LEFT_OUT = """Left out of it: a case that has written may be rolled back; where a run died at its
write, it may be contested by whoever comes next; and a person may close a case of a symptom that
this version knows no more.
"""


def states_page() -> str:
    """Markdown: a picture, the rows, and how long a case may stay."""
    parts = (
        HEAD,
        "## The picture\n",
        _picture(),
        LEFT_OUT,
        "## What moves a case\n",
        table(("out of", "into", "who", "when", "because"), _rows()),
        "## How long it may stay\n",
        "With the default settings. What is not here stays until a person or the queue ends it.\n",
        table(("state", "longest", "then"), _stays()),
        f"Final: {', '.join(_code(each) for each in State if each in FINAL)}.\n",
    )
    return "\n".join(parts)


def _rows() -> Iterable[tuple[str, ...]]:
    for move in MOVES:
        out_of = ", ".join(map(_code, move.out_of)) or "opens"
        yield out_of, _code(move.into), move.who, "", move.because
    for row in TABLE:
        when = (row.when.__doc__ or "").rstrip(".")
        out_of = ", ".join(map(_code, row.out_of))
        yield out_of, _code(row.into), Who.FOLLOW_UP, when, row.because


def _stays() -> Iterable[tuple[str, ...]]:
    timing = Timing()
    for state in State:
        longest = longest_in(state, timing)
        if longest is None:
            continue
        into = [_code(each.into) for each in TABLE if state in each.out_of]
        yield _code(state), f"{longest.total_seconds() / 3600:g} h", into[-1]


def _picture() -> str:
    """As GitHub draws it, without what may happen to nearly every case."""
    drawn = [move for move in MOVES if not {*PROVING} <= {*move.out_of}]
    arrows = [(state, move.into, move.who) for move in drawn for state in move.out_of or ("[*]",)]
    arrows += [(state, row.into, Who.FOLLOW_UP) for row in TABLE for state in row.out_of]
    ends = [(state, "[*]", "") for state in State if state in FINAL]
    lines = [f"    {a} --> {b}" + (f": {who}" if who else "") for a, b, who in [*arrows, *ends]]
    return "\n".join(["```mermaid", "stateDiagram-v2", *dict.fromkeys(lines), "```", ""])


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Markdown: a line for each row below the head."""
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(each)} |\n" for each in lines)


def _code(state: State) -> str:
    return f"`{state}`"

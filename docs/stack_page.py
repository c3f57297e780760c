"""The stack as a picture and as tables, from the template that would be deployed."""

from __future__ import annotations

from collections.abc import Mapping

from stack_outline import resources

from infra.diagram.arrows import WATCHES, arrows
from infra.diagram.cards import sections
from infra.diagram.drawing import drawing, in_words
from infra.diagram.names import left_out
from infra.diagram.queues import parked_in

TITLE = "What starts each part of Mendq's stack, and what it touches"
HEAD = """# The stack

<!-- Derived from the template by `make docs`: change the stack there. -->

What one `make cdk ARGS=deploy` puts into an account and region: what starts each part, and what its
role lets it touch. Drawn from the template with `tagMayRaiseTo` at `heal`; with `observe` alone,
the default, no role may write to a queue of yours. What each part costs: [cost.md](cost.md).

Left out: {left_out}. The {parking} queues that things are only parked in have no card: the part
that parks in one says so. Alarms watch {watched} of them.

<picture>
  <source media="(max-width: 700px)" srcset="stack-narrow.svg">
  <img src="stack.svg" alt="What starts each part and what it touches, as in the tables below">
</picture>
"""


def stack_documents() -> Mapping[str, str]:
    """The page and both pictures, by the name of the file."""
    found = sections(resources())
    return {
        "stack.md": "\n".join((_head(), *in_words(found), "")),
        "stack.svg": drawing(found, 2, TITLE),
        "stack-narrow.svg": drawing(found, 1, TITLE),
    }


def _head() -> str:
    ways = tuple(arrows(resources()))
    parking = parked_in(ways)
    watched = parking & {each.source for each in ways if each.does == WATCHES}
    *others, last = left_out(resources())
    return HEAD.rstrip().format(
        left_out=f"{', '.join(others)} and {last}",
        parking=len(parking),
        watched="each" if watched == parking else len(watched),
    )

"""The part of docs/cost.md that the template and the price list tell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import groupby

from cli.cost import bill
from cli.cost.bill import Deployed, Line, with_and_without_dashboard
from cli.cost.view import dollars
from infra.node import require_node
from infra.prices import DASHBOARD_MONTH, EVERY, NOTED_ON, REGION
from infra.settings import read

BEGIN = "<!-- derived: the stack and the prices (make docs) -->"
END = "<!-- end: the stack and the prices -->"
IDLE_BEGIN = "<!-- derived: the idle stack (make docs) -->"
IDLE_END = "<!-- end: the idle stack -->"


def stack_cost() -> str:
    """Markdown: the stack as it ships, a million calls, and the prices behind both."""
    return "\n".join(parts(_as_it_ships()))


def idle_stack() -> str:
    """The page's first figures."""
    return idle_words(_as_it_ships())


@cache
def _as_it_ships() -> Deployed:
    require_node()
    from infra.outline import outline  # noqa: PLC0415 - the CDK: it starts Node

    return Deployed(outline(read({}), REGION))


def idle_words(stack: Deployed) -> str:
    """What it costs with its dashboard and without."""
    with_one, without = (dollars(each) for each in with_and_without_dashboard(bill.lines(stack)))
    free = DASHBOARD_MONTH.given
    return (
        f"The stack costs **{with_one}** a month while nothing fails, or **{without}** without its "
        f"dashboard (`dashboard`: false in the [settings](settings.md)). AWS gives {free} "
        f"dashboards to each payer; every further one is ${DASHBOARD_MONTH.dollars:.2f}, so of the "
        f"stacks on one bill at most {free} have theirs for nothing."
    )


def parts(stack: Deployed) -> Iterator[str]:
    """Raises ValueError where nobody has said what a resource type costs."""
    found = bill.lines(stack)
    if unknown := bill.not_priced(stack):
        raise ValueError(f"cli/cost/bill.py says nothing of {', '.join(unknown)}")
    yield _lines(found)
    beyond = dollars(sum(each.beyond for each in found))
    yield (
        f"\nThat is {beyond} where nothing else on the bill uses up what AWS gives: the last "
        "column of [the prices](#the-prices). It is given once to each payer, so that of the "
        "stacks in an organization's accounts and regions one may cost that little, not each.\n"
    )
    yield "Nothing while nothing fails:\n"
    yield from _free(stack)
    yield "\n## A million calls watched\n"
    yield _lines(bill.watched())
    yield "\nOnly calls that fail go on to Mendq. A million of *failed* ones costs besides:\n"
    yield _lines(bill.failed())
    yield f"\n## The prices\n\nOf {REGION}, noted {NOTED_ON}.\n"
    yield _table(
        ("of what", "price", "given to each payer, a month"),
        [
            (f"[{each.unit}]({each.page})", each.words, f"{each.given:,}" if each.given else "-")
            for each in EVERY
        ],
    )


def _lines(lines: Sequence[Line]) -> str:
    rows = [(each.what, each.quantity, dollars(each.dollars), each.because) for each in lines]
    whole = ("**together**", "", f"**{dollars(sum(each.dollars for each in lines))}**", "")
    return _table(("of what", "how much", "dollars", "because"), [*rows, whole])


def _free(stack: Deployed) -> Iterator[str]:
    by_reason = sorted(bill.free(stack).items(), key=lambda each: each[1])
    for reason, types in groupby(by_reason, key=lambda each: each[1]):
        yield f"- {', '.join(f'`{name}`' for name, _ in types)}: {reason}"


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    rule = ["---:" if each == "dollars" else "---" for each in headings]
    return "\n".join(f"| {' | '.join(row)} |" for row in (headings, rule, *rows))

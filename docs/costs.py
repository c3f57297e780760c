"""The part of docs/cost.md that the template and the price list tell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from docs.stack_outline import template
from docs.tables import code, table
from mendq.cli.cost import bill
from mendq.cli.cost.bill import (
    MONTH_HOURS,
    POLLERS,
    Deployed,
    Line,
    with_and_without_dashboard,
)
from mendq.cli.cost.view import dollars
from mendq.model.prices import (
    DASHBOARD_MONTH,
    DATA_EVENT,
    EVERY,
    METRIC_MONTH,
    NOTED_ON,
    OPT_IN_EVENT,
    REGION,
)
from tests.prove.scale import Month

_WATCHED = f"""
## A million calls watched

CloudTrail takes **${DATA_EVENT.of(1e6):.2f}**, again for every other trail that logs them; their
files cost a cent for three months. EventBridge takes nothing for what AWS's services send; if your
bill counts data events as opted into, {OPT_IN_EVENT.words}. Only calls that fail go on to Mendq: a
million of *failed* ones costs about two dollars besides, for the intake queue, heal and the case
store."""


def idle_stack(stack: Sequence[Deployed] = ()) -> str:
    """What the stack costs with its dashboard, without, and with the essential alarms alone.

    `stack` is the first of them, and the last.
    """
    whole, lean = stack or map(
        Deployed, (template(), template(alarms="essential", dashboard=False))
    )
    lines = bill.lines(whole)
    with_one, without = (dollars(each) for each in with_and_without_dashboard(lines))
    least = sum(each.dollars for each in bill.lines(lean))
    # Lambda's pollers, and at most three looks of the scan an hour; its first managed queue is a
    # series more.
    calls = (POLLERS * 3 * 60 + 3) * MONTH_HOURS
    watched = dollars(least + METRIC_MONTH.of(1) + DATA_EVENT.of(calls))
    free = DASHBOARD_MONTH.given
    return (
        f"The stack costs **{with_one}** a month while nothing fails, or **{without}** without its "
        f"dashboard (`dashboard`: false in the [settings](settings.md)). AWS gives {free} "
        f"dashboards to each payer; every further one is ${DASHBOARD_MONTH.dollars:.2f}, so of the "
        f"stacks on one bill at most {free} have theirs for nothing. With the essential "
        f"[alarms](alarms.md#the-essential-ones) alone (`alarms`: essential), and without the "
        f"dashboard, it is **{dollars(least)}**, and **{watched}** with every call of one quiet "
        f"queue logged: {calls:,} a month, nearly all of them by Lambda's idle pollers."
    )


def many(stacks: str, queues: str) -> str:
    """What so many stacks cost together while nothing fails, without and with their scans."""
    ways = [Month(int(queues), alarms=each) for each in ("full", "essential")]
    said = ("before the hourly scans", f"with those of {queues} managed queues in each")
    sums = zip(said, ([e.idle() for e in ways], [e.dollars for e in ways]), strict=True)
    rows = [(what, *(dollars(int(stacks) * each) for each in of)) for what, of in sums]
    return table("a month|#without dashboards|#the same, `alarms`: essential", rows)


def stack_and_prices(stack: Deployed | None = None) -> str:
    """The stack as it ships, a million calls, and the prices behind both."""
    return "\n".join(_parts(stack or Deployed(template())))


def _parts(stack: Deployed) -> Iterator[str]:
    """Raise ValueError where nobody has said what a resource type costs."""
    found = bill.lines(stack)
    if unknown := bill.not_priced(stack):
        raise ValueError(f"mendq/cli/cost/bill.py says nothing of {', '.join(unknown)}")
    yield _bill(found)
    billed = (of for each in found for of in each.billed.items())
    beyond = dollars(sum(price.beyond(units) for price, units in billed))
    yield (
        f"\nThat is {beyond} where nothing else on the bill uses up what AWS gives: the last "
        "column of [the prices](#the-prices). It is given once to each payer, so that of the "
        "stacks in an organization's accounts and regions one may cost that little, not each.\n"
    )
    yield "Nothing while nothing fails:\n"
    by_reason = sorted(bill.free(stack).items(), key=lambda each: each[1])
    for reason, types in groupby(by_reason, key=lambda each: each[1]):
        yield f"- {code(name for name, _ in types)}: {reason}"
    yield _WATCHED
    yield f"\n## The prices\n\nOf {REGION}, noted {NOTED_ON}.\n"
    rows = (
        (f"[{each.unit}]({each.page})", each.words, f"{each.given:,}" if each.given else "-")
        for each in EVERY
    )
    yield table("of what|price|given to each payer, a month", rows)


def _bill(lines: Sequence[Line]) -> str:
    rows = [(each.what, each.quantity, dollars(each.dollars), each.because) for each in lines]
    whole = ("**together**", "", f"**{dollars(sum(each.dollars for each in lines))}**", "")
    return table("of what|how much|#dollars|because", [*rows, whole])

"""The figures of docs/cost.md and docs/stacksets.md, from the template and the price list."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from docs.stack_outline import template
from docs.tables import code, table
from mendq.cli.cost import bill
from mendq.cli.cost.bill import MONTH_HOURS, POLLERS, BilledStack, with_and_without_dashboard
from mendq.cli.cost.view import format_dollars
from mendq.model.prices import (
    ALL_PRICES,
    DASHBOARD_MONTH,
    DATA_EVENT,
    METRIC_MONTH,
    NOTED_ON,
    OPT_IN_EVENT,
    REGION,
)
from tests.prove.scale import Month

# Of a month and a quiet queue: Lambda's pollers, and at most three looks of the scan an hour.
QUIET_CALLS = (POLLERS * 3 * 60 + 3) * MONTH_HOURS
_MILLION = 1e6


def number(name: str, stacks: Sequence[BilledStack] = ()) -> str:
    """One that stands in a sentence: of the stack as it ships, or of the one that costs least."""
    whole, least = stacks or map(
        BilledStack, (template(), template(alarms="essential", dashboard=False))
    )
    lines = bill.list_costs(whole)
    with_dashboard, without_dashboard = with_and_without_dashboard(lines)
    at_least = sum(each.dollars for each in bill.list_costs(least))
    billed = (of for each in lines for of in each.billed.items())
    found = {
        "with_dashboard": with_dashboard,
        "without_dashboard": without_dashboard,
        "dashboard": DASHBOARD_MONTH.dollars,
        "dashboards": DASHBOARD_MONTH.given,
        "least": at_least,
        # The first managed queue is a series more.
        "watched": at_least + METRIC_MONTH.of(1) + DATA_EVENT.of(QUIET_CALLS),
        "quiet_calls": QUIET_CALLS,
        "beyond": sum(price.beyond(units) for price, units in billed),
        "million": DATA_EVENT.of(_MILLION),
        "million_opted": OPT_IN_EVENT.of(_MILLION),
    }[name]
    return f"{found:,}" if isinstance(found, int) else format_dollars(found)


def many(stacks: str, queues: str) -> str:
    """What so many stacks cost together while nothing fails, without and with their scans."""
    ways = [Month(int(queues), alarms=each) for each in ("full", "essential")]
    said = ("before the hourly scans", f"with those of {queues} managed queues in each")
    sums = zip(said, ([e.idle() for e in ways], [e.dollars for e in ways]), strict=True)
    rows = [(what, *(format_dollars(int(stacks) * each) for each in of)) for what, of in sums]
    return table("a month|#without dashboards|#the same, `alarms`: essential", rows)


def billed(stack: BilledStack | None = None) -> str:
    """The stack as it ships; raise ValueError where nobody has said what a resource type costs."""
    stack = stack or BilledStack(template())
    lines = bill.list_costs(stack)
    if unknown := bill.list_unpriced_types(stack):
        raise ValueError(f"mendq/cli/cost/bill.py says nothing of {', '.join(unknown)}")
    rows = [
        (each.what, each.quantity, format_dollars(each.dollars), each.because) for each in lines
    ]
    whole = ("**together**", "", f"**{format_dollars(sum(each.dollars for each in lines))}**", "")
    return table("of what|how much|#dollars|because", [*rows, whole])


def free() -> str:
    """The resource types of the stack that cost nothing while nothing fails, by the reason."""
    by_reason = sorted(
        bill.list_free_types(BilledStack(template())).items(), key=lambda each: each[1]
    )
    reasons = groupby(by_reason, key=lambda each: each[1])
    return "\n".join(f"- {code(name for name, _ in types)}: {why}" for why, types in reasons)


def listed() -> str:
    """The price list."""
    rows = (
        (f"[{each.unit}]({each.page})", each.words, f"{each.given:,}" if each.given else "-")
        for each in ALL_PRICES
    )
    heads = "of what|price|given to each payer, a month"
    return f"Of {REGION}, noted {NOTED_ON}.\n\n{table(heads, rows)}"

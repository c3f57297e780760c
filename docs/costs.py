"""Make the figures of docs/cost.md and docs/stacksets.md from the template and the price list.

docs/derive.py inserts the result of each public function into the pages.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from docs.markdown import format_as_code, make_table
from docs.stack_outline import synthesize_template
from mendq.cli.cost import bill
from mendq.cli.cost.bill import (
    HOURS_PER_MONTH,
    BilledStack,
    count_idle_receives,
    sum_with_and_without_dashboard,
)
from mendq.cli.cost.scan_cost import estimate_scan_cost
from mendq.cli.cost.view import format_dollars
from mendq.cli.region_alarm import compute_alarm_prices
from mendq.model.limits import Limits
from mendq.model.mapping import (
    FEWEST_IDLE_POLLERS,
    FEWEST_POLLERS,
    IDLE_POLLERS_WITH_MAXIMUM_CONCURRENCY,
)
from mendq.model.prices import (
    ALL_PRICES,
    DASHBOARD_MONTH,
    DATA_EVENT,
    METRIC_MONTH,
    METRIC_READ,
    OPT_IN_EVENT,
    POLLER_UNIT_HOUR,
    PRICE_REGION,
    SQS_REQUEST,
)
from tests.prove.scale import Month

# The logged calls of a quiet queue in a month: those of Lambda's pollers, and the scan makes up to
# three calls an hour.
QUIET_CALLS = count_idle_receives(IDLE_POLLERS_WITH_MAXIMUM_CONCURRENCY) + 3 * HOURS_PER_MONTH
_MILLION = 1e6
# The queues for which docs/scan.md says what the scan costs.
_QUEUES_IN_USE = 500


def number(name: str, stacks: Sequence[BilledStack] = ()) -> str:
    """Return one figure for a sentence of the docs: an amount in dollars, or a count.

    Args:
        name: The name of the figure, a key of `figure_by_name`.
        stacks: The stack with default settings and the cheapest stack. If empty, both are
            synthesized.

    Raises:
        KeyError: There is no figure with this name.
    """
    if stacks:
        default_stack, cheapest_stack = stacks
    else:
        default_stack = BilledStack(synthesize_template())
        cheapest_stack = BilledStack(synthesize_template(alarms="essential", dashboard=False))
    cost_lines = bill.list_costs(default_stack)
    dollars_with_dashboard, dollars_without_dashboard = sum_with_and_without_dashboard(cost_lines)
    cheapest_stack_dollars = sum(cost.dollars for cost in bill.list_costs(cheapest_stack))
    dollars_beyond_free_units = 0.0
    for cost in cost_lines:
        for price, used_unit_count in cost.units_by_price.items():
            dollars_beyond_free_units += price.cost_beyond_free(used_unit_count)
    figure_by_name: dict[str, float] = {
        "with_dashboard": dollars_with_dashboard,
        "without_dashboard": dollars_without_dashboard,
        "dashboard": DASHBOARD_MONTH.dollars,
        "dashboards": DASHBOARD_MONTH.free_units,
        "least": cheapest_stack_dollars,
        # The first managed queue adds one metric series, and its quiet calls.
        "watched": cheapest_stack_dollars + METRIC_MONTH.cost(1) + DATA_EVENT.cost(QUIET_CALLS),
        "quiet_calls": QUIET_CALLS,
        "beyond": dollars_beyond_free_units,
        "million": DATA_EVENT.cost(_MILLION),
        "million_opted": OPT_IN_EVENT.cost(_MILLION),
    }
    figure = figure_by_name[name]
    return f"{figure:,}" if isinstance(figure, int) else format_dollars(figure)


def idle_queue(name: str) -> str:
    """Return one figure about Lambda's pollers on an idle queue, in a month.

    Raises:
        KeyError: There is no figure with this name.
    """
    most_receives = count_idle_receives(IDLE_POLLERS_WITH_MAXIMUM_CONCURRENCY)
    fewest_receives = count_idle_receives(FEWEST_IDLE_POLLERS)
    figure_by_name: dict[str, float] = {
        "receives_with_maximum": most_receives,
        "fewest_receives": fewest_receives,
        "more_receives": most_receives - fewest_receives,
        "dollars_of_more_receives": SQS_REQUEST.cost(most_receives - fewest_receives),
        "dollars_of_pollers": POLLER_UNIT_HOUR.cost(FEWEST_POLLERS * HOURS_PER_MONTH),
    }
    figure = figure_by_name[name]
    return f"{figure:,}" if isinstance(figure, int) else format_dollars(figure)


def many_stacks(stack_count_text: str, queue_count_text: str) -> str:
    """Return a table of the monthly costs of many stacks while no call fails.

    One row is without the hourly scans, the other with the scans of the given number of queues in
    each stack. Both arguments are numbers as text, from the mark in the page.
    """
    months_for_full_and_essential_alarms = [
        Month(int(queue_count_text), alarms=alarms) for alarms in ("full", "essential")
    ]
    number_of_stacks = int(stack_count_text)
    dollar_texts_without_scans = [
        format_dollars(number_of_stacks * month.idle())
        for month in months_for_full_and_essential_alarms
    ]
    dollar_texts_with_scans = [
        format_dollars(number_of_stacks * month.dollars)
        for month in months_for_full_and_essential_alarms
    ]
    rows = [
        ("before the hourly scans", *dollar_texts_without_scans),
        (f"with those of {queue_count_text} managed queues in each", *dollar_texts_with_scans),
    ]
    return make_table("a month|#without dashboards|#the same, `alarms`: essential", rows)


def stack_bill(stack: BilledStack | None = None) -> str:
    """Return a table of the monthly costs of a stack, by default of one with default settings.

    Raises:
        ValueError: The stack has a resource type whose cost is not known.
    """
    if stack is None:
        stack = BilledStack(synthesize_template())
    cost_lines = bill.list_costs(stack)
    unpriced_types = bill.list_unpriced_types(stack)
    if unpriced_types:
        raise ValueError(f"mendq/cli/cost/bill.py has no cost for {', '.join(unpriced_types)}")
    rows = [
        (cost.item, cost.quantity, format_dollars(cost.dollars), cost.reason) for cost in cost_lines
    ]
    total_text = format_dollars(sum(cost.dollars for cost in cost_lines))
    rows.append(("**together**", "", f"**{total_text}**", ""))
    return make_table("of what|how much|#dollars|because", rows)


def scan_only_bill() -> str:
    """Return a table of the monthly costs of a scan-only stack, without what the scan measures."""
    return stack_bill(BilledStack(synthesize_template(scanOnly=True)))


def scan_only_number(name: str) -> str:
    """Return one figure about a scan-only stack: an amount in dollars a month.

    Args:
        name: `stack` for the stack, `measuring` for the most that its scan may measure by default.

    Raises:
        KeyError: There is no figure with this name.
    """
    stack = BilledStack(synthesize_template(scanOnly=True))
    measured_metrics = Limits().scan_metrics_per_day * bill.DAYS_PER_MONTH
    figure_by_name = {
        "stack": sum(cost.dollars for cost in bill.list_costs(stack)),
        "measuring": METRIC_READ.cost(measured_metrics),
    }
    return format_dollars(figure_by_name[name])


def scan_number(name: str) -> str:
    """Return one figure about the deployed scan of 500 queues in use, a month in dollars.

    Args:
        name: A field of `ScanCost`, or `dollars` for the sum.

    Raises:
        AttributeError: There is no figure with this name.
    """
    cost = estimate_scan_cost(_QUEUES_IN_USE, Limits().scan_metrics_per_day)
    return format_dollars(getattr(cost, name))


def scan_pauses() -> str:
    """Return a table of the longest pause between two reads of a queue's sums."""
    metrics_per_day = Limits().scan_metrics_per_day
    rows = [
        (
            f"{queue_count:,}",
            f"{estimate_scan_cost(queue_count, metrics_per_day).longest_pause_hours:,} hours",
        )
        for queue_count in (500, 1_000, 2_000, 5_000, 10_000)
    ]
    return make_table("#queues in use|#longest pause", rows)


def free_types() -> str:
    """Return a list of the stack's resource types that cost nothing while no call fails."""
    types_by_reason = defaultdict[str, list[str]](list)
    for resource_type, reason in bill.list_free_types(BilledStack(synthesize_template())).items():
        types_by_reason[reason].append(resource_type)
    list_items = [
        f"- {format_as_code(resource_types)}: {reason}"
        for reason, resource_types in sorted(types_by_reason.items())
    ]
    return "\n".join(list_items)


def alarm_prices() -> str:
    """Return a table of the prices of alarms on the age of messages, by number of queues."""
    rows: list[tuple[str, ...]] = []
    for queue_count in (10, 40, 500):
        prices = compute_alarm_prices(queue_count)
        dollars = (
            prices.one_alarm_for_all,
            prices.threshold_alarms,
            prices.threshold_alarms_beyond_free,
            prices.band_alarms,
        )
        rows.append((f"{queue_count}", *map(format_dollars, dollars)))
    headings = (
        "queues|#one alarm for all, a month|#one threshold a queue|#the same, if nothing else uses "
        "the free alarm metrics|#one band a queue"
    )
    return make_table(headings, rows)


def price_list() -> str:
    """Return the price list as a table, with the region, and each price's page and date."""
    rows: list[tuple[str, str, str, str]] = []
    for price in ALL_PRICES:
        free_units = f"{price.free_units:,}" if price.free_units else "-"
        unit_link = f"[{price.unit}]({price.page})"
        rows.append((unit_link, price.words, free_units, price.noted_on))
    headings = "of what|price|given to each payer, a month|noted on"
    return f"Prices of {PRICE_REGION}.\n\n{make_table(headings, rows)}"

"""What `mendq cost` shows to people."""

from __future__ import annotations

from rich.text import Text

from mendq.cli.cost.bill import with_and_without_dashboard
from mendq.cli.cost.calls import ALL_CALLS, CHOICES, sort_symptoms_by_visibility
from mendq.cli.cost.gathered import CostReport
from mendq.cli.output import Output, make_table
from mendq.model.prices import DATA_EVENT, REGION
from mendq.model.queue import parts_of
from mendq.notifications.text import format_count, plain

_MOST_QUEUES = 20
_MOST_NAMED = 5


def show_costs(out: Output, found: CostReport) -> None:
    if found.stack:
        _show_stack(out, found)
    if found.queue_arns:
        _show_choices(out, found)
    elif not any(each.name == "the queues" for each in found.not_looked_at):
        out.say("no queue is managed: mendq cost --all counts every queue of the region", "yellow")
    if found.calls:
        _show_queues(out, found)
    _show_ends(out, found)


def _show_stack(out: Output, found: CostReport) -> None:
    out.say_heading("The stack, in a month in which nothing fails")
    shown = make_table("A MONTH", "WHAT", "HOW MUCH OF IT")
    for each in found.stack:
        shown.add_row(format_dollars(each.dollars), each.what, each.quantity)
    shown.add_row(format_dollars(found.stack_dollars), "all of it", "", style="bold")
    out.show(shown)
    if found.not_priced:
        out.say(f"not priced, which is not zero: {', '.join(found.not_priced)}", "yellow")
    with_one, without = map(format_dollars, with_and_without_dashboard(found.stack))
    out.say(f"{with_one} with a dashboard, {without} without: the setting `dashboard`", "dim")
    out.say("what is assumed, and what AWS gives each payer for nothing: docs/cost.md", "dim")


def _show_choices(out: Output, found: CostReport) -> None:
    calls, arns = list(found.calls.values()), found.queue_arns
    out.say_heading(f"What seeing the calls of {format_count(len(arns), 'queue')} costs")
    shown = make_table("A MONTH", "A TRAIL THAT LOGS", "SYMPTOMS WHOLLY", "IN PART", "BLIND")
    rows = [
        (each.dollars(calls), each.name, sort_symptoms_by_visibility(each, arns))
        for each in CHOICES
    ]
    for price, name, what in rows:
        counts = (str(len(each)) for each in (what.wholly, what.in_part, what.blind))
        shown.add_row(format_dollars(price if calls else None), name, *counts)
    out.show(shown)
    few = ((name, what.blind) for _, name, what in rows if 0 < len(what.blind) <= _MOST_NAMED)
    out.say_labelled([(name, "dim", f"blind: {', '.join(blind)}") for name, blind in few], indent=0)


def _show_queues(out: Output, found: CostReport) -> None:
    out.say_heading("By queue: dollars a month at most")
    shown = make_table("EVERY CALL", "NO RECEIVES", "RECEIVES IN VAIN", "QUEUE")
    by_price = sorted(found.calls.values(), key=lambda each: -ALL_CALLS.dollars([each]))
    for each in by_price[:_MOST_QUEUES]:
        prices = (format_dollars(each.dollars_a_month(one.event_names)) for one in CHOICES[:2])
        share = each.empty_share_of_receives
        in_vain = "-" if share is None else f"{share:.0%}"
        shown.add_row(*prices, in_vain, Text(plain(parts_of(each.queue_arn).name)))
    out.show(shown)
    if len(by_price) > _MOST_QUEUES:
        out.say(f"the dearest {_MOST_QUEUES} of {len(by_price):,}; --json has all", "dim")
    if silent := sum(not each.of_the_week for each in by_price):
        unused = f"SQS counted nothing on {format_count(silent, 'queue')} in a week"
        out.say(f"{unused}: they seem unused", "dim")
    for line in (
        "at most: a batch of ten is one call, and counts as ten here",
        "whether CloudTrail logs the calls of Lambda's own pollers is not documented: they count",
        f"on top come calls of which there is no metric: {', '.join(ALL_CALLS.uncounted)}",
    ):
        out.say(line, "dim")


def _show_ends(out: Output, found: CostReport) -> None:
    out.say("")
    for each in found.not_looked_at:
        out.say(f"not looked at: {each.name}: {plain(each.says, 300)}", "red")
        if each.remedy:
            out.say_indented(f"-> {plain(each.remedy, 300)}")
    if found.are_more:
        first = f"the first {found.most_queues:,} were counted, see --most"
        out.say(f"there are more queues: {first}", "yellow")
    out.say(DATA_EVENT.noted, "dim")
    if found.account.region != REGION:
        out.say(f"prices of {found.account.region} are not known here", "yellow")
    out.say(f"to count them this time cost ${found.asking_dollars:.4f}", "dim")


def format_dollars(amount: float | None) -> str:
    if amount is None:
        return "not known"
    return "under $0.01" if 0 < amount < 0.005 else f"${amount:,.2f}"

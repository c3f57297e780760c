"""Output of `mendq cost` for people."""

from __future__ import annotations

from rich.text import Text

from mendq.cli.cost.bill import with_and_without_dashboard
from mendq.cli.cost.calls import ALL_CALLS, CHOICES, NO_RECEIVES, sort_symptoms_by_visibility
from mendq.cli.cost.gathered import CostReport
from mendq.cli.output import LabelledLine, Output, make_table
from mendq.model.prices import DATA_EVENT, REGION
from mendq.model.queue import parts_of
from mendq.notifications.text import format_count, plain

_MOST_QUEUES = 20
_MOST_NAMED = 5


def show_costs(out: Output, report: CostReport) -> None:
    """Print the bill of the stack, what each choice of logged calls costs, and the queues."""
    if report.stack:
        _show_stack(out, report)
    if report.queue_arns:
        _show_choices(out, report)
    elif not any(check.name == "the queues" for check in report.not_looked_at):
        out.say("no queue is managed: mendq cost --all counts every queue of the region", "yellow")
    if report.calls:
        _show_queues(out, report)
    _show_notes(out, report)


def _show_stack(out: Output, report: CostReport) -> None:
    out.say_heading("The stack, in a month in which nothing fails")
    table = make_table("A MONTH", "WHAT", "HOW MUCH OF IT")
    for cost in report.stack:
        table.add_row(format_dollars(cost.dollars), cost.what, cost.quantity)
    table.add_row(format_dollars(report.stack_dollars), "all of it", "", style="bold")
    out.show(table)
    if report.not_priced:
        out.say(f"not priced, which is not zero: {', '.join(report.not_priced)}", "yellow")
    with_dashboard, without = with_and_without_dashboard(report.stack)
    with_text = format_dollars(with_dashboard)
    without_text = format_dollars(without)
    line = f"{with_text} with a dashboard, {without_text} without: the setting `dashboard`"
    out.say(line, "dim")
    out.say("what is assumed, and what AWS gives each payer for nothing: docs/cost.md", "dim")


def _show_choices(out: Output, report: CostReport) -> None:
    """Print the price of each choice of logged calls, and which symptoms it would not show."""
    calls = list(report.calls.values())
    queue_arns = report.queue_arns
    out.say_heading(f"What seeing the calls of {format_count(len(queue_arns), 'queue')} costs")
    table = make_table("A MONTH", "A TRAIL THAT LOGS", "SYMPTOMS WHOLLY", "IN PART", "BLIND")
    short_blind_lists = list[LabelledLine]()
    for choice in CHOICES:
        symptoms = sort_symptoms_by_visibility(choice, queue_arns)
        table.add_row(
            format_dollars(choice.dollars(calls) if calls else None),
            choice.name,
            str(len(symptoms.wholly)),
            str(len(symptoms.in_part)),
            str(len(symptoms.blind)),
        )
        if 0 < len(symptoms.blind) <= _MOST_NAMED:
            names = ", ".join(symptoms.blind)
            short_blind_lists.append((choice.name, "dim", f"blind: {names}"))
    out.show(table)
    out.say_labelled(short_blind_lists, indent=0)


def _show_queues(out: Output, report: CostReport) -> None:
    """Print the queues whose calls cost most to log, and how these numbers were counted."""
    out.say_heading("By queue: dollars a month at most")
    table = make_table("EVERY CALL", "NO RECEIVES", "RECEIVES IN VAIN", "QUEUE")
    by_price = sorted(
        report.calls.values(), key=lambda queue_calls: -ALL_CALLS.dollars([queue_calls])
    )
    for queue_calls in by_price[:_MOST_QUEUES]:
        share = queue_calls.empty_share_of_receives
        table.add_row(
            format_dollars(queue_calls.dollars_a_month(ALL_CALLS.event_names)),
            format_dollars(queue_calls.dollars_a_month(NO_RECEIVES.event_names)),
            "-" if share is None else f"{share:.0%}",
            Text(plain(parts_of(queue_calls.queue_arn).name)),
        )
    out.show(table)
    if len(by_price) > _MOST_QUEUES:
        out.say(f"the dearest {_MOST_QUEUES} of {len(by_price):,}; --json has all", "dim")
    if silent := sum(not queue_calls.week_by_metric for queue_calls in by_price):
        unused = f"SQS counted nothing on {format_count(silent, 'queue')} in a week"
        out.say(f"{unused}: they seem unused", "dim")
    for line in (
        "at most: a batch of ten is one call, and counts as ten here",
        "whether CloudTrail logs the calls of Lambda's own pollers is not documented: they count",
        f"on top come calls of which there is no metric: {', '.join(ALL_CALLS.uncounted_calls)}",
    ):
        out.say(line, "dim")


def _show_notes(out: Output, report: CostReport) -> None:
    """Print what could not be read, and the limits of the prices."""
    out.say("")
    for check in report.not_looked_at:
        out.say(f"not looked at: {check.name}: {plain(check.says, 300)}", "red")
        if check.remedy:
            out.say_indented(f"-> {plain(check.remedy, 300)}")
    if report.has_more_queues:
        first = f"the first {report.most_queues:,} were counted, see --most"
        out.say(f"there are more queues: {first}", "yellow")
    out.say(DATA_EVENT.note, "dim")
    if report.account.region != REGION:
        out.say(f"prices of {report.account.region} are not known here", "yellow")
    out.say(f"to count them this time cost ${report.asking_dollars:.4f}", "dim")


def format_dollars(amount: float | None) -> str:
    """Return an amount with cents. None means that it is not known."""
    if amount is None:
        return "not known"
    return "under $0.01" if 0 < amount < 0.005 else f"${amount:,.2f}"

"""Print the result of `mendq cost` for people."""

from __future__ import annotations

from rich.text import Text

from mendq.cli.account import SCAN_ONLY_TEXT
from mendq.cli.cost.bill import sum_with_and_without_dashboard
from mendq.cli.cost.calls import (
    ALL_CALLS_CHOICE,
    NO_RECEIVES_CHOICE,
    TRAIL_CHOICES,
    sort_symptoms_by_visibility,
)
from mendq.cli.cost.cost_report import CostReport
from mendq.cli.output import LabelledLine, Output, make_table
from mendq.model.prices import (
    DATA_EVENT,
    FIFO_SQS_REQUEST,
    OPT_IN_EVENT,
    PRICE_REGION,
    SQS_REQUEST,
)
from mendq.model.queue import parse_queue_arn
from mendq.notifications.text import format_count, to_terminal_text

_MAXIMUM_QUEUE_ROWS = 20
_MAXIMUM_NAMED_SYMPTOMS = 5


def print_costs(out: Output, report: CostReport) -> None:
    """Print the bill of the stack, the cost of logging calls, and the cost for each queue."""
    if report.stack_lines:
        _print_stack(out, report)
    if report.queue_arns:
        _print_choices(out, report)
    elif not any(check.name == "the queues" for check in report.unreadable_checks):
        out.say("no queue is managed: mendq cost --all counts every queue of the region", "yellow")
    if report.calls_by_queue:
        _print_queues(out, report)
    _print_notes(out, report)


def _print_stack(out: Output, report: CostReport) -> None:
    out.say_heading("The stack, in a month in which nothing fails")
    table = make_table("A MONTH", "WHAT", "HOW MUCH OF IT")
    for cost_line in report.stack_lines:
        table.add_row(format_dollars(cost_line.dollars), cost_line.item, cost_line.quantity)
    table.add_row(format_dollars(report.stack_dollars), "all of it", "", style="bold")
    out.show(table)
    if report.unpriced_types:
        out.say(f"not priced, which is not zero: {', '.join(report.unpriced_types)}", "yellow")
    measuring_dollars = report.most_measuring_dollars
    if measuring_dollars is not None:
        out.say(
            f"what the scan measures comes on top: at most {format_dollars(measuring_dollars)} a "
            "month (limits.scanMetricsPerDay); `mendq scan --dry-run` says what your queues take"
        )
    if scan_cost := report.scan_cost:
        queue_text = format_count(len(report.queue_arns), "queue")
        sums_text = format_dollars(scan_cost.sums_dollars)
        suspects_text = format_dollars(scan_cost.suspects_dollars)
        calls_text = format_dollars(scan_cost.sqs_dollars + scan_cost.lambda_dollars)
        out.say(
            f"of it, the sums of {queue_text} take at most {sums_text}, and {suspects_text} are "
            f"left for suspects; calls to SQS and the Lambda's time add about {calls_text}",
            "dim",
        )
    if report.is_stack_scan_only:
        out.say(f"the stack {SCAN_ONLY_TEXT}", "dim")
        return
    dollars_with_dashboard, dollars_without_dashboard = sum_with_and_without_dashboard(
        report.stack_lines
    )
    text_with_dashboard = format_dollars(dollars_with_dashboard)
    text_without_dashboard = format_dollars(dollars_without_dashboard)
    dashboard_text = (
        f"{text_with_dashboard} with a dashboard, {text_without_dashboard} without: "
        "the setting `dashboard`"
    )
    out.say(dashboard_text, "dim")
    out.say("what is assumed, and what AWS gives each payer for nothing: docs/cost.md", "dim")


def _print_choices(out: Output, report: CostReport) -> None:
    """Print what each choice of logged calls costs, and how many symptoms it would show.

    If a choice would hide at most five symptoms, print their names.
    """
    counted_queues = list(report.calls_by_queue.values())
    queue_arns = report.queue_arns
    if report.is_stack_scan_only:
        out.say("")
        out.say("The scan-only stack logs no call. Of a whole stack with a trail:", "yellow")
    out.say_heading(f"What seeing the calls of {format_count(len(queue_arns), 'queue')} costs")
    table = make_table("A MONTH", "A TRAIL THAT LOGS", "SYMPTOMS WHOLLY", "IN PART", "BLIND")
    blind_symptom_lines = list[LabelledLine]()
    for trail_choice in TRAIL_CHOICES:
        visible_symptoms = sort_symptoms_by_visibility(trail_choice, queue_arns)
        table.add_row(
            format_dollars(
                trail_choice.estimate_monthly_dollars(counted_queues) if counted_queues else None
            ),
            trail_choice.name,
            str(len(visible_symptoms.wholly)),
            str(len(visible_symptoms.in_part)),
            str(len(visible_symptoms.blind)),
        )
        if 0 < len(visible_symptoms.blind) <= _MAXIMUM_NAMED_SYMPTOMS:
            blind_symptom_names = ", ".join(visible_symptoms.blind)
            blind_symptom_lines.append((trail_choice.name, "dim", f"blind: {blind_symptom_names}"))
    out.show(table)
    out.say_labelled(blind_symptom_lines, indent=0)


def _print_queues(out: Output, report: CostReport) -> None:
    """Print up to 20 queues whose calls cost most to log, and notes on how calls were counted."""
    out.say_heading("By queue: dollars a month at most")
    table = make_table("EVERY CALL", "NO RECEIVES", "SQS ITSELF", "EMPTY RECEIVES", "QUEUE")
    queues_by_cost = sorted(
        report.calls_by_queue.values(),
        key=lambda queue_calls: -ALL_CALLS_CHOICE.estimate_monthly_dollars([queue_calls]),
    )
    for queue_calls in queues_by_cost[:_MAXIMUM_QUEUE_ROWS]:
        empty_receive_share = queue_calls.empty_share_of_receives
        table.add_row(
            format_dollars(queue_calls.estimate_monthly_dollars(ALL_CALLS_CHOICE.event_names)),
            format_dollars(queue_calls.estimate_monthly_dollars(NO_RECEIVES_CHOICE.event_names)),
            format_dollars(queue_calls.estimate_monthly_sqs_dollars()),
            "-" if empty_receive_share is None else f"{empty_receive_share:.0%}",
            Text(to_terminal_text(parse_queue_arn(queue_calls.queue_arn).name)),
        )
    out.show(table)
    if len(queues_by_cost) > _MAXIMUM_QUEUE_ROWS:
        out.say(
            f"the dearest {_MAXIMUM_QUEUE_ROWS} of {len(queues_by_cost):,}; --json has all", "dim"
        )
    if unused_queue_count := sum(
        not queue_calls.week_sum_by_metric for queue_calls in queues_by_cost
    ):
        unused_queues_text = (
            f"SQS counted nothing on {format_count(unused_queue_count, 'queue')} in a week"
        )
        out.say(f"{unused_queues_text}: they seem unused", "dim")
    uncounted_calls = ", ".join(ALL_CALLS_CHOICE.uncounted_calls)
    sqs_price_text = (
        f"SQS itself: you pay this today, and no trail changes it. SQS bills {SQS_REQUEST.words}, "
        f"on FIFO queues {FIFO_SQS_REQUEST.words} (high throughput too), and each started 64 KB "
        "of a call as a call of its own"
    )
    for line in (
        "at most: a batch of ten is one call, and counts as ten here",
        sqs_price_text,
        "whether CloudTrail logs the calls of Lambda's own pollers is not documented: they count",
        f"on top come calls of which there is no metric: {uncounted_calls}",
    ):
        out.say(line, "dim")


def _print_notes(out: Output, report: CostReport) -> None:
    """Print what could not be read, and notes on the prices."""
    out.say("")
    for check in report.unreadable_checks:
        out.say(f"not looked at: {check.name}: {to_terminal_text(check.sentence, 300)}", "red")
        if check.remedy:
            out.say_indented(f"-> {to_terminal_text(check.remedy, 300)}")
    if report.has_more_queues:
        limit_text = f"the first {report.maximum_queues:,} were counted, see --most"
        out.say(f"there are more queues: {limit_text}", "yellow")
    out.say(DATA_EVENT.note, "dim")
    out.say(
        f"EventBridge may bill these events once more, at {OPT_IN_EVENT.words}: AWS's page does "
        "not say, and these figures leave it out",
        "dim",
    )
    if report.account.region != PRICE_REGION:
        out.say(f"prices of {report.account.region} are not known here", "yellow")
    out.say(f"to count them this time cost ${report.dollars_for_counting:.4f}", "dim")


def format_dollars(dollars: float | None) -> str:
    """Return an amount as text, such as `$1.50`. For None, return `not known`."""
    if dollars is None:
        return "not known"
    return "under $0.01" if 0 < dollars < 0.005 else f"${dollars:,.2f}"

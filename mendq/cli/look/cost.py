"""`mendq cost`: estimate what the stack and the logging of calls cost while nothing fails."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from msgspec.structs import asdict

from mendq.cli.commands import IAM_ACTIONS_TO_LIST_MANAGED_QUEUES, CommandKind, command
from mendq.cli.cost import bill
from mendq.cli.cost.calls import TRAIL_CHOICES, round_if_known, sort_symptoms_by_visibility
from mendq.cli.cost.cost_report import CostReport
from mendq.cli.cost.view import print_costs
from mendq.cli.exit_codes import Exit
from mendq.cli.invocation import Invocation
from mendq.model.prices import PRICE_REGION, PRICES_NOTED_ON

_ALL_OPTION_HELP = "Every queue of the region, managed or not; no stack."
_MOST_OPTION_HELP = "How many queues to count: 4 metrics each, billed."


@command(
    6,
    CommandKind.LOOKING,
    IAM_ACTIONS_TO_LIST_MANAGED_QUEUES | {"cloudformation:GetTemplate", "cloudwatch:GetMetricData"},
)
def cost(
    call: Invocation,
    every: Annotated[bool, typer.Option("--all", help=_ALL_OPTION_HELP)] = False,
    most: Annotated[int, typer.Option(help=_MOST_OPTION_HELP, min=1)] = 500,
) -> Exit:
    """Estimate what the stack and a trail of your calls cost.

    Examples:
      mendq cost
      mendq cost --all --most 100      # before anything is deployed
    """
    cost_report = CostReport(call.account, datetime.now(UTC), most, every)
    with call.out.show_waiting("asking the account"):
        cost_report.read()
    call.out.print_json(_make_document(cost_report))
    if not call.as_json:
        print_costs(call.out, cost_report)
    return Exit.FAILED if cost_report.unreadable_checks else Exit.DONE


def _make_document(cost_report: CostReport) -> dict[str, Any]:
    """Return the document that `mendq cost --json` prints."""
    counted_queues = list(cost_report.calls_by_queue.values())
    dollars_with_dashboard = None
    dollars_without_dashboard = None
    if cost_report.stack_lines:
        dollars_with_dashboard, dollars_without_dashboard = bill.sum_with_and_without_dashboard(
            cost_report.stack_lines
        )
    choice_documents = []
    for trail_choice in TRAIL_CHOICES:
        monthly_dollars = (
            round(trail_choice.estimate_monthly_dollars(counted_queues), 2)
            if counted_queues
            else None
        )
        choice_documents.append(
            {
                "name": trail_choice.name,
                "event_names": trail_choice.event_names_setting,
                "dollars_per_month": monthly_dollars,
                "uncounted": trail_choice.uncounted_calls,
                "symptoms": asdict(
                    sort_symptoms_by_visibility(trail_choice, cost_report.queue_arns)
                ),
            }
        )
    return {
        "prices": {"region": PRICE_REGION, "noted_on": PRICES_NOTED_ON},
        "stack": {
            "dollars_per_month": round_if_known(cost_report.stack_dollars),
            "dollars_per_month_with_dashboard": round_if_known(dollars_with_dashboard),
            "dollars_per_month_without_dashboard": round_if_known(dollars_without_dashboard),
            "measuring_at_most_dollars_per_month": round_if_known(
                cost_report.most_measuring_dollars
            ),
            "is_scan_only": cost_report.is_stack_scan_only,
            "lines": [stack_line.document() for stack_line in cost_report.stack_lines],
            "free": cost_report.free_reason_by_type,
            "not_priced": cost_report.unpriced_types,
        },
        "choices": choice_documents,
        "queues": [queue_calls.document() for queue_calls in counted_queues],
        "are_more_queues": cost_report.has_more_queues,
        "not_looked_at": [
            unreadable_check.document() for unreadable_check in cost_report.unreadable_checks
        ],
        "asking_cost_dollars": round(cost_report.dollars_for_counting, 5),
    }

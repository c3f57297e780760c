"""`mendq cost`: what the stack costs while nothing fails, and seeing the calls of which queues."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from msgspec.structs import asdict

from mendq.cli.commands import MANAGED, Kind, command
from mendq.cli.cost import bill
from mendq.cli.cost.calls import CHOICES, round_dollars, sort_symptoms_by_visibility
from mendq.cli.cost.gathered import CostReport
from mendq.cli.cost.view import show_costs
from mendq.cli.exit_codes import Exit
from mendq.cli.invocation import Invocation
from mendq.model.prices import NOTED_ON, REGION

_ALL = "Every queue of the region, managed or not; no stack."
_MOST = "How many queues to count: 4 metrics each, billed."


@command(6, Kind.LOOKING, MANAGED | {"cloudformation:GetTemplate", "cloudwatch:GetMetricData"})
def cost(
    call: Invocation,
    every: Annotated[bool, typer.Option("--all", help=_ALL)] = False,
    most: Annotated[int, typer.Option(help=_MOST, min=1)] = 500,
) -> Exit:
    """What it costs, and which queues and calls to watch.

    Examples:
      mendq cost
      mendq cost --all --most 100      # before anything is deployed
    """
    found = CostReport(call.account, datetime.now(UTC), most, every)
    with call.out.show_waiting("asking the account"):
        found.read()
    call.out.print_json(_document(found))
    if not call.as_json:
        show_costs(call.out, found)
    return Exit.FAILED if found.not_looked_at else Exit.DONE


def _document(found: CostReport) -> dict[str, Any]:
    calls = list(found.calls.values())
    both = bill.with_and_without_dashboard(found.stack) if found.stack else (None, None)
    return {
        "prices": {"region": REGION, "noted_on": NOTED_ON},
        "stack": {
            "dollars_per_month": round_dollars(found.stack_dollars),
            "dollars_per_month_with_dashboard": round_dollars(both[0]),
            "dollars_per_month_without_dashboard": round_dollars(both[1]),
            "lines": [each.document() for each in found.stack],
            "free": found.free,
            "not_priced": found.not_priced,
        },
        "choices": [
            {
                "name": each.name,
                "event_names": each.setting,
                "dollars_per_month": round(each.dollars(calls), 2) if calls else None,
                "uncounted": each.uncounted_calls,
                "symptoms": asdict(sort_symptoms_by_visibility(each, found.queue_arns)),
            }
            for each in CHOICES
        ],
        "queues": [each.document() for each in calls],
        "are_more_queues": found.has_more_queues,
        "not_looked_at": [each.document() for each in found.not_looked_at],
        "asking_cost_dollars": round(found.asking_dollars, 5),
    }

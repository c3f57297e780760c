"""`mendq cost`: what the stack costs while nothing fails, and seeing the calls of which queues."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from cli.cost import per_million
from cli.cost.billed_by_month import with_and_without_dashboard
from cli.cost.choices import CHOICES, Shown, dollars_now, shown_by
from cli.cost.gathered import Gathered
from cli.cost.line import Line
from cli.cost.view import advice, show
from cli.cost.watching import Watching, within
from cli.exit_codes import Exit
from cli.invocation import Invocation, with_invocation
from infra.prices import NOTED_ON, REGION


@with_invocation
def cost(
    call: Invocation,
    every: Annotated[
        bool, typer.Option("--all", help="Every queue of the region, managed or not; no stack.")
    ] = False,
    most: Annotated[
        int, typer.Option(help="How many queues to count: 4 metrics each, billed.", min=1)
    ] = 500,
    budget: Annotated[
        float | None,
        typer.Option(help="Dollars a month: what to watch for them.", min=0, show_default=False),
    ] = None,
) -> Exit:
    """What it costs, and which queues and calls to watch."""
    found = Gathered(call.account, datetime.now(UTC), most, every)
    with call.out.waiting("asking the account"):
        found.look()
    watching = None if budget is None or not found.calls else within(budget, found.calls)
    call.out.document(_document(found, watching))
    if not call.as_json:
        show(call.out, found, watching)
    return Exit.FAILED if found.not_looked_at else Exit.DONE


def _by_dashboard(stack: list[Line]) -> dict[str, float | None]:
    with_one, without = with_and_without_dashboard(stack) if stack else (None, None)
    told = {"with": with_one, "without": without}
    return {
        f"dollars_per_month_{name}_dashboard": None if each is None else round(each, 2)
        for name, each in told.items()
    }


def _document(found: Gathered, watching: Watching | None) -> dict[str, Any]:
    calls, trails = list(found.calls.values()), found.trails.logging
    idle, beyond = found.stack_dollars, found.stack_beyond
    return {
        "prices": {"region": REGION, "noted_on": NOTED_ON},
        "stack": {
            "dollars_per_month": None if idle is None else round(idle, 2),
            "dollars_beyond_what_is_given": None if beyond is None else round(beyond, 2),
            **_by_dashboard(found.stack),
            "lines": [each.document() for each in found.stack],
            "free": found.free,
            "not_priced": found.not_priced,
        },
        "per_million_calls": [each.document() for each in per_million.watched()],
        "per_million_failed_calls": [each.document() for each in per_million.failed()],
        "logged_now": {
            "trails": [each.name for each in trails],
            "dollars_per_month": round(dollars_now(trails, found.calls), 2) if calls else None,
            "symptoms": Shown.by(trails, found.queue_arns).document(),
        },
        "choices": [
            {
                "name": each.name,
                "event_names": each.setting,
                "dollars_per_month": round(each.dollars(calls), 2) if calls else None,
                "uncounted": each.uncounted,
                "symptoms": shown_by(each, found.queue_arns).document(),
            }
            for each in CHOICES
        ],
        "advice": advice(calls),
        "queues": [each.document() for each in calls],
        "are_more_queues": found.are_more,
        "watch": watching.document() if watching else None,
        "not_looked_at": [each.document() for each in found.not_looked_at],
        "asking_cost_dollars": round(found.asking_dollars, 5),
    }

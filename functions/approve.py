"""Approve, decline or close a case at an operator's request."""

from __future__ import annotations

from functions.entry import Call, Event, entry
from mendq.cases.context import CaseContext
from mendq.heal.approve import act_on_decision, answer_request
from mendq.model.settings import OperatorSettings


@entry(OperatorSettings)
def handler(event: Event, call: Call[OperatorSettings]) -> Event:
    """Act on the operator's decision about a case.

    Args:
        event: `{"case_id", "decision", "actor"}`. `decision` is approve, decline or close.
        call: This invocation.

    Returns:
        The case, or `{"error", "reason"}` if nothing was done.
    """
    context = call.make_store_context(CaseContext)
    functions = call.settings.owners
    decision = event.get("decision")
    answer = answer_request(
        event, lambda request: act_on_decision(request, decision, context, functions)
    )
    call.log.info("an operator decided about a case", request=event, answer=answer)
    return answer

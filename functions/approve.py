"""Approve, decline or close a case at an operator's request."""

from __future__ import annotations

from functions.entry import Event, LambdaInvocation, entry
from mendq.cases.context import CaseContext
from mendq.heal.approve import act_on_decision, answer_request
from mendq.model.settings import OperatorSettings


@entry(OperatorSettings)
def handler(event: Event, invocation: LambdaInvocation[OperatorSettings]) -> Event:
    """Act on the operator's decision about a case.

    Args:
        event: `{"case_id", "decision", "actor"}`. `decision` is approve, decline or close.
        invocation: This invocation of the Lambda.

    Returns:
        The case, or `{"error", "reason"}` if nothing was done.
    """
    context = invocation.make_store_context(CaseContext)
    function_by_owner = invocation.settings.owners
    decision = event.get("decision")
    answer_to_operator = answer_request(
        event, lambda request: act_on_decision(request, decision, context, function_by_owner)
    )
    invocation.log.info(
        "an operator decided about a case", request=event, answer=answer_to_operator
    )
    return answer_to_operator

"""Approve, decline or close a case at an operator's request."""

from __future__ import annotations

from functions.entry import Call, Event, entry
from mendq.cases.context import CaseContext
from mendq.heal.approve import act_on_decision, answer_request
from mendq.model.settings import OperatorSettings


@entry(OperatorSettings)
def handler(event: Event, call: Call[OperatorSettings]) -> Event:
    """Act on `{"case_id", "decision", "actor"}`. Return the case, or `{"error", "reason"}`."""
    context, owners = call.make_store_context(CaseContext), call.settings.owners
    decision = event.get("decision")
    answer = answer_request(
        event, lambda request: act_on_decision(request, decision, context, owners)
    )
    call.log.info("a person's word", request=event, answer=answer)
    return answer

"""Approve, decline or close a case at a person's word."""

from __future__ import annotations

from functions.entry import Call, Event, entry
from mendq.cases.context import CaseContext
from mendq.heal.approve import answered, decide
from mendq.model.settings import OperatorSettings


@entry(OperatorSettings)
def handler(event: Event, call: Call[OperatorSettings]) -> Event:
    """`{"case_id", "decision", "actor"}` in; what became of the case, or `{"error", "reason"}`."""
    context, owners = call.at_store(CaseContext), call.settings.owners
    answer = answered(
        event, lambda request: decide(request, event.get("decision"), context, owners)
    )
    call.log.info("a person's word", request=event, answer=answer)
    return answer

"""Approve, decline or close a case at a person's word."""

from __future__ import annotations

from functions.entry import Call, Event, entry
from functions.telemetry import answered
from mendq.cases.context import CaseContext
from mendq.heal.approve import decide
from mendq.model.settings import ApproveSettings


@entry(ApproveSettings)
def handler(event: Event, call: Call[ApproveSettings]) -> Event:
    """`{"case_id", "decision", "actor"}` in; what became of the case, or `{"error", "reason"}`."""
    context, owners = call.at_store(CaseContext), call.settings.owners
    return answered(
        call,
        event,
        "a person's word",
        lambda request: decide(request, event.get("decision"), context, owners),
    )

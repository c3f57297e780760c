"""Attach the DLQ that a case waits for, and answer what became of the case."""

from __future__ import annotations

from functions.entry import Call, Event, entry
from mendq.heal.apply import attach
from mendq.heal.context import FixContext
from mendq.heal.resume import take_up
from mendq.model.settings import OwnerSettings
from mendq.model.steps import Owner


@entry(OwnerSettings)
def handler(event: Event, call: Call[OwnerSettings]) -> Event:
    """`{"case_id", "queue_arn", "symptom"}` in; the case's new state, or why it did not move."""
    run = call.writing(FixContext, write=attach, whose=Owner.ATTACH_DLQ)
    return call.taken_up(event, take_up(event, run))

"""Restore the pinned policy that a case waits for, and answer what became of the case."""

from __future__ import annotations

from functions.entry import Call, Event, entry
from mendq.cases.pins import Pins
from mendq.heal.context import FixContext
from mendq.heal.restore_policy import PolicyWriter, checked_again
from mendq.heal.resume import take_up
from mendq.model.settings import OwnerSettings
from mendq.model.steps import Owner


@entry(OwnerSettings)
def handler(event: Event, call: Call[OwnerSettings]) -> Event:
    """`{"case_id", "queue_arn", "symptom"}` in; the case's new state, or why it did not move."""
    pins = Pins(call.clients.dynamodb, call.settings.case_table)
    write = PolicyWriter(pins, call.now).write
    run = call.writing(FixContext, write=write, whose=Owner.RESTORE_POLICY)
    return call.taken_up(event, checked_again(take_up(event, run), run))

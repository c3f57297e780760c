"""Heal the queues of a batch of failed calls from the intake queue."""

from __future__ import annotations

from functions.entry import Call, Event, entry
from functions.telemetry import emit_heal, log_heal, tell_taken_up
from mendq.heal.apply import write
from mendq.heal.batch import heal_batch, heal_findings
from mendq.heal.context import Run
from mendq.heal.resume import take_up
from mendq.model.settings import HealSettings
from mendq.model.steps import Owner


@entry(HealSettings)
def handler(event: Event, call: Call[HealSettings]) -> Event:
    """Answer which messages are to come again; what can never be read ends in the intake's DLQ.

    Called with a case in place of messages: what became of it; or with what a scan found.
    """
    run = call.writing(Run, write=write, whose=Owner.HEAL)
    if "found" not in event and "Records" not in event:
        return tell_taken_up(call, event, take_up(event, run))
    messages = {each["messageId"]: each["body"] for each in event.get("Records", [])}
    healed = heal_findings(event, run) if "found" in event else heal_batch(messages, run)
    emit_heal(call.metrics, healed)
    log_heal(call.log, healed)
    return healed.answer()

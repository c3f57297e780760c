"""Begin the redrive of a case, continue it by one tick, or stop it."""

from __future__ import annotations

from functions.entry import Call, Event, entry
from mendq.model.names import OwnMetric
from mendq.model.settings import RedriveSettings
from mendq.model.steps import Owner
from mendq.redrive.reads import RedriveRun, RedriveStart
from mendq.redrive.redrive import TickOutcome, redrive


@entry(RedriveSettings)
def handler(event: Event, call: Call[RedriveSettings]) -> Event:
    """`{"case_id", "queue_arn", "symptom"}` in, with `"cancel": true` to stop it.

    The case's new state out, or why it did not move.
    """
    write = RedriveStart(call.settings.consent).write
    outcome = redrive(
        event, call.make_writing_context(RedriveRun, write=write, writer=Owner.REDRIVE)
    )
    if not isinstance(outcome, TickOutcome):
        return call.answer_case(event, outcome)
    # Only while something goes on: a series of zeros costs money and says nothing here.
    redriven, quarantined = OwnMetric.REDRIVEN_MESSAGES, OwnMetric.QUARANTINED_MESSAGES
    call.count({redriven: outcome.redriven, quarantined: outcome.quarantined}, zeros=True)
    call.count({OwnMetric.ESCALATIONS: outcome.is_escalation})
    progress = outcome.progress.document() if outcome.progress else {}
    call.log.info("redrove a case", request=event, progress=progress, **outcome.document())
    return outcome.document()

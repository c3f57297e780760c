"""Heal the queues of a batch of failed calls from the intake queue."""

from __future__ import annotations

from collections import Counter

from functions.entry import Call, Event, count_by_symptom, entry
from mendq.heal.apply import write
from mendq.heal.batch import Healed, heal_batch, heal_findings
from mendq.heal.context import FixContext
from mendq.heal.resume import take_up
from mendq.model.settings import OwnerSettings
from mendq.model.steps import Owner

MOST_CODES = 20


@entry(OwnerSettings)
def handler(event: Event, call: Call[OwnerSettings]) -> Event:
    """Answer which messages are to come again; what can never be read ends in the intake's DLQ.

    Called with a case in place of messages: what became of it; or with what a scan found.
    """
    run = call.writing(FixContext, write=write, whose=Owner.HEAL)
    if "found" not in event and "Records" not in event:
        return call.taken_up(event, take_up(event, run))
    messages = {each["messageId"]: each["body"] for each in event.get("Records", [])}
    healed = heal_findings(event, run) if "found" in event else heal_batch(messages, run)
    call.count(healed.counts())
    for name, counts in healed.by_symptom().items():
        count_by_symptom(name, counts)
    _log(call, healed)
    return healed.answer()


def _log(call: Call[OwnerSettings], healed: Healed) -> None:
    """One line a case, refusal or error, and one for what could not be read."""
    for error in healed.faults:
        call.log.error("a queue could not be fixed; its events come again", exc_info=error)
    for group, outcome in healed.fixed.items():
        case, refusal = outcome.case, outcome.refusal
        call.log.info(
            "looked at a queue",
            queue_arn=group.queue_arn,
            symptom=group.symptom.name,
            failed_calls=len(group.calls),
            refusal={"code": refusal.code, "reason": refusal.reason} if refusal else None,
            case=case.document() if case else None,
        )
    for probe in healed.probes.values():
        call.log.info("saw the probe", made_at=probe.event_time, spelled=probe.raw_error_code)
    if left_out := healed.left_out.most_common(MOST_CODES):
        call.log.warning("queue names that nobody manages were left out", left_out=left_out)
    if codes := sorted(set(healed.unknown_codes)):
        call.log.warning("error codes that nobody listed", codes=codes[:MOST_CODES], all=len(codes))
    if healed.unreadable:
        reasons = Counter(each.reason for each in healed.unreadable.values())
        call.log.warning("events that cannot be read, on their way to parking", reasons=reasons)

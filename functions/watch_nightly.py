"""Watch a run of the nightly or weekly job end: count whether it failed, wrote, or left doubt."""

from __future__ import annotations

from functions.entry import Call, Event, entry
from mendq.model.plan import Refusal
from mendq.model.settings import WatchNightlySettings
from mendq.nightly.outcome import WeekEnded
from mendq.nightly.watch import share_tables, watch


@entry(WatchNightlySettings)
def handler(event: Event, call: Call[WatchNightlySettings]) -> dict[str, str]:
    """`{"day": .., "verdict": ..}`, of a week `{"week": ..}`, or `{"ignored": why}` of other runs.

    Every figure is sent at the time at which the run ended: sent twice it is the same. A run that
    is not fine is a warning. What it wrote is shared with the organization last: where that is
    refused, the night stands. Raises what AWS raises, so that the event is tried again and then
    parked.
    """
    seen = watch(call.clients, call.settings, event)
    if isinstance(seen, Refusal):
        call.log.info("not watched", code=seen.code, reason=seen.reason)
        return {"ignored": seen.reason}
    call.metrics.set_timestamp(seen.run.updated_at)
    for name, value in seen.metrics().items():
        call.measure(name, value, "Count")
    run = seen.run
    if isinstance(seen, WeekEnded):
        say = call.log.warning if seen.failed else call.log.info
        say("a week ended", week=seen.week, run=run.id, why=seen.why, details=run.details)
        return {"week": seen.week, "verdict": "failed" if seen.failed else "summed_up"}
    say = call.log.info if seen.is_fine else call.log.warning
    say(
        "a nightly run ended",
        day=str(seen.day),
        run=run.id,
        state=run.state,
        verdict=seen.verdict,
        usual_records=seen.judged.usual_records,
        why=seen.why,
        nightly=seen.nightly.document() if seen.nightly else None,
    )
    if call.settings.organization_bucket is not None:
        shared = share_tables(call.clients, call.settings, seen.written)
        call.log.info("shared with the organization", day=str(seen.day), objects=shared)
    return {"day": str(seen.day), "verdict": seen.verdict}

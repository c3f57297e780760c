"""Check a run of the nightly or weekly job when it has ended, and send metrics about it."""

from __future__ import annotations

from functions.entry import Call, Event, entry
from mendq.model.plan import Refusal
from mendq.model.settings import WatchNightlySettings
from mendq.nightly.outcome import WeekEnded
from mendq.nightly.watch import share_tables, watch


@entry(WatchNightlySettings)
def handler(event: Event, call: Call[WatchNightlySettings]) -> dict[str, str]:
    """Check a run that has ended.

    Metrics carry the time at which the run ended, so that a repeated event sends the same values
    again. A run with a problem is logged as a warning. The tables that the run wrote are shared
    with the organization at the end: if that fails, the run's metrics were sent already.

    Args:
        event: EMR Serverless's event about the run's new state.
        call: This invocation.

    Returns:
        `{"day", "verdict"}` for a nightly run, `{"week", "verdict"}` for a weekly run, and
        `{"ignored": reason}` for other runs.

    Raises what AWS raises. Then Lambda tries the event again, and in the end sends it to a DLQ.
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
        say = call.log.warning if seen.has_failed else call.log.info
        say("a week ended", week=seen.week, run=run.id, why=seen.why, details=run.details)
        return {"week": seen.week, "verdict": "failed" if seen.has_failed else "summed_up"}
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

"""Watch a run of the nightly or weekly job end: count whether it failed, wrote, or left doubt."""

from __future__ import annotations

from functions.entry import Call, Event, entry
from functions.telemetry import tell_nightly
from mendq.model.plan import Refusal
from mendq.model.settings import WatchNightlySettings
from mendq.nightly.watch import watch


@entry(WatchNightlySettings)
def handler(event: Event, call: Call[WatchNightlySettings]) -> dict[str, str]:
    """`{"day": .., "verdict": ..}`, of a week `{"week": ..}`, or `{"ignored": why}` of other runs.

    Raises what AWS raises, so that the event is tried again and then parked.
    """
    seen = watch(call.clients, call.settings, event)
    if isinstance(seen, Refusal):
        call.log.info("not watched", code=seen.code, reason=seen.reason)
        return {"ignored": seen.reason}
    return tell_nightly(call, seen)

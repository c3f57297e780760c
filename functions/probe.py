"""Make a failing call each hour that heal has to see, and page where it did not."""

from __future__ import annotations

from datetime import UTC, datetime

from functions.entry import Call, Event, entry
from mendq.model.names import OwnMetric
from mendq.model.settings import ProbeSettings
from mendq.probe.send import send_probe


@entry(ProbeSettings)
def handler(event: Event, call: Call[ProbeSettings]) -> dict[str, int | str]:
    """`{"sent_at": .., "lost_in_a_row": ..}`; raises what `send_probe` raises, to be tried again.

    The clock is the real one: heal notes by it when it saw the call. A `time` to come counts as
    now: noted as it is, it would be later than every probe until then.
    """
    scheduled_at = min(datetime.fromisoformat(event["time"]).astimezone(UTC), call.now)
    probe = send_probe(call.clients, call.settings, scheduled_at, call.now)
    call.count({OwnMetric.PROBES_LOST: probe.lost_in_a_row}, zeros=True)
    sent_at, lost = probe.sent_at.isoformat(), probe.lost_in_a_row
    call.log.info("a probe is on its way", sent_at=sent_at, lost_in_a_row=lost)
    return {"sent_at": sent_at, "lost_in_a_row": lost}

"""Make a failing call once an hour, and notify people if heal did not see earlier ones."""

from __future__ import annotations

from datetime import UTC, datetime

from functions.entry import Event, LambdaInvocation, entry
from mendq.model.names import OwnMetric
from mendq.model.settings import ProbeSettings
from mendq.probe.send import send_probe


@entry(ProbeSettings)
def handler(event: Event, invocation: LambdaInvocation[ProbeSettings]) -> dict[str, int | str]:
    """Send a probe: a call that fails, which shows if failed calls still reach heal.

    Args:
        event: `{"time"}`, the scheduled time. A time in the future counts as now: otherwise the
            probes until then would look older than this one.
        invocation: This invocation of the Lambda.

    Returns:
        `{"sent_at", "lost_in_a_row"}`: the time of the call, and the number of probes directly
        before it that heal did not see.

    Raises the errors of `send_probe`. Lambda then tries again.
    """
    scheduled_at = min(datetime.fromisoformat(event["time"]).astimezone(UTC), invocation.now)
    probe = send_probe(invocation.clients, invocation.settings, scheduled_at, invocation.now)
    invocation.send_counts({OwnMetric.PROBES_LOST: probe.lost_in_a_row}, should_send_zeros=True)
    sent_at = probe.sent_at.isoformat()
    invocation.log.info("sent a probe", sent_at=sent_at, lost_in_a_row=probe.lost_in_a_row)
    return {"sent_at": sent_at, "lost_in_a_row": probe.lost_in_a_row}

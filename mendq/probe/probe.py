"""The probe: a call to Mendq's own queue that fails on purpose, and that heal must see.

Mendq makes this call every hour, or as often as the setting `timing.probeMinutes` says. CloudTrail
delivers it to heal in the same way as any failed call. So if heal sees the probe, heal also sees
failed calls of other queues. The probe also shows which error code CloudTrail writes in this
account.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from mendq.model.names import PROBE_QUEUE
from mendq.notifications.sent import MOST_NOTIFICATION_BYTES, NotificationText
from mendq.notifications.text import (
    Section,
    command_or_note,
    format_utc_time,
    format_value,
    make_body,
    to_plain_text,
)

PROBE_QUEUE_NAME = PROBE_QUEUE
PROBE_EVENT_NAME = "SendMessage"
PROBE_RUNBOOK = "docs/runbooks/probe_lost.md"
# A probe that heal has not seen within this time is lost.
PROBE_ARRIVAL_TIMEOUT = timedelta(minutes=20)
# The event's time may be up to this much before the time at which the probe was sent: CloudTrail's
# times are whole seconds, and the clocks of SQS and Lambda differ.
MOST_CLOCK_DIFFERENCE = timedelta(seconds=5)


class Probe(Struct, frozen=True):
    """The last probe that was sent, the newest probe that heal has seen, and the lost ones.

    Args:
        scheduled_at: The scheduled time of the last probe. It prevents that a probe is counted
            twice if Lambda gets the same scheduled event twice.
        sent_at: When the last probe was sent.
        lost_in_a_row: The number of lost probes since the last probe that heal saw in time, without
            the last probe.
        lost_since: When the first of these lost probes was sent.
        notified: True if people were notified of these lost probes.
        made_at: The time of the newest probe that heal has seen, by CloudTrail's record.
        seen_at: When heal saw that probe.
        spelled: The error code in CloudTrail's record of that probe.
        without_queue: True if that record does not name the queue.
    """

    scheduled_at: datetime
    sent_at: datetime
    lost_in_a_row: int = 0
    lost_since: datetime | None = None
    notified: bool = False
    made_at: datetime | None = None
    seen_at: datetime | None = None
    spelled: str = ""
    without_queue: bool = False

    @property
    def was_seen(self) -> bool:
        """True if heal saw the last probe within PROBE_ARRIVAL_TIMEOUT.

        A probe that heal sees later counts as lost.
        """
        if (
            self.made_at is None
            or self.seen_at is None
            or self.made_at < self.sent_at - MOST_CLOCK_DIFFERENCE
        ):
            return False
        return self.seen_at - self.sent_at <= PROBE_ARRIVAL_TIMEOUT

    def next_probe(self, scheduled_at: datetime, now: datetime) -> Probe:
        """Return the probe to send now. Its counts include this probe, as seen or as lost.

        Return this probe unchanged, so that it is sent again, if heal may still see it in time or
        `scheduled_at` is not later than its own scheduled time.
        """
        new_probe = replace(self, scheduled_at=scheduled_at, sent_at=now)
        if scheduled_at <= self.scheduled_at:
            return self
        if self.was_seen:
            return replace(new_probe, lost_in_a_row=0, lost_since=None, notified=False)
        if scheduled_at - self.scheduled_at < PROBE_ARRIVAL_TIMEOUT:
            return self
        lost_probe_count = self.lost_in_a_row + 1
        return replace(
            new_probe, lost_in_a_row=lost_probe_count, lost_since=self.lost_since or self.sent_at
        )


def describe_lost_probes(probe: Probe, account: str, region: str) -> NotificationText:
    """Return the notification for people that heal no longer sees the probes."""
    account_and_region_text = f"{to_plain_text(account, 12)} {to_plain_text(region, 32)}"
    last_seen_text = "never" if probe.seen_at is None else format_utc_time(probe.seen_at)
    arrival_timeout_text = f"{PROBE_ARRIVAL_TIMEOUT.seconds // 60} minutes"
    expectation_text = (
        f"Mendq's own failing call has to come by CloudTrail to heal within {arrival_timeout_text}"
    )
    opening_lines = (
        f"Mendq hears no failed calls in {account_and_region_text}. Please act.",
        f"What: {expectation_text}.",
        f"Why: the last {probe.lost_in_a_row} did not, so failing queues may go unseen too.",
    )
    probe_lines = (
        f"lost since {format_utc_time(probe.lost_since or probe.sent_at)}",
        f"seen last: {last_seen_text}",
        f"CloudTrail's word for the error then: {format_value(probe.spelled or 'not known', 64)}",
    )
    command_lines = (
        "mendq doctor",
        command_or_note(
            f"aws cloudtrail get-trail-status --region {to_plain_text(region, 32)} --name mendq"
        ),
        f"runbook: {PROBE_RUNBOOK}",
    )
    sections = (
        Section("PROBE", probe_lines, can_be_cut=False),
        Section("NEXT", command_lines, can_be_cut=False),
    )
    subject = f"Mendq escalated: no probe in {account_and_region_text}"
    return NotificationText(subject, make_body(opening_lines, sections, MOST_NOTIFICATION_BYTES))

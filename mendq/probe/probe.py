"""The probe: a real failing call on a queue of our own, which has to come round to heal.

It proves the whole way that a failed call takes, CloudTrail among it, and tells how this account's
CloudTrail spells the error.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from mendq.model.names import PROBE_QUEUE
from mendq.notifications.sent import MOST_BYTES, NotificationText
from mendq.notifications.text import Section, body, moment, plain, value

QUEUE_NAME = PROBE_QUEUE
EVENT_NAME = "SendMessage"
RUNBOOK = "docs/runbooks/probe_lost.md"
SEEN_WITHIN = timedelta(minutes=20)
# CloudTrail gives whole seconds, and SQS's clock is not Lambda's.
SKEW = timedelta(seconds=5)


class Probe(Struct, frozen=True):
    """The last probe that was sent, the newest one that heal has seen, and how many were lost.

    `scheduled_at` is the time that the schedule stood for, so that a second delivery of it judges
    nothing twice; `made_at` when the call that was seen had failed, as CloudTrail tells;
    `lost_since` when the first of those lost in a row was sent; `without_queue`: the record of the
    one that was seen does not say which queue it was about.
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
        """In time: what comes later counts as lost."""
        if self.made_at is None or self.seen_at is None or self.made_at < self.sent_at - SKEW:
            return False
        return self.seen_at - self.sent_at <= SEEN_WITHIN

    def next_one(self, scheduled_at: datetime, now: datetime) -> Probe:
        """The one to send now, this one judged; this one itself while it may still be seen."""
        following = replace(self, scheduled_at=scheduled_at, sent_at=now)
        if scheduled_at <= self.scheduled_at:
            return self
        if self.was_seen:
            return replace(following, lost_in_a_row=0, lost_since=None, notified=False)
        if scheduled_at - self.scheduled_at < SEEN_WITHIN:
            return self
        lost = self.lost_in_a_row + 1
        return replace(following, lost_in_a_row=lost, lost_since=self.lost_since or self.sent_at)


def notification_of_lost(probe: Probe, account: str, region: str) -> NotificationText:
    """What people get once probes are lost."""
    where = f"{plain(account, 12)} {plain(region, 32)}"
    last = "never" if probe.seen_at is None else moment(probe.seen_at)
    within = f"{SEEN_WITHIN.seconds // 60} minutes"
    opening = (
        f"Mendq hears no failed calls in {where}. Please act.",
        f"What: Mendq's own failing call has to come by CloudTrail to heal within {within}.",
        f"Why: the last {probe.lost_in_a_row} did not, so failing queues may go unseen too.",
    )
    facts = (
        f"lost since {moment(probe.lost_since or probe.sent_at)}",
        f"seen last: {last}",
        f"CloudTrail's word for the error then: {value(probe.spelled or 'not known', 64)}",
    )
    commands = (
        "mendq doctor",
        f"aws cloudtrail get-trail-status --region {plain(region, 32)} --name mendq",
        f"runbook: {RUNBOOK}",
    )
    sections = (Section("PROBE", facts, cut=False), Section("NEXT", commands, cut=False))
    subject = f"Mendq escalated: no probe in {where}"
    return NotificationText(subject, body(opening, sections, MOST_BYTES))

"""Signs of life: the follow-up's heartbeat, the pulse, and whether changes are frozen."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from cli.account import Account
from cli.doctor import calendars, heartbeat
from cli.doctor.check import Check, Status, guarded
from cli.frozen import freeze_of
from cli.output import age
from functions.aws.pulse_record import PulseRecord
from functions.healing.pulse import SEEN_WITHIN


def look(account: Account, now: datetime) -> Iterator[Check]:
    """Three checks and one a calendar, each by itself."""
    yield from guarded("heartbeat", lambda: heartbeat.look(account, now))
    yield from guarded("pulse", lambda: [_pulse(account, now)])
    yield from guarded("freeze", lambda: [_freeze(account)])
    yield from guarded("calendars", lambda: calendars.look(account))


def _pulse(account: Account, now: datetime) -> Check:
    pulse = PulseRecord(account.clients.dynamodb, account.output("LedgerTable")).read()
    if pulse is None:
        says = "none was sent yet: the first comes within the hour after a deployment"
        return Check("pulse", Status.WARN, says, "ask again in an hour")
    sent = f"sent {age(pulse.sent_at, now)} ago"
    cure = "docs/runbooks/pulse_lost.md"
    if pulse.was_seen and pulse.seen_at is not None:
        late_seconds = int((pulse.seen_at - pulse.sent_at).total_seconds())
        says = f"{sent}, seen after {late_seconds} s, spelled {pulse.spelled}"
        return Check("pulse", Status.OK, says)
    lost = f"{pulse.lost_in_a_row} before it lost in a row"
    if now - pulse.sent_at <= SEEN_WITHIN:
        status = Status.WARN if pulse.lost_in_a_row else Status.OK
        return Check("pulse", status, f"{sent}, still on its way; {lost}", cure)
    return Check("pulse", Status.FAIL, f"{sent} and not seen; {lost}", cure)


def _freeze(account: Account) -> Check:
    if (freeze := freeze_of(account)) is not None:
        return Check("freeze", Status.WARN, str(freeze), "mendq thaw")
    return Check("freeze", Status.OK, "not frozen by hand")

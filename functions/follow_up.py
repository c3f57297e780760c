"""Follow up the open cases that are due, each minute; send the gauges that alarms stand on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from msgspec import structs

from functions.entry import COUNTED_AS_ZERO, Call, Event, entry
from mendq.cases.context import ManagingContext
from mendq.follow_up.follow_up import FollowUpResult, follow_up
from mendq.model.settings import FULL, FollowUpSettings


@entry(FollowUpSettings)
def handler(event: Event, call: Call[FollowUpSettings]) -> dict[str, int]:
    """How many cases are open, were moved, and were handed to their owners.

    Raises CaseStoreUnavailable: then the next minute tries again. Cases are judged by the time
    itself; only the local account may put it forward, by the `time` that the schedule stands for.
    """
    scheduled_at = datetime.fromisoformat(event["time"]).astimezone(UTC)
    latest = call.now + timedelta(days=call.settings.most_days_ahead or 0)
    now = min(max(scheduled_at, call.now), latest)
    at_present = call.make_store_context(ManagingContext, real_now=call.now)
    context = structs.replace(at_present, now=now)
    followed = follow_up(context, call.settings.owners, call.remaining_seconds)
    emit(call, followed, now)
    _log(call, followed)
    return {
        "open": len(followed.open_cases),
        "moved": len(followed.moved),
        "called": len(followed.called),
        "errors": len(followed.errors),
    }


def emit(call: Call[FollowUpSettings], followed: FollowUpResult, now: datetime) -> None:
    """Gauges, a zero for the fixes that heal counts, what was moved and what could not be."""
    gauges = followed.gauges(now, call.settings.limits)
    call.count(gauges, zeros=call.settings.alarms == FULL)
    call.count({COUNTED_AS_ZERO: 0, **followed.counts()})
    for name, seconds in followed.seconds(now):
        call.measure(name, seconds, "Seconds")


def _log(call: Call[FollowUpSettings], followed: FollowUpResult) -> None:
    """One line a case that moved, was handed over or could not be looked at."""
    for case in followed.moved:
        call.log.info("moved a case", case=case.document())
    for case in followed.called:
        call.log.info("called heal with a case", case_id=case.case_id, state=case.state)
    for left in followed.unknown:
        call.log.warning(
            "a case of a symptom that another version of Mendq knows; `mendq close` ends it",
            case_id=left.case_id,
            symptom=left.symptom,
        )
    for case_id, error in followed.errors.items():
        call.log.error("a case could not be followed", case_id=case_id, exc_info=error)

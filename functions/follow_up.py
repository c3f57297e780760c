"""Follow up the open cases that are due, once a minute, and send the metrics that alarms use."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from msgspec import structs

from functions.entry import COUNTED_AS_ZERO, Call, Event, entry
from mendq.cases.context import ManagingContext
from mendq.follow_up.follow_up import FollowUpResult, follow_up
from mendq.model.settings import FULL, FollowUpSettings


@entry(FollowUpSettings)
def handler(event: Event, call: Call[FollowUpSettings]) -> dict[str, int]:
    """Follow up the due cases.

    Args:
        event: `{"time"}`, the scheduled time. In the local account it may be up to
            `most_days_ahead` days ahead of the clock; then cases are followed up as of that time.
            Otherwise the clock's time is used.
        call: This invocation.

    Returns:
        The number of open cases, of cases that were moved, of cases whose owner was called, and of
        errors.

    Raises:
        CaseStoreUnavailable: The open cases could not be listed. The next minute tries again.
    """
    scheduled_at = datetime.fromisoformat(event["time"]).astimezone(UTC)
    latest = call.now + timedelta(days=call.settings.most_days_ahead or 0)
    now = min(max(scheduled_at, call.now), latest)
    context = structs.replace(call.make_store_context(ManagingContext, real_now=call.now), now=now)
    result = follow_up(context, call.settings.owners, call.remaining_seconds)
    emit(call, result, now)
    _log(call, result)
    return {
        "open": len(result.open_cases),
        "moved": len(result.moved_cases),
        "called": len(result.called_cases),
        "errors": len(result.errors),
    }


def emit(call: Call[FollowUpSettings], result: FollowUpResult, now: datetime) -> None:
    """Send the metrics of this run.

    The number of fixes is sent as zero, because heal counts them and its alarm needs a value at all
    times.
    """
    gauges = result.gauges(now, call.settings.limits)
    call.count(gauges, zeros=call.settings.alarms == FULL)
    call.count({COUNTED_AS_ZERO: 0, **result.counts()})
    for name, seconds in result.seconds(now):
        call.measure(name, seconds, "Seconds")


def _log(call: Call[FollowUpSettings], result: FollowUpResult) -> None:
    """Log one line for each case that was moved, whose owner was called, or that failed."""
    for case in result.moved_cases:
        call.log.info("moved a case", case=case.document())
    for case in result.called_cases:
        call.log.info("called the owner of a case", case_id=case.case_id, state=case.state)
    for unknown_case in result.unknown_cases:
        call.log.warning(
            "a case of a symptom that another version of Mendq knows; `mendq close` ends it",
            case_id=unknown_case.case_id,
            symptom=unknown_case.symptom,
        )
    for case_id, error in result.errors.items():
        call.log.error("a case could not be followed up", case_id=case_id, exc_info=error)

"""Follow up the open cases that are due, once a minute, and send the metrics that alarms use."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from msgspec import structs

from functions.entry import ALWAYS_SENT_COUNTER, Event, LambdaInvocation, entry
from mendq.cases.context import ManagingContext
from mendq.follow_up.follow_up import FollowUpResult, follow_up
from mendq.model.settings import FULL_ALARMS, FollowUpSettings


@entry(FollowUpSettings)
def handler(event: Event, invocation: LambdaInvocation[FollowUpSettings]) -> dict[str, int]:
    """Follow up the due cases.

    Args:
        event: `{"time"}`, the scheduled time. In the local account it may be up to
            `most_days_ahead` days ahead of the clock, and then cases are followed up as of that
            time. Otherwise they are followed up as of the clock's time.
        invocation: This invocation of the Lambda.

    Returns:
        The number of cases that were open when the run began, of cases that were moved, of cases
        whose owner was called, and of errors.

    Raises:
        CaseStoreUnavailable: The open cases could not be listed. The next minute tries again.
    """
    scheduled_at = datetime.fromisoformat(event["time"]).astimezone(UTC)
    latest_allowed_time = invocation.now + timedelta(days=invocation.settings.most_days_ahead or 0)
    now = min(max(scheduled_at, invocation.now), latest_allowed_time)
    context = structs.replace(
        invocation.make_store_context(ManagingContext, real_now=invocation.now), now=now
    )
    result = follow_up(context, invocation.settings.owners, invocation.remaining_seconds)
    send_metrics(invocation, result, now)
    _log_result(invocation, result)
    return {
        "open": len(result.open_cases),
        "moved": len(result.moved_cases),
        "called": len(result.cases_with_called_owner),
        "errors": len(result.errors),
    }


def send_metrics(
    invocation: LambdaInvocation[FollowUpSettings], result: FollowUpResult, now: datetime
) -> None:
    """Send the metrics of this run.

    Also send zero as the number of fixes. Heal counts the fixes, but the alarm on their number
    needs a value at all times.
    """
    value_by_gauge = result.gauge_values(now, invocation.settings.limits)
    invocation.send_counts(
        value_by_gauge, should_send_zeros=invocation.settings.alarms == FULL_ALARMS
    )
    invocation.send_counts({ALWAYS_SENT_COUNTER: 0, **result.counter_values()})
    for metric_name, seconds in result.duration_values(now):
        invocation.send_metric_value(metric_name, seconds, "Seconds")


def _log_result(invocation: LambdaInvocation[FollowUpSettings], result: FollowUpResult) -> None:
    """Log one line for each case that was moved, and for each case whose owner was called.

    Also log one for each case of an unknown symptom, and one for each error.
    """
    for case in result.moved_cases:
        invocation.log.info("moved a case", case=case.document())
    for case in result.cases_with_called_owner:
        invocation.log.info("called the owner of a case", case_id=case.case_id, state=case.state)
    for unknown_case in result.cases_of_unknown_symptoms:
        invocation.log.warning(
            "a case of a symptom that another version of Mendq knows; `mendq close` ends it",
            case_id=unknown_case.case_id,
            symptom=unknown_case.symptom,
        )
    for case_id, error in result.errors.items():
        invocation.log.error("a case could not be followed up", case_id=case_id, exc_info=error)

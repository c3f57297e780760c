"""Check a run of the nightly or weekly job when it has ended, and send metrics about it."""

from __future__ import annotations

from functions.entry import Event, LambdaInvocation, entry
from mendq.model.plan import Refusal
from mendq.model.settings import WatchNightlySettings
from mendq.nightly.outcome import WeeklyRunOutcome
from mendq.nightly.watch import find_run_outcome, share_tables


@entry(WatchNightlySettings)
def handler(event: Event, invocation: LambdaInvocation[WatchNightlySettings]) -> dict[str, str]:
    """Check a run that has ended.

    Metrics carry the time at which the run ended, so that a repeated event sends the same values
    again. A run with a problem is logged as a warning. At the end, the tables that a nightly run
    wrote are copied to the organization's bucket, if the settings name one.

    Args:
        event: EMR Serverless's event about the run's new state.
        invocation: This invocation of the Lambda.

    Returns:
        `{"day", "verdict"}` for a nightly run, `{"week", "verdict"}` for a weekly run, and
        `{"ignored": reason}` for other runs, runs that have not ended, and other events.

    Raises botocore's errors. Lambda then tries the event again, and in the end sends it to a DLQ.
    """
    run_outcome = find_run_outcome(invocation.clients, invocation.settings, event)
    if isinstance(run_outcome, Refusal):
        invocation.log.info("not watched", code=run_outcome.code, reason=run_outcome.reason)
        return {"ignored": run_outcome.reason}
    invocation.metrics.set_timestamp(run_outcome.run.updated_at)
    for metric_name, value in run_outcome.metrics().items():
        invocation.send_metric_value(metric_name, value, "Count")
    run = run_outcome.run
    if isinstance(run_outcome, WeeklyRunOutcome):
        log_outcome = invocation.log.warning if run_outcome.has_failed else invocation.log.info
        log_outcome(
            "a week ended",
            week=run_outcome.week,
            run=run.id,
            why=run_outcome.explanation,
            details=run.details,
        )
        return {
            "week": run_outcome.week,
            "verdict": "failed" if run_outcome.has_failed else "summed_up",
        }
    log_outcome = invocation.log.info if run_outcome.is_without_problem else invocation.log.warning
    log_outcome(
        "a nightly run ended",
        day=str(run_outcome.day),
        run=run.id,
        state=run.state,
        verdict=run_outcome.verdict,
        usual_records=run_outcome.judgement.usual_records,
        why=run_outcome.explanation,
        nightly=run_outcome.nightly.document() if run_outcome.nightly else None,
    )
    if invocation.settings.organization_bucket is not None:
        copied_table_count = share_tables(
            invocation.clients, invocation.settings, run_outcome.written_days
        )
        invocation.log.info(
            "shared with the organization", day=str(run_outcome.day), objects=copied_table_count
        )
    return {"day": str(run_outcome.day), "verdict": run_outcome.verdict}

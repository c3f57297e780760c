"""Check a run of the nightly or weekly job when it has ended, and send metrics about it."""

from __future__ import annotations

from functions.entry import Event, LambdaInvocation, entry
from mendq.model.plan import Refusal
from mendq.model.settings import WatchNightlySettings
from mendq.nightly.outcome import WeeklyRunOutcome
from mendq.nightly.watch import share_tables, watch_run


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
    watched_run = watch_run(invocation.clients, invocation.settings, event)
    if isinstance(watched_run, Refusal):
        invocation.log.info("not watched", code=watched_run.code, reason=watched_run.reason)
        return {"ignored": watched_run.reason}
    invocation.metrics.set_timestamp(watched_run.run.updated_at)
    for metric_name, value in watched_run.metrics().items():
        invocation.measure(metric_name, value, "Count")
    run = watched_run.run
    if isinstance(watched_run, WeeklyRunOutcome):
        log_outcome = invocation.log.warning if watched_run.has_failed else invocation.log.info
        log_outcome(
            "a week ended",
            week=watched_run.week,
            run=run.id,
            why=watched_run.explanation,
            details=run.details,
        )
        return {
            "week": watched_run.week,
            "verdict": "failed" if watched_run.has_failed else "summed_up",
        }
    log_outcome = invocation.log.info if watched_run.is_fine else invocation.log.warning
    log_outcome(
        "a nightly run ended",
        day=str(watched_run.day),
        run=run.id,
        state=run.state,
        verdict=watched_run.verdict,
        usual_records=watched_run.judgement.usual_records,
        why=watched_run.explanation,
        nightly=watched_run.nightly.document() if watched_run.nightly else None,
    )
    if invocation.settings.organization_bucket is not None:
        shared_object_count = share_tables(
            invocation.clients, invocation.settings, watched_run.written_days
        )
        invocation.log.info(
            "shared with the organization", day=str(watched_run.day), objects=shared_object_count
        )
    return {"day": str(watched_run.day), "verdict": watched_run.verdict}

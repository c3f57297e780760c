"""Start the nightly or the weekly job on EMR Serverless."""

from __future__ import annotations

from datetime import UTC, datetime

from functions.entry import Event, LambdaInvocation, entry
from mendq.model.plan import Refusal
from mendq.model.settings import StartNightlySettings
from mendq.nightly.jobs import NightlyJobRoots, make_nightly_job, make_week_job, start_job

JOB_MAKER_BY_NAME = {"nightly": make_nightly_job, "week": make_week_job}


@entry(StartNightlySettings)
def handler(event: Event, invocation: LambdaInvocation[StartNightlySettings]) -> dict[str, str]:
    """Start the nightly or the weekly job.

    Args:
        event: `{"job", "time", "time_zone"}`: "nightly" or "week", the scheduled time, and the time
            zone of the people who read the report.
        invocation: This invocation of the Lambda.

    Returns:
        `{"run": id}`, or `{"refused": reason}` if a run of this job is active.

    Raises botocore's errors. Lambda then tries again.
    """
    settings = invocation.settings
    scheduled_at = datetime.fromisoformat(event["time"]).astimezone(UTC)
    job_roots = NightlyJobRoots(
        trail_root=settings.trail_root,
        case_root=settings.case_root,
        table_root=settings.out_root,
        account=settings.account,
        region=invocation.clients.region,
        time_zone=event.get("time_zone", "UTC"),
        scope=settings.scope,
        organization_root=settings.organization_root or "",
        expected_accounts=settings.organization_accounts,
    )
    job = JOB_MAKER_BY_NAME[event["job"]](scheduled_at, job_roots)
    run_id_or_refusal = start_job(invocation.clients.emr, settings, job, scheduled_at)
    if isinstance(run_id_or_refusal, Refusal):
        invocation.log.warning("not started", job=job.name, reason=run_id_or_refusal.reason)
        return {"refused": run_id_or_refusal.reason}
    invocation.log.info("started", job=job.name, run=run_id_or_refusal, arguments=job.arguments)
    return {"run": run_id_or_refusal}

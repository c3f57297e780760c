"""Start the nightly or the weekly job on EMR Serverless."""

from __future__ import annotations

from datetime import UTC, datetime

from functions.entry import Call, Event, entry
from mendq.model.plan import Refusal
from mendq.model.settings import StartNightlySettings
from mendq.nightly.jobs import Roots, nightly_job, start_job, week_job

JOBS = {"nightly": nightly_job, "week": week_job}


@entry(StartNightlySettings)
def handler(event: Event, call: Call[StartNightlySettings]) -> dict[str, str]:
    """Start the nightly or the weekly job.

    Args:
        event: `{"job", "time", "time_zone"}`: "nightly" or "week", the scheduled time, and the time
            zone of the people who read the report.
        call: This invocation.

    Returns:
        `{"run": id}`, or `{"refused": reason}` if a run of this job is active.

    Raises what AWS raises. Then Lambda tries again.
    """
    settings = call.settings
    scheduled_at = datetime.fromisoformat(event["time"]).astimezone(UTC)
    where = settings.account, call.clients.region, event.get("time_zone", "UTC"), settings.scope
    about = settings.organization_root or "", settings.organization_accounts
    roots = Roots(settings.trail_root, settings.case_root, settings.out_root, *where, *about)
    job = JOBS[event["job"]](scheduled_at, roots)
    started = start_job(call.clients.emr, settings, job, scheduled_at)
    if isinstance(started, Refusal):
        call.log.warning("not started", job=job.name, reason=started.reason)
        return {"refused": started.reason}
    call.log.info("started", job=job.name, run=started, arguments=job.arguments)
    return {"run": started}

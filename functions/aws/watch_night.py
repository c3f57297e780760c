"""Looks at a run that ended: the event only names it, what it did is asked of EMR and S3.

https://docs.aws.amazon.com/emr-serverless/latest/APIReference/API_GetJobRun.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit
from botocore.exceptions import ClientError

from functions.aws.clients import Clients
from functions.aws.errors import code_of
from functions.aws.nights_bucket import NightsBucket, weeks_due
from functions.healing.night_watch import (
    NightMetric,
    Run,
    Watched,
    WeekEnded,
    run_named_in,
    watched,
)
from functions.healing.plan import Refusal
from functions.settings import WatchNightSettings

if TYPE_CHECKING:
    from mypy_boto3_emr_serverless import EMRServerlessClient


def watch(
    clients: Clients, settings: WatchNightSettings, event: object
) -> Watched | WeekEnded | Refusal:
    """What the run did, or why it is not looked at. Raises what AWS raises."""
    run_id = run_named_in(event, settings.application_id)
    if run_id is None:
        return _not_watched("not_ours", "the event names no run of our application")
    run = _run(clients.emr, settings.application_id, run_id)
    if run is None:
        return _not_watched("no_run", f"EMR Serverless knows no run {run_id} of our application")
    if not run.has_ended:
        return _not_watched("goes_on", f"{run_id} is still {run.state}")
    bucket = NightsBucket(clients.s3, settings.report_bucket)
    if run.week is not None:
        return WeekEnded(run, run.week, bucket.summed_up_at(run.week))
    if run.day is None:
        return _not_watched("no_night", f"{run_id} is no night; it ended {run.state}")
    summed_up_at = bucket.summed_up_at(*weeks_due(run.updated_at.date()))
    return watched(run, run.day, bucket.until(run.day), summed_up_at)


def emit(metrics: Metrics, seen: Watched | WeekEnded) -> None:
    """Every figure of the run at the time at which it ended: told twice it is the same."""
    metrics.set_timestamp(seen.run.updated_at)
    for name, value in seen.metrics().items():
        unit = MetricUnit.Bytes if name is NightMetric.BYTES_UNREADABLE else MetricUnit.Count
        metrics.add_metric(name, unit, value)
    metrics.flush_metrics()


def log(logger: Logger, seen: Watched | WeekEnded) -> None:
    """Why, in one line: a night that is not fine is a warning."""
    if isinstance(seen, WeekEnded):
        say = logger.warning if seen.failed else logger.info
        run = seen.run
        say("a week ended", week=seen.week, run=run.id, why=seen.why, details=run.details)
        return
    say = logger.info if seen.is_fine else logger.warning
    night = seen.night.document() if seen.night else None
    say(
        "a night ended",
        day=str(seen.day),
        run=seen.run.id,
        state=seen.run.state,
        verdict=seen.verdict,
        usual_records=seen.judged.usual_records,
        why=seen.why,
        night=night,
    )


def _run(emr: EMRServerlessClient, application_id: str, run_id: str) -> Run | None:
    try:
        answer = emr.get_job_run(applicationId=application_id, jobRunId=run_id)["jobRun"]
    except ClientError as error:
        if code_of(error) == "ResourceNotFoundException":
            return None
        raise
    return Run(
        run_id,
        answer.get("name", ""),
        answer["state"],
        answer["stateDetails"],
        answer["createdAt"],
        answer["updatedAt"],
    )


def _not_watched(code: str, reason: str) -> Refusal:
    return Refusal(code, reason, becomes=None)

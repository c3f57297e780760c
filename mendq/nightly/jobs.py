"""The EMR job of a night or of a week, from the time that the schedule names to its start.

https://docs.aws.amazon.com/emr-serverless/latest/APIReference/API_StartJobRun.html
"""

from __future__ import annotations

from datetime import datetime, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mendq.model.evidence import to_text
from mendq.model.plan import Ignore, Refusal
from mendq.model.settings import ACCOUNT, WORKER, StartNightlySettings
from mendq.nightly.verdict import week_named

if TYPE_CHECKING:
    from mypy_boto3_emr_serverless import EMRServerlessClient

# EMR Serverless's states in which a run still goes on.
# https://docs.aws.amazon.com/emr-serverless/latest/APIReference/API_JobRun.html
ACTIVE = ("SUBMITTED", "PENDING", "SCHEDULED", "RUNNING", "CANCELLING", "QUEUED")


class Roots(Struct, frozen=True):
    """Where the job reads and writes: s3 URIs, or folders on the local account.

    Of the trail, the files of one account and region, or of all where that is the `scope`;
    `time_zone` is the report's, `organization` where the stacks' tables lie of whom it is about.
    """

    trail: str
    cases: str
    out: str
    account: str
    region: str
    time_zone: str = "UTC"
    scope: str = ACCOUNT
    organization: str = ""
    expected: tuple[str, ...] = ()


class Job(Struct, frozen=True):
    """A run of analytics.job: `kind` is nightly or week, `of` the day or week it is for."""

    kind: str
    of: str
    arguments: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.kind}-{self.of}"

    def client_token(self, scheduled_at: datetime) -> str:
        """The same for every delivery of one scheduled time; EMR allows A-Z, a-z, 0-9, `._-`.

        Another time gives another token, so that a failed nightly run can be started again by hand.
        """
        text = " ".join((*self.arguments, scheduled_at.isoformat()))
        return f"{self.name}-{sha256(text.encode()).hexdigest()[:12]}"


def nightly_job(scheduled_at: datetime, roots: Roots) -> Job:
    """Yesterday (UTC), and the day before once more for the files that came late."""
    day = (scheduled_at - timedelta(days=1)).date()
    days = ("--from", f"{day - timedelta(days=1)}", "--to", f"{day}")
    whose = ("--account", roots.account, "--region", roots.region) if roots.scope == ACCOUNT else ()
    return Job("nightly", f"{day}", ("backfill", *days, *_all(roots), *whose))


def week_job(scheduled_at: datetime, roots: Roots) -> Job:
    """The last whole ISO week (UTC); the job is told when that was, which it may begin later."""
    name = week_named((scheduled_at - timedelta(days=7)).date())
    when = ("--scheduled-at", to_text(scheduled_at), "--time-zone", roots.time_zone)
    about = ("--organization", roots.organization) if roots.organization else ()
    expected = ("--expected", ",".join(roots.expected)) if about and roots.expected else ()
    return Job("week", name, ("weekly", "--week", name, *when, *_all(roots), *about, *expected))


def _all(roots: Roots) -> tuple[str, ...]:
    return ("--trail", roots.trail, "--cases", roots.cases, "--out", roots.out)


# A nightly run that takes longer is not a nightly run any more.
TIMEOUT_MINUTES = 180
# emr-7.14.0 starts Python 3.9 unless it is told otherwise.
# https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/using-python-libraries.html
PYTHON = "/usr/bin/python3.11"
# Where driver and executors find the archive unpacked, below the folder that they start in.
FOLDER = "compiled"


def start_job(
    emr: EMRServerlessClient, settings: StartNightlySettings, job: Job, scheduled_at: datetime
) -> str | Refusal:
    """The run's id, or a refusal while a run of its kind is active.

    A nightly run and a week may run side by side: the week reads whole objects that a nightly run
    replaces.
    """
    asked: Any = {"applicationId": settings.application_id, "states": list(ACTIVE)}
    pages = emr.get_paginator("list_job_runs").paginate(**asked)
    for run in (run for page in pages for run in page["jobRuns"]):
        if run.get("name", "").startswith(f"{job.kind}-"):
            return Ignore("run_active", f"{run['name']} still goes on")
    submitted = {
        "entryPoint": settings.entry_point,
        "entryPointArguments": list(job.arguments),
        "sparkSubmitParameters": spark_parameters(settings),
    }
    logs = {"s3MonitoringConfiguration": {"logUri": settings.log_root}}
    request: Any = {
        "applicationId": settings.application_id,
        "clientToken": job.client_token(scheduled_at),
        "executionRoleArn": settings.job_role_arn,
        "executionTimeoutMinutes": TIMEOUT_MINUTES,
        "name": job.name,
        "jobDriver": {"sparkSubmit": submitted},
        "configurationOverrides": {"monitoringConfiguration": logs},
    }
    run_id: str = emr.start_job_run(**request)["jobRunId"]
    return run_id


def spark_parameters(settings: StartNightlySettings) -> str:
    """Code, packages, Python and sizes of driver and executors; none of it has a space in it."""
    emr = "spark.emr-serverless"
    given = {
        "spark.submit.pyFiles": settings.package,
        "spark.archives": f"{settings.compiled_packages}#{FOLDER}",
        f"{emr}.driverEnv.PYSPARK_DRIVER_PYTHON": PYTHON,
        f"{emr}.memoryOverheadFactor": f"{WORKER.overhead_factor}",
        # As many as the files are worth, from one on.
        "spark.executor.instances": "1",
        "spark.dynamicAllocation.maxExecutors": f"{settings.maximum_executors}",
    }
    for role, environment in (("driver", f"{emr}.driverEnv"), ("executor", "spark.executorEnv")):
        given[f"spark.{role}.cores"] = f"{WORKER.vcpu}"
        given[f"spark.{role}.memory"] = f"{WORKER.heap_gb}g"
        given[f"{emr}.{role}.disk"] = f"{WORKER.disk_gb}g"
        given[f"{environment}.PYSPARK_PYTHON"] = PYTHON
        given[f"{environment}.PYTHONPATH"] = f"./{FOLDER}"
    return " ".join(f"--conf {name}={value}" for name, value in given.items())

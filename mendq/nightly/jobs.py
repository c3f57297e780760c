"""Start the scheduled EMR Serverless jobs.

The nightly job reads the last two days, the weekly job sums up the last week.

https://docs.aws.amazon.com/emr-serverless/latest/APIReference/API_StartJobRun.html
"""

from __future__ import annotations

from datetime import datetime, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mendq.model.plan import Ignore, Refusal
from mendq.model.settings import (
    ACCOUNT_SCOPE,
    DEFAULT_SPARK_WORKER,
    INITIAL_EXECUTORS,
    StartNightlySettings,
)
from mendq.model.time_text import format_time
from mendq.nightly.verdict import name_of_week

if TYPE_CHECKING:
    from mypy_boto3_emr_serverless import EMRServerlessClient

# EMR Serverless's states of a job run that has not ended.
# https://docs.aws.amazon.com/emr-serverless/latest/APIReference/API_JobRun.html
STATES_OF_ACTIVE_RUNS = ("SUBMITTED", "PENDING", "SCHEDULED", "RUNNING", "CANCELLING", "QUEUED")


class NightlyJobRoots(Struct, frozen=True):
    """The places where the job reads and writes: S3 URIs, or folders on the local account.

    Args:
        trail_root: The trail's log files.
        case_root: The case bucket.
        table_root: The root of the tables that the job writes.
        account: The account whose files are read, if `scope` is ACCOUNT_SCOPE.
        region: The region whose files are read, if `scope` is ACCOUNT_SCOPE.
        time_zone: The report's time zone.
        scope: ACCOUNT_SCOPE to read the files of one account and region. Any other value reads all.
        organization_root: The root of the tables that the organization's stacks share. Empty if the
            report is about this stack only.
        expected_accounts: The accounts that are reported as silent if they have shared no tables.
    """

    trail_root: str
    case_root: str
    table_root: str
    account: str
    region: str
    time_zone: str = "UTC"
    scope: str = ACCOUNT_SCOPE
    organization_root: str = ""
    expected_accounts: tuple[str, ...] = ()


class Job(Struct, frozen=True):
    """A run of `analytics.job`.

    `kind` is `nightly` or `week`. `day_or_week` names the last day that the job reads, or the week
    that it sums up. `arguments` is its command line.
    """

    kind: str
    day_or_week: str
    arguments: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name of the job run in EMR Serverless, such as `nightly-2026-11-16`."""
        return f"{self.kind}-{self.day_or_week}"

    def make_client_token(self, scheduled_at: datetime) -> str:
        """Return a token for EMR, which starts only one run per token.

        Each scheduled time gives a different token, so that a person can start a failed run again.
        EMR allows the characters A-Z, a-z, 0-9 and `._-`.
        """
        token_input = " ".join((*self.arguments, scheduled_at.isoformat()))
        return f"{self.name}-{sha256(token_input.encode()).hexdigest()[:12]}"


def make_nightly_job(scheduled_at: datetime, roots: NightlyJobRoots) -> Job:
    """Return the job that reads yesterday (UTC), and the day before again for late files."""
    day = (scheduled_at - timedelta(days=1)).date()
    arguments = ["backfill", "--from", f"{day - timedelta(days=1)}", "--to", f"{day}"]
    arguments += _list_root_arguments(roots)
    if roots.scope == ACCOUNT_SCOPE:
        arguments += ["--account", roots.account, "--region", roots.region]
    return Job("nightly", f"{day}", tuple(arguments))


def make_week_job(scheduled_at: datetime, roots: NightlyJobRoots) -> Job:
    """Return the job that sums up the last complete ISO week (UTC).

    The job gets the scheduled time as an argument, because it may start later.
    """
    week = name_of_week((scheduled_at - timedelta(days=7)).date())
    arguments = ["weekly", "--week", week, "--scheduled-at", format_time(scheduled_at)]
    arguments += ["--time-zone", roots.time_zone, *_list_root_arguments(roots)]
    if roots.organization_root:
        arguments += ["--organization", roots.organization_root]
        if roots.expected_accounts:
            arguments += ["--expected", ",".join(roots.expected_accounts)]
    return Job("week", week, tuple(arguments))


def _list_root_arguments(roots: NightlyJobRoots) -> tuple[str, ...]:
    """Return the arguments that both kinds of job need."""
    return ("--trail", roots.trail_root, "--cases", roots.case_root, "--out", roots.table_root)


# EMR Serverless ends a run that takes longer than this.
TIMEOUT_MINUTES = 180
# The Python of driver and executors. Without this setting, emr-7.14.0 starts Python 3.9.
# https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/using-python-libraries.html
PYTHON_PATH = "/usr/bin/python3.11"
# The folder with the unpacked archive of packages, below the working directory of driver and
# executors.
PACKAGES_FOLDER = "compiled"


def start_job(
    emr_client: EMRServerlessClient,
    settings: StartNightlySettings,
    job: Job,
    scheduled_at: datetime,
) -> str | Refusal:
    """Start a job and return the id of its run. Return a refusal if a run of its kind is active.

    A nightly run and a weekly run may be active at the same time: the weekly run reads whole
    objects, and a nightly run replaces whole objects.
    """
    active_states: Any = list(STATES_OF_ACTIVE_RUNS)
    paginator = emr_client.get_paginator("list_job_runs")
    for response_page in paginator.paginate(
        applicationId=settings.application_id, states=active_states
    ):
        for job_run in response_page["jobRuns"]:
            if job_run.get("name", "").startswith(f"{job.kind}-"):
                return Ignore("run_active", f"{job_run['name']} still goes on")
    spark_submit = {
        "entryPoint": settings.entry_point,
        "entryPointArguments": list(job.arguments),
        "sparkSubmitParameters": format_spark_parameters(settings),
    }
    monitoring_configuration = {"s3MonitoringConfiguration": {"logUri": settings.log_root}}
    request: Any = {
        "applicationId": settings.application_id,
        "clientToken": job.make_client_token(scheduled_at),
        "executionRoleArn": settings.job_role_arn,
        "executionTimeoutMinutes": TIMEOUT_MINUTES,
        "name": job.name,
        "jobDriver": {"sparkSubmit": spark_submit},
        "configurationOverrides": {"monitoringConfiguration": monitoring_configuration},
    }
    run_id: str = emr_client.start_job_run(**request)["jobRunId"]
    return run_id


def format_spark_parameters(settings: StartNightlySettings) -> str:
    """Return the parameters of spark-submit: code, packages, Python, and the sizes of workers.

    No value contains a space.
    """
    emr_prefix = "spark.emr-serverless"
    spark_properties = {
        "spark.submit.pyFiles": settings.package,
        "spark.archives": f"{settings.compiled_packages}#{PACKAGES_FOLDER}",
        f"{emr_prefix}.driverEnv.PYSPARK_DRIVER_PYTHON": PYTHON_PATH,
        f"{emr_prefix}.memoryOverheadFactor": f"{DEFAULT_SPARK_WORKER.overhead_factor}",
        # Spark begins with the largest of these three numbers, and adds executors if there are
        # enough files. Without them EMR would begin with 3 executors, also on a quiet night.
        "spark.executor.instances": f"{INITIAL_EXECUTORS}",
        "spark.dynamicAllocation.initialExecutors": f"{INITIAL_EXECUTORS}",
        "spark.dynamicAllocation.minExecutors": f"{INITIAL_EXECUTORS}",
        "spark.dynamicAllocation.maxExecutors": f"{settings.maximum_executors}",
    }
    for spark_role, environment_prefix in (
        ("driver", f"{emr_prefix}.driverEnv"),
        ("executor", "spark.executorEnv"),
    ):
        spark_properties[f"spark.{spark_role}.cores"] = f"{DEFAULT_SPARK_WORKER.vcpu}"
        spark_properties[f"spark.{spark_role}.memory"] = f"{DEFAULT_SPARK_WORKER.heap_gb}g"
        spark_properties[f"{emr_prefix}.{spark_role}.disk"] = f"{DEFAULT_SPARK_WORKER.disk_gb}g"
        spark_properties[f"{environment_prefix}.PYSPARK_PYTHON"] = PYTHON_PATH
        spark_properties[f"{environment_prefix}.PYTHONPATH"] = f"./{PACKAGES_FOLDER}"
    return " ".join(
        f"--conf {property_name}={property_value}"
        for property_name, property_value in spark_properties.items()
    )

"""Start the nightly job or the weekly one on EMR Serverless, unless one still runs.

https://docs.aws.amazon.com/emr-serverless/latest/APIReference/API_StartJobRun.html
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from mendq.model.plan import Refusal
from mendq.model.settings import WORKER, StartNightlySettings
from mendq.nightly.jobs import ACTIVE, Job

if TYPE_CHECKING:
    from mypy_boto3_emr_serverless import EMRServerlessClient

# A nightly run that takes longer is not a nightly run any more.
TIMEOUT_MINUTES = 180
# emr-7.14.0 starts Python 3.9 unless it is told otherwise.
# https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/using-python-libraries.html
PYTHON = "/usr/bin/python3.11"
# Where driver and executors find the archive unpacked, below the folder that they start in.
FOLDER = "compiled"


def start(
    emr: EMRServerlessClient, settings: StartNightlySettings, job: Job, scheduled_at: datetime
) -> str | Refusal:
    """The run's id, or a refusal while a run of its kind is active.

    A nightly run and a week may run side by side: the week reads whole objects that a nightly run
    replaces.
    """
    pages = emr.get_paginator("list_job_runs").paginate(
        applicationId=settings.application_id, states=list(ACTIVE)
    )
    for run in (run for page in pages for run in page["jobRuns"]):
        if run.get("name", "").startswith(f"{job.kind}-"):
            return Refusal("run_active", f"{run['name']} still goes on", becomes=None)
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

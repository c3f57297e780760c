"""Starts the night or the week on EMR Serverless, unless one still runs.

https://docs.aws.amazon.com/emr-serverless/latest/APIReference/API_StartJobRun.html
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from functions.healing.night import ACTIVE, Job
from functions.healing.plan import Refusal
from functions.settings import StartNightSettings

if TYPE_CHECKING:
    from mypy_boto3_emr_serverless import EMRServerlessClient

# A night that takes longer is not a night any more.
TIMEOUT_MINUTES = 180
# emr-7.14.0 starts Python 3.9 unless it is told otherwise.
# https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/using-python-libraries.html
PYTHON = "/usr/bin/python3.11"


def start(
    emr: EMRServerlessClient, settings: StartNightSettings, job: Job, scheduled_at: datetime
) -> str | Refusal:
    """The run's id, or a refusal while a run of its kind is active.

    A night and a week may run side by side: the week reads whole objects that a night replaces.
    """
    pages = emr.get_paginator("list_job_runs").paginate(
        applicationId=settings.application_id, states=list(ACTIVE)
    )
    for run in (run for page in pages for run in page["jobRuns"]):
        if run.get("name", "").startswith(f"{job.kind}-"):
            return Refusal("run_active", f"{run['name']} still goes on", becomes=None)
    answer = emr.start_job_run(
        applicationId=settings.application_id,
        clientToken=job.client_token(scheduled_at),
        executionRoleArn=settings.job_role_arn,
        executionTimeoutMinutes=TIMEOUT_MINUTES,
        name=job.name,
        jobDriver={
            "sparkSubmit": {
                "entryPoint": settings.entry_point,
                "entryPointArguments": list(job.arguments),
                "sparkSubmitParameters": spark_parameters(settings.package),
            }
        },
        configurationOverrides={
            "monitoringConfiguration": {"s3MonitoringConfiguration": {"logUri": settings.log_root}}
        },
    )
    return answer["jobRunId"]


def spark_parameters(package: str) -> str:
    """The package and the Python that driver and executors run; sizes stay the application's."""
    settings = {
        "spark.submit.pyFiles": package,
        "spark.emr-serverless.driverEnv.PYSPARK_PYTHON": PYTHON,
        "spark.emr-serverless.driverEnv.PYSPARK_DRIVER_PYTHON": PYTHON,
        "spark.executorEnv.PYSPARK_PYTHON": PYTHON,
        "spark.driver.cores": "2",
        "spark.driver.memory": "6g",
        "spark.executor.cores": "2",
        "spark.executor.memory": "6g",
        "spark.executor.instances": "1",
        "spark.dynamicAllocation.maxExecutors": "6",
    }
    return " ".join(f"--conf {name}={value}" for name, value in settings.items())

"""Start the nightly job or the weekly one on EMR Serverless, unless one still runs.

https://docs.aws.amazon.com/emr-serverless/latest/APIReference/API_StartJobRun.html
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from mendq.model.plan import Ignore, Refusal
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
            return Ignore("run_active", f"{run['name']} still goes on")
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
                "sparkSubmitParameters": spark_parameters(settings),
            }
        },
        configurationOverrides={
            "monitoringConfiguration": {"s3MonitoringConfiguration": {"logUri": settings.log_root}}
        },
    )
    return answer["jobRunId"]


def spark_parameters(settings: StartNightlySettings) -> str:
    """Code, packages, Python and sizes of driver and executors; none of it has a space in it."""
    given = {
        "spark.submit.pyFiles": settings.package,
        "spark.archives": f"{settings.compiled_packages}#{FOLDER}",
        "spark.emr-serverless.driverEnv.PYSPARK_DRIVER_PYTHON": PYTHON,
        "spark.driver.cores": f"{WORKER.vcpu}",
        "spark.driver.memory": f"{WORKER.heap_gb}g",
        "spark.executor.cores": f"{WORKER.vcpu}",
        "spark.executor.memory": f"{WORKER.heap_gb}g",
        "spark.emr-serverless.memoryOverheadFactor": f"{WORKER.overhead_factor}",
        "spark.emr-serverless.driver.disk": f"{WORKER.disk_gb}g",
        "spark.emr-serverless.executor.disk": f"{WORKER.disk_gb}g",
        # As many as the files are worth, from one on.
        "spark.executor.instances": "1",
        "spark.dynamicAllocation.maxExecutors": f"{settings.maximum_executors}",
    }
    for place in ("spark.emr-serverless.driverEnv", "spark.executorEnv"):
        given[f"{place}.PYSPARK_PYTHON"] = PYTHON
        given[f"{place}.PYTHONPATH"] = f"./{FOLDER}"
    return " ".join(f"--conf {name}={value}" for name, value in given.items())

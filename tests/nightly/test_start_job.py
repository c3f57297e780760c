"""botocore's Stubber answers in EMR Serverless's shapes; nothing here ran on EMR."""

from __future__ import annotations

from typing import Any

import boto3
import pytest
from botocore.stub import ANY, Stubber

from mendq.aws.clients import Clients
from mendq.model.plan import Refusal
from mendq.model.settings import WORKER, StartNightlySettings
from mendq.nightly.jobs import Job, Roots, nightly, week
from mendq.nightly.start import spark_parameters, start
from tests.model.test_nightly_jobs import AT

ROOTS = Roots("s3://trail", "s3://cases", "s3://out")
SETTINGS = StartNightlySettings(
    account="123456789012",
    application_id="00f1a2b3",
    job_role_arn="arn:aws:iam::123456789012:role/mendq-nightly-us-east-1",
    entry_point="s3://code/job.py",
    package="s3://code/package.zip",
    compiled_packages="s3://code/compiled.tgz",
    trail_root=ROOTS.trail,
    case_root=ROOTS.cases,
    out_root=ROOTS.out,
    log_root="s3://out/logs/",
    maximum_executors=7,
)


@pytest.fixture
def clients() -> Clients:
    return Clients(boto3.Session(region_name="us-east-1"))


def run(name: str) -> dict[str, Any]:
    return {
        "applicationId": "00f1a2b3",
        "id": "run-1",
        "name": name,
        "arn": "arn:aws:emr-serverless:us-east-1:123456789012:/applications/00f1a2b3/jobruns/run-1",
        "createdBy": SETTINGS.job_role_arn,
        "createdAt": AT,
        "updatedAt": AT,
        "executionRole": SETTINGS.job_role_arn,
        "state": "RUNNING",
        "stateDetails": "running",
        "releaseLabel": "emr-7.14.0",
    }


def _started(clients: Clients, job: Job, *active: dict[str, Any]) -> str | Refusal:
    with Stubber(clients.emr) as emr:
        emr.add_response(
            "list_job_runs",
            {"jobRuns": list(active)},
            {
                "applicationId": "00f1a2b3",
                "states": [
                    *("SUBMITTED", "PENDING", "SCHEDULED", "RUNNING", "CANCELLING", "QUEUED")
                ],
            },
        )
        emr.add_response(
            "start_job_run",
            {"applicationId": "00f1a2b3", "jobRunId": "run-2", "arn": run("x")["arn"]},
            {
                "applicationId": "00f1a2b3",
                "clientToken": job.client_token(AT),
                "executionRoleArn": SETTINGS.job_role_arn,
                "executionTimeoutMinutes": ANY,
                "name": job.name,
                "jobDriver": {
                    "sparkSubmit": {
                        "entryPoint": "s3://code/job.py",
                        "entryPointArguments": list(job.arguments),
                        "sparkSubmitParameters": spark_parameters(SETTINGS),
                    }
                },
                "configurationOverrides": ANY,
            },
        )
        return start(clients.emr, SETTINGS, job, AT)


@pytest.mark.parametrize("job", [nightly(AT, ROOTS), week(AT, ROOTS)])
def test_nothing_is_started_while_one_of_its_kind_is_active(clients: Clients, job: Job) -> None:
    refusal = _started(clients, job, run(f"{job.kind}-2026-11-01"))
    assert isinstance(refusal, Refusal)
    assert refusal.code == "run_active"


def test_a_run_of_somebody_else_or_of_the_other_kind_is_no_reason_to_wait(
    clients: Clients,
) -> None:
    active = (run("week-2026-W45"), run("adhoc"))
    assert _started(clients, nightly(AT, ROOTS), *active) == "run-2"


def _given() -> dict[str, str]:
    words = spark_parameters(SETTINGS).split(" ")
    assert words[::2] == ["--conf"] * (len(words) // 2)
    return dict(each.split("=", 1) for each in words[1::2])


def test_driver_and_executors_run_the_same_python_with_the_same_packages() -> None:
    """EMR's own default is Python 3.9, and its packages are for that."""
    given = _given()
    python = "/usr/bin/python3.11"
    assert given["spark.submit.pyFiles"] == "s3://code/package.zip"
    assert given["spark.emr-serverless.driverEnv.PYSPARK_DRIVER_PYTHON"] == python
    archive, _, folder = given["spark.archives"].partition("#")
    assert archive == "s3://code/compiled.tgz"
    for place in ("spark.emr-serverless.driverEnv", "spark.executorEnv"):
        assert given[f"{place}.PYSPARK_PYTHON"] == python
        assert given[f"{place}.PYTHONPATH"] == f"./{folder}"


def test_workers_are_bounded_by_the_settings() -> None:
    """EMR's own defaults are 4 processors, 14 GB and executors without end."""
    given = _given()
    assert given["spark.dynamicAllocation.maxExecutors"] == "7"
    assert int(given["spark.executor.instances"]) == 1
    for place in ("spark.driver", "spark.executor"):
        assert given[f"{place}.cores"] == f"{WORKER.vcpu}"
        heap_gb = int(given[f"{place}.memory"].removesuffix("g"))
        factor = 1 + float(given["spark.emr-serverless.memoryOverheadFactor"])
        assert heap_gb * factor == pytest.approx(WORKER.memory_gb)
    for place in ("driver", "executor"):
        assert given[f"spark.emr-serverless.{place}.disk"] == f"{WORKER.disk_gb}g"

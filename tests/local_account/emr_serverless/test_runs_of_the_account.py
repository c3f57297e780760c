"""Job runs of a running account: carried out as their role, told to the bus, ended with it."""

from __future__ import annotations

import gzip
import os
import time
import uuid
from pathlib import Path
from typing import Any

import pytest

from local_account.process import LocalAccount
from tests.local_account.accounts import TINY_ASSEMBLY
from tests.local_account.callers import allow, policy
from tests.local_account.queues import error_of, eventually
from tests.local_account.trail import Listener

pytestmark = pytest.mark.account
BUCKET = "code"
ROLE = "arn:aws:iam::000000000000:role/job"
# Long enough that only an end from outside can be why it is gone.
SLEEPER_SECONDS = 900
SLEEPER = (
    "import os, sys, time\n"
    "open(sys.argv[1], 'w').write(str(os.getpid()))\n"
    f"time.sleep({SLEEPER_SECONDS})\n"
)
FORGETFUL = "print('begins', flush=True)\nimport mendq.nightly.jobs\n"
READER = "import os\nprint(os.environ['AWS_ACCESS_KEY_ID'][:4], sorted(os.listdir('.')))\n"


@pytest.fixture(scope="module")
def jobs(tiny: LocalAccount) -> LocalAccount:
    _prepare(tiny)
    return tiny


def _prepare(account: LocalAccount) -> None:
    s3 = account.client("s3")
    s3.create_bucket(Bucket=BUCKET)
    for name, source in (("sleeper", SLEEPER), ("forgetful", FORGETFUL), ("reader", READER)):
        s3.put_object(Bucket=BUCKET, Key=f"{name}.py", Body=source.encode())
    _make_role(account, "job", "emr-serverless.amazonaws.com", ["s3:GetObject", "s3:PutObject"])
    _make_role(account, "closed", "emr-serverless.amazonaws.com", ["s3:PutObject"])
    _make_role(account, "foreign", "lambda.amazonaws.com", ["s3:*"])


def _make_role(account: LocalAccount, name: str, service: str, actions: list[str]) -> None:
    trust = {"Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole"}
    iam = account.client("iam")
    allowed = allow(actions, f"arn:aws:s3:::{BUCKET}/*")
    iam.create_role(RoleName=name, AssumeRolePolicyDocument=policy(trust))
    iam.put_role_policy(RoleName=name, PolicyName="all", PolicyDocument=policy(allowed))


def _start(account: LocalAccount, script: str, *arguments: str, **over: Any) -> str:
    driver = {"entryPoint": f"s3://{BUCKET}/{script}.py", "entryPointArguments": list(arguments)}
    logs = {"s3MonitoringConfiguration": {"logUri": f"s3://{BUCKET}/logs/"}}
    request = {
        "applicationId": account.outputs["Application"],
        "clientToken": str(uuid.uuid4()),
        "executionRoleArn": ROLE,
        "jobDriver": {"sparkSubmit": driver},
        "configurationOverrides": {"monitoringConfiguration": logs},
    }
    client = over.pop("client", None) or account.client("emr-serverless")
    run_id: str = client.start_job_run(**request | over)["jobRunId"]
    return run_id


def _read_run(account: LocalAccount, run_id: str) -> dict[str, Any]:
    run: dict[str, Any] = account.client("emr-serverless").get_job_run(
        applicationId=account.outputs["Application"], jobRunId=run_id
    )["jobRun"]
    return run


def _wait_for_end(account: LocalAccount, run_id: str) -> dict[str, Any]:
    eventually(lambda: _read_run(account, run_id)["state"] in ("SUCCESS", "FAILED"))
    return _read_run(account, run_id)


def test_failed_job_run_announces_each_state_and_has_the_python_error_in_its_state_and_log(
    jobs: LocalAccount,
) -> None:
    listener = Listener(jobs, {"source": ["aws.emr-serverless"]})
    run = _wait_for_end(jobs, run_id := _start(jobs, "forgetful", name="nightly-2026-11-09"))
    assert run["state"] == "FAILED"
    assert run["stateDetails"].endswith("ModuleNotFoundError: No module named 'mendq'")
    assert _read_log(jobs, run_id).startswith("begins\nTraceback")
    announced = [
        event for event in listener.events(at_least=5) if event["detail"]["jobRunId"] == run_id
    ]
    states = [event["detail"]["state"] for event in announced]
    assert states == ["SUBMITTED", "PENDING", "SCHEDULED", "RUNNING", "FAILED"]
    assert {event["detail-type"] for event in announced} == {"EMR Serverless Job Run State Change"}


def _read_log(account: LocalAccount, run_id: str) -> str:
    folder = f"applications/{account.outputs['Application']}/jobs/{run_id}/SPARK_DRIVER"
    answer = account.client("s3").get_object(Bucket=BUCKET, Key=f"logs/{folder}/stdout.gz")
    return gzip.decompress(answer["Body"].read()).decode()


def test_job_run_fails_if_its_role_is_missing_not_assumable_or_may_not_read_the_script(
    jobs: LocalAccount,
) -> None:
    for role, about in (
        ("closed", "s3://code/reader.py cannot be read"),
        ("foreign", "does not let emr-serverless.amazonaws.com assume it"),
        ("none", "does not exist"),
    ):
        run = _wait_for_end(
            jobs, _start(jobs, "reader", executionRoleArn=ROLE.replace("job", role))
        )
        assert (run["state"], about in run["stateDetails"]) == ("FAILED", True)


def test_start_job_run_with_a_used_client_token_returns_that_run_and_refuses_other_arguments(
    jobs: LocalAccount,
) -> None:
    token = str(uuid.uuid4())
    run_id = _start(jobs, "reader", clientToken=token)
    assert _start(jobs, "reader", clientToken=token) == run_id
    code, _ = error_of(lambda: _start(jobs, "reader", "--other", clientToken=token))
    assert code == "ConflictException"


def test_job_run_has_credentials_of_its_role_and_sees_only_its_own_files(
    jobs: LocalAccount,
) -> None:
    run_id = _start(jobs, "reader")
    assert _wait_for_end(jobs, run_id)["state"] == "SUCCESS"
    assert _read_log(jobs, run_id) == "ASIA ['reader.py', 'stderr', 'stdout']\n"


def test_second_job_run_stays_pending_and_both_runs_end_with_the_local_account(
    tmp_path: Path,
) -> None:
    written = tmp_path / "process"
    with LocalAccount(options=("--assembly", str(TINY_ASSEMBLY))) as account:
        _prepare(account)
        first = _start(account, "sleeper", str(written))
        second = _start(account, "sleeper", str(tmp_path / "never"))
        eventually(lambda: written.exists() and written.read_text())
        states = [_read_run(account, run_id)["state"] for run_id in (first, second)]
        assert states == ["RUNNING", "PENDING"]
        emr = account.client("emr-serverless")
        application = account.outputs["Application"]
        listed = emr.list_job_runs(applicationId=application, states=["RUNNING", "QUEUED"])
        assert [job_run["id"] for job_run in listed["jobRuns"]] == [first]
        ending = time.monotonic()
    assert time.monotonic() - ending < SLEEPER_SECONDS / 2, "the end waited for the run"
    eventually(lambda: not _is_alive(int(written.read_text())))
    assert not (tmp_path / "never").exists()


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True

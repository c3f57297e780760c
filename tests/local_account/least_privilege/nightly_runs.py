"""The Lambdas around the nightly job: start_nightly starts a run, watch_nightly looks at one that
failed.
"""

from __future__ import annotations

import json
import uuid
from datetime import UTC, date, datetime
from functools import cache

from mendq.nightly.verdict import NATIVE, NightlyRead, nightly_key
from tests.local_account.least_privilege.enforced import Enforced
from tests.local_account.least_privilege.proof import Proof
from tests.local_account.queues import eventually

# Long before any night that another test has.
DAY = date(2020, 1, 5)


@cache
def _failed(here: Enforced, name: str) -> str:
    """A run of the nightly job's application whose code is not there; its id."""
    emr, application = here.account.client("emr-serverless"), here.outputs["NightlyApplication"]
    run: str = emr.start_job_run(
        applicationId=application,
        clientToken=str(uuid.uuid4()),
        executionRoleArn="arn:aws:iam::000000000000:role/mendq-nightly-us-east-1",
        name=name,
        jobDriver={"sparkSubmit": {"entryPoint": f"s3://{here.outputs['ReportBucket']}/gone.py"}},
    )["jobRunId"]
    asked = {"applicationId": application, "jobRunId": run}
    eventually(lambda: emr.get_job_run(**asked)["jobRun"]["state"] == "FAILED")
    return run


def _code_gone(here: Enforced) -> None:
    """So that the run ends at its first look for its code, and no Spark starts."""
    functions = here.account.client("lambda")
    name = here.functions["mendq-start-nightly-us-east-1"]
    variables = functions.get_function_configuration(FunctionName=name)["Environment"]["Variables"]
    bucket, _, key = variables["MENDQ_ENTRY_POINT"].removeprefix("s3://").partition("/")
    here.account.client("s3").delete_object(Bucket=bucket, Key=key)


def _started(here: Enforced, _: None) -> str:
    answer = here.call("start_nightly", {"job": "nightly", "time": datetime.now(UTC).isoformat()})
    return answer.error or ", ".join(answer.document)


def _nightly_that_failed(here: Enforced) -> str:
    made_at = datetime(2020, 1, 6, 3, tzinfo=UTC)  # by a run before this one
    written = NightlyRead(DAY, made_at, NATIVE, "", files=9, bytes=100, records=7)
    here.account.client("s3").put_object(
        Bucket=here.outputs["ReportBucket"],
        Key=nightly_key(DAY),
        Body=json.dumps(written.document()).encode(),
    )
    return _failed(here, f"nightly-{DAY}")


def _watched(here: Enforced, run: str) -> str:
    answer = here.call(
        "watch_nightly",
        {
            "version": "0",
            "source": "aws.emr-serverless",
            "detail-type": "EMR Serverless Job Run State Change",
            "detail": {
                "jobRunId": run,
                "applicationId": here.outputs["NightlyApplication"],
                "state": "FAILED",
            },
        },
    )
    return answer.error or answer.document["verdict"]


PROOFS = (
    Proof(
        handler="start_nightly",
        prepare=_code_gone,
        comes_of=_started,
        whole="run",
        without=dict.fromkeys(
            ("emr-serverless:ListJobRuns", "emr-serverless:StartJobRun", "iam:PassRole"),
            "ClientError",
        ),
        elsewhere={},
    ),
    Proof(
        handler="watch_nightly",
        prepare=_nightly_that_failed,
        comes_of=_watched,
        whole="failed",
        without={
            "emr-serverless:GetJobRun": "ClientError",
            "s3:GetObject": "AccessDenied",
            "s3:ListBucket": "AccessDenied",
        },
        elsewhere={},
    ),
)

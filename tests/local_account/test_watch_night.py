"""A night that fails is seen: its run ends, the bus tells, the Lambda asks, the figures are there.

Permissions are enforced by the local account, not by AWS; no run here reaches its driver.
"""

from __future__ import annotations

import json
import uuid
from datetime import UTC, date, datetime, timedelta

import pytest

from functions.healing.night_watch import NightMetric
from functions.healing.nightly import NATIVE, NightRead, night_key
from local_account.process import LocalAccount
from tests.local_account.queues import eventually

pytestmark = pytest.mark.account
# Long before any night that another test has.
DAY = date(2020, 1, 5)


def _fail(account: LocalAccount, name: str) -> None:
    """A run of the night's application whose code is not there."""
    outputs = account.outputs
    account.client("emr-serverless").start_job_run(
        applicationId=outputs["NightApplication"],
        clientToken=str(uuid.uuid4()),
        executionRoleArn="arn:aws:iam::000000000000:role/mendq-night-us-east-1",
        name=name,
        jobDriver={"sparkSubmit": {"entryPoint": f"s3://{outputs['ReportBucket']}/gone.py"}},
    )


def _sums(account: LocalAccount) -> dict[str, float]:
    """Every figure's sum over the last hours."""
    now = datetime.now(UTC)
    answer = account.client("cloudwatch").get_metric_data(
        MetricDataQueries=[
            {
                "Id": each.name.lower(),
                "Label": each.value,
                "MetricStat": {
                    "Metric": {"Namespace": "Mendq", "MetricName": each.value},
                    "Period": 3600,
                    "Stat": "Sum",
                },
            }
            for each in NightMetric
        ],
        StartTime=now - timedelta(hours=2),
        EndTime=now + timedelta(hours=2),
    )
    found = answer["MetricDataResults"]
    return {each["Label"]: sum(each["Values"]) for each in found}


def _more(account: LocalAccount, than: dict[str, float]) -> dict[str, float]:
    return {
        name: value - than[name] for name, value in _sums(account).items() if value != than[name]
    }


def test_a_failing_run_is_a_failed_night_or_an_unreadable_one(account: LocalAccount) -> None:
    before = _sums(account)
    _fail(account, "week-2020-W01")
    _fail(account, f"night-{DAY}")
    eventually(lambda: _more(account, before) == {"NightsFailed": 1}, seconds=60)
    before = _sums(account)
    written = NightRead(
        DAY, datetime.now(UTC) + timedelta(hours=1), NATIVE, "",
        files=9, bytes=100, bytes_unreadable=5, records=7,
    )  # fmt: skip
    account.client("s3").put_object(
        Bucket=account.outputs["ReportBucket"],
        Key=night_key(DAY),
        Body=json.dumps(written.document()).encode(),
    )
    _fail(account, f"night-{DAY}")
    figures = {"NightsWritten": 1, "NightRecordsRead": 7, "NightBytesUnreadable": 5}
    eventually(lambda: _more(account, before) == figures, seconds=60)

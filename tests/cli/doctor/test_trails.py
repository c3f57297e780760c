"""A trail that is switched off is switched on where it was made."""

from __future__ import annotations

from typing import Any

import boto3
import pytest

from mendq.cli.doctor.check import Check, Command, Status
from mendq.cli.doctor.trails import Trails
from tests.architecture.aws_commands import mistake_in
from tests.cli.conftest import Operator


def _trail(region: str, *, logging: bool) -> str:
    bucket = f"trails-of-{region}"
    s3: Any = boto3.client("s3", region_name="us-east-1")
    s3.create_bucket(Bucket=bucket)
    client: Any = boto3.client("cloudtrail", region_name=region)
    made = client.create_trail(
        Name="everything", S3BucketName=bucket, IsMultiRegionTrail=region != "us-east-1"
    )
    if logging:
        client.start_logging(Name=made["TrailARN"])
    return str(made["TrailARN"])


def _look(operator: Operator) -> list[Check]:
    return [each for each in Trails().look(operator.account) if each.name.startswith("trail ")]


def test_of_a_trail_that_is_logging_nothing_is_to_do(operator: Operator) -> None:
    _trail("us-east-1", logging=True)
    (check,) = _look(operator)
    assert (check.status, check.remedy) == (Status.OK, "")


@pytest.mark.parametrize("home", ["us-east-1", "eu-west-1"])
def test_a_trail_that_is_switched_off(operator: Operator, home: str) -> None:
    arn = _trail(home, logging=False)
    (check,) = _look(operator)
    assert check.status is Status.WARN
    assert isinstance(check.remedy, Command)
    assert check.remedy == f"aws cloudtrail start-logging --region {home} --name {arn}"
    assert mistake_in(check.remedy) == ""

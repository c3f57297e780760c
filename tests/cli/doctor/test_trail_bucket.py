"""A bucket that the nightly job cannot reach is said before the first night."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from cli.doctor import pages
from cli.doctor.check import Check, Command, Status, guarded
from cli.doctor.deployment import Deployment
from cli.doctor.trail_bucket import look
from tests.architecture.aws_commands import mistake_in
from tests.cli import conftest
from tests.cli.conftest import Operator

BUCKET, HERE, THERE = "our-logs", "us-east-1", "eu-west-1"


@pytest.fixture(autouse=True)
def _outputs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conftest, "OUTPUTS", {**conftest.OUTPUTS, "TrailBucket": BUCKET})


def _check(operator: Operator) -> Check:
    (found,) = guarded("bucket", lambda: look(operator.account))
    return found


def _made_in(region: str) -> None:
    client: Any = boto3.client("s3", region_name=region)
    where = {"CreateBucketConfiguration": {"LocationConstraint": region}}
    client.create_bucket(Bucket=BUCKET, **(where if region != HERE else {}))


def test_a_bucket_of_the_stacks_region_is_fine(operator: Operator) -> None:
    _made_in(HERE)
    assert _check(operator).status is Status.OK


def test_one_of_another_region_fails_with_both_ways_out(operator: Operator) -> None:
    _made_in(THERE)
    found = _check(operator)
    assert found.status is Status.FAIL
    assert f"{BUCKET} lies in {THERE}" in found.says
    assert THERE in found.cure
    assert "trail.create: true" in found.cure


def test_one_that_is_not_there_fails(operator: Operator) -> None:
    found = _check(operator)
    assert (found.status, "trail.bucket" in found.cure) == (Status.FAIL, True)


@pytest.mark.parametrize(
    ("code", "headers", "status", "says"),
    [
        ("403", {"x-amz-bucket-region": THERE}, Status.FAIL, f"lies in {THERE}"),
        ("301", {"x-amz-bucket-region": THERE}, Status.FAIL, f"lies in {THERE}"),
        ("403", {"x-amz-bucket-region": HERE}, Status.OK, f"lies in {HERE}"),
        ("403", {}, Status.UNKNOWN, "403"),
        ("500", {}, Status.UNKNOWN, "500"),
    ],
)
def test_s3_tells_the_region_to_strangers_too_and_silence_is_not_known(
    operator: Operator, code: str, headers: Mapping[str, str], status: Status, says: str
) -> None:
    with Stubber(operator.account.clients.s3) as stub:
        meta = {"HTTPHeaders": dict(headers)}
        stub.add_client_error("head_bucket", code, "no", int(code), response_meta=meta)
        found = _check(operator)
    assert found.status is status
    assert says in found.says


def test_an_answer_without_a_region_is_not_known(operator: Operator) -> None:
    with Stubber(operator.account.clients.s3) as stub:
        stub.add_response("head_bucket", {"ResponseMetadata": {"HTTPHeaders": {}}})
        found = _check(operator)
    assert found.status is Status.UNKNOWN
    assert isinstance(found.cure, Command)
    assert mistake_in(found.cure) == ""


def test_an_older_stack_that_does_not_name_it_is_not_known(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conftest, "OUTPUTS", {})
    assert _check(operator).status is Status.UNKNOWN


def test_doctor_asks_for_it_once(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    _made_in(THERE)
    monkeypatch.setattr(Deployment, "look", lambda _: ())  # moto has no CloudFormation here
    monkeypatch.setattr(pages, "look", lambda _: ())
    document = operator.json("doctor", code=1)
    said = [each["says"] for each in document["checks"] if BUCKET in each["says"]]
    assert len(said) == 1
    assert THERE in said[0]

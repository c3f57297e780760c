from __future__ import annotations

from typing import Any

import pytest

from tests.infra.synthesized import template_of


@pytest.fixture(params=["Trail", "Cases", "Reports"])
def bucket(request: pytest.FixtureRequest) -> dict[str, Any]:
    found: dict[str, Any]
    (found,) = (
        each
        for name, each in template_of("default").all("AWS::S3::Bucket").items()
        if name.startswith(request.param)
    )
    return found | {"Start": request.param}


def test_a_bucket_outlives_the_stack_and_so_has_no_fixed_name(bucket: dict[str, Any]) -> None:
    assert bucket["DeletionPolicy"] == bucket["UpdateReplacePolicy"] == "Retain"
    assert "BucketName" not in bucket["Properties"]


def test_a_bucket_is_encrypted_and_private(bucket: dict[str, Any]) -> None:
    properties = bucket["Properties"]
    (rule,) = properties["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert rule["ServerSideEncryptionByDefault"] == {"SSEAlgorithm": "AES256"}
    assert set(properties["PublicAccessBlockConfiguration"].values()) == {True}
    assert properties["OwnershipControls"]["Rules"] == [{"ObjectOwnership": "BucketOwnerEnforced"}]


def test_a_bucket_is_reached_over_tls_alone(bucket: dict[str, Any]) -> None:
    policy = template_of("default").only("AWS::S3::BucketPolicy", bucket["Start"])
    denied = [each for each in policy["PolicyDocument"]["Statement"] if each["Effect"] == "Deny"]
    assert {"Bool": {"aws:SecureTransport": "false"}} in [each["Condition"] for each in denied]


def test_uploads_that_broke_off_are_cleared_away(bucket: dict[str, Any]) -> None:
    rules = bucket["Properties"]["LifecycleConfiguration"]["Rules"]
    assert {"DaysAfterInitiation": 7} in [
        rule.get("AbortIncompleteMultipartUpload") for rule in rules
    ]


def test_cases_are_versioned_and_never_expire() -> None:
    cases = template_of("default").only("AWS::S3::Bucket", "Cases")
    assert cases["VersioningConfiguration"] == {"Status": "Enabled"}
    assert not [
        rule for rule in cases["LifecycleConfiguration"]["Rules"] if "ExpirationInDays" in rule
    ]


def test_the_files_of_the_trail_expire() -> None:
    trail = template_of("default").only("AWS::S3::Bucket", "Trail")
    assert 90 in [rule.get("ExpirationInDays") for rule in trail["LifecycleConfiguration"]["Rules"]]


def test_what_a_later_nightly_replaced_and_old_logs_go_but_no_report_does() -> None:
    reports = template_of("default").only("AWS::S3::Bucket", "Reports")
    rules = reports["LifecycleConfiguration"]["Rules"]
    assert reports["VersioningConfiguration"] == {"Status": "Enabled"}
    assert [each["Prefix"] for each in rules if "ExpirationInDays" in each] == ["logs/"]
    assert {"NoncurrentDays": 30} in [each.get("NoncurrentVersionExpiration") for each in rules]

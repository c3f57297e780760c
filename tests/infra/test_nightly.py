from __future__ import annotations

import json
import re
from importlib.metadata import version
from typing import Any

import pytest

from infra.nightly import RELEASE
from infra.packaging import emr
from infra.packaging.zips import LAMBDA
from tests.infra.permissions import decision
from tests.infra.synthesized import ACCOUNT, REGION, folder_of, template_of, whole_assembly

# https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/release-versions.html
SPARK_OF = {"emr-7.14.0": "3.5.8"}
CODE = f"cdk-hnb659fds-assets-{ACCOUNT}-{REGION}"
EXISTING = "arn:aws:s3:::our-cloudtrail-logs"
SOMEONES_KEY = f"arn:aws:kms:{REGION}:444455556666:key/1234"


def _application(name: str = "default") -> Any:
    return template_of(name).only("AWS::EMRServerless::Application")


def _may(action: str, resource: str, name: str = "default", **keys: str) -> str:
    statements = template_of(name).statements("NightlyRole")
    return decision(statements, action, resource, keys=keys)


def _bucket(start: str) -> str:
    return template_of("default").arn_of("AWS::S3::Bucket", start)


def test_the_release_runs_the_spark_that_is_pinned_here() -> None:
    assert _application()["ReleaseLabel"] == RELEASE
    assert SPARK_OF[RELEASE] == version("pyspark")


def test_it_is_bounded_stops_by_itself_and_keeps_no_worker_waiting() -> None:
    application = _application()
    assert (application["Type"], application["Architecture"]) == ("SPARK", "ARM64")
    assert application["MaximumCapacity"] == {"Cpu": "16 vCPU", "Memory": "64 GB", "Disk": "160 GB"}
    assert application["AutoStopConfiguration"] == {"Enabled": True, "IdleTimeoutMinutes": 15}
    assert application["AutoStartConfiguration"] == {"Enabled": True}
    assert "InitialCapacity" not in application


def test_its_bounds_are_the_settings_and_a_disk_for_each_worker() -> None:
    assert _application("named")["MaximumCapacity"] == {
        "Cpu": "8 vCPU",
        "Memory": "32 GB",
        "Disk": "80 GB",
    }


@pytest.mark.parametrize("name", ["default", "named"])
def test_the_bounds_are_spelled_as_emr_reads_them(name: str) -> None:
    """https://docs.aws.amazon.com/emr-serverless/latest/APIReference/API_MaximumAllowedResources.html"""
    units = {"Cpu": "vCPU", "Memory": "GB", "Disk": "GB"}
    for key, said in _application(name)["MaximumCapacity"].items():
        assert re.fullmatch(rf"[1-9][0-9]* {units[key]}", said)
        assert len(said) <= 15


def test_emr_alone_may_be_it_for_this_account_and_its_name_is_literal() -> None:
    role = template_of("default").only("AWS::IAM::Role", "NightlyRole")
    (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
    assert role["RoleName"] == "mendq-nightly-us-east-1"
    assert trust["Principal"] == {"Service": "emr-serverless.amazonaws.com"}
    assert trust["Condition"] == {"StringEquals": {"aws:SourceAccount": ACCOUNT}}
    assert "ManagedPolicyArns" not in role


@pytest.mark.parametrize(
    ("bucket", "key"),
    [
        ("Trail", "AWSLogs-of-others/a.json.gz"),
        ("Trail", "other/AWSLogs/a.json.gz"),
        ("Cases", "elsewhere/a.json"),
        ("Reports", "report/week=2026-W46/report.html"),
        ("Reports", "logs/applications/1/jobs/2/SPARK_DRIVER/stdout.gz"),
    ],
)
def test_it_reads_nothing_else(bucket: str, key: str) -> None:
    assert _may("s3:GetObject", f"{_bucket(bucket)}/{key}") == "ImplicitDeny"


@pytest.mark.parametrize(
    ("bucket", "key"),
    [
        ("Trail", "AWSLogs/a.json.gz"),
        ("Cases", "cases/dt=2026-11-10/a-1.json"),
        ("Cases", "findings/dt=2026-11-10/09.json"),
        ("Reports", "report/week=2026-W46/report.html"),
        ("Reports", "elsewhere"),
    ],
)
def test_it_writes_nothing_else(bucket: str, key: str) -> None:
    for action in ("s3:PutObject", "s3:DeleteObject"):
        assert _may(action, f"{_bucket(bucket)}/{key}") == "ImplicitDeny"


@pytest.mark.parametrize(
    "action",
    [
        "s3:DeleteObject",
        "s3:DeleteObjectVersion",
        "s3:PutBucketPolicy",
        "s3:PutObjectAcl",
        "s3:DeleteBucket",
    ],
)
def test_what_was_written_cannot_be_lost_by_it(action: str) -> None:
    for resource in (_bucket("Reports"), f"{_bucket('Reports')}/incidents/a"):
        assert _may(action, resource) == "ImplicitDeny"


def test_it_reads_the_trail_and_the_cases() -> None:
    logs = f"AWSLogs/{ACCOUNT}/CloudTrail/{REGION}/2026/11/10/a.json.gz"
    assert _may("s3:GetObject", f"{_bucket('Trail')}/{logs}") == "Allow"
    for key in ("cases/dt=2026-11-10/a-1.json", "findings/dt=2026-11-10/09.json"):
        assert _may("s3:GetObject", f"{_bucket('Cases')}/{key}") == "Allow"
    for each in ("Trail", "Cases", "Reports"):
        assert _may("s3:ListBucket", _bucket(each)) == "Allow"


@pytest.mark.parametrize("table", ["incidents", "failed_calls", "quality", "summary"])
def test_it_reads_and_replaces_its_tables(table: str) -> None:
    for action in ("s3:GetObject", "s3:PutObject"):
        assert _may(action, f"{_bucket('Reports')}/{table}/dt=2026-11-10/a") == "Allow"


def test_its_logs_are_written_where_start_nightly_says() -> None:
    assert _may("s3:PutObject", f"{_bucket('Reports')}/logs/a") == "Allow"
    assert _may("s3:DeleteObject", f"{_bucket('Reports')}/logs/a") == "ImplicitDeny"


def test_it_reads_its_own_code_and_no_other_asset() -> None:
    files = json.loads((folder_of("default") / "Mendq.assets.json").read_text())["files"]
    sources = {each["source"]["path"]: each for each in files.values()}
    for path, each in sources.items():
        (destination,) = each["destinations"].values()
        may = _may("s3:GetObject", f"arn:aws:s3:::{CODE}/{destination['objectKey']}")
        is_code = each["source"]["packaging"] == "file" and "template" not in path
        assert may == ("Allow" if is_code else "ImplicitDeny"), path
    assert _may("s3:ListBucket", f"arn:aws:s3:::{CODE}") == "Allow"
    assert _may("s3:PutObject", f"arn:aws:s3:::{CODE}/a.py") == "ImplicitDeny"


def test_the_assembly_ships_entry_point_modules_and_compiled_packages_as_files() -> None:
    shipped = {each.suffix: each for each in whole_assembly().glob("asset.*") if each.is_file()}
    assert set(shipped) == {".py", ".zip", ".tgz"}
    assert shipped[".py"].read_text() == emr.ENTRY_POINT
    assert shipped[".tgz"].read_bytes() == emr.archive(LAMBDA).read_bytes()


def test_a_key_is_used_only_where_others_made_the_trail_and_only_for_trails() -> None:
    trails = {"kms:EncryptionContext:aws:cloudtrail:arn": "arn:aws:cloudtrail:::trail/theirs"}
    assert _may("kms:Decrypt", SOMEONES_KEY, **trails) == "ImplicitDeny"
    assert _may("kms:Decrypt", SOMEONES_KEY, "existing trail") == "ImplicitDeny"
    assert _may("kms:Decrypt", SOMEONES_KEY, "existing trail", **trails) == "Allow"
    assert _may("kms:Encrypt", SOMEONES_KEY, "existing trail", **trails) == "ImplicitDeny"


def test_the_trail_that_the_settings_name_is_read() -> None:
    name = "existing trail"
    assert _may("s3:GetObject", f"{EXISTING}/AWSLogs/a.json.gz", name) == "Allow"
    assert _may("s3:ListBucket", EXISTING, name) == "Allow"
    assert _may("s3:PutObject", f"{EXISTING}/AWSLogs/a.json.gz", name) == "ImplicitDeny"


def test_it_deletes_what_spark_wrote_beside_and_no_table() -> None:
    reports = _bucket("Reports")
    assert _may("s3:DeleteObject", f"{reports}/quality/.writing-0/quality/a") == "Allow"
    for table in ("incidents", "failed_calls", "quality", "summary"):
        assert _may("s3:DeleteObject", f"{reports}/{table}/dt=2026-11-10/a") == "ImplicitDeny"

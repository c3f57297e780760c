"""What the stacks of an organization may do with each other's buckets: what it takes alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from infra.settings.deployment import read_deployment_settings
from infra.settings.warnings import make_stack_settings
from mendq.model.settings import (
    DeliverReportSettings,
    StartNightlySettings,
    WatchNightlySettings,
)
from tests.infra.permissions import decision
from tests.infra.synthesized import ACCOUNT, REGION, Template, template_with

OTHER, BUCKET = "444455556666", "our-mendq-reports"
ORGANIZATION = {
    "id": "o-exampleorgid",
    "reportBucket": BUCKET,
    "hub": {"account": OTHER, "region": REGION},
    "accounts": [ACCOUNT],
}
LOGS = {"create": False, "bucket": "our-logs", "bucketRegion": REGION}
ONE_TRAIL = {"nightly": {"scope": "organization"}, "trail": LOGS}
OURS = {"aws:PrincipalOrgID": "o-exampleorgid"}


def stack(account: str, **more: Any) -> Template:
    environments = [{"account": account, "region": REGION}]
    return template_with({"organization": ORGANIZATION, "environments": environments, **more})


def allows(template: Template, bucket: str) -> list[Mapping[str, Any]]:
    (policy,) = (
        each["Properties"]["PolicyDocument"]["Statement"]
        for name, each in template.all("AWS::S3::BucketPolicy").items()
        if name.startswith(bucket)
    )
    return [each for each in policy if each["Effect"] == "Allow"]


def environment(template: Template, function: str) -> Mapping[str, str]:
    found = template.only("AWS::Lambda::Function", function)["Environment"]["Variables"]
    return dict(found)


def test_organization_bucket_accepts_from_each_account_only_objects_below_its_own_prefix() -> None:
    hub = stack(OTHER)
    bucket = hub.only("AWS::S3::Bucket", "Organization")
    assert bucket["BucketName"] == BUCKET
    assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}
    (owner,) = bucket["OwnershipControls"]["Rules"]
    assert owner == {"ObjectOwnership": "BucketOwnerEnforced"}
    (only,) = allows(hub, "Organization")
    assert only["Action"] == "s3:PutObject"
    assert only["Resource"].endswith("/account=${aws:PrincipalAccount}/*")
    assert only["Condition"]["StringEquals"] == OURS
    assert only["Condition"]["ArnLike"]["aws:PrincipalArn"].endswith(
        ":iam::*:role/mendq-watch-nightly-*"
    )


def test_organization_member_has_no_bucket_and_may_only_write_below_its_own_account_prefix() -> (
    None
):
    member = stack(ACCOUNT)
    assert not [each for each in member.all("AWS::S3::Bucket") if each.startswith("Organization")]
    statements = member.statements("WatchNightlyRole")
    below = f"arn:aws:s3:::{BUCKET}/account={{}}/region={{}}/incidents/x"
    asked = {
        ("s3:PutObject", below.format(ACCOUNT, REGION)): "Allow",
        ("s3:PutObject", below.format(OTHER, REGION)): "ImplicitDeny",
        ("s3:PutObject", below.format(ACCOUNT, "eu-west-1")): "ImplicitDeny",
        ("s3:GetObject", below.format(ACCOUNT, REGION)): "ImplicitDeny",
        ("s3:DeleteObject", below.format(ACCOUNT, REGION)): "ImplicitDeny",
    }
    assert {each: decision(statements, *each) for each in asked} == asked
    watching = WatchNightlySettings.from_environment(environment(member, "WatchNightly"))
    assert watching.organization_bucket == BUCKET
    starting = StartNightlySettings.from_environment(environment(member, "StartNightly"))
    assert starting.organization_root is None
    delivering = DeliverReportSettings.from_environment(environment(member, "DeliverReport"))
    assert delivering.is_member


def test_organization_hubs_nightly_job_may_read_member_objects_and_not_write_them() -> None:
    hub = stack(OTHER)
    starting = StartNightlySettings.from_environment(environment(hub, "StartNightly"))
    name = (starting.organization_root or "").removeprefix("s3://")
    assert (starting.organization_accounts, starting.scope) == ((ACCOUNT,), "account")
    objects = f"arn:{name}/account={ACCOUNT}/region={REGION}/incidents/x"
    statements = hub.statements("NightlyRole")
    assert decision(statements, "s3:GetObject", objects) == "Allow"
    assert decision(statements, "s3:PutObject", objects) == "ImplicitDeny"
    delivering = DeliverReportSettings.from_environment(environment(hub, "DeliverReport"))
    assert not delivering.is_member


def test_hub_with_an_organization_trail_may_read_the_case_buckets_of_its_organization_only() -> (
    None
):
    hub = stack(OTHER, **ONE_TRAIL)
    starting = StartNightlySettings.from_environment(environment(hub, "StartNightly"))
    assert starting.case_root == f"s3://mendq-cases-{{account}}-{REGION}/cases"
    assert starting.scope == "organization"
    assert starting.organization_root == starting.out_root
    statements, theirs = hub.statements("NightlyRole"), {"aws:ResourceOrgID": "o-exampleorgid"}
    logs = "arn:aws:s3:::our-logs/AWSLogs/o-exampleorgid/210987654321/CloudTrail/x"
    cases = f"arn:aws:s3:::mendq-cases-{ACCOUNT}-{REGION}/cases/x"
    assert decision(statements, "s3:GetObject", logs) == "Allow"
    assert decision(statements, "s3:GetObject", cases, keys=theirs) == "Allow"
    assert decision(statements, "s3:GetObject", cases) == "ImplicitDeny"
    assert decision(statements, "s3:PutObject", cases, keys=theirs) == "ImplicitDeny"
    assert not [each for each in hub.all("AWS::S3::Bucket") if each.startswith("Organization")]


def test_member_with_an_organization_trail_has_no_nightly_job_and_lets_the_hub_read_its_cases() -> (
    None
):
    member = stack(ACCOUNT, **ONE_TRAIL)
    assert not member.all("AWS::EMRServerless::Application")
    bucket = member.only("AWS::S3::Bucket", "Cases")
    assert bucket["BucketName"] == f"mendq-cases-{ACCOUNT}-{REGION}"
    reads, lists = allows(member, "Cases")
    for each in (reads, lists):
        role = f"arn:aws:iam::{OTHER}:role/mendq-nightly-{REGION}"
        assert each["Condition"] == {"StringEquals": OURS, "ArnLike": {"aws:PrincipalArn": role}}
    assert (reads["Action"], lists["Action"]) == ("s3:GetObject", "s3:ListBucket")
    assert {each.partition("/")[2] for each in reads["Resource"]} == {"cases/*", "findings/*"}


@pytest.mark.parametrize(("account", "mails"), [(OTHER, True), (ACCOUNT, False), (None, False)])
def test_report_recipients_apply_only_to_the_hub_if_hub_and_member_share_the_settings(
    account: str | None, *, mails: bool
) -> None:
    both = [{"account": each, "region": REGION} for each in (ACCOUNT, OTHER)]
    report = {"sender": "a@b.io", "recipients": ["c@d.io"]}
    given = read_deployment_settings(
        {"organization": ORGANIZATION, "environments": both, "report": report}
    )
    assert make_stack_settings(given, account, REGION).report.is_mailed is mails
    own = read_deployment_settings({"organization": ORGANIZATION, "report": report})
    assert make_stack_settings(own, account, REGION).report.is_mailed

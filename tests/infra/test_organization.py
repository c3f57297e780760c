"""The hub and member stacks of an organization have only the bucket access that they need."""

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

HUB_ACCOUNT = "444455556666"
BUCKET = "our-mendq-reports"
ORGANIZATION = {
    "id": "o-exampleorgid",
    "reportBucket": BUCKET,
    "hub": {"account": HUB_ACCOUNT, "region": REGION},
    "accounts": [ACCOUNT],
}
EXISTING_TRAIL = {"create": False, "bucket": "our-logs", "bucketRegion": REGION}
ORGANIZATION_TRAIL = {"nightly": {"scope": "organization"}, "trail": EXISTING_TRAIL}
OWN_ORGANIZATION = {"aws:PrincipalOrgID": "o-exampleorgid"}


def make_stack(account: str, **more: Any) -> Template:
    environments = [{"account": account, "region": REGION}]
    return template_with({"organization": ORGANIZATION, "environments": environments, **more})


def list_allow_statements(template: Template, bucket: str) -> list[Mapping[str, Any]]:
    (policy,) = (
        policy["Properties"]["PolicyDocument"]["Statement"]
        for name, policy in template.all("AWS::S3::BucketPolicy").items()
        if name.startswith(bucket)
    )
    return [statement for statement in policy if statement["Effect"] == "Allow"]


def read_environment(template: Template, function: str) -> Mapping[str, str]:
    variables = template.only("AWS::Lambda::Function", function)["Environment"]["Variables"]
    return dict(variables)


def test_organization_bucket_is_private_and_owns_every_object_in_it() -> None:
    bucket = make_stack(HUB_ACCOUNT).only("AWS::S3::Bucket", "Organization")
    assert bucket["BucketName"] == BUCKET
    assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}
    (owner,) = bucket["OwnershipControls"]["Rules"]
    assert owner == {"ObjectOwnership": "BucketOwnerEnforced"}


def test_organization_bucket_lets_only_watch_nightly_roles_put_below_their_account() -> None:
    hub = make_stack(HUB_ACCOUNT)
    (statement,) = list_allow_statements(hub, "Organization")
    assert statement["Action"] == "s3:PutObject"
    assert statement["Resource"].endswith("/account=${aws:PrincipalAccount}/*")
    assert statement["Condition"]["StringEquals"] == OWN_ORGANIZATION
    assert statement["Condition"]["ArnLike"]["aws:PrincipalArn"].endswith(
        ":iam::*:role/mendq-watch-nightly-*"
    )


def _make_object_arn(account: str, region: str) -> str:
    return f"arn:aws:s3:::{BUCKET}/account={account}/region={region}/incidents/x"


def test_organization_member_makes_no_bucket_for_the_organization() -> None:
    member = make_stack(ACCOUNT)
    assert not [
        bucket_id
        for bucket_id in member.all("AWS::S3::Bucket")
        if bucket_id.startswith("Organization")
    ]


def test_organization_member_may_only_put_objects_below_its_own_account_and_region() -> None:
    statements = make_stack(ACCOUNT).statements("WatchNightlyRole")
    own_object = _make_object_arn(ACCOUNT, REGION)
    assert decision(statements, "s3:PutObject", own_object) == "Allow"
    for action, object_arn in (
        ("s3:PutObject", _make_object_arn(HUB_ACCOUNT, REGION)),
        ("s3:PutObject", _make_object_arn(ACCOUNT, "eu-west-1")),
        ("s3:GetObject", own_object),
        ("s3:DeleteObject", own_object),
    ):
        assert decision(statements, action, object_arn) == "ImplicitDeny"


def test_organization_member_shares_its_tables_and_leaves_the_report_to_the_hub() -> None:
    member = make_stack(ACCOUNT)
    watching = WatchNightlySettings.from_environment(read_environment(member, "WatchNightly"))
    assert watching.organization_bucket == BUCKET
    starting = StartNightlySettings.from_environment(read_environment(member, "StartNightly"))
    assert starting.organization_root is None
    delivering = DeliverReportSettings.from_environment(read_environment(member, "DeliverReport"))
    assert delivering.is_member


def test_organization_hubs_job_expects_its_members_and_the_hub_delivers_the_report() -> None:
    hub = make_stack(HUB_ACCOUNT)
    starting = StartNightlySettings.from_environment(read_environment(hub, "StartNightly"))
    assert starting.organization_accounts == (ACCOUNT,)
    assert starting.scope == "account"
    delivering = DeliverReportSettings.from_environment(read_environment(hub, "DeliverReport"))
    assert not delivering.is_member


def test_organization_hubs_nightly_job_may_read_member_objects_and_not_write_them() -> None:
    hub = make_stack(HUB_ACCOUNT)
    starting = StartNightlySettings.from_environment(read_environment(hub, "StartNightly"))
    name = (starting.organization_root or "").removeprefix("s3://")
    objects = f"arn:{name}/account={ACCOUNT}/region={REGION}/incidents/x"
    statements = hub.statements("NightlyRole")
    assert decision(statements, "s3:GetObject", objects) == "Allow"
    assert decision(statements, "s3:PutObject", objects) == "ImplicitDeny"


def test_hub_with_an_organization_trail_has_no_shared_bucket_and_reads_every_account() -> None:
    hub = make_stack(HUB_ACCOUNT, **ORGANIZATION_TRAIL)
    starting = StartNightlySettings.from_environment(read_environment(hub, "StartNightly"))
    assert starting.case_root == f"s3://mendq-cases-{{account}}-{REGION}/cases"
    assert starting.scope == "organization"
    assert starting.organization_root == starting.out_root
    assert not [
        bucket_id
        for bucket_id in hub.all("AWS::S3::Bucket")
        if bucket_id.startswith("Organization")
    ]


def test_hub_with_an_organization_trail_may_only_read_its_organizations_logs_and_cases() -> None:
    statements = make_stack(HUB_ACCOUNT, **ORGANIZATION_TRAIL).statements("NightlyRole")
    own_resources = {"aws:ResourceOrgID": "o-exampleorgid"}
    logs = "arn:aws:s3:::our-logs/AWSLogs/o-exampleorgid/210987654321/CloudTrail/x"
    cases = f"arn:aws:s3:::mendq-cases-{ACCOUNT}-{REGION}/cases/x"
    assert decision(statements, "s3:GetObject", logs) == "Allow"
    assert decision(statements, "s3:GetObject", cases, keys=own_resources) == "Allow"
    assert decision(statements, "s3:GetObject", cases) == "ImplicitDeny"
    assert decision(statements, "s3:PutObject", cases, keys=own_resources) == "ImplicitDeny"


def test_member_with_an_organization_trail_has_no_job_and_lets_only_the_hubs_job_read() -> None:
    member = make_stack(ACCOUNT, **ORGANIZATION_TRAIL)
    assert not member.all("AWS::EMRServerless::Application")
    bucket = member.only("AWS::S3::Bucket", "Cases")
    assert bucket["BucketName"] == f"mendq-cases-{ACCOUNT}-{REGION}"
    reads, lists = list_allow_statements(member, "Cases")
    for statement in (reads, lists):
        role = f"arn:aws:iam::{HUB_ACCOUNT}:role/mendq-nightly-{REGION}"
        assert statement["Condition"] == {
            "StringEquals": OWN_ORGANIZATION,
            "ArnLike": {"aws:PrincipalArn": role},
        }
    assert reads["Action"] == "s3:GetObject"
    assert lists["Action"] == "s3:ListBucket"
    assert {resource.partition("/")[2] for resource in reads["Resource"]} == {
        "cases/*",
        "findings/*",
    }


@pytest.mark.parametrize(
    ("account", "mails"), [(HUB_ACCOUNT, True), (ACCOUNT, False), (None, False)]
)
def test_report_recipients_apply_only_to_the_hub_if_hub_and_member_share_the_settings(
    account: str | None, *, mails: bool
) -> None:
    both = [{"account": account_id, "region": REGION} for account_id in (ACCOUNT, HUB_ACCOUNT)]
    report = {"sender": "a@b.io", "recipients": ["c@d.io"]}
    given = read_deployment_settings(
        {"organization": ORGANIZATION, "environments": both, "report": report}
    )
    assert make_stack_settings(given, account, REGION).report.is_mailed is mails
    own = read_deployment_settings({"organization": ORGANIZATION, "report": report})
    assert make_stack_settings(own, account, REGION).report.is_mailed

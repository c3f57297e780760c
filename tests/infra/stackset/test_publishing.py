"""The publish script's buckets, and the guard policy that protects Mendq's resources."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from infra.packaging.wheels import ROOT
from infra.stackset import publishing
from infra.stackset.one_template import make_bucket_name_pattern, read_stack_set_settings
from infra.stackset.publishing import fill_guard_policy, write_stack_set_files
from mendq.model.names import ROLE_PURPOSES, role_name
from tests.infra.permissions import decision
from tests.infra.stackset.published import BUCKET, STACK, StackSetInstance, folder_of, read_template
from tests.infra.stackset.scripts import Answers, ScriptRun, read_option
from tests.infra.synthesized import ACCOUNT, REGION, light_code

CONTENTS = ROOT / "infra" / "stackset" / "contents.txt"
ORGANIZATION = "o-exampleorgid"
DEFAULT_ANSWERS: Answers = {
    "get-caller-identity": f"arn:aws:sts::{ACCOUNT}:assumed-role/Administrator/a",
    "head-bucket": "!404",
}


def _run_script(tmp_path: Path, answers: Answers, *arguments: str) -> ScriptRun:
    return ScriptRun(
        folder_of("named") / "publish.sh", tmp_path, {**DEFAULT_ANSWERS, **answers}, *arguments
    )


def test_publish_script_creates_and_fills_a_bucket_in_each_region(tmp_path: Path) -> None:
    run = _run_script(tmp_path, {}, ORGANIZATION, "eu-west-1", "us-east-1")
    assert run.code == 0, run.error
    european, american = run.list_calls("create-bucket")
    assert read_option(european, "--bucket") == "our-mendq-eu-west-1"
    assert "LocationConstraint=eu-west-1" in european
    assert "--create-bucket-configuration" not in american
    targets = []
    for call in run.list_calls("sync"):
        targets += [word for word in call if word.startswith("s3://")][:1]
    assert targets == ["s3://our-mendq-eu-west-1", "s3://our-mendq-us-east-1"]


def test_published_bucket_policy_lets_only_the_organization_read_only_mendqs_files_over_tls(
    tmp_path: Path,
) -> None:
    put = _run_script(tmp_path, {}, ORGANIZATION, REGION).list_calls("put-bucket-policy")[0]
    statements = json.loads(read_option(put, "--policy"))["Statement"]
    for statement in statements:
        statement.pop("Principal", None)
    member = {"aws:PrincipalOrgID": ORGANIZATION, "aws:SecureTransport": "true"}
    bucket = f"arn:aws:s3:::our-mendq-{REGION}"
    code = f"{bucket}/mendq/code.zip"
    listing = {**member, "s3:prefix": "mendq/"}
    for action, resource, keys, expected in (
        ("s3:GetObject", code, member, "Allow"),
        ("s3:ListBucket", bucket, listing, "Allow"),
        ("s3:ListBucket", bucket, {**listing, "s3:prefix": "other/"}, "ImplicitDeny"),
        ("s3:GetObject", f"{bucket}/other/file", member, "ImplicitDeny"),
        ("s3:PutObject", code, member, "ImplicitDeny"),
        ("s3:GetObject", code, {**member, "aws:PrincipalOrgID": "o-another0000"}, "ImplicitDeny"),
        ("s3:GetObject", code, {"aws:SecureTransport": "true"}, "ImplicitDeny"),
        ("s3:GetObject", code, {**member, "aws:SecureTransport": "false"}, "Deny"),
    ):
        assert decision(statements, action, resource, keys=keys) == expected, (
            action,
            resource,
            keys,
        )


def test_publish_script_uploads_nothing_to_a_bucket_of_another_account(tmp_path: Path) -> None:
    """An attacker who guesses the bucket name could deliver code to every account."""
    taken_name = _run_script(
        tmp_path, {"create-bucket": "!BucketAlreadyExists"}, ORGANIZATION, REGION
    )
    readable = {"head-bucket": "", "put-public-access-block": "!AccessDenied"}
    foreign = _run_script(tmp_path, readable, ORGANIZATION, REGION)
    for run in (taken_name, foreign):
        assert run.code
        assert run.list_calls("sync") == []
        assert run.list_calls("put-bucket-policy") == []
    (call,) = foreign.list_calls("put-public-access-block")
    assert read_option(call, "--expected-bucket-owner") == ACCOUNT


@pytest.mark.parametrize(
    "arguments", [(), (ORGANIZATION,), ("123456789012", REGION), ("o-*", REGION)]
)
def test_publish_script_without_organization_and_region_exits_2_and_calls_nothing(
    arguments: tuple[str, ...], tmp_path: Path
) -> None:
    run = _run_script(tmp_path, {}, *arguments)
    assert run.code == 2
    assert run.calls == []


WRITTEN_NAMES = {"objects", "publish.sh", "bucket-policy.json", "guard.json", "contents.txt"}


def _build_over_previous_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code_key: str
) -> Path:
    """Build a stack set whose code has this key, over a folder of the build before."""
    folder = tmp_path / "stackset"
    folder.mkdir()
    (folder / "publish.sh").write_text("before")
    (folder / "rollout.sh").write_text("before")
    code = tmp_path / "code.zip"
    code.write_text("code")
    template: Mapping[str, Any] = {"Parameters": {}}
    made = (template, {code_key: code})
    monkeypatch.setattr(publishing, "make_stack_set_template", lambda *_: made)
    write_stack_set_files(read_stack_set_settings({}), BUCKET, light_code(), folder=folder)
    return folder


def test_stack_set_build_that_fails_leaves_the_folder_of_the_build_before_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person may be about to publish the old folder."""
    with pytest.raises(FileNotFoundError):
        _build_over_previous_folder(tmp_path, monkeypatch, "nowhere/code.zip")
    folder = tmp_path / "stackset"
    assert {path.name: path.read_text() for path in folder.iterdir()} == {
        "publish.sh": "before",
        "rollout.sh": "before",
    }


def test_stack_set_build_replaces_each_file_of_the_build_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = _build_over_previous_folder(tmp_path, monkeypatch, "mendq/code.zip")
    assert {path.name for path in folder.iterdir()} == WRITTEN_NAMES
    assert (folder / "publish.sh").read_text() != "before"
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["stackset"]


def test_contents_txt_of_a_stack_set_folder_describes_every_file_that_a_build_writes() -> None:
    documented_names = {
        line.split()[0].strip("/") for line in CONTENTS.read_text().split("\n\n")[0].splitlines()
    }
    assert documented_names == WRITTEN_NAMES - {"contents.txt"} | {"rollout.sh"}


ADMINISTRATOR = f"arn:aws:iam::{ACCOUNT}:role/Administrator"
STACK_SETS = f"arn:aws:iam::{ACCOUNT}:role/stacksets-exec-0123456789abcdef"
PLACE = f"{REGION}:{ACCOUNT}"
HEAL = f"arn:aws:iam::{ACCOUNT}:role/{role_name('heal', REGION)}"
START = f"arn:aws:iam::{ACCOUNT}:role/{role_name('start-nightly', REGION)}"
NIGHTLY = f"arn:aws:iam::{ACCOUNT}:role/{role_name('nightly', REGION)}"


def _decide_under_guard(action: str, resource: str, principal: str) -> str:
    statements = json.loads(fill_guard_policy())["Statement"]
    return decision(statements, action, resource, principal=principal)


GUARDED = (
    ("cloudformation:DeleteStack", f"arn:aws:cloudformation:{PLACE}:stack/{STACK}/guid"),
    ("cloudformation:UpdateStack", f"arn:aws:cloudformation:{PLACE}:stack/{STACK}/guid"),
    ("cloudtrail:StopLogging", f"arn:aws:cloudtrail:{PLACE}:trail/mendq"),
    ("cloudtrail:PutEventSelectors", f"arn:aws:cloudtrail:{PLACE}:trail/mendq"),
    ("cloudwatch:DeleteAlarms", f"arn:aws:cloudwatch:{PLACE}:alarm:mendq-probe-lost"),
    ("dynamodb:DeleteTable", f"arn:aws:dynamodb:{PLACE}:table/{STACK}-CaseStoreTable-1"),
    ("dynamodb:UpdateTable", f"arn:aws:dynamodb:{PLACE}:table/{STACK}-CaseStoreTable-1"),
    ("events:DisableRule", f"arn:aws:events:{PLACE}:rule/{STACK}-IntakeFailedCalls-1"),
    ("iam:PutRolePolicy", HEAL),
    ("iam:UpdateAssumeRolePolicy", HEAL),
    ("iam:PassRole", HEAL),
    ("iam:CreateRole", HEAL),
    ("lambda:UpdateFunctionCode", f"arn:aws:lambda:{PLACE}:function:{STACK}-HealFunction-1"),
    ("s3:PutBucketPolicy", f"arn:aws:s3:::{STACK.lower()}-casesbucket-1"),
    ("s3:DeleteObjectVersion", f"arn:aws:s3:::{STACK.lower()}-casesbucket-1/cases/a.json"),
    ("scheduler:UpdateSchedule", f"arn:aws:scheduler:{PLACE}:schedule/default/{STACK}-Probe-1"),
    ("sns:SetTopicAttributes", f"arn:aws:sns:{PLACE}:{STACK}-TopicsUrgentTopic-1"),
    ("sqs:SetQueueAttributes", f"arn:aws:sqs:{PLACE}:{STACK}-IntakeQueue-1"),
    ("sqs:DeleteQueue", f"arn:aws:sqs:{PLACE}:mendq-probe.fifo"),
)


@pytest.mark.parametrize(("action", "resource"), GUARDED)
def test_guard_policy_denies_changes_to_mendqs_resources_except_by_stack_sets(
    action: str, resource: str
) -> None:
    assert _decide_under_guard(action, resource, ADMINISTRATOR) == "Deny"
    assert _decide_under_guard(action, resource, STACK_SETS) != "Deny"


@pytest.mark.parametrize(
    ("action", "resource", "principal"),
    [
        ("sqs:SetQueueAttributes", f"arn:aws:sqs:{PLACE}:orders", HEAL),
        ("sqs:DeleteQueue", f"arn:aws:sqs:{PLACE}:mendq-drill-abc", ADMINISTRATOR),
        ("iam:PutRolePolicy", f"arn:aws:iam::{ACCOUNT}:role/mendqualified", ADMINISTRATOR),
        (
            "cloudtrail:StopLogging",
            f"arn:aws:cloudtrail:{PLACE}:trail/mendq-of-ours",
            ADMINISTRATOR,
        ),
        ("dynamodb:UpdateItem", f"arn:aws:dynamodb:{PLACE}:table/{STACK}-CaseStoreTable-1", HEAL),
        ("dynamodb:DeleteItem", f"arn:aws:dynamodb:{PLACE}:table/{STACK}-CaseStoreTable-1", HEAL),
        (
            "lambda:InvokeFunction",
            f"arn:aws:lambda:{PLACE}:function:{STACK}-Approve-1",
            ADMINISTRATOR,
        ),
        ("logs:PutLogEvents", f"arn:aws:logs:{PLACE}:log-group:{STACK}-HealLog-1:*", HEAL),
        ("s3:PutObject", f"arn:aws:s3:::{STACK.lower()}-casesbucket-1/cases/a.json", HEAL),
        ("s3:DeleteObject", f"arn:aws:s3:::{STACK.lower()}-reports-1/quality/.writing-1", NIGHTLY),
        ("iam:PassRole", NIGHTLY, START),
        ("sqs:PurgeQueue", f"arn:aws:sqs:{PLACE}:{STACK}-HealDlq-1", ADMINISTRATOR),
    ],
)
def test_guard_policy_does_not_deny_mendqs_own_work_or_similarly_named_resources(
    action: str, resource: str, principal: str
) -> None:
    """These are actions of Mendq and its operators, and resources with similar names."""
    assert _decide_under_guard(action, resource, principal) != "Deny"


def test_guard_policy_denies_deletion_of_every_explicitly_named_resource() -> None:
    resources = StackSetInstance(read_template(folder_of("named"))).resources.values()

    def list_names(kind: str, key: str) -> list[Any]:
        names = [
            resource["Properties"].get(key) for resource in resources if resource["Type"] == kind
        ]
        return [name for name in names if isinstance(name, str)]

    roles = list_names("AWS::IAM::Role", "RoleName")
    assert len(roles) >= len(ROLE_PURPOSES)
    for kind, key, action, arn in (
        ("AWS::IAM::Role", "RoleName", "iam:DeleteRole", f"arn:aws:iam::{ACCOUNT}:role/"),
        (
            "AWS::CloudTrail::Trail",
            "TrailName",
            "cloudtrail:DeleteTrail",
            f"arn:aws:cloudtrail:{PLACE}:trail/",
        ),
        (
            "AWS::CloudWatch::Alarm",
            "AlarmName",
            "cloudwatch:DeleteAlarms",
            f"arn:aws:cloudwatch:{PLACE}:alarm:",
        ),
        (
            "AWS::CloudWatch::CompositeAlarm",
            "AlarmName",
            "cloudwatch:DeleteAlarms",
            f"arn:aws:cloudwatch:{PLACE}:alarm:",
        ),
        ("AWS::SQS::Queue", "QueueName", "sqs:DeleteQueue", f"arn:aws:sqs:{PLACE}:"),
    ):
        names = list_names(kind, key)
        assert names
        assert {_decide_under_guard(action, arn + name, ADMINISTRATOR) for name in names} == {
            "Deny"
        }


def test_guard_policy_stays_below_the_service_control_policy_size_limit() -> None:
    """https://docs.aws.amazon.com/organizations/latest/userguide/orgs_reference_limits.html"""
    assert len(json.dumps(json.loads(fill_guard_policy()), separators=(",", ":"))) <= 5_120


@pytest.mark.parametrize("typed", [BUCKET, "our-mendq", "our-mendq-$${AWS::Region}"])
def test_make_stackset_passes_a_bucket_name_with_a_region_placeholder_unchanged(typed: str) -> None:
    """`make` would replace ${..} by one of its own variables."""
    command = ["make", "--dry-run", "--always-make", "stackset", f"BUCKET={typed}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    (line,) = (line for line in done.stdout.splitlines() if "stackset.publishing" in line)
    words = shlex.split(line)
    assert make_bucket_name_pattern(words[words.index("infra.stackset.publishing") + 1]) == BUCKET

"""The stack set template gives each account the stack that its settings would give."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from cfnlint.api import ManualArgs, lint

from infra.settings.reading import SettingsRefused
from infra.stackset.one_template import (
    PARAMETER_NAMES,
    make_bucket_name_pattern,
    read_stack_set_settings,
)
from mendq.model.mode import MODE_BY_TEXT
from tests.infra.stackset.published import (
    BUCKET,
    StackSetInstance,
    folder_of,
    read_template,
    write_stack_set,
)
from tests.infra.synthesized import (
    ACCOUNT,
    REGION,
    SETTINGS,
    Template,
    as_list,
    template_of,
    template_with,
)

WRITES = {"sqs:SetQueueAttributes", "sqs:CreateQueue"}
CDK_BUCKET = "cdk-hnb659fds-assets-${AWS::AccountId}-"
PUBLISHED_BUCKET = BUCKET.replace("${AWS::Region}", "")


def _normalize(resources: Mapping[str, Any]) -> dict[str, Any]:
    """Return the resources without the place of the code and the order of statements."""
    text = json.dumps(resources)
    text = text.replace(f"{PUBLISHED_BUCKET}{REGION}/mendq/", f"{CDK_BUCKET}{REGION}/")
    text = text.replace(f"{PUBLISHED_BUCKET}{REGION}", f"{CDK_BUCKET}{REGION}")
    normalized: dict[str, Any] = json.loads(text)
    for resource in normalized.values():
        properties = resource.get("Properties", {})
        properties.pop("Code", None)
        if policy := properties.get("PolicyDocument"):
            for statement in policy["Statement"]:
                statement["Resource"] = sorted(map(json.dumps, as_list(statement["Resource"])))
            policy["Statement"].sort(key=json.dumps)
    return normalized


def _resolve_single_account(template: Template) -> dict[str, Any]:
    bare = {"Parameters": {}, "Conditions": {}, "Resources": template.raw["Resources"]}
    return _normalize(StackSetInstance(bare).resources)


@pytest.fixture(scope="module")
def named_template() -> dict[str, Any]:
    return read_template(folder_of("named"))


def test_stack_set_template_deploys_the_same_stack_as_the_single_account_template(
    named_template: dict[str, Any],
) -> None:
    assert _normalize(StackSetInstance(named_template).resources) == _resolve_single_account(
        template_of("named")
    )


def test_stack_set_parameters_in_observe_mode_leave_no_role_that_may_write_a_queue(
    named_template: dict[str, Any],
) -> None:
    """IAM denies the write, not only Mendq's code. In the other modes a role may write."""
    for mode, raised, may_write in (
        ("observe", "observe", False),
        ("propose", "observe", True),
        ("observe", "propose", True),
    ):
        resources = StackSetInstance(named_template, Mode=mode, TagMayRaiseTo=raised).resources
        policies = (
            resource["Properties"]["PolicyDocument"]["Statement"]
            for resource in resources.values()
            if resource["Type"] == "AWS::IAM::Policy"
        )
        allowed = [
            statement
            for policy in policies
            for statement in policy
            if statement["Effect"] == "Allow"
        ]
        writes = [
            statement for statement in allowed if WRITES.intersection(as_list(statement["Action"]))
        ]
        assert bool(writes) is may_write
        heal = next(
            resource for name, resource in resources.items() if name.startswith("HealFunction")
        )
        consent = json.loads(heal["Properties"]["Environment"]["Variables"]["MENDQ_CONSENT"])
        assert (consent["mode"], consent["tag_may_raise_to"]) == (mode, raised)


@pytest.mark.long
def test_stack_set_template_equals_the_single_account_template_in_every_mode(
    tmp_path: Path,
) -> None:
    settings = {"queues": ["orders-*", "pay"], "mode": "propose"}
    template = read_template(write_stack_set(settings, tmp_path / "folder"))
    assert template["Parameters"]["Mode"]["Default"] == "propose"
    for mode, raised in product(MODE_BY_TEXT, MODE_BY_TEXT):
        alone = template_with({**settings, "mode": mode, "tagMayRaiseTo": raised})
        deployed = StackSetInstance(template, Mode=mode, TagMayRaiseTo=raised)
        assert _normalize(deployed.resources) == _resolve_single_account(alone)


def test_stack_set_mail_parameter_subscribes_the_address_only_if_it_is_not_empty(
    named_template: dict[str, Any],
) -> None:
    resources = StackSetInstance(named_template, UrgentMail="ops@example.com").resources
    added = resources.keys() - StackSetInstance(named_template).resources.keys()
    assert added == {"UrgentMailSubscription"}
    subscribed = resources["UrgentMailSubscription"]["Properties"]
    assert subscribed["Endpoint"] == "ops@example.com"
    assert subscribed["Protocol"] == "email"


@pytest.mark.long
def test_cfn_lint_finds_nothing_in_the_stack_set_template(named_template: dict[str, Any]) -> None:
    # W3005: CDK writes dependencies that references imply already.
    arguments = ManualArgs(ignore_checks=["W3005"], regions=["us-east-1", "eu-west-1"])
    assert [str(match) for match in lint(json.dumps(named_template), config=arguments)] == []


def test_stack_set_template_needs_no_bootstrap_and_names_no_account_or_region(
    named_template: dict[str, Any],
) -> None:
    text = json.dumps(named_template, separators=(",", ":"))
    assert [*named_template["Parameters"]] == [*PARAMETER_NAMES]
    for local in ("cdk-", "BootstrapVersion", ACCOUNT, "000000000000", "xx-stackset", REGION):
        assert local not in text
    names = {
        json.dumps(resource["Properties"]["RoleName"])
        for resource in named_template["Resources"].values()
        if resource["Type"] == "AWS::IAM::Role"
    }
    assert names
    assert all('{"Ref": "AWS::Region"}' in name for name in names)


def test_stack_set_template_has_no_transform_and_is_below_half_of_cloudformations_limit(
    named_template: dict[str, Any],
) -> None:
    """Service-managed stack sets accept no transform, and templates up to one megabyte.

    https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_CreateStackSet.html
    """
    assert "Transform" not in named_template
    assert len(json.dumps(named_template, separators=(",", ":"))) < 500_000


def test_stack_set_lambdas_take_their_code_from_the_regions_bucket_where_it_is_published(
    named_template: dict[str, Any],
) -> None:
    """The published code includes the report's Lambda and the nightly job's package."""
    text = json.dumps(StackSetInstance(named_template).resources)
    keys = {path.name for path in (folder_of("named") / "objects" / "mendq").iterdir()}
    code = {key for key in keys if not key.endswith(".template.json")}
    assert {Path(key).suffix for key in code} == {".py", ".zip", ".tgz"}
    for key in code:
        assert f"mendq/{key}" in text
    lambdas = [
        resource
        for resource in named_template["Resources"].values()
        if resource["Type"].endswith("::Function")
    ]
    for function in lambdas:
        assert function["Properties"]["Code"]["S3Bucket"] == {"Fn::Sub": BUCKET}
        assert function["Properties"]["Code"]["S3Key"].removeprefix("mendq/") in keys


@pytest.mark.long
def test_stack_set_files_built_twice_are_byte_identical(tmp_path: Path) -> None:
    first = _read_files(write_stack_set(SETTINGS["default"], tmp_path / "first"))
    second = _read_files(write_stack_set(SETTINGS["default"], tmp_path / "second"))
    assert first == second


def _read_files(folder: Path) -> dict[Path, bytes]:
    files = {}
    for path in folder.rglob("*"):
        if path.is_file():
            files[path.relative_to(folder)] = path.read_bytes()
    return files


@pytest.mark.parametrize(
    "typed",
    ["our-mendq", "our-mendq-", BUCKET, "our-mendq-$${AWS::Region}"],
)
def test_stack_set_bucket_option_accepts_every_way_a_shell_passes_the_name(typed: str) -> None:
    assert make_bucket_name_pattern(typed) == BUCKET


def test_stack_set_bucket_name_may_have_the_region_in_the_middle() -> None:
    assert make_bucket_name_pattern("mendq-${AWS::Region}-prod") == "mendq-${AWS::Region}-prod"


@pytest.mark.parametrize(
    "typed",
    ["", "Our-Mendq", "our.mendq", "a" * 48, f"{BUCKET}-{BUCKET}", "x;id", "our-${AWS::AccountId}"],
)
def test_invalid_stack_set_bucket_name_is_refused_with_an_example(typed: str) -> None:
    with pytest.raises(SettingsRefused, match=r"BUCKET: .*; say one such as our-mendq"):
        make_bucket_name_pattern(typed)


TOPIC = "arn:aws:sns:${AWS::Region}:${AWS::AccountId}:on-call"


def test_stack_set_settings_may_use_account_and_region_placeholders() -> None:
    raw = {
        "notifications": {"topics": {"urgent": TOPIC}, "teams": {"payments": TOPIC}},
        "trail": {
            "create": False,
            "bucket": "our-${AWS::Region}",
            "bucketRegion": "${AWS::Region}",
        },
    }
    settings = read_stack_set_settings(raw)
    assert "${Token[AWS.Region" in str(settings.notifications.topics.urgent)
    assert "${Token[AWS.AccountId" in settings.notifications.teams["payments"]
    assert str(settings.trail.bucket).startswith("our-${Token[AWS.Region")


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        ({"notifications": {"topics": {"urgent": f"arn:aws:sns:{REGION}:{ACCOUNT}:t"}}}, "urgent"),
        ({"trail": {"create": False, "bucket": "b-logs", "bucketRegion": REGION}}, "bucketRegion"),
        ({"environments": [{"account": ACCOUNT, "region": REGION}]}, "environments"),
        ({"mode": "${AWS::Region}"}, "mode"),
    ],
)
def test_stack_set_settings_tied_to_one_account_or_region_are_refused(
    raw: dict[str, Any], field: str
) -> None:
    with pytest.raises(SettingsRefused, match=rf"{field}: "):
        read_stack_set_settings(raw)


@pytest.mark.long
@pytest.mark.parametrize(
    "names", [[f"{'q' * 60}-{n}" for n in range(60)], [f"orders-{n:06}" for n in range(200)]]
)
def test_stack_set_settings_with_too_many_queues_are_refused_and_write_no_folder(
    names: list[str], tmp_path: Path
) -> None:
    """They exceed a Lambda's environment, or CDK would split the policies in some modes only."""
    with pytest.raises(SettingsRefused, match=r"queues: .*name fewer"):
        write_stack_set({"mode": "heal", "queues": names}, tmp_path / "folder")
    assert not (tmp_path / "folder").exists()


@pytest.mark.parametrize(("scope", "has_one"), [("account", True), ("organization", False)])
def test_stack_set_member_has_no_nightly_job_if_the_hub_reads_an_organization_trail(
    scope: str, *, has_one: bool
) -> None:
    hub = {"account": "444455556666", "region": REGION}
    report = {"id": "o-exampleorgid", "reportBucket": "our-mendq-reports", "hub": hub}
    logs = {"create": False, "bucket": "our-logs", "bucketRegion": "${AWS::Region}"}
    given = {"organization": report, "nightly": {"scope": scope}, "trail": logs}
    assert read_stack_set_settings(given).nightly.enabled is has_one

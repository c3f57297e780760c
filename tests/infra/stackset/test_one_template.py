"""One template for many accounts: in each, the stack that the settings would give it."""

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
    Deployed,
    folder_of,
    template_in,
    written,
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
OWN, REGIONS = "cdk-hnb659fds-assets-${AWS::AccountId}-", BUCKET.replace("${AWS::Region}", "")


def _comparable(resources: Mapping[str, Any]) -> dict[str, Any]:
    """Wherever the code lies, and in whatever order statements stand."""
    text = json.dumps(resources).replace(f"{REGIONS}{REGION}/mendq/", f"{OWN}{REGION}/")
    text = text.replace(f"{REGIONS}{REGION}", f"{OWN}{REGION}")
    found: dict[str, Any] = json.loads(text)
    for each in found.values():
        properties = each.get("Properties", {})
        properties.pop("Code", None)
        if policy := properties.get("PolicyDocument"):
            for one in policy["Statement"]:
                one["Resource"] = sorted(map(json.dumps, as_list(one["Resource"])))
            policy["Statement"].sort(key=json.dumps)
    return found


def _of_one_account(template: Template) -> dict[str, Any]:
    bare = {"Parameters": {}, "Conditions": {}, "Resources": template.raw["Resources"]}
    return _comparable(Deployed(bare).resources)


@pytest.fixture(scope="module")
def named() -> dict[str, Any]:
    return template_in(folder_of("named"))


def test_stack_set_template_deploys_the_same_stack_as_the_single_account_template(
    named: dict[str, Any],
) -> None:
    assert _comparable(Deployed(named).resources) == _of_one_account(template_of("named"))


def test_stack_set_parameters_in_observe_mode_leave_no_role_that_may_write_a_queue(
    named: dict[str, Any],
) -> None:
    """IAM says so, not only the code; in the other modes one may."""
    for mode, raised, may in (
        ("observe", "observe", False),
        ("propose", "observe", True),
        ("observe", "propose", True),
    ):
        there = Deployed(named, Mode=mode, TagMayRaiseTo=raised).resources
        policies = (
            each["Properties"]["PolicyDocument"]["Statement"]
            for each in there.values()
            if each["Type"] == "AWS::IAM::Policy"
        )
        allowed = [each for policy in policies for each in policy if each["Effect"] == "Allow"]
        writes = [each for each in allowed if WRITES.intersection(as_list(each["Action"]))]
        assert bool(writes) is may
        heal = next(each for name, each in there.items() if name.startswith("HealFunction"))
        consent = json.loads(heal["Properties"]["Environment"]["Variables"]["MENDQ_CONSENT"])
        assert (consent["mode"], consent["tag_may_raise_to"]) == (mode, raised)


@pytest.mark.long
def test_stack_set_template_equals_the_single_account_template_in_every_mode(
    tmp_path: Path,
) -> None:
    settings = {"queues": ["orders-*", "pay"], "mode": "propose"}
    template = template_in(written(settings, tmp_path / "folder"))
    assert template["Parameters"]["Mode"]["Default"] == "propose"
    for mode, raised in product(MODE_BY_TEXT, MODE_BY_TEXT):
        alone = template_with({**settings, "mode": mode, "tagMayRaiseTo": raised})
        deployed = Deployed(template, Mode=mode, TagMayRaiseTo=raised)
        assert _comparable(deployed.resources) == _of_one_account(alone)


def test_stack_set_mail_parameter_subscribes_the_address_only_if_it_is_not_empty(
    named: dict[str, Any],
) -> None:
    there = Deployed(named, UrgentMail="ops@example.com").resources
    added = there.keys() - Deployed(named).resources.keys()
    assert added == {"UrgentMailSubscription"}
    subscribed = there["UrgentMailSubscription"]["Properties"]
    assert (subscribed["Endpoint"], subscribed["Protocol"]) == ("ops@example.com", "email")


@pytest.mark.long
def test_cfn_lint_finds_nothing_in_the_stack_set_template(named: dict[str, Any]) -> None:
    # W3005: CDK writes dependencies that references imply already.
    asked = ManualArgs(ignore_checks=["W3005"], regions=["us-east-1", "eu-west-1"])
    assert [str(each) for each in lint(json.dumps(named), config=asked)] == []


def test_stack_set_template_needs_no_bootstrap_and_names_no_account_or_region(
    named: dict[str, Any],
) -> None:
    """Service-managed stack sets take no transform, and a template of a megabyte at most.

    https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_CreateStackSet.html
    """
    text = json.dumps(named, separators=(",", ":"))
    assert "Transform" not in named
    assert [*named["Parameters"]] == [*PARAMETER_NAMES]
    for local in ("cdk-", "BootstrapVersion", ACCOUNT, "000000000000", "xx-stackset", REGION):
        assert local not in text
    assert len(text) < 500_000
    names = {
        json.dumps(each["Properties"]["RoleName"])
        for each in named["Resources"].values()
        if each["Type"] == "AWS::IAM::Role"
    }
    assert names
    assert all('{"Ref": "AWS::Region"}' in each for each in names)


def test_stack_set_lambdas_take_their_code_from_the_regions_bucket_where_it_is_published(
    named: dict[str, Any],
) -> None:
    """The report's Lambda and the nightly job's package among it."""
    text = json.dumps(Deployed(named).resources)
    keys = {each.name for each in (folder_of("named") / "objects" / "mendq").iterdir()}
    code = {each for each in keys if not each.endswith(".template.json")}
    assert {Path(each).suffix for each in code} == {".py", ".zip", ".tgz"}
    for key in code:
        assert f"mendq/{key}" in text
    lambdas = [each for each in named["Resources"].values() if each["Type"].endswith("::Function")]
    for each in lambdas:
        assert each["Properties"]["Code"]["S3Bucket"] == {"Fn::Sub": BUCKET}
        assert each["Properties"]["Code"]["S3Key"].removeprefix("mendq/") in keys


@pytest.mark.long
def test_stack_set_files_built_twice_are_byte_identical(tmp_path: Path) -> None:
    folders = [written(SETTINGS["default"], tmp_path / name) for name in ("one", "other")]
    one, other = (
        {path.relative_to(each): path.read_bytes() for path in each.rglob("*") if path.is_file()}
        for each in folders
    )
    assert one == other


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
    """By a Lambda's environment, or because CDK makes another policy for some modes alone."""
    with pytest.raises(SettingsRefused, match=r"queues: .*name fewer"):
        written({"mode": "heal", "queues": names}, tmp_path / "folder")
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

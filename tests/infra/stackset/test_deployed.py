"""An account without CDK bootstrap gets the stack from the published bucket alone.

No emulator has StackSets, so the test deploys the template as StackSets would pass it on.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_sns as sns

from infra.packaging.zips import THIS_MACHINE_PLATFORM_OPTIONS
from infra.stackset.one_template import make_bucket_name_pattern, read_stack_set_settings
from infra.stackset.publishing import write_stack_set_files
from infra.synthesis import make_app, stage_code
from local_account.deployment import WAITER_CONFIGURATION
from local_account.process import LocalAccount
from local_account.where import REGION
from mendq.cases import items
from mendq.cases.partitions import ACCOUNT_PARTITION
from mendq.model.names import ROLE_PURPOSES, role_name
from tests.infra.stackset.published import STACK

pytestmark = [pytest.mark.account, pytest.mark.long]
SETTINGS: Mapping[str, Any] = {"queues": ["orders-*"]}
PARAMETERS = {"Mode": "propose", "TagMayRaiseTo": "heal", "UrgentMail": "ops@example.com"}


def _write_unrelated_assembly(folder: Path) -> Path:
    """Write an assembly with only a topic: the account starts without Mendq and bootstrap."""
    app = make_app(folder)
    synthesizer = cdk.CliCredentialsStackSynthesizer()
    stack = cdk.Stack(app, "Mendq", synthesizer=synthesizer, analytics_reporting=False)
    sns.CfnTopic(stack, "Topic")
    app.synth()
    return folder


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalAccount]:
    place = tmp_path_factory.mktemp("published")
    bucket = make_bucket_name_pattern("our-mendq")
    code = stage_code(place / "code", THIS_MACHINE_PLATFORM_OPTIONS)
    key = write_stack_set_files(
        read_stack_set_settings(SETTINGS), bucket, code, folder=place / "folder"
    )
    options = ("--assembly", str(_write_unrelated_assembly(place / "empty")))
    with LocalAccount(options=options) as account:
        s3 = account.client("s3")
        cloudformation = account.client("cloudformation")
        bucket_name = f"our-mendq-{REGION}"
        s3.create_bucket(Bucket=bucket_name)
        objects = place / "folder" / "objects"
        for path in objects.rglob("*"):
            if path.is_file():
                name = path.relative_to(objects).as_posix()
                s3.put_object(Bucket=bucket_name, Key=name, Body=path.read_bytes())
        parameters = [
            {"ParameterKey": name, "ParameterValue": value} for name, value in PARAMETERS.items()
        ]
        cloudformation.create_stack(
            StackName=STACK,
            TemplateURL=f"{s3.meta.endpoint_url}/{bucket_name}/{key}",
            Parameters=parameters,
            Capabilities=["CAPABILITY_NAMED_IAM"],
        )
        waiter = cloudformation.get_waiter("stack_create_complete")
        waiter.wait(StackName=STACK, WaiterConfig=WAITER_CONFIGURATION)
        yield account


@pytest.fixture(scope="module")
def outputs(account: LocalAccount) -> dict[str, str]:
    (stack,) = account.client("cloudformation").describe_stacks(StackName=STACK)["Stacks"]
    return {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}


def test_stack_set_role_names_contain_their_region(account: LocalAccount) -> None:
    roles = {role["RoleName"] for role in account.client("iam").list_roles()["Roles"]}
    assert {role_name(purpose, REGION) for purpose in ROLE_PURPOSES} <= roles


def test_stack_set_parameters_reach_the_heal_lambda_and_the_topic_subscription(
    account: LocalAccount, outputs: Mapping[str, str]
) -> None:
    function = account.client("lambda").get_function_configuration(
        FunctionName=outputs["HealFunction"]
    )
    consent = json.loads(function["Environment"]["Variables"]["MENDQ_CONSENT"])
    assert consent["mode"] == "propose"
    assert consent["tag_may_raise_to"] == "heal"
    assert consent["queues"] == ["orders-*"]
    subscribed = account.client("sns").list_subscriptions_by_topic(TopicArn=outputs["UrgentTopic"])
    assert [subscription["Endpoint"] for subscription in subscribed["Subscriptions"]] == [
        "ops@example.com"
    ]
    told = account.client("sns").list_subscriptions_by_topic(TopicArn=outputs["InfoTopic"])
    assert told["Subscriptions"] == []


def test_stack_set_scan_lambda_scans_the_queues_of_the_settings_with_the_code_of_the_bucket(
    account: LocalAccount, outputs: Mapping[str, str]
) -> None:
    url = account.client("sqs").create_queue(QueueName="orders-new")["QueueUrl"]
    account.client("sqs").create_queue(QueueName="billing-new")
    _make_scan_due_again(account, outputs["CaseTable"])
    answer = account.client("lambda").invoke(FunctionName=outputs["ScanFunction"], Payload=b"{}")
    totals = json.loads(answer["Payload"].read())
    assert "FunctionError" not in answer, totals
    assert (totals["queues"], totals["errors"]) == (1, 0)
    document = _read_newest_findings(account, outputs["CaseBucket"])
    assert document["managed"] == [_read_queue_arn(account, url)]


def _make_scan_due_again(account: LocalAccount, case_table: str) -> None:
    """Delete the note of this hour's scan, in case its schedule has run it already."""
    account.client("dynamodb").delete_item(
        TableName=case_table, Key=items.item_key(ACCOUNT_PARTITION, "scan")
    )


def _read_newest_findings(account: LocalAccount, case_bucket: str) -> dict[str, Any]:
    s3 = account.client("s3")
    objects = s3.list_objects_v2(Bucket=case_bucket, Prefix="findings/")["Contents"]
    newest_key = max(stored_object["Key"] for stored_object in objects)
    document: dict[str, Any] = json.loads(
        s3.get_object(Bucket=case_bucket, Key=newest_key)["Body"].read()
    )
    return document


def _read_queue_arn(account: LocalAccount, queue_url: str) -> str:
    answer = account.client("sqs").get_queue_attributes(
        QueueUrl=queue_url, AttributeNames=["QueueArn"]
    )
    return str(answer["Attributes"]["QueueArn"])


def test_stack_sets_nightly_job_takes_its_code_from_objects_of_the_published_bucket(
    account: LocalAccount, outputs: Mapping[str, str]
) -> None:
    function = account.client("lambda").get_function_configuration(
        FunctionName=outputs["StartNightlyFunction"]
    )
    variables = function["Environment"]["Variables"]
    for name in ("MENDQ_ENTRY_POINT", "MENDQ_PACKAGE", "MENDQ_COMPILED_PACKAGES"):
        bucket, _, key = variables[name].removeprefix("s3://").partition("/")
        assert bucket == f"our-mendq-{REGION}"
        assert account.client("s3").head_object(Bucket=bucket, Key=key)["ContentLength"]

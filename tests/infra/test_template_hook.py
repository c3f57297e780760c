"""The template hook in the stack: it is optional and never covers Mendq's own stacks."""

from __future__ import annotations

import json

import pytest

from infra.settings.deployment import read_deployment_settings
from mendq.lint.proposed import CHECKED_RESOURCE_TYPES
from tests.infra.synthesized import template_of, template_with

HOOK = "AWS::CloudFormation::LambdaHook"


def test_default_stack_contains_nothing_of_the_template_hook() -> None:
    without_hook = json.dumps(template_of("default").raw).lower()
    with_hook = json.dumps(template_with({"templateHook": "warn"}).raw).lower()
    for word in ("lambdahook", "template-hook", "templatehook", "beforedeploy"):
        assert word in with_hook
        assert word not in without_hook
    assert template_with({"templateHook": "off"}).raw == template_of("default").raw


def test_template_hook_in_warn_covers_new_and_updated_resources_of_other_stacks() -> None:
    template = template_with({"templateHook": "warn"})
    hook = template.only(HOOK)
    assert hook["FailureMode"] == "WARN"
    assert hook["TargetOperations"] == ["RESOURCE"]
    assert hook["TargetFilters"] == {
        "Actions": ["CREATE", "UPDATE"],
        "TargetNames": [*CHECKED_RESOURCE_TYPES],
    }
    assert hook["LambdaFunction"] == template.arn_of("AWS::Lambda::Function", "TemplateHook")
    assert hook["ExecutionRole"] == template.arn_of("AWS::IAM::Role", "BeforeDeployRole")
    variables = template.only("AWS::Lambda::Function", "TemplateHook")["Environment"]["Variables"]
    assert variables["MENDQ_HOOK_FAILS"] == "false"


@pytest.mark.parametrize("mode", ["warn", "fail"])
def test_template_hook_excludes_mendqs_own_stack_by_its_exact_name_and_no_other(mode: str) -> None:
    (hook,) = (
        resource["Properties"]
        for resource in template_with({"templateHook": mode}).raw["Resources"].values()
        if resource["Type"] == HOOK
    )
    # A pattern such as StackSet-mendq-* would let every stack of such a name evade the hook.
    assert hook["StackFilters"] == {
        "FilteringCriteria": "ALL",
        "StackNames": {"Exclude": [{"Ref": "AWS::StackName"}]},
    }


def test_template_hook_lambda_role_may_only_write_its_own_log() -> None:
    (statement,) = template_of("named").statements("TemplateHookRole")
    assert set(statement["Action"]) == {"logs:CreateLogStream", "logs:PutLogEvents"}
    assert statement["Resource"].startswith("arn:TemplateHookLog")


def test_role_that_cloudformation_uses_for_the_hook_may_only_invoke_the_hooks_lambda() -> None:
    (statement,) = template_of("named").statements("BeforeDeployRole")
    assert statement["Action"] == "lambda:InvokeFunction"
    hooks_lambda = template_of("named").arn_of("AWS::Lambda::Function", "TemplateHook")
    assert statement["Resource"] == hooks_lambda


def test_template_hook_in_fail_mode_covers_only_the_stacks_that_its_setting_names() -> None:
    hook = template_of("named").only(HOOK)
    assert hook["FailureMode"] == "FAIL"
    assert hook["StackFilters"]["StackNames"] == {"Include": ["orders-*"]}


@pytest.mark.parametrize(
    "name",
    ["Mendq-*", "Mendqs", "mendq", "M", "StackSet-orders-*", "StackSet-mendq", "StackSet-M*"],
)
def test_template_hook_may_name_stacks_whose_names_only_resemble_mendqs_own(name: str) -> None:
    assert read_deployment_settings(
        {"templateHook": {"mode": "fail", "stacks": [name]}}
    ).template_hook.is_on

"""The CloudFormation hook that asks Mendq before a queue is created or changed; not tried on AWS.

https://docs.aws.amazon.com/cloudformation-cli/latest/hooks-userguide/lambda-hooks.html
"""

from __future__ import annotations

from aws_cdk import Aws, CfnLambdaHook, Stack
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.roles import allow, make_role
from infra.settings.hook import HookSettings
from mendq.lint.proposed import CHECKED_RESOURCE_TYPES
from mendq.model.names import HOOK_CALLER_ROLE_PURPOSE

# A hook's alias is unique in an account and region. So is Mendq's stack.
HOOK_ALIAS = "Mendq::Queues::BeforeDeploy"


def add_template_hook(stack: Stack, function: lambda_.Function, settings: HookSettings) -> None:
    """Add the hook, and its role, which may only invoke the hook's Lambda.

    CloudFormation does not call the hook for Mendq's own stack: a hook that stops deployments must
    not stop the deployment that corrects it. CloudFormation inserts the stack's exact name when it
    deploys the stack, also for a stack set, which adds an id to the name. The name is no pattern:
    if other stacks could match it, anyone could evade the hook by the name of a stack.

    CloudFormation does not call the hook for resources that people make with the Cloud Control API
    either, because these belong to no stack.

    Args:
        stack: Mendq's stack.
        function: the Lambda that CloudFormation invokes.
        settings: the hook's settings.
    """
    scope = Construct(stack, "BeforeDeploy")
    # CloudFormation names the account that it acts for, which the role's condition tests.
    # https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/registry-public.html
    role = make_role(
        scope,
        "Role",
        purpose=HOOK_CALLER_ROLE_PURPOSE,
        service="hooks.cloudformation",
        description="Mendq: asks the template hook",
    )
    role.add_to_policy(allow(["lambda:InvokeFunction"], function.function_arn))
    if settings.stacks:
        stack_name_filter = {"include": list(settings.stacks)}
    else:
        stack_name_filter = {"exclude": [Aws.STACK_NAME]}
    hook = CfnLambdaHook(
        scope,
        "Hook",
        alias=HOOK_ALIAS,
        execution_role=role.role_arn,
        failure_mode=settings.mode.upper(),
        hook_status="ENABLED",
        lambda_function=function.function_arn,
        stack_filters={"filteringCriteria": "ALL", "stackNames": stack_name_filter},
        target_operations=["RESOURCE"],
    )
    # TargetFilters has two forms. The CDK's property supports only the other one.
    # https://docs.aws.amazon.com/cloudformation-cli/latest/hooks-userguide/hooks-target-filtering.html
    target_filters = {"Actions": ["CREATE", "UPDATE"], "TargetNames": list(CHECKED_RESOURCE_TYPES)}
    hook.add_property_override("TargetFilters", target_filters)
    hook.node.add_dependency(role)

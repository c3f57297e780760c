"""The hook by which CloudFormation asks Mendq before it makes or changes a queue; not tried on AWS.

https://docs.aws.amazon.com/cloudformation-cli/latest/hooks-userguide/lambda-hooks.html
"""

from __future__ import annotations

from aws_cdk import CfnLambdaHook, Stack
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.roles import may, own_role
from infra.settings.hook import OWN_STACKS, HookSettings
from mendq.lint.proposed import TARGETS
from mendq.model.names import ASKING

# Unique in an account and region, as the stack is.
ALIAS = "Mendq::Queues::BeforeDeploy"


def template_hook(stack: Stack, asked: lambda_.Function, settings: HookSettings) -> None:
    """Add it and the role that it takes on, which may call its Lambda and nothing else.

    Mendq's own stack is not asked about, whoever made it: what stops deployments must not stop the
    one that puts it right. What Cloud Control makes is in no stack, and is not asked about either.
    """
    place = Construct(stack, "BeforeDeploy")
    # It names the account that it acts for.
    # https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/registry-public.html
    by = {"service": "hooks.cloudformation", "description": "Mendq: asks the template hook"}
    role = own_role(place, "Role", purpose=ASKING, **by)
    role.add_to_policy(may(["lambda:InvokeFunction"], asked.function_arn))
    stacks = list(settings.stacks)
    names = {"include": stacks} if stacks else {"exclude": [*OWN_STACKS]}
    hook = CfnLambdaHook(
        place,
        "Hook",
        alias=ALIAS,
        execution_role=role.role_arn,
        failure_mode=settings.mode.upper(),
        hook_status="ENABLED",
        lambda_function=asked.function_arn,
        stack_filters={"filteringCriteria": "ALL", "stackNames": names},
        target_operations=["RESOURCE"],
    )
    # The CDK knows the other of its two forms alone.
    # https://docs.aws.amazon.com/cloudformation-cli/latest/hooks-userguide/hooks-target-filtering.html
    targets = {"Actions": ["CREATE", "UPDATE"], "TargetNames": list(TARGETS)}
    hook.add_property_override("TargetFilters", targets)
    hook.node.add_dependency(role)

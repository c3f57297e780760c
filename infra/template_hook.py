"""The hook by which CloudFormation asks Mendq before it makes or changes a queue; not tried on AWS.

https://docs.aws.amazon.com/cloudformation-cli/latest/hooks-userguide/lambda-hooks.html
"""

from __future__ import annotations

from aws_cdk import CfnLambdaHook, Stack
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.roles import may, own_role
from infra.settings.deployment import HookSettings
from mendq.lint.proposed import TARGETS
from mendq.model.names import ASKING

# Unique in an account and region, as the stack is.
ALIAS = "Mendq::Queues::BeforeDeploy"


class TemplateHook(Construct):
    """The hook and the role that it takes on, which may call the hook's Lambda and nothing else.

    Mendq's own stack is not asked about: a hook that stops deployments must not stop the one that
    mends it. What Cloud Control makes is in no stack, and is not asked about either.
    """

    def __init__(
        self, scope: Construct, name: str, settings: HookSettings, asked: lambda_.Function
    ) -> None:
        super().__init__(scope, name)
        # It names the account that it acts for.
        # https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/registry-public.html
        role = own_role(
            self,
            "Role",
            purpose=ASKING,
            service="hooks.cloudformation",
            description="Mendq: asks the template hook",
        )
        role.add_to_policy(may(["lambda:InvokeFunction"], asked.function_arn))
        stacks = list(settings.stacks)
        names = {"include": stacks} if stacks else {"exclude": [Stack.of(self).stack_name]}
        hook = CfnLambdaHook(
            self,
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

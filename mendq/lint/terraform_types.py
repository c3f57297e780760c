"""The Terraform resource types that lint reads, and the CloudFormation properties of each.

A property is an argument of the same meaning or, if its entry is a `TerraformBlock`, a nested
block. A resource that only adds to another one, such as a target to its rule, has a type of its own
here, which `TerraformConverter` adds to that other resource.

https://registry.terraform.io/providers/hashicorp/aws/latest/docs
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from mendq.lint.producers import (
    INVOKE_CONFIG_TYPE,
    MANAGED_POLICY_TYPE,
    PIPE_TYPE,
    ROLE_POLICY_TYPE,
    SCHEDULE_TYPE,
    SUBSCRIPTION_TYPE,
)
from mendq.lint.queues import EVENT_SOURCE_MAPPING_TYPE
from mendq.lint.values import (
    BUCKET_TYPE,
    FUNCTION_TYPE,
    KEY_ALIAS_TYPE,
    KEY_TYPE,
    QUEUE_TYPE,
    ROLE_TYPE,
    RULE_TYPE,
    TOPIC_TYPE,
)
from mendq.model.policy_limits import POLICY_ATTRIBUTE
from mendq.model.queue_limits import REDRIVE_POLICY_ATTRIBUTE
from mendq.notifications.change_lines import name_terraform_argument

# A longer number is kept as text: no setting is that large, and Python refuses to convert it.
_MOST_DIGITS = 18
TERRAFORM_QUEUE_TYPE = "aws_sqs_queue"
TERRAFORM_POLICY_TYPE = "aws_sqs_queue_policy"
TERRAFORM_FUNCTION_TYPE = "aws_lambda_function"
KEY_POLICY_PROPERTY = "KeyPolicy"
REDRIVE_ALLOW_ATTRIBUTE = "RedriveAllowPolicy"
# Types of resources that only add to another resource.
EVENT_TARGET_TYPE = "AWS::Terraform::EventTarget"
BUCKET_NOTIFICATION_TYPE = "AWS::Terraform::BucketNotification"
POLICY_ATTACHMENT_TYPE = "AWS::Terraform::PolicyAttachment"
KEY_POLICY_TYPE = "AWS::Terraform::KeyPolicy"


@dataclass(frozen=True)
class TerraformBlock:
    """A CloudFormation property that is a nested block in Terraform.

    Attributes:
        name: The property.
        keyword: The block's keyword in Terraform.
        parts: The properties that checks read inside it.
        is_list: True if the property is a list, with an item for each block.
        argument_by_property: Terraform's names of the arguments that differ from the property's.
    """

    name: str
    keyword: str
    parts: tuple[str | TerraformBlock, ...]
    is_list: bool = False
    argument_by_property: Mapping[str, str] = field(default_factory=dict)

    def name_argument(self, property_name: str) -> str:
        """Return the argument inside the block that sets a property."""
        name = self.argument_by_property.get(property_name)
        return name or name_terraform_argument(property_name)


@dataclass(frozen=True)
class CloudFormationType:
    """A CloudFormation resource type, and those of its properties that checks read."""

    name: str
    properties: tuple[str | TerraformBlock, ...]
    # Terraform's names of the arguments that differ from those of `name_terraform_argument`.
    argument_by_property: Mapping[str, str] = field(default_factory=dict)


_FILTER_CRITERIA = TerraformBlock(
    "FilterCriteria", "filter_criteria", (TerraformBlock("Filters", "filter", ("Pattern",), True),)
)
_DEAD_LETTER_CONFIG = TerraformBlock("DeadLetterConfig", "dead_letter_config", ("Arn",))


def _make_destination_config(argument: str) -> TerraformBlock:
    names = {"Destination": argument}
    events = (("OnFailure", "on_failure"), ("OnSuccess", "on_success"))
    return TerraformBlock(
        "DestinationConfig",
        "destination_config",
        tuple(
            TerraformBlock(event, keyword, ("Destination",), argument_by_property=names)
            for event, keyword in events
        ),
    )


# CloudFormation's type of each Terraform type.
RESOURCE_TYPE_BY_TERRAFORM_TYPE: Mapping[str, CloudFormationType] = {
    TERRAFORM_QUEUE_TYPE: CloudFormationType(
        QUEUE_TYPE,
        (
            "QueueName",
            "FifoQueue",
            "ContentBasedDeduplication",
            "DeduplicationScope",
            "FifoThroughputLimit",
            "VisibilityTimeout",
            "MessageRetentionPeriod",
            "MaximumMessageSize",
            "DelaySeconds",
            "ReceiveMessageWaitTimeSeconds",
            "SqsManagedSseEnabled",
            "KmsMasterKeyId",
            "KmsDataKeyReusePeriodSeconds",
        ),
    ),
    TERRAFORM_POLICY_TYPE: CloudFormationType(
        "AWS::SQS::QueuePolicy", ("Queues", "PolicyDocument")
    ),
    "aws_lambda_event_source_mapping": CloudFormationType(
        EVENT_SOURCE_MAPPING_TYPE,
        (
            "EventSourceArn",
            "FunctionName",
            "Enabled",
            "MaximumBatchingWindowInSeconds",
            "BatchSize",
            "FunctionResponseTypes",
            TerraformBlock("ScalingConfig", "scaling_config", ("MaximumConcurrency",)),
            TerraformBlock(
                "ProvisionedPollerConfig",
                "provisioned_poller_config",
                ("MinimumPollers", "MaximumPollers"),
            ),
            _FILTER_CRITERIA,
            _make_destination_config("destination_arn"),
        ),
    ),
    TERRAFORM_FUNCTION_TYPE: CloudFormationType(
        FUNCTION_TYPE,
        (
            "FunctionName",
            "Timeout",
            "ReservedConcurrentExecutions",
            "Role",
            TerraformBlock("DeadLetterConfig", "dead_letter_config", ("TargetArn",)),
        ),
    ),
    "aws_lambda_alias": CloudFormationType("AWS::Lambda::Alias", ("FunctionName",)),
    "aws_lambda_function_event_invoke_config": CloudFormationType(
        INVOKE_CONFIG_TYPE, ("FunctionName", _make_destination_config("destination"))
    ),
    "aws_kms_key": CloudFormationType(
        KEY_TYPE, (KEY_POLICY_PROPERTY,), {KEY_POLICY_PROPERTY: "policy"}
    ),
    "aws_kms_key_policy": CloudFormationType(
        KEY_POLICY_TYPE, ("KeyId", KEY_POLICY_PROPERTY), {KEY_POLICY_PROPERTY: "policy"}
    ),
    "aws_kms_alias": CloudFormationType(
        KEY_ALIAS_TYPE, ("AliasName", "TargetKeyId"), {"AliasName": "name"}
    ),
    "aws_sns_topic": CloudFormationType(
        TOPIC_TYPE, ("TopicName", "FifoTopic"), {"TopicName": "name"}
    ),
    "aws_sns_topic_subscription": CloudFormationType(
        SUBSCRIPTION_TYPE, ("TopicArn", "Protocol", "Endpoint", REDRIVE_POLICY_ATTRIBUTE)
    ),
    "aws_cloudwatch_event_bus": CloudFormationType("AWS::Events::EventBus", ("Name",)),
    "aws_cloudwatch_event_rule": CloudFormationType(RULE_TYPE, ("Name", "EventBusName")),
    "aws_cloudwatch_event_target": CloudFormationType(
        EVENT_TARGET_TYPE,
        (
            "Rule",
            "EventBusName",
            "Arn",
            "RoleArn",
            _DEAD_LETTER_CONFIG,
            TerraformBlock("SqsParameters", "sqs_target", ("MessageGroupId",)),
        ),
    ),
    "aws_s3_bucket": CloudFormationType(BUCKET_TYPE, ("BucketName",), {"BucketName": "bucket"}),
    "aws_s3_bucket_notification": CloudFormationType(
        BUCKET_NOTIFICATION_TYPE,
        (
            "Bucket",
            TerraformBlock(
                "QueueConfigurations", "queue", ("Queue",), True, {"Queue": "queue_arn"}
            ),
        ),
    ),
    "aws_scheduler_schedule": CloudFormationType(
        SCHEDULE_TYPE,
        (
            TerraformBlock(
                "Target",
                "target",
                (
                    "Arn",
                    "RoleArn",
                    _DEAD_LETTER_CONFIG,
                    TerraformBlock("SqsParameters", "sqs_parameters", ("MessageGroupId",)),
                ),
            ),
        ),
    ),
    "aws_pipes_pipe": CloudFormationType(
        PIPE_TYPE,
        (
            "Source",
            "Target",
            "RoleArn",
            "DesiredState",
            TerraformBlock(
                "SourceParameters",
                "source_parameters",
                (
                    _FILTER_CRITERIA,
                    TerraformBlock(
                        "SqsQueueParameters",
                        "sqs_queue_parameters",
                        ("BatchSize", "MaximumBatchingWindowInSeconds"),
                    ),
                ),
            ),
        ),
    ),
    "aws_iam_role": CloudFormationType(
        ROLE_TYPE,
        (
            "RoleName",
            "ManagedPolicyArns",
            "PermissionsBoundary",
            TerraformBlock("Policies", "inline_policy", ("PolicyDocument",), True),
        ),
        {"RoleName": "name"},
    ),
    "aws_iam_role_policy": CloudFormationType(
        ROLE_POLICY_TYPE, ("RoleName", "PolicyDocument"), {"RoleName": "role"}
    ),
    "aws_iam_policy": CloudFormationType(MANAGED_POLICY_TYPE, ("PolicyDocument",)),
    "aws_iam_role_policy_attachment": CloudFormationType(
        POLICY_ATTACHMENT_TYPE,
        ("Roles", "PolicyArns"),
        {"Roles": "role", "PolicyArns": "policy_arn"},
    ),
    "aws_iam_policy_attachment": CloudFormationType(
        POLICY_ATTACHMENT_TYPE, ("Roles", "PolicyArns"), {"PolicyArns": "policy_arn"}
    ),
    "aws_iam_role_policy_attachments_exclusive": CloudFormationType(
        POLICY_ATTACHMENT_TYPE, ("Roles", "PolicyArns"), {"Roles": "role_name"}
    ),
}
# Types that matter only if they refer to a queue, or if a producer of a queue refers to them.
PRODUCER_TYPES = frozenset(RESOURCE_TYPE_BY_TERRAFORM_TYPE) - {
    TERRAFORM_QUEUE_TYPE,
    TERRAFORM_POLICY_TYPE,
    TERRAFORM_FUNCTION_TYPE,
    "aws_lambda_event_source_mapping",
    "aws_lambda_alias",
}
# Terraform types of resources that set one attribute of a queue. Without such a resource the
# queue's own argument of that name counts.
ATTRIBUTE_BY_TERRAFORM_TYPE = {
    "aws_sqs_queue_redrive_policy": REDRIVE_POLICY_ATTRIBUTE,
    "aws_sqs_queue_redrive_allow_policy": REDRIVE_ALLOW_ATTRIBUTE,
}
# Properties whose value is a JSON document in a text.
JSON_PROPERTIES = frozenset(
    {
        "PolicyDocument",
        KEY_POLICY_PROPERTY,
        "Pattern",
        POLICY_ATTRIBUTE,
        *ATTRIBUTE_BY_TERRAFORM_TYPE.values(),
    }
)
# Properties whose value is another resource's name, URL or ARN, or contains its ARN, with the
# attribute that is meant if a plan does not name the one that is read.
ATTRIBUTE_BY_REFERENCE_PROPERTY: Mapping[str, str | None] = {
    "EventSourceArn": "arn",
    "FunctionName": None,
    "Queues": None,
    "TopicArn": "arn",
    "Endpoint": "arn",
    "KmsMasterKeyId": None,
    REDRIVE_POLICY_ATTRIBUTE: "arn",
    "Role": "arn",
    "RoleArn": "arn",
    "RoleName": None,
    "Roles": None,
    "PolicyArns": "arn",
    "PermissionsBoundary": "arn",
    "Rule": None,
    "EventBusName": None,
    "Arn": "arn",
    "TargetArn": "arn",
    "Destination": "arn",
    "Bucket": None,
    "Queue": "arn",
    "Source": "arn",
    "Target": "arn",
    "KeyId": None,
    "TargetKeyId": None,
}
# Attributes that name a resource, by type. A reference to one of them stays a reference, also if
# the files set the name: other resources are found by it.
NAME_ATTRIBUTES_BY_TYPE: Mapping[str, frozenset[str]] = {
    "aws_cloudwatch_event_bus": frozenset({"name", "id"}),
    "aws_cloudwatch_event_rule": frozenset({"name", "id"}),
    "aws_iam_role": frozenset({"name", "id"}),
    "aws_s3_bucket": frozenset({"bucket", "id"}),
    "aws_kms_alias": frozenset({"name", "id"}),
}
# Types of which a reference to the ARN is `Fn::GetAtt`. For any other type it is `Ref`.
TYPES_WITH_ARN_ATTRIBUTE = frozenset(
    {
        TERRAFORM_QUEUE_TYPE,
        TERRAFORM_FUNCTION_TYPE,
        "aws_cloudwatch_event_bus",
        "aws_cloudwatch_event_rule",
        "aws_iam_role",
        "aws_iam_policy",
        "aws_s3_bucket",
    }
)


def _list_blocks(parts: tuple[str | TerraformBlock, ...]) -> Iterator[TerraformBlock]:
    for part in parts:
        if isinstance(part, TerraformBlock):
            yield part
            yield from _list_blocks(part.parts)


# Keywords of all nested blocks that lint reads, those of policy documents among them.
BLOCK_KEYWORDS = frozenset(
    {
        *("content", "statement", "principals", "not_principals", "condition"),
        *(
            block.keyword
            for resource_type in RESOURCE_TYPE_BY_TERRAFORM_TYPE.values()
            for block in _list_blocks(resource_type.properties)
        ),
    }
)
# The blocks that a remedy may have to write.
BLOCK_BY_PROPERTY: Mapping[str, TerraformBlock] = {
    block.name: block
    for block in _list_blocks(
        RESOURCE_TYPE_BY_TERRAFORM_TYPE["aws_lambda_event_source_mapping"].properties
    )
}


def name_argument(terraform_type: str, property_name: str) -> str:
    """Return the argument of a Terraform type that sets a CloudFormation property."""
    resource_type = RESOURCE_TYPE_BY_TERRAFORM_TYPE.get(terraform_type)
    name = resource_type.argument_by_property.get(property_name) if resource_type else None
    return name or name_terraform_argument(property_name)


def read_whole_number(digits: str) -> int | str:
    """Return a whole number of a JSON document; its digits if there are too many of them."""
    return int(digits) if len(digits) <= _MOST_DIGITS else digits

"""The line of a CloudFormation template or a Terraform file that sets an attribute of a queue."""

from __future__ import annotations

import re

from functions.healing.difference import NOT_SET, parsed
from functions.healing.plain_text import exact_json, plain

_MOST_VALUE = 400
_MOST_READ = 1_000
# CloudFormation's property bears the attribute's own name; Terraform's argument does not.
# https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-sqs-queue.html
# https://registry.terraform.io/providers/hashicorp/aws/latest/docs/resources/sqs_queue
_TERRAFORM: dict[str, str] = {
    "VisibilityTimeout": "visibility_timeout_seconds",
    "MessageRetentionPeriod": "message_retention_seconds",
    "MaximumMessageSize": "max_message_size",
    "ReceiveMessageWaitTimeSeconds": "receive_wait_time_seconds",
    "DelaySeconds": "delay_seconds",
    "KmsMasterKeyId": "kms_master_key_id",
    "KmsDataKeyReusePeriodSeconds": "kms_data_key_reuse_period_seconds",
    "SqsManagedSseEnabled": "sqs_managed_sse_enabled",
    "ContentBasedDeduplication": "content_based_deduplication",
    "DeduplicationScope": "deduplication_scope",
    "FifoThroughputLimit": "fifo_throughput_limit",
    "RedrivePolicy": "redrive_policy",
    "RedriveAllowPolicy": "redrive_allow_policy",
    "Policy": "policy",
}
NUMBER = re.compile(r"0|[1-9][0-9]{0,11}")


def terraform_name(attribute: str) -> str | None:
    """The argument of Terraform's `aws_sqs_queue` for a queue attribute; None where none is."""
    return _TERRAFORM.get(attribute)


def template_line(attribute: str, text: str) -> str:
    """`VisibilityTimeout: 690` of AWS::SQS::Queue; empty where nothing is set or it is too long."""
    written = _exact(text) if 0 < len(text) <= _MOST_READ else ""
    return f"{_property(attribute)}: {written}" if 0 < len(written) <= _MOST_VALUE else ""


def template_lines(whose: str, attribute: str, text: str) -> tuple[str, str]:
    """Both languages' lines, after whose value it is; they say it where there is none to write."""
    name = plain(attribute, 64)
    argument = terraform_name(attribute)
    return (
        f"{whose}, CloudFormation: {_property(attribute)}: {_literal(text)}",
        f"{whose}, Terraform: {argument} = {_terraform_literal(text)}"
        if argument
        else f"{whose}, Terraform: no argument known for {name}",
    )


def _property(attribute: str) -> str:
    # A queue's policy is a resource of its own in CloudFormation.
    return (
        "PolicyDocument (AWS::SQS::QueuePolicy)" if attribute == "Policy" else plain(attribute, 64)
    )


def _literal(text: str) -> str:
    if not text:
        return f"({NOT_SET}: leave it out)"
    written = _exact(text)
    return written if len(written) <= _MOST_VALUE else "(too long for a page)"


def _exact(text: str) -> str:
    """As YAML and HCL both read it: number, true or false, document, text."""
    if NUMBER.fullmatch(text) or text in ("true", "false"):
        return text
    return exact_json(parsed(text) or text)


def _terraform_literal(text: str) -> str:
    written = _literal(text).replace("${", "$${").replace("%{", "%%{")
    return f"jsonencode({written})" if written.startswith("{") else written

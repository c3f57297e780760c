"""The module `terraform-aws-modules/sqs/aws` of the Terraform registry, versions 4 and 5.

A module of the registry is not in the user's folder. This one is used so often that lint knows what
it makes of its inputs: its text here declares the same queues, policies and outputs. With an input
that is not listed here, or in another version, the module is not judged.

https://registry.terraform.io/modules/terraform-aws-modules/sqs/aws/latest
"""

from __future__ import annotations

import re

from mendq.catalogue.dlq.dlq_missing import DLQ_MISSING
from mendq.catalogue.dlq.max_receive_count_too_low import MAX_RECEIVE_COUNT_TOO_LOW
from mendq.lint.hcl_parser import Block, HclFile, parse_hcl

SQS_MODULE_SOURCE = "terraform-aws-modules/sqs/aws"
_KNOWN_VERSIONS = (4, 5)
_FIRST_NUMBER_REGEX = re.compile(r"[0-9]{1,4}")
_CALL_ARGUMENTS = frozenset({"source", "version", "providers", "depends_on", "count", "for_each"})
# Inputs that decide nothing that lint checks.
_UNUSED_INPUTS = ("region", "tags", "dlq_tags")
_DEFAULT_BY_INPUT = {
    "create": "true",
    "name": "null",
    "use_name_prefix": "false",
    "fifo_queue": "false",
    "content_based_deduplication": "null",
    "deduplication_scope": "null",
    "fifo_throughput_limit": "null",
    "delay_seconds": "null",
    "kms_data_key_reuse_period_seconds": "null",
    "kms_master_key_id": "null",
    "max_message_size": "null",
    "message_retention_seconds": "null",
    "receive_wait_time_seconds": "null",
    "visibility_timeout_seconds": "null",
    "sqs_managed_sse_enabled": "true",
    "redrive_policy": "{}",
    "redrive_allow_policy": "{}",
    "create_queue_policy": "false",
    "source_queue_policy_documents": "[]",
    "override_queue_policy_documents": "[]",
    "queue_policy_statements": "{}",
    "create_dlq": "false",
    "dlq_name": "null",
    "dlq_content_based_deduplication": "null",
    "dlq_deduplication_scope": "null",
    "dlq_fifo_throughput_limit": "null",
    "dlq_delay_seconds": "null",
    "dlq_kms_data_key_reuse_period_seconds": "null",
    "dlq_kms_master_key_id": "null",
    "dlq_message_retention_seconds": "null",
    "dlq_receive_wait_time_seconds": "null",
    "dlq_visibility_timeout_seconds": "null",
    "dlq_sqs_managed_sse_enabled": "true",
    "create_dlq_redrive_allow_policy": "true",
    "dlq_redrive_allow_policy": "{}",
    "create_dlq_queue_policy": "false",
    "source_dlq_queue_policy_documents": "[]",
    "override_dlq_queue_policy_documents": "[]",
    "dlq_queue_policy_statements": "{}",
}
_QUEUE_ARGUMENTS = (
    "content_based_deduplication",
    "deduplication_scope",
    "delay_seconds",
    "fifo_throughput_limit",
    "kms_data_key_reuse_period_seconds",
    "message_retention_seconds",
    "receive_wait_time_seconds",
    "visibility_timeout_seconds",
)
_RESOURCES = """
locals {
  name     = trimsuffix(var.name, ".fifo")
  suffix   = var.fifo_queue ? ".fifo" : ""
  dlq_name = try(trimsuffix(coalesce(var.dlq_name), ".fifo"), "${local.name}-dlq")
  dlq_key  = try(coalesce(var.dlq_kms_master_key_id, var.kms_master_key_id), null)
}
resource "aws_sqs_queue" "this" {
  count                   = var.create ? 1 : 0
  name                    = var.use_name_prefix ? null : "${local.name}${local.suffix}"
  fifo_queue              = var.fifo_queue
  max_message_size        = var.max_message_size
  kms_master_key_id       = var.kms_master_key_id
  sqs_managed_sse_enabled = var.kms_master_key_id != null ? null : var.sqs_managed_sse_enabled
QUEUE
}
resource "aws_sqs_queue" "dlq" {
  count                   = var.create && var.create_dlq ? 1 : 0
  name                    = var.use_name_prefix ? null : "${local.dlq_name}${local.suffix}"
  fifo_queue              = var.fifo_queue
  max_message_size        = var.max_message_size
  kms_master_key_id       = local.dlq_key
  sqs_managed_sse_enabled = local.dlq_key != null ? null : var.dlq_sqs_managed_sse_enabled
DLQ
}
resource "aws_sqs_queue_redrive_policy" "this" {
  count          = var.create && !var.create_dlq && length(var.redrive_policy) > 0 ? 1 : 0
  queue_url      = aws_sqs_queue.this[0].url
  redrive_policy = jsonencode(var.redrive_policy)
}
resource "aws_sqs_queue_redrive_policy" "dlq" {
  count          = var.create && var.create_dlq ? 1 : 0
  queue_url      = aws_sqs_queue.this[0].url
  redrive_policy = jsonencode(merge(
    {deadLetterTargetArn = aws_sqs_queue.dlq[0].arn, maxReceiveCount = 5}, var.redrive_policy
  ))
}
resource "aws_sqs_queue_redrive_allow_policy" "this" {
  count = var.create && !var.create_dlq && length(var.redrive_allow_policy) > 0 ? 1 : 0
  queue_url            = aws_sqs_queue.this[0].url
  redrive_allow_policy = jsonencode(var.redrive_allow_policy)
}
resource "aws_sqs_queue_redrive_allow_policy" "dlq" {
  count                = var.create && var.create_dlq && var.create_dlq_redrive_allow_policy ? 1 : 0
  queue_url            = aws_sqs_queue.dlq[0].url
  redrive_allow_policy = jsonencode(merge(
    {redrivePermission = "byQueue", sourceQueueArns = [aws_sqs_queue.this[0].arn]},
    var.dlq_redrive_allow_policy
  ))
}
output "queue_id" { value = aws_sqs_queue.this[0].id }
output "queue_url" { value = aws_sqs_queue.this[0].url }
output "queue_arn" { value = aws_sqs_queue.this[0].arn }
output "queue_arn_static" { value = aws_sqs_queue.this[0].arn }
output "queue_name" { value = aws_sqs_queue.this[0].name }
output "dead_letter_queue_id" { value = try(aws_sqs_queue.dlq[0].id, null) }
output "dead_letter_queue_url" { value = try(aws_sqs_queue.dlq[0].url, null) }
output "dead_letter_queue_arn" { value = try(aws_sqs_queue.dlq[0].arn, null) }
output "dead_letter_queue_arn_static" { value = try(aws_sqs_queue.dlq[0].arn, null) }
output "dead_letter_queue_name" { value = try(aws_sqs_queue.dlq[0].name, null) }
"""
# The policy of the queue, and with other names that of the DLQ.
_POLICY = """
resource "aws_sqs_queue_policy" "LABEL" {
  count     = var.create && var.CREATE ? 1 : 0
  queue_url = aws_sqs_queue.LABEL[0].url
  policy    = data.aws_iam_policy_document.LABEL.json
}
data "aws_iam_policy_document" "LABEL" {
  source_policy_documents   = var.source_QUEUE_policy_documents
  override_policy_documents = var.override_QUEUE_policy_documents
  dynamic "statement" {
    for_each = var.QUEUE_policy_statements != null ? var.QUEUE_policy_statements : {}
    content {
      actions       = try(statement.value.actions, null)
      not_actions   = try(statement.value.not_actions, null)
      effect        = try(coalesce(statement.value.effect), "Allow")
      resources     = try(coalesce(statement.value.resources), [aws_sqs_queue.LABEL[0].arn])
      not_resources = try(statement.value.not_resources, null)
      dynamic "principals" {
        for_each = try(coalesce(statement.value.principals), [])
        content {
          type        = principals.value.type
          identifiers = principals.value.identifiers
        }
      }
      dynamic "not_principals" {
        for_each = try(coalesce(statement.value.not_principals), [])
        content {
          type        = not_principals.value.type
          identifiers = not_principals.value.identifiers
        }
      }
      dynamic "condition" {
        for_each = try(
          coalesce(statement.value.conditions), coalesce(statement.value.condition), []
        )
        content {
          test     = condition.value.test
          variable = condition.value.variable
          values   = condition.value.values
        }
      }
    }
  }
}
"""


def explain_unknown_call(block: Block, version: str | None) -> str:
    """Return why a call of the module is not judged. Empty if it is.

    Args:
        block: The `module` block.
        version: The version that it asks for; None without one.
    """
    first_number = _FIRST_NUMBER_REGEX.search(version or "")
    is_older = first_number is not None and int(first_number.group()) < min(_KNOWN_VERSIONS)
    takes_newer = (version or "").lstrip().startswith(">") and "," not in (version or "")
    if is_older and not takes_newer:
        return "lint knows its module in versions 4 and 5 only: lint a plan"
    if first_number is not None and int(first_number.group()) > max(_KNOWN_VERSIONS):
        return "lint knows its module in versions 4 and 5 only: lint a plan"
    known_names = {*_DEFAULT_BY_INPUT, *_UNUSED_INPUTS, *_CALL_ARGUMENTS}
    unknown_names = [name for name in block.argument_by_name if name not in known_names]
    return (
        f"lint does not know its input {unknown_names[0][:64]}: lint a plan"
        if unknown_names
        else ""
    )


def parse_sqs_module() -> Block:
    """Return the module as the parsed file that it would be."""
    variables = [
        f'variable "{name}" {{\n  default = {default}\n}}'
        for name, default in _DEFAULT_BY_INPUT.items()
    ]
    queue_lines = [f"  {name} = var.{name}" for name in _QUEUE_ARGUMENTS]
    dlq_lines = [
        f"  {name} = try(coalesce(var.dlq_{name}, var.{name}), null)" for name in _QUEUE_ARGUMENTS
    ]
    resources = _RESOURCES.replace("QUEUE\n", "\n".join(queue_lines) + "\n", 1)
    resources = resources.replace("\nDLQ\n", "\n" + "\n".join(dlq_lines) + "\n", 1)
    policies = [
        _POLICY.replace("CREATE", f"create_{name}_policy")
        .replace("QUEUE", name)
        .replace("LABEL", label)
        for label, name in (("this", "queue"), ("dlq", "dlq_queue"))
    ]
    text = "\n".join([*variables, resources, *policies])
    return parse_hcl(HclFile(SQS_MODULE_SOURCE, text))


def name_input(label: str, argument_name: str) -> str:
    """Return the module's input for an argument of one of its queues: `this` or `dlq`."""
    return f"dlq_{argument_name}" if label == "dlq" else argument_name


def adapt_to_sqs_module(
    label: str, symptom_name: str, comment: str, lines: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the inputs of the module that fix a symptom of one of its queues.

    Args:
        label: The queue: `this` or `dlq`.
        symptom_name: The symptom.
        comment: A comment that names the block of the call.
        lines: The lines for a queue that the files themselves declare.
    """
    if symptom_name == DLQ_MISSING.name:
        return (comment, "create_dlq = true", "dlq_message_retention_seconds = 1209600")
    if any(f"aws_sqs_queue.{label}" in line for line in lines):
        kind = "dlq_queue" if label == "dlq" else "queue"
        return (f"{comment}: set create_{kind}_policy = true and {kind}_policy_statements",)
    if symptom_name == MAX_RECEIVE_COUNT_TOO_LOW.name:
        return (comment, f"redrive_policy = {{ {lines[0]} }}", *lines[1:])
    return (comment, *(name_input(label, line) for line in lines))

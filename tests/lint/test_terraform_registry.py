"""Queues that the registry's module `terraform-aws-modules/sqs/aws` makes."""

from __future__ import annotations

from pathlib import Path

import pytest

from mendq.lint.decode import read_template_source
from mendq.lint.files import list_template_sources
from mendq.lint.judging import LintFinding, LintResult, lint

CALL = """\
module "jobs" {
  source  = "terraform-aws-modules/sqs/aws"
  version = "%s"
  name    = "jobs"
  %s
}
resource "aws_lambda_function" "pay" {
  function_name = "pay"
  timeout       = 60
}
resource "aws_lambda_event_source_mapping" "pay" {
  event_source_arn = module.jobs.queue_arn
  function_name    = aws_lambda_function.pay.arn
  batch_size       = 1
}
"""
DLQ_INPUTS = """\
visibility_timeout_seconds    = 360
  create_dlq                    = true
  dlq_message_retention_seconds = 1209600
"""
TOPIC = """\
resource "aws_sns_topic" "paid" { name = "paid" }
resource "aws_sns_topic_subscription" "paid" {
  topic_arn = aws_sns_topic.paid.arn
  protocol  = "sqs"
  endpoint  = module.jobs.queue_arn
}
"""
POLICY_INPUTS = """\
create_queue_policy = true
  queue_policy_statements = {
    send = {
      actions    = ["sqs:SendMessage"]
      principals = [{ type = "Service", identifiers = ["%s"] }]
      conditions = [
        { test = "ArnEquals", variable = "aws:SourceArn", values = [aws_sns_topic.paid.arn] }
      ]
    }
  }
"""
QUEUE = "module.jobs.aws_sqs_queue.this[0]"
DLQ = "module.jobs.aws_sqs_queue.dlq[0]"


def _lint(folder: Path, *inputs: str, version: str = "~> 4.0", more: str = "") -> LintResult:
    (folder / "main.tf").write_text(CALL % (version, "\n  ".join(inputs)) + more)
    (source,) = list_template_sources(str(folder))
    template = read_template_source(source)
    return lint(template, source.file, source.deploy_target, ["tls_not_enforced"])


def _find(result: LintResult, symptom: str) -> LintFinding:
    (finding,) = [finding for finding in result.findings if finding.symptom == symptom]
    return finding


@pytest.mark.parametrize("version", ["4.0.0", "~> 4.2", "5.2.1", ">= 3.0", ">= 4.1, < 6.0"])
def test_lint_finds_no_fault_in_a_sound_queue_of_the_registry_module(
    tmp_path: Path, version: str
) -> None:
    result = _lint(tmp_path, DLQ_INPUTS, version=version)
    assert (result.queues, list(result.findings), list(result.not_judged)) == (2, [], [])


def test_lint_of_the_registry_module_points_to_the_input_and_fixes_it_there(
    tmp_path: Path,
) -> None:
    result = _lint(tmp_path, "visibility_timeout_seconds = 70", "redrive_policy = {}")
    timeout = _find(result, "visibility_timeout_too_short")
    assert (timeout.resource, timeout.line) == (QUEUE, 5)
    assert timeout.remedy == ('# in the block module "jobs"', "visibility_timeout_seconds = 360")
    assert "create_dlq = true" in _find(result, "dlq_missing").remedy


def test_lint_of_the_registry_module_reads_its_redrive_policy(tmp_path: Path) -> None:
    dlq_inputs = DLQ_INPUTS.replace("1209600", "60")
    result = _lint(tmp_path, "redrive_policy = { maxReceiveCount = 2 }", dlq_inputs)
    receives = _find(result, "max_receive_count_too_low")
    assert (receives.resource, receives.line) == (QUEUE, 5)
    assert receives.remedy[1] == "redrive_policy = { maxReceiveCount = 5 }"
    retention = _find(result, "dlq_retention_too_short")
    assert (retention.resource, retention.line) == (DLQ, 8)
    assert retention.remedy[1] == "dlq_message_retention_seconds = 1209600"


@pytest.mark.parametrize(("service", "is_refused"), [("sns", False), ("s3", True)])
def test_lint_of_the_registry_module_reads_its_policy_statements(
    tmp_path: Path, service: str, *, is_refused: bool
) -> None:
    inputs = POLICY_INPUTS % f"{service}.amazonaws.com"
    result = _lint(tmp_path, DLQ_INPUTS, inputs, more=TOPIC)
    symptoms = [finding.symptom for finding in result.findings]
    assert symptoms == (["producer_refused"] if is_refused else [])
    if is_refused:
        assert "queue_policy_statements" in result.findings[0].remedy[0]


@pytest.mark.parametrize(
    ("version", "text", "reason"),
    [
        ("~> 3.0", "", "versions 4 and 5"),
        ("6.0.0", "", "versions 4 and 5"),
        ("5.0.0", "colour = 1", "its input colour"),
    ],
)
def test_lint_does_not_judge_a_call_of_the_registry_module_that_it_does_not_know(
    tmp_path: Path, version: str, text: str, reason: str
) -> None:
    result = _lint(tmp_path, text, version=version)
    assert result.queues == 0
    assert reason in result.not_judged[0].because

"""Consumers that Terraform files declare, with the settings in nested blocks of their mappings."""

from __future__ import annotations

from pathlib import Path

import pytest

from mendq.lint.decode import read_template_source
from mendq.lint.files import list_template_sources
from mendq.lint.judging import LintResult, lint

QUEUES = """\
resource "aws_sqs_queue" "orders" {
  name                       = "orders"
  visibility_timeout_seconds = 180
  redrive_policy = jsonencode({
    deadLetterTargetArn = aws_sqs_queue.dead.arn
    maxReceiveCount     = 5
  })
}
resource "aws_sqs_queue" "dead" {
  name                      = "dead"
  message_retention_seconds = 1209600
}
"""
FUNCTION = """\
resource "aws_lambda_function" "%s" {
  function_name = "%s"
  timeout       = 30
  %s
}
"""
MAPPING = """\
resource "aws_lambda_event_source_mapping" "%s" {
  event_source_arn = aws_sqs_queue.orders.arn
  function_name    = aws_lambda_function.%s.arn
  batch_size       = 1
  %s
}
"""
FILTER = "filter_criteria {\n filter { pattern = jsonencode({body = {kind = [%s]}}) }\n }"


def _lint(folder: Path, *texts: str) -> LintResult:
    (folder / "main.tf").write_text("\n".join(texts))
    (source,) = list_template_sources(str(folder))
    ignored_symptoms = ["tls_not_enforced", "not_encrypted"]
    return lint(read_template_source(source), source.file, source.deploy_target, ignored_symptoms)


def _make_consumer(name: str = "pay", mapping: str = "", function: str = "") -> str:
    return FUNCTION % (name, name, function) + MAPPING % (name, name, mapping)


def _list_symptoms(result: LintResult) -> list[tuple[str, str]]:
    return [(finding.severity_class.value, finding.symptom) for finding in result.findings]


@pytest.mark.parametrize(
    ("texts", "symptoms"),
    [
        ((_make_consumer(),), []),
        ((_make_consumer(mapping=FILTER % '"a"'),), [("may_lose", "filter_deletes_messages")]),
        (
            (_make_consumer(mapping=FILTER % '"a"'), _make_consumer("b", FILTER % '"b"')),
            [("will_lose", "filter_deletes_messages")],
        ),
        (
            (_make_consumer(mapping="batch_size = 10").replace("  batch_size       = 1\n", ""),),
            [("may_lose", "batch_failures_not_reported")],
        ),
        (
            (
                _make_consumer(
                    mapping='function_response_types = ["ReportBatchItemFailures"]'
                ).replace("batch_size       = 1", "batch_size       = 10"),
            ),
            [],
        ),
        (
            (
                _make_consumer(
                    mapping="scaling_config { maximum_concurrency = 10 }",
                    function="reserved_concurrent_executions = 6",
                ),
            ),
            [("may_lose", "concurrency_too_small")],
        ),
        (
            (
                _make_consumer(
                    mapping="scaling_config { maximum_concurrency = 6 }",
                    function="reserved_concurrent_executions = 6",
                ),
            ),
            [],
        ),
        ((_make_consumer(mapping="enabled = false"),), [("standing_still", "consumer_stopped")]),
        (
            (_make_consumer(function="reserved_concurrent_executions = 0"),),
            [("standing_still", "consumer_throttled")],
        ),
        ((_make_consumer(function="reserved_concurrent_executions = -1"),), []),
        (
            (
                _make_consumer(
                    mapping="provisioned_poller_config { minimum_pollers = 2 }",
                    function="reserved_concurrent_executions = 20",
                ),
            ),
            [("may_lose", "concurrency_too_small")],
        ),
        (
            (_make_consumer().replace("timeout       = 30", "timeout       = 60"),),
            [("may_lose", "visibility_timeout_too_short")],
        ),
    ],
    ids=[
        "healthy",
        "a filter",
        "two filters",
        "whole batches come back",
        "failures are reported",
        "a limit above the reserved concurrency",
        "a limit of the reserved concurrency",
        "disabled",
        "no concurrency",
        "no reserved concurrency",
        "many pollers",
        "a timeout below six times the function's",
    ],
)
def test_lint_of_terraform_reports_settings_of_mappings_and_functions(
    tmp_path: Path, texts: tuple[str, ...], symptoms: list[tuple[str, str]]
) -> None:
    assert _list_symptoms(_lint(tmp_path, QUEUES, *texts)) == symptoms


DYNAMIC_FILTER = """\
dynamic "filter_criteria" {
    for_each = %s
    content {
      dynamic "filter" {
        for_each = filter_criteria.value
        iterator = kind
        content { pattern = jsonencode({body = {kind = [kind.value]}}) }
      }
    }
  }
"""


@pytest.mark.parametrize(
    ("list_text", "symptoms", "is_open"),
    [
        ('[["a", "b"]]', ["filter_deletes_messages"], False),
        ("[]", [], False),
        ("var.kinds", [], False),
        ("var.unknown", [], True),
    ],
    ids=["a list", "an empty list", "a default", "not known"],
)
def test_lint_of_terraform_reads_dynamic_blocks_whose_list_is_known(
    tmp_path: Path, list_text: str, symptoms: list[str], *, is_open: bool
) -> None:
    variables = 'variable "kinds" { default = [] }\nvariable "unknown" {}\n'
    consumer = _make_consumer(mapping=DYNAMIC_FILTER % list_text)
    scaling = 'dynamic "scaling_config" {\n for_each = %s\n content { maximum_concurrency = 2 }\n }'
    other = _make_consumer("b", scaling % ("var.unknown" if is_open else "[1]"))
    result = _lint(tmp_path, QUEUES, variables, consumer)
    assert [finding.symptom for finding in result.findings] == symptoms
    limits = _lint(tmp_path, QUEUES, variables, other).not_judged
    assert any("comes from a dynamic block" in place.because for place in limits) is is_open


def test_remedy_of_terraform_writes_a_nested_setting_as_a_block(tmp_path: Path) -> None:
    consumer = _make_consumer(
        mapping="scaling_config { maximum_concurrency = 10 }",
        function="reserved_concurrent_executions = 6",
    )
    (finding,) = _lint(tmp_path, QUEUES, consumer).findings
    assert finding.remedy[1:] == ("scaling_config {", "  maximum_concurrency = 6", "}")


@pytest.mark.parametrize("reserved", [0, 1])
def test_remedy_of_terraform_names_the_reserved_concurrency_as_terraform_does(
    tmp_path: Path, reserved: int
) -> None:
    consumer = _make_consumer(function=f"reserved_concurrent_executions = {reserved}")
    (finding,) = _lint(tmp_path, QUEUES, consumer).findings
    assert "reserved_concurrent_executions" in finding.remedy[0]


def test_lint_of_terraform_reads_the_filters_and_the_state_of_a_pipe(tmp_path: Path) -> None:
    pipe = """\
resource "aws_pipes_pipe" "move" {
  source        = aws_sqs_queue.orders.arn
  target        = "arn:aws:states:eu-west-1:111122223333:stateMachine:s"
  role_arn      = "arn:aws:iam::111122223333:role/pipe"
  %s
}
"""
    filtered = pipe % f"source_parameters {{\n {FILTER % 1}\n }}"
    result = _lint(tmp_path, QUEUES, filtered)
    assert _list_symptoms(result) == [("may_lose", "filter_deletes_messages")]
    stopped = _lint(tmp_path, QUEUES, pipe % 'desired_state = "STOPPED"')
    assert _list_symptoms(stopped) == [("standing_still", "consumer_stopped")]


def test_lint_reports_each_mapping_whose_concurrency_is_too_small_once(tmp_path: Path) -> None:
    limited = _make_consumer(
        mapping="scaling_config { maximum_concurrency = 10 }",
        function="reserved_concurrent_executions = 6",
    )
    unlimited = _make_consumer("refund", function="reserved_concurrent_executions = 2")
    findings = _lint(tmp_path, QUEUES, limited, unlimited).findings
    owners = [finding.remedy[0].rpartition(" ")[2] for finding in findings]
    assert owners == [
        "aws_lambda_event_source_mapping.pay",
        "aws_lambda_event_source_mapping.refund",
    ]

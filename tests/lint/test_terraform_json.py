"""Terraform files in JSON, as CDK for Terraform writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mendq.lint.decode import read_template_source
from mendq.lint.files import list_template_sources
from mendq.lint.judging import LintResult, lint
from mendq.lint.template import NotATemplate
from mendq.lint.terraform_json import convert_lines_to_json

QUEUE_ARN = "${aws_sqs_queue.jobs.arn}"


def _make_stack(**more: Any) -> dict[str, Any]:
    """Return a stack with a queue of 30 seconds whose function may run for `local.timeout`."""
    resources: dict[str, Any] = {
        "aws_sqs_queue": {"jobs": {"name": "jobs", "visibility_timeout_seconds": 30}},
        "aws_lambda_function": {"pay": {"function_name": "pay", "timeout": "${local.timeout}"}},
        "aws_lambda_event_source_mapping": {
            "pay": {
                "event_source_arn": QUEUE_ARN,
                "function_name": "${aws_lambda_function.pay.arn}",
                "batch_size": 1,
            }
        },
    }
    return {
        "//": {"metadata": "made by a tool"},
        "terraform": {"backend": {"local": {}}},
        "variable": {"timeout": {"default": 60, "type": "number"}},
        "locals": {"timeout": "${var.timeout}"},
        "resource": {**resources, **more},
    }


def _lint(path: Path) -> LintResult:
    (source,) = list_template_sources(str(path))
    return lint(read_template_source(source), source.file, source.deploy_target)


def _write(folder: Path, stack: Any, name: str = "cdk.tf.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(stack, indent=2))
    return path


def _list_symptoms(result: LintResult) -> set[str]:
    return {finding.symptom for finding in result.findings} - {"tls_not_enforced"}


@pytest.mark.parametrize("is_folder", [True, False])
def test_lint_of_terraform_in_json_names_the_line_of_a_fault(
    tmp_path: Path, *, is_folder: bool
) -> None:
    path = _write(tmp_path, _make_stack())
    result = _lint(tmp_path if is_folder else path)
    (timeout,) = [
        finding for finding in result.findings if finding.symptom == "visibility_timeout_too_short"
    ]
    line = path.read_text().splitlines()[(timeout.line or 0) - 1]
    assert '"visibility_timeout_seconds": 30' in line
    assert result.defaults == [{"parameter": "var.timeout", "value": "60"}]


def test_lint_of_terraform_in_json_takes_values_of_other_files_in_the_folder(
    tmp_path: Path,
) -> None:
    _write(tmp_path, _make_stack())
    override = {"resource": [{"aws_sqs_queue": [{"jobs": {"visibility_timeout_seconds": 360}}]}]}
    _write(tmp_path, override, "override.tf.json")
    assert _list_symptoms(_lint(tmp_path)) == {"dlq_missing"}
    (tmp_path / "override.tf.json").unlink()
    _write(tmp_path, {"timeout": 5}, "terraform.tfvars.json")
    assert _list_symptoms(_lint(tmp_path)) == {"dlq_missing"}


def test_lint_of_terraform_in_json_reads_nested_and_dynamic_blocks(tmp_path: Path) -> None:
    subscriptions = {
        "aws_cloudwatch_event_rule": {"nightly": {"name": "nightly"}},
        "aws_cloudwatch_event_target": {
            "nightly": {
                "rule": "${aws_cloudwatch_event_rule.nightly.name}",
                "arn": "arn:aws:lambda:eu-west-1:111122223333:function:report",
                "dead_letter_config": [{"arn": QUEUE_ARN}],
            }
        },
        "aws_sqs_queue_policy": {
            "jobs": {
                "queue_url": "${aws_sqs_queue.jobs.id}",
                "policy": "${data.aws_iam_policy_document.send.json}",
            }
        },
    }
    statement = {
        "actions": ["sqs:SendMessage"],
        "resources": [QUEUE_ARN],
        "principals": [{"type": "Service", "identifiers": ["${each_service.value}"]}],
    }
    stack = _make_stack(**subscriptions)
    dynamic = {"for_each": ["events.amazonaws.com"], "iterator": "each_service"}
    document = {"dynamic": {"statement": {**dynamic, "content": statement}}}
    stack["data"] = {"aws_iam_policy_document": {"send": document}}
    _write(tmp_path, stack)
    assert "producer_refused" not in _list_symptoms(_lint(tmp_path))
    dynamic["for_each"] = ["s3.amazonaws.com"]
    document["dynamic"]["statement"] = {**dynamic, "content": statement}
    _write(tmp_path, stack)
    assert "producer_refused" in _list_symptoms(_lint(tmp_path))


def test_lint_of_terraform_in_json_passes_an_object_to_a_module(tmp_path: Path) -> None:
    """The name of an input may be the keyword of a block elsewhere."""
    (tmp_path / "queue").mkdir()
    (tmp_path / "queue" / "main.tf").write_text(
        'variable "target" {}\n'
        'resource "aws_sqs_queue" "made" { message_retention_seconds = var.target.seconds }\n'
    )
    module = {"source": "./queue", "target": {"seconds": 30}}
    _write(tmp_path, {"module": {"made": module}})
    result = _lint(tmp_path)
    assert "invalid_request" in _list_symptoms(result)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "no JSON that lint can read"),
        ("[]", "no object in JSON"),
        ('{"locals": {"a": "${1 +}"}}', "cdk.tf.json, line 1, in a text, line 1: no HCL"),
        ('{"locals": {"a": "%{ nothing }"}}', "no HCL"),
    ],
)
def test_lint_refuses_a_terraform_file_in_json_that_it_cannot_read(
    tmp_path: Path, text: str, problem: str
) -> None:
    path = tmp_path / "cdk.tf.json"
    path.write_text(text)
    with pytest.raises(NotATemplate, match=problem):
        _lint(path)


def _get_remedy(result: LintResult, symptom: str) -> tuple[str, ...]:
    (remedy,) = [item.remedy for item in result.findings if item.symptom == symptom]
    return remedy


@pytest.mark.parametrize("is_folder", [True, False])
def test_remedies_of_a_json_file_are_json(tmp_path: Path, *, is_folder: bool) -> None:
    path = _write(tmp_path, _make_stack())
    result = _lint(tmp_path if is_folder else path)
    assert _get_remedy(result, "visibility_timeout_too_short") == (
        '"visibility_timeout_seconds": 360',
    )
    *resource_lines, comment, argument_line = _get_remedy(result, "dlq_missing")
    assert json.loads("{" + "".join(resource_lines) + "}") == {
        "resource": {"aws_sqs_queue": {"jobsDlq": {"message_retention_seconds": 1_209_600}}}
    }
    assert comment == "# and inside of the queue"
    arguments = json.loads("{" + argument_line + "}")
    dlq = '{"deadLetterTargetArn": aws_sqs_queue.jobsDlq.arn, "maxReceiveCount": 5}'
    assert arguments == {"redrive_policy": f"${{jsonencode({dlq})}}"}


def test_remedy_that_is_pasted_into_the_json_file_ends_the_finding(tmp_path: Path) -> None:
    stack = _make_stack()
    *resource_lines, _, argument_line = _get_remedy(_lint(_write(tmp_path, stack)), "dlq_missing")
    queues = stack["resource"]["aws_sqs_queue"]
    queues |= json.loads("{" + "".join(resource_lines) + "}")["resource"]["aws_sqs_queue"]
    queues["jobs"] |= json.loads("{" + argument_line + "}")
    assert "dlq_missing" not in _list_symptoms(_lint(_write(tmp_path, stack)))


def test_remedy_of_an_hcl_file_beside_a_json_file_is_hcl(tmp_path: Path) -> None:
    (tmp_path / "main.tf").write_text('resource "aws_sqs_queue" "jobs" {}\n')
    stack = _make_stack()
    del stack["resource"]["aws_sqs_queue"]
    _write(tmp_path, stack)
    result = _lint(tmp_path)
    assert _get_remedy(result, "visibility_timeout_too_short") == (
        "visibility_timeout_seconds = 360",
    )


@pytest.mark.parametrize(
    ("lines", "converted"),
    [
        (
            ("# add to x", 'response_types = ["A"]'),
            ("# add to x", '"response_types": [', '  "A"', "]"),
        ),
        (
            ("scaling_config {", "  maximum_concurrency = 2", "}"),
            ('"scaling_config": {', '  "maximum_concurrency": 2', "}"),
        ),
        (("# add to the Statement of x", '{"Effect": "Deny"}'), None),
        (("# a person must do it",), None),
        (
            ("a = var.b", '# declare: data "aws_caller_identity" "current" {}'),
            (
                '"a": "${var.b}"',
                '# declare: "data": {"aws_caller_identity": {"current": {}}}',
            ),
        ),
    ],
)
def test_remedy_lines_in_json_keep_comments_and_statements(
    lines: tuple[str, ...], converted: tuple[str, ...] | None
) -> None:
    assert convert_lines_to_json(lines) == (converted or lines)


def test_number_of_thousands_of_digits_in_json_leaves_the_timeout_undecided(
    tmp_path: Path,
) -> None:
    stack = _make_stack()
    path = _write(tmp_path, stack)
    path.write_text(path.read_text().replace("30", "9" * 5_000))
    result = _lint(path)
    assert "visibility_timeout_too_short" not in _list_symptoms(result)
    assert [place.because for place in result.not_judged] == ["it is not a whole number"]

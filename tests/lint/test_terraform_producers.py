"""Producers that Terraform files declare, and whether the queue's policy lets them send."""

from __future__ import annotations

from pathlib import Path

import pytest

from mendq.lint.decode import read_template_source
from mendq.lint.files import list_template_sources
from mendq.lint.judging import LintResult, lint

TOPIC = """\
resource "aws_sns_topic" "paid" { name = "paid" }
resource "aws_sqs_queue" "orders" {
  name = "orders"
  %s
}
resource "aws_sns_topic_subscription" "paid" {
  topic_arn = aws_sns_topic.paid.arn
  protocol  = "%s"
  endpoint  = aws_sqs_queue.orders.arn
}
"""
STATEMENT = (
    '{Effect = "Allow", Principal = {Service = "%s"}, Action = "sqs:SendMessage", '
    "Resource = aws_sqs_queue.orders.arn, %s}"
)
ITS_TOPIC = 'Condition = {ArnEquals = {"aws:SourceArn" = aws_sns_topic.paid.arn}}'
OTHER_TOPIC = 'Condition = {ArnEquals = {"aws:SourceArn" = "arn:aws:sns:eu-west-1:111122223333:x"}}'


def _lint(folder: Path, *texts: str) -> LintResult:
    (folder / "main.tf").write_text("\n".join(texts))
    (source,) = list_template_sources(str(folder))
    return lint(
        read_template_source(source), source.file, source.deploy_target, ["tls_not_enforced"]
    )


def _attach(statement: str) -> str:
    return (
        'resource "aws_sqs_queue_policy" "orders" {\n'
        "  queue_url = aws_sqs_queue.orders.id\n"
        f"  policy = jsonencode({{Statement = [{statement}]}})\n}}\n"
    )


def _make_topic(argument: str = "", protocol: str = "sqs") -> str:
    return TOPIC % (argument, protocol)


@pytest.mark.parametrize(
    "texts",
    [
        (_make_topic(protocol="lambda"),),
        (_make_topic(), _attach(STATEMENT % ("sns.amazonaws.com", ITS_TOPIC))),
        (_make_topic(), _attach(STATEMENT % ("sns.amazonaws.com", ""))),
        (
            _make_topic(
                'policy = jsonencode({Statement = [{Effect = "Allow", Principal = "*", '
                'Action = "sqs:*", Resource = "*"}]})'
            ),
        ),
        (
            _make_topic(),
            (
                'data "aws_iam_policy_document" "send" {\n  statement {\n'
                '    actions = ["sqs:SendMessage"]\n    resources = [aws_sqs_queue.orders.arn]\n'
                '    principals {\n      type = "Service"\n'
                '      identifiers = ["sns.amazonaws.com"]\n'
                "    }\n  }\n}\n"
                'resource "aws_sqs_queue_policy" "orders" {\n'
                "  queue_url = aws_sqs_queue.orders.id\n"
                "  policy = data.aws_iam_policy_document.send.json\n}\n"
            ),
        ),
        (_make_topic(), _attach(STATEMENT % ("sns.amazonaws.com", OTHER_TOPIC))),
        (_make_topic("policy = data.external.policy.result.json"),),
    ],
    ids=[
        "another protocol",
        "its topic",
        "any topic",
        "everybody",
        "a policy document",
        "a topic whose ARN is not known before the apply",
        "a policy that is not known",
    ],
)
def test_lint_of_terraform_reports_no_subscription_that_the_policy_may_admit(
    tmp_path: Path, texts: tuple[str, ...]
) -> None:
    result = _lint(tmp_path, *texts)
    assert [finding for finding in result.findings if finding.symptom == "producer_refused"] == []


@pytest.mark.parametrize(
    "texts",
    [
        (_make_topic(),),
        (_make_topic(), _attach(STATEMENT % ("s3.amazonaws.com", ""))),
    ],
    ids=["no policy", "another service"],
)
def test_lint_of_terraform_reports_a_subscription_that_the_policy_refuses(
    tmp_path: Path, texts: tuple[str, ...]
) -> None:
    result = _lint(tmp_path, *texts)
    (finding,) = [finding for finding in result.findings if finding.symptom == "producer_refused"]
    assert finding.resource == "aws_sqs_queue.orders"
    assert "aws_sns_topic_subscription.paid" in finding.because
    assert "aws_sns_topic.paid.arn" in "\n".join(finding.remedy)

"""Producers and consumers in nested blocks of Terraform plans."""

from __future__ import annotations

from typing import Any

from mendq.lint.decode import read_template
from mendq.lint.judging import LintResult, lint
from mendq.lint.values import DeployTarget
from tests.lint.plans import (
    make_arn,
    make_block,
    make_change,
    make_existing_queue,
    make_new_queue,
    make_plan,
    make_references,
)

QUEUE_ARN = make_references("aws_sqs_queue.orders")


def _lint(*changes: dict[str, Any], blocks: tuple[dict[str, Any], ...] = ()) -> LintResult:
    template = read_template(make_plan(*changes, root={"resources": list(blocks)}))
    return lint(template, "plan.json", DeployTarget(), ["tls_not_enforced", "not_encrypted"])


def _list_symptoms(result: LintResult) -> list[str]:
    return [finding.symptom for finding in result.findings]


def _make_bucket_notification() -> tuple[dict[str, Any], ...]:
    return (
        make_change("aws_s3_bucket.uploads", {"bucket": None}, ("arn", "bucket", "id")),
        {
            **make_change("aws_s3_bucket_notification.uploads", {"queue": [{"id": "a"}]}),
            "change": {
                "actions": ["create"],
                "after": {"queue": [{"events": ["s3:ObjectCreated:*"]}]},
                "after_unknown": {"bucket": True, "queue": [{"queue_arn": True, "id": True}]},
            },
        },
    )


def _make_notification_block() -> dict[str, Any]:
    bucket = make_references("aws_s3_bucket.uploads", "id")
    block = make_block("aws_s3_bucket_notification.uploads", bucket=bucket)
    block["expressions"]["queue"] = [{"queue_arn": {"references": QUEUE_ARN}}]
    return block


def test_lint_of_a_plan_follows_a_queue_in_a_nested_block_of_a_new_bucket() -> None:
    blocks = (make_block("aws_sqs_queue.orders"), _make_notification_block())
    queue = make_new_queue("aws_sqs_queue.orders", name="orders")
    result = _lint(queue, *_make_bucket_notification(), blocks=blocks)
    assert _list_symptoms(result) == ["producer_refused"]
    assert "aws_s3_bucket.uploads.arn" in "\n".join(result.findings[0].remedy)


def test_lint_of_a_plan_leaves_a_producer_open_while_the_queue_policy_is_not_known() -> None:
    policy = make_change("aws_sqs_queue_policy.orders", {}, ("policy", "queue_url"))
    policy_block = make_block(
        "aws_sqs_queue_policy.orders",
        queue_url=make_references("aws_sqs_queue.orders", "id"),
        policy=QUEUE_ARN,
    )
    blocks = (make_block("aws_sqs_queue.orders"), _make_notification_block(), policy_block)
    queue = make_new_queue("aws_sqs_queue.orders", name="orders")
    result = _lint(queue, policy, *_make_bucket_notification(), blocks=blocks)
    assert _list_symptoms(result) == []
    assert any("producer_refused" in place.symptoms for place in result.not_judged)


def _make_schedule(policy_arn: str) -> tuple[dict[str, Any], ...]:
    role_arn = "arn:aws:iam::123456789012:role/jobs/hourly"
    target = {"arn": make_arn("orders"), "role_arn": role_arn, "dead_letter_config": []}
    return (
        make_change("aws_iam_role.hourly", {"name": "hourly", "arn": role_arn}),
        make_change(
            "aws_iam_policy.send",
            {
                "arn": "arn:aws:iam::123456789012:policy/send",
                "policy": f'{{"Statement": {{"Effect": "Allow", "Action": "sqs:SendMessage", '
                f'"Resource": "{make_arn("orders")}"}}}}',
            },
        ),
        make_change(
            "aws_iam_role_policy_attachment.send", {"role": "hourly", "policy_arn": policy_arn}
        ),
        make_change("aws_scheduler_schedule.hourly", {"target": [target]}),
    )


def test_lint_of_a_plan_follows_the_arns_of_existing_roles_and_policies() -> None:
    queue = make_existing_queue("aws_sqs_queue.orders", "orders")
    admitted = _lint(queue, *_make_schedule("arn:aws:iam::123456789012:policy/send"))
    assert (_list_symptoms(admitted), admitted.not_judged) == ([], [])
    basic_policy = "arn:aws:iam::aws:policy/AWSXRayDaemonWriteAccess"
    assert _list_symptoms(_lint(queue, *_make_schedule(basic_policy))) == ["producer_refused"]
    unknown = _lint(queue, *_make_schedule("arn:aws:iam::123456789012:policy/other"))
    assert _list_symptoms(unknown) == []
    assert [place.symptoms for place in unknown.not_judged] == [("producer_refused",)]


def test_lint_of_a_plan_reads_the_filters_of_a_mapping() -> None:
    pattern = '{"body": {"kind": ["a"]}}'
    mapping = {
        "event_source_arn": make_arn("orders"),
        "function_name": "pay",
        "batch_size": 1,
        "filter_criteria": [{"filter": [{"pattern": pattern}]}],
    }
    result = _lint(
        make_existing_queue(
            "aws_sqs_queue.orders",
            "orders",
            redrive_policy=f'{{"deadLetterTargetArn": "{make_arn("dead")}", "maxReceiveCount": 5}}',
        ),
        make_change("aws_lambda_function.pay", {"function_name": "pay", "timeout": 3}),
        make_change("aws_lambda_event_source_mapping.pay", mapping),
    )
    assert _list_symptoms(result) == ["filter_deletes_messages"]

"""The score of `mendq lint` on templates of others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench.outside import __main__ as outside
from bench.outside.__main__ import (
    FAULT_BY_KIND,
    SYMPTOMS_BY_KIND,
    list_page_lines,
    main,
    read_labels,
    score_templates,
)

TEMPLATE = """
Resources:
  OrdersQueue: {Type: AWS::SQS::Queue, Properties: {VisibilityTimeout: 60}}
  Bill: {Type: AWS::Lambda::Function, Properties: {Timeout: 30}}
  BillOrders:
    Type: AWS::Lambda::EventSourceMapping
    Properties: {EventSourceArn: !GetAtt OrdersQueue.Arn, FunctionName: !Ref Bill, BatchSize: 1}
"""


def _label(*kinds: str, **more: Any) -> list[dict[str, Any]]:
    faults = [
        {"line": 3, "resource": "orders_queue", "kind": kind, "why": "numbers", **more}
        for kind in kinds
    ]
    return [{"repository": "me/shop", "path": "queues.yaml", "faults": faults}]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "me+shop").mkdir()
    (tmp_path / "me+shop" / "queues.yaml").write_text(TEMPLATE)
    return tmp_path


def test_score_counts_a_labelled_fault_as_found_only_by_its_own_symptom(checkout: Path) -> None:
    score = score_templates(_label("timeout_below_six", "max_receive_low"), checkout)
    assert score.found_by_kind == {"timeout_below_six": 1}
    assert score.misses == ["me/shop queues.yaml line 3: max_receive_low: numbers"]


def test_finding_of_another_fault_does_not_count_as_a_refusal_of_aws(checkout: Path) -> None:
    score = score_templates(_label("timeout_below_six", "refused_by_aws"), checkout)
    assert score.found_by_kind == {"timeout_below_six": 1}


def test_score_lists_a_warning_without_a_label_and_no_note(checkout: Path) -> None:
    score = score_templates(_label("timeout_below_six"), checkout)
    assert score.unlabelled == ["me/shop queues.yaml line 3: dlq_missing"]


def test_score_counts_debatable_faults_apart(checkout: Path) -> None:
    score = score_templates(_label("no_dlq", debatable=True), checkout)
    assert score.labels_by_kind == {"no_dlq, debatable": 1}


def test_score_names_a_template_that_is_missing_and_counts_its_faults_as_missed(
    tmp_path: Path,
) -> None:
    score = score_templates(_label("no_dlq"), tmp_path)
    assert len(score.unread) == len(score.misses) == 1


def test_score_reads_the_whole_folder_of_a_terraform_label(tmp_path: Path) -> None:
    folder = tmp_path / "me+shop" / "infra"
    folder.mkdir(parents=True)
    (folder / "a.tf").write_text('resource "aws_sqs_queue" "dlq" {}')
    (folder / "b.tf").write_text(
        """resource "aws_sqs_queue" "orders" {
          redrive_policy = jsonencode(
            {deadLetterTargetArn = aws_sqs_queue.dlq.arn, maxReceiveCount = 5}
          )
        }"""
    )
    fault = {"line": 1, "resource": "dlq", "kind": "dlq_retention", "why": "numbers"}
    score = score_templates(
        [{"repository": "me/shop", "path": "infra", "faults": [fault]}], tmp_path
    )
    assert score.found_by_kind == {"dlq_retention": 1}


@pytest.mark.parametrize(
    ("file_name", "template_count", "repository_count"),
    [("templates.yaml", 50, 47), ("templates_second.yaml", 68, 52)],
)
def test_labels_are_of_known_kinds_and_of_many_repositories(
    file_name: str, template_count: int, repository_count: int
) -> None:
    templates = read_labels(file_name)
    assert len(templates) == template_count
    assert len({template["repository"] for template in templates}) == repository_count
    kinds = {fault["kind"] for template in templates for fault in template["faults"]}
    assert kinds <= SYMPTOMS_BY_KIND.keys() & FAULT_BY_KIND.keys()


def test_second_set_labels_no_repository_of_the_first() -> None:
    first_repositories = {label["repository"] for label in read_labels("templates.yaml")}
    second_repositories = {label["repository"] for label in read_labels("templates_second.yaml")}
    assert not first_repositories & second_repositories


def test_score_of_an_empty_checkout_lists_all_templates_and_reports(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--checkout", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "not read: 50" in printed
    assert "not read: 68" in printed
    assert "of 15" in printed.splitlines()[-1]


def test_incomplete_checkout_leaves_the_page_unchanged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = outside.PAGE.read_text()
    assert main(["--checkout", str(tmp_path), "--write"]) == 1
    assert "the checkout does not hold all templates" in capsys.readouterr().err
    assert outside.PAGE.read_text() == text


def test_page_lists_the_score_and_each_miss(checkout: Path) -> None:
    score = score_templates(_label("timeout_below_six", "max_receive_low"), checkout)
    assert list_page_lines({"only set": score}) == [
        "| fault | only set |",
        "|---|---:|",
        "| visibility timeout below six times the function's | 1 of 1 |",
        "| `maxReceiveCount` too low | 0 of 1 |",
        "| **all** | **1 of 2, 0.50 (0.01-0.99)** |",
        "",
        "Only set: 1 of 2 errors and warnings has no label. Each miss, and each of these:",
        "",
        "- me/shop queues.yaml line 3: max_receive_low: numbers",
        "- me/shop queues.yaml line 3: dlq_missing: found, but not labelled",
    ]


def test_write_replaces_only_the_measured_part_of_the_page(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = checkout / "page.md"
    page.write_text(
        "before\n<!-- measured: python -m bench.outside --checkout DIR --write -->\nold\n"
        "<!-- end measured -->\nafter\n"
    )
    monkeypatch.setattr(outside, "PAGE", page)
    outside.write_page({"set": score_templates(_label("no_dlq"), checkout)})
    written = page.read_text()
    assert "old" not in written
    assert written.startswith("before\n<!-- measured")
    assert written.endswith("<!-- end measured -->\nafter\n")
    assert "| no DLQ on a queue with a consumer | 1 of 1 |" in written

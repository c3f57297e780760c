"""The score of `mendq lint` on templates of others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from bench.outside.__main__ import FOLDER, SYMPTOMS_BY_KIND, main, score_templates

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


def test_labels_are_of_50_templates_in_20_repositories_and_of_known_kinds() -> None:
    templates = yaml.safe_load((FOLDER / "templates.yaml").read_text())
    assert len(templates) == 50
    assert len({template["repository"] for template in templates}) >= 20
    kinds = {fault["kind"] for template in templates for fault in template["faults"]}
    assert kinds <= SYMPTOMS_BY_KIND.keys()


def test_score_of_an_empty_checkout_lists_all_templates_and_reports(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--checkout", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "not read: 50" in printed
    assert "of 15" in printed.splitlines()[-1]

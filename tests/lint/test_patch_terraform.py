"""The change that `mendq patch` proposes in Terraform files as people write them."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mendq.lint import hcl, patch
from mendq.lint.patch import (
    ALL_INSTANCES_NOTE,
    PatchResult,
    QueueNotFound,
    SeveralQueuesFit,
    WantedValues,
)
from mendq.lint.template import NotATemplate
from tests.lint.plans import make_arn

QUEUE = 'resource "aws_sqs_queue" "orders" {\n  name = "orders"\n}\n'
TIMEOUT_LINE = "  visibility_timeout_seconds = 690"
REDRIVE = {"deadLetterTargetArn": make_arn("dead"), "maxReceiveCount": 10}


def _patch(path: Path, requested_id: str = "", **values: Any) -> PatchResult:
    wanted = WantedValues(
        make_arn("orders"), values or {"VisibilityTimeout": "690"}, requested_id=requested_id
    )
    return hcl.make_patch(str(path), wanted)


def _apply(patched: PatchResult, folder: Path) -> None:
    given = "\n".join(patched.diff) + "\n"
    subprocess.run(["git", "apply", "-"], cwd=folder, input=given, text=True, check=True)


@pytest.mark.parametrize("text", [QUEUE.rstrip(), QUEUE + "# end", QUEUE + "\n\n\n# end", QUEUE])
def test_git_applies_a_patch_of_a_terraform_file_without_a_final_newline(
    tmp_path: Path, text: str
) -> None:
    path = tmp_path / "a.tf"
    path.write_text(text)
    _apply(_patch(path), tmp_path)
    assert path.read_text() == text.replace("{\n", f"{{\n{TIMEOUT_LINE}\n", 1)


def test_patch_of_a_folder_reads_neither_pipes_nor_links_to_files_outside(tmp_path: Path) -> None:
    (tmp_path / "secret.tf").write_text(QUEUE)
    shop = tmp_path / "shop"
    shop.mkdir()
    (shop / "link.tf").symlink_to(tmp_path / "secret.tf")
    os.mkfifo(shop / "pipe.tf")
    (shop / "a.tf").write_text("")
    with pytest.raises(QueueNotFound):
        _patch(shop)


def test_git_applies_a_patch_of_a_yaml_template_without_a_final_newline(tmp_path: Path) -> None:
    path = tmp_path / "t.yaml"
    text = "Resources:\n  O:\n    Type: AWS::SQS::Queue\n    Properties:\n      QueueName: orders"
    path.write_text(text)
    wanted = WantedValues(make_arn("orders"), {"VisibilityTimeout": "690"})
    _apply(patch.make_patch(str(path), wanted), tmp_path)
    assert path.read_text() == text.replace(
        "      QueueName", "      VisibilityTimeout: 690\n      QueueName"
    )


@pytest.mark.parametrize(
    "requested_id",
    [
        "aws_sqs_queue.orders[0]",
        'aws_sqs_queue.orders["a.b"]',
        "module.shop.aws_sqs_queue.orders",
        'module.shop["x"].module.queue[1].aws_sqs_queue.orders["a"]',
    ],
)
def test_patch_of_an_instance_or_a_queue_in_a_module_changes_the_block_that_declares_it(
    tmp_path: Path, requested_id: str
) -> None:
    path = tmp_path / "a.tf"
    path.write_text(QUEUE.replace("{\n", "{\n  count = 2\n", 1))
    (change,) = _patch(path, requested_id).changes
    assert (change.resource, change.line) == ("aws_sqs_queue.orders", 1)
    assert change.note == ALL_INSTANCES_NOTE
    with pytest.raises(QueueNotFound):
        _patch(path, requested_id.replace("orders", "other"))


INPUT_QUEUE = QUEUE.replace("}", "  visibility_timeout_seconds = var.timeout\n}")


def test_patch_names_the_callers_argument_if_a_module_gets_the_value_from_its_caller(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.tf"
    path.write_text(INPUT_QUEUE)
    patched = _patch(path, 'module.shop["x"].module.queue.aws_sqs_queue.orders')
    assert patched.diff == []
    assert 'set timeout = 690 in the block module "queue"' in patched.changes[0].note


@pytest.mark.parametrize(
    ("value", "requested_id"),
    [
        ("var.timeout", ""),
        ("var.timeout * 6", "module.queue.aws_sqs_queue.orders"),
        ("max(30, var.timeout)", ""),
    ],
)
def test_patch_says_that_each_caller_gets_the_value_in_place_of_a_variable(
    tmp_path: Path, value: str, requested_id: str
) -> None:
    path = tmp_path / "a.tf"
    path.write_text(INPUT_QUEUE.replace("var.timeout", value))
    patched = _patch(path, requested_id)
    assert "this replaces var.timeout" in patched.changes[0].note
    assert f"+{TIMEOUT_LINE}" in patched.diff


@pytest.mark.parametrize("value", ["30", "local.var.timeout", '"my-var.timeout"'])
def test_patch_of_a_value_without_a_variable_has_no_note(tmp_path: Path, value: str) -> None:
    path = tmp_path / "a.tf"
    path.write_text(INPUT_QUEUE.replace("var.timeout", value))
    (change,) = _patch(path, "module.queue.aws_sqs_queue.orders").changes
    assert change.note == ""


def _write(folder: Path, **texts: str) -> None:
    for name, text in texts.items():
        (folder / f"{name}.tf").write_text(text)


def test_patch_of_a_folder_changes_the_file_that_sets_each_value(tmp_path: Path) -> None:
    policy = (
        'resource "aws_sqs_queue_redrive_policy" "x" {\n'
        "  queue_url      = aws_sqs_queue.orders.id\n"
        "  redrive_policy = local.redrive\n}\n"
    )
    _write(tmp_path, queues=QUEUE, policies=policy, unrelated="locals { redrive = null }\n")
    (tmp_path / ".terraform" / "modules").mkdir(parents=True)
    (tmp_path / ".terraform" / "modules" / "copy.tf").write_text(QUEUE)
    patched = _patch(tmp_path, VisibilityTimeout="690", RedrivePolicy=json.dumps(REDRIVE))
    assert [Path(change.file).name for change in patched.changes] == ["queues.tf", "policies.tf"]
    _apply(patched, tmp_path)
    assert TIMEOUT_LINE in (tmp_path / "queues.tf").read_text()
    assert "local.redrive" not in (tmp_path / "policies.tf").read_text()
    assert (tmp_path / ".terraform" / "modules" / "copy.tf").read_text() == QUEUE


@pytest.mark.parametrize(("is_set", "changed"), [(True, "a_override.tf"), (False, "main.tf")])
def test_patch_of_a_folder_changes_the_override_file_only_if_it_sets_the_value(
    tmp_path: Path, is_set: bool, changed: str
) -> None:
    override = 'resource "aws_sqs_queue" "orders" {\n  delay_seconds = 5\n}\n'
    if is_set:
        override = override.replace("delay", "visibility_timeout")
    _write(tmp_path, main=QUEUE, a_override=override)
    (change,) = _patch(tmp_path).changes
    assert Path(change.file).name == changed


def test_patch_of_a_folder_with_two_queues_of_the_name_asks_which(tmp_path: Path) -> None:
    _write(tmp_path, main=QUEUE, other=QUEUE.replace('" "orders"', '" "again"'))
    with pytest.raises(SeveralQueuesFit, match="--resource"):
        _patch(tmp_path)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            'resource "aws_sqs_queue" "q" {\n  name = \n}',
            "a.tf, line 2: no HCL: a name is expected",
        ),
        ('resource "aws_sqs_queue" "q" {\n', "a.tf, line 2: no HCL: } is expected"),
        ("a = 1\na = 2\n", "a.tf, line 2: no HCL: the argument a is set twice"),
    ],
)
def test_patch_of_what_is_no_terraform_names_the_line_in_one_sentence(
    tmp_path: Path, text: str, says: str
) -> None:
    path = tmp_path / "a.tf"
    path.write_text(text)
    with pytest.raises(NotATemplate) as refused:
        _patch(path)
    assert str(refused.value).endswith(says)


def test_patch_of_a_folder_whose_queues_are_elsewhere_says_what_to_name(tmp_path: Path) -> None:
    (tmp_path / "main.tf").write_text('module "shop" {\n  source = "./shop"\n}\n')
    (tmp_path / "cdk.tf.json").write_text('{"resource": {"aws_sqs_queue": {"orders": {}}}}')
    with pytest.raises(QueueNotFound, match=r"name the module's folder .* no .tf.json file"):
        _patch(tmp_path, "module.shop.aws_sqs_queue.orders")

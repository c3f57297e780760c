"""Modules of Terraform files, and what goes over the instances of a resource or a module."""

from __future__ import annotations

from pathlib import Path

import pytest

from mendq.lint.decode import read_template_source
from mendq.lint.files import list_template_sources
from mendq.lint.ignores import list_comment_ignores
from mendq.lint.judging import LintResult, lint
from mendq.lint.template import NotATemplate

FUNCTION = """\
resource "aws_lambda_function" "pay" {
  function_name = "pay"
  timeout       = 60
}
"""
MAPPING = """\
resource "aws_lambda_event_source_mapping" "pay" {
  %s
  event_source_arn = %s
  function_name    = aws_lambda_function.pay.arn
  batch_size       = 1
}
"""
QUEUE_MODULE = """\
variable "name" {}
variable "reader" { default = "" }
%sresource "aws_sqs_queue" "queue" { name = var.name }
output "arn" { value = aws_sqs_queue.queue.arn }
output "name" { value = var.name }
"""
CALL = 'module "%s" {\n  source = "%s"\n  name   = %s\n  %s\n}\n'


def _write(folder: Path, **text_by_folder: str) -> None:
    """Write a `main.tf` into each folder. The name has `__` in place of `/`."""
    for name, text in text_by_folder.items():
        subfolder = folder / name.replace("__", "/")
        subfolder.mkdir(parents=True, exist_ok=True)
        (subfolder / "main.tf").write_text(text)


def _lint(path: Path) -> LintResult:
    (source,) = list_template_sources(str(path))
    template = read_template_source(source)
    comments = list_comment_ignores(template, source.content, source.folder)
    return lint(template, source.file, source.deploy_target, ["tls_not_enforced"], comments)


def _list_short_timeouts(result: LintResult) -> list[str]:
    symptom = "visibility_timeout_too_short"
    return [finding.resource for finding in result.findings if finding.symptom == symptom]


@pytest.mark.parametrize(
    ("repetition", "arn"),
    [
        ("for_each = aws_sqs_queue.work", "each.value.arn"),
        ("for_each = { for key, queue in aws_sqs_queue.work : key => queue }", "each.value.arn"),
        ("count = 2", "values(aws_sqs_queue.work)[count.index].arn"),
        ("for_each = toset(keys(aws_sqs_queue.work))", "aws_sqs_queue.work[each.key].arn"),
        ("count = 2", "[for queue in aws_sqs_queue.work : queue.arn][count.index]"),
    ],
)
def test_lint_of_terraform_follows_a_loop_over_the_instances_of_a_queue(
    tmp_path: Path, repetition: str, arn: str
) -> None:
    queues = (
        'resource "aws_sqs_queue" "work" {\n  for_each = {a = 1, b = 2}\n  name = each.key\n}\n'
    )
    _write(tmp_path, infra=queues + FUNCTION + MAPPING % (repetition, arn))
    assert _list_short_timeouts(_lint(tmp_path / "infra")) == [
        'aws_sqs_queue.work["a"]',
        'aws_sqs_queue.work["b"]',
    ]


def test_lint_of_terraform_follows_a_loop_over_numbered_instances(tmp_path: Path) -> None:
    queues = 'resource "aws_sqs_queue" "work" {\n  count = 2\n}\n'
    mapping = MAPPING % (
        "count = 2",
        "[for queue in aws_sqs_queue.work : queue.arn][count.index]",
    )
    _write(tmp_path, infra=queues + FUNCTION + mapping)
    expected_queues = ["aws_sqs_queue.work[0]", "aws_sqs_queue.work[1]"]
    assert _list_short_timeouts(_lint(tmp_path / "infra")) == expected_queues


def test_lint_of_terraform_judges_one_queue_of_an_unknown_loop_with_its_consumer(
    tmp_path: Path,
) -> None:
    queues = (
        'variable "names" {}\n'
        'resource "aws_sqs_queue" "work" {\n  for_each = var.names\n  name = each.key\n}\n'
    )
    mapping = MAPPING % ("for_each = aws_sqs_queue.work", "each.value.arn")
    _write(tmp_path, infra=queues + FUNCTION + mapping)
    assert _list_short_timeouts(_lint(tmp_path / "infra")) == ["aws_sqs_queue.work"]


@pytest.mark.parametrize("text", ["toset([aws_sqs_queue.other.name_prefix])", "module.queue"])
def test_lint_of_terraform_leaves_a_loop_open_that_is_not_known(tmp_path: Path, text: str) -> None:
    mapping = MAPPING % (f"for_each = {text}", "each.value.arn")
    other = 'resource "aws_sqs_queue" "other" {}\n' + CALL % ("queue", "./queue", '"a"', "")
    _write(tmp_path, infra=other + FUNCTION + mapping, infra__queue=QUEUE_MODULE % "")
    result = _lint(tmp_path / "infra")
    assert _list_short_timeouts(result) == []
    assert "aws_lambda_event_source_mapping.pay" in [place.path for place in result.not_judged]


def test_lint_of_terraform_follows_a_loop_over_the_instances_of_a_module(tmp_path: Path) -> None:
    call = CALL % ("queue", "./queue", "each.key", 'for_each = toset(["a", "b"])')
    mapping = MAPPING % ("for_each = module.queue", "each.value.arn")
    _write(tmp_path, infra=call + FUNCTION + mapping, infra__queue=QUEUE_MODULE % "")
    assert _list_short_timeouts(_lint(tmp_path / "infra")) == [
        'module.queue["a"].aws_sqs_queue.queue',
        'module.queue["b"].aws_sqs_queue.queue',
    ]


def test_lint_of_terraform_passes_a_module_its_own_output(tmp_path: Path) -> None:
    call = CALL % ("queue", "./queue", '"jobs"', "reader = module.queue.arn")
    module = QUEUE_MODULE % (FUNCTION + MAPPING % ("", "var.reader"))
    _write(tmp_path, infra=call, infra__queue=module)
    result = _lint(tmp_path / "infra")
    assert _list_short_timeouts(result) == ["module.queue.aws_sqs_queue.queue"]
    assert result.not_judged == []


def test_lint_of_terraform_leaves_a_value_open_that_depends_on_itself(tmp_path: Path) -> None:
    module = (QUEUE_MODULE % "").replace(
        "{ name = var.name }", "{ visibility_timeout_seconds = var.name }"
    )
    call = CALL % ("queue", "./queue", "module.queue.name", "")
    mapping = MAPPING % ("", "module.queue.arn")
    _write(tmp_path, infra=call + FUNCTION + mapping, infra__queue=module)
    result = _lint(tmp_path / "infra")
    assert _list_short_timeouts(result) == []
    assert any("refers to itself" in place.because for place in result.not_judged)


def _write_stage_and_module(folder: Path, source: str = "../modules/queue") -> None:
    stage = CALL % ("queue", source, '"jobs"', "") + FUNCTION + MAPPING % ("", "module.queue.arn")
    _write(folder, live__modules__queue=QUEUE_MODULE % "")
    _write(folder, live__prod=stage)


def test_lint_of_terraform_reads_a_module_beside_the_folder_in_the_same_work_tree(
    tmp_path: Path,
) -> None:
    _write_stage_and_module(tmp_path)
    stage_folder = tmp_path / "live" / "prod"
    outside = _lint(stage_folder)
    assert outside.queues == 0
    assert "outside of the folder that was named" in outside.not_judged[0].because
    (tmp_path / ".git").mkdir()
    (finding,) = [
        finding
        for finding in _lint(stage_folder).findings
        if finding.symptom == "visibility_timeout_too_short"
    ]
    assert (finding.file, finding.line) == ("modules/queue/main.tf", 3)


def test_lint_of_terraform_reads_no_module_above_the_work_tree(tmp_path: Path) -> None:
    _write_stage_and_module(tmp_path)
    (tmp_path / "live" / "prod" / ".git").mkdir()
    result = _lint(tmp_path / "live" / "prod")
    assert result.queues == 0
    assert "outside of the git work tree" in result.not_judged[0].because


def test_lint_of_terraform_reads_modules_anywhere_below_a_folder_that_the_user_names(
    tmp_path: Path,
) -> None:
    _write_stage_and_module(tmp_path)
    (tmp_path / "live" / ".terraform").mkdir()
    (tmp_path / "live" / ".terraform" / "copy.tf").write_text(QUEUE_MODULE % "")
    result = _lint(tmp_path / "live")
    assert result.file == str(tmp_path / "live" / "prod")
    assert _list_short_timeouts(result) == ["module.queue.aws_sqs_queue.queue"]


def test_lint_refuses_a_folder_with_too_many_terraform_folders(tmp_path: Path) -> None:
    for number in range(201):
        (tmp_path / f"stage{number}").mkdir()
        (tmp_path / f"stage{number}" / "main.tf").write_text("")
    with pytest.raises(NotATemplate, match="more than 200 folders"):
        list(list_template_sources(str(tmp_path)))


def test_comment_in_a_module_file_ignores_the_finding_in_each_instance(tmp_path: Path) -> None:
    comment = "# mendq: ignore visibility_timeout_too_short: it is idempotent\n"
    calls = CALL % ("a", "./queue", '"a"', "") + CALL % ("b", "./queue", '"b"', "")
    module = QUEUE_MODULE % (FUNCTION + MAPPING % ("", "aws_sqs_queue.queue.arn") + comment)
    _write(tmp_path, infra=calls, infra__queue=module)
    result = _lint(tmp_path / "infra")
    assert _list_short_timeouts(result) == []
    ignored_queues = [finding.resource for finding in result.ignored if finding.ignore_reason]
    assert ignored_queues == [
        "module.a.aws_sqs_queue.queue",
        "module.b.aws_sqs_queue.queue",
    ]
    assert list(result.stale_ignores) == []

"""Limits for Terraform files that anyone may have written: work, nesting, and the folder itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from mendq.lint.judging import LintResult, lint
from mendq.lint.template import NotATemplate, WorkBudget
from mendq.lint.terraform_source import read_terraform_folder
from mendq.lint.values import DeployTarget

QUEUE = 'resource "aws_sqs_queue" "orders" {\n  visibility_timeout_seconds = %s\n}\n'
FUNCTION = 'resource "aws_lambda_function" "bill" {\n  timeout = 60\n}\n'
MAPPING = """\
resource "aws_lambda_event_source_mapping" "bill" {
  event_source_arn = aws_sqs_queue.orders.arn
  function_name    = aws_lambda_function.bill.arn
}
"""


def _lint(folder: Path, text: str, budget: WorkBudget | None = None) -> LintResult:
    """Write a text as the folder's only file, and lint it."""
    (folder / "main.tf").write_text(text)
    template = read_terraform_folder(folder, budget or WorkBudget())
    return lint(template, str(folder), DeployTarget())


def _list_open_reasons(result: LintResult) -> list[str]:
    return [place.because for place in result.not_judged]


def test_variable_file_that_links_outside_the_folder_is_not_read(tmp_path: Path) -> None:
    shop = tmp_path / "shop"
    shop.mkdir()
    (tmp_path / "secret").write_text("seconds = 10\n")
    (shop / "terraform.tfvars").symlink_to(tmp_path / "secret")
    variable = 'variable "seconds" {\n  default = 360\n}\n'
    result = _lint(shop, variable + QUEUE % "var.seconds" + FUNCTION + MAPPING)
    assert "visibility_timeout_too_short" not in {finding.symptom for finding in result.findings}
    assert _list_open_reasons(result) == []


def test_folder_of_more_than_400_files_is_refused(tmp_path: Path) -> None:
    for number in range(400):
        (tmp_path / f"f{number}.tf").touch()
    with pytest.raises(NotATemplate, match="more than 400 files"):
        _lint(tmp_path, "")


def test_reading_a_file_costs_a_step_for_each_byte(tmp_path: Path) -> None:
    comment = "#" * 1_000
    assert _lint(tmp_path, comment, WorkBudget(2_000)).queues == 0
    with pytest.raises(NotATemplate, match="more than 900 steps"):
        _lint(tmp_path, comment, WorkBudget(900))


def test_whole_number_of_thousands_of_digits_is_left_undecided(tmp_path: Path) -> None:
    result = _lint(tmp_path, QUEUE % ("9" * 5_000) + FUNCTION + MAPPING)
    assert _list_open_reasons(result) == ["it is not a whole number"]


def test_count_of_thousands_of_digits_is_refused(tmp_path: Path) -> None:
    queue = f'resource "aws_sqs_queue" "orders" {{\n  count = "{"9" * 5_000}"\n}}\n'
    with pytest.raises(NotATemplate, match="more than 2,000 queues"):
        _lint(tmp_path, queue)


def test_escape_of_no_unicode_character_does_not_end_lint(tmp_path: Path) -> None:
    queue = QUEUE % "30" + 'variable "mark" {\n  default = "\\UFFFFFFFF"\n}\n'
    assert _lint(tmp_path, queue).queues == 1


@pytest.mark.parametrize(("brackets", "is_refused"), [(38, False), (39, True)])
def test_expression_is_refused_from_41_levels_of_file_and_brackets_on(
    tmp_path: Path, brackets: int, *, is_refused: bool
) -> None:
    """The file and the argument are the first two levels."""
    text = f"locals {{}}\na = {'(' * brackets}1{')' * brackets}\n"
    if is_refused:
        with pytest.raises(NotATemplate, match="nested more than 40 deep"):
            _lint(tmp_path, text)
    else:
        assert _lint(tmp_path, text).queues == 0


@pytest.mark.parametrize(
    "text", ["%{ for name in [1] }x%{ endfor }", "%{ if true }x%{ else }y%{ endif }"]
)
def test_text_with_a_directive_is_read(tmp_path: Path, text: str) -> None:
    result = _lint(tmp_path, QUEUE % "30" + f'variable "text" {{\n  default = "{text}"\n}}\n')
    assert result.queues == 1


def test_value_of_locals_inside_each_other_is_refused_beyond_80_levels(tmp_path: Path) -> None:
    level = "[" * 30 + "%s" + "]" * 30
    values = [level % "1", level % "local.a0", level % "local.a1"]
    text = "".join(f"  a{number} = {value}\n" for number, value in enumerate(values))
    with pytest.raises(NotATemplate, match="nested more than 80 deep"):
        _lint(tmp_path, f"locals {{\n{text}}}\n" + QUEUE % "local.a2")


def test_modules_that_call_two_of_themselves_are_refused(tmp_path: Path) -> None:
    """Eight levels of two calls each would be 510 modules."""
    calls = "".join(f'module "m{number}" {{\n  source = "./."\n}}\n' for number in range(2))
    with pytest.raises(NotATemplate, match="more than 200 instances of modules"):
        _lint(tmp_path, calls)


def test_modules_that_repeat_many_queues_are_refused(tmp_path: Path) -> None:
    (tmp_path / "queues").mkdir()
    queue = 'resource "aws_sqs_queue" "orders" {\n  count = 2000\n}\n'
    (tmp_path / "queues" / "main.tf").write_text(queue)
    with pytest.raises(NotATemplate, match="more than 2,000 queues"):
        _lint(tmp_path, 'module "m" {\n  count  = 3\n  source = "./queues"\n}\n')


def test_local_whose_value_is_itself_is_left_undecided(tmp_path: Path) -> None:
    local = "locals {\n  a = local.b\n  b = local.a\n}\n"
    result = _lint(tmp_path, local + QUEUE % "local.a" + FUNCTION + MAPPING)
    assert _list_open_reasons(result) == ["local.a refers to itself"]


def _lint_module_with_its_own_output(folder: Path, argument: str) -> LintResult:
    (folder / "own").mkdir()
    module = 'variable "seconds" { default = 1 }\noutput "seconds" {\n  value = var.seconds\n}\n'
    (folder / "own" / "main.tf").write_text(module)
    call = f'module "own" {{\n  source = "./own"\n  {argument} = module.own.seconds\n}}\n'
    return _lint(folder, call + QUEUE % "module.own.seconds" + FUNCTION + MAPPING)


def test_module_whose_argument_is_its_own_output_is_left_undecided(tmp_path: Path) -> None:
    result = _lint_module_with_its_own_output(tmp_path, "seconds")
    (reason,) = _list_open_reasons(result)
    assert reason.endswith(" refers to itself")


def test_module_whose_count_is_its_own_output_is_read_once(tmp_path: Path) -> None:
    result = _lint_module_with_its_own_output(tmp_path, "count")
    assert "visibility_timeout_too_short" in {finding.symptom for finding in result.findings}


@pytest.mark.parametrize(
    "local",
    [
        'a0 = "xxxxxxxxxx"\n'
        + "\n".join(f'a{n + 1} = "${{local.a{n}}}${{local.a{n}}}"' for n in range(60)),
        "a0 = [1]\n" + "\n".join(f"a{n + 1} = [local.a{n}, local.a{n}]" for n in range(60)),
        "a0 = [1]\n" + "\n".join(f"a{n + 1} = concat(local.a{n}, local.a{n})" for n in range(60)),
        "a0 = 1\n"
        + "\n".join(f"a{n + 1} = {{ x = local.a{n}, y = local.a{n} }}" for n in range(60)),
        'a60 = replace(join("", [for i in range(2000) : "aaaaaaaaaa"]), "a", "'
        + "b" * 9_000
        + '")',
        "a60 = flatten([for i in range(2000) : [for j in range(2000) : range(2000)]])",
        "a0 = 1\n" + "\n".join(f"a{n + 1} = local.a{n}" for n in range(3_000)),
    ],
    ids=range(7),
)
def test_lint_ends_within_its_budget_on_locals_that_multiply_or_form_a_long_chain(
    tmp_path: Path, local: str
) -> None:
    queue = QUEUE % "length(jsonencode(local.a60))\n  name = jsonencode(local.a60)"
    try:
        result = _lint(tmp_path, f"locals {{\n{local}\n}}\n{queue}", WorkBudget(500_000))
    except NotATemplate as refused:
        assert len(str(refused).splitlines()) == 1  # noqa: PT017 - either way is right
    else:
        assert result.queues == 1

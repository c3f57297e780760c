"""Which references in Terraform's files are worked out, and what lint says about the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from mendq.lint.judging import LintResult, lint
from mendq.lint.template import NotATemplate, WorkBudget
from mendq.lint.terraform_source import read_terraform_folder
from mendq.lint.values import DeployTarget

# With a function of 60 seconds, a timeout of 360 seconds or more has no finding.
FUNCTION = """\
resource "aws_lambda_function" "bill" {
  timeout = 60
}
resource "aws_lambda_event_source_mapping" "bill" {
  event_source_arn = aws_sqs_queue.orders.arn
  function_name    = aws_lambda_function.bill.arn
  batch_size       = 1
}
"""
QUEUES = """\
resource "aws_sqs_queue" "orders" {
  visibility_timeout_seconds = %s
  redrive_policy = jsonencode({
    deadLetterTargetArn = aws_sqs_queue.dead.arn
    maxReceiveCount     = 5
  })
}
resource "aws_sqs_queue" "dead" {
  name                      = "orders-dead"
  message_retention_seconds = 1209600
}
"""
TYPED_VARIABLE = """\
variable "typed" {
  type    = %s
  default = %s
}
"""


def _lint(folder: Path, text: str, **files: str) -> LintResult:
    """Write a text as `main.tf`, and `files` as `NAME.tf`, and lint the folder."""
    for name, content in {"main": text, **files}.items():
        (folder / f"{name}.tf").write_text(content)
    template = read_terraform_folder(folder, WorkBudget())
    target = DeployTarget(account="111122223333", region="eu-west-1")
    return lint(template, str(folder), target, ["tls_not_enforced"])


def _list_problems(result: LintResult) -> list[str]:
    """Return the symptoms that were found, and the reasons of places that were not judged."""
    symptoms = [finding.symptom for finding in result.findings]
    return [*symptoms, *(place.because for place in result.not_judged)]


@pytest.mark.parametrize(
    ("timeout", "reason"),
    [
        ("each.key", "each is not known here"),
        ("count.index", "count is not known here"),
        ("path.module", "path: known when it is deployed"),
        ("terraform.workspace", "terraform: known when it is deployed"),
        ("module.gone.seconds", "module.gone is not declared"),
        ("aws_sqs_queue.gone.visibility_timeout_seconds", "aws_sqs_queue.gone is not declared"),
        ("aws_lambda_function.bill[0].timeout", "a resource without count has no index"),
        ("aws_lambda_function.bill", "it is a resource as a whole"),
        ("aws_lambda_function.many[var.index].timeout", "var.index has no default"),
        ("aws_lambda_function.many[2].timeout", "there is no instance 2"),
        ("module.many[var.index].seconds", "var.index has no default"),
        ("module.many[2].seconds", "there is no module instance 2"),
        ("data.aws_region.current.other", "data.aws_region.current is read when it is deployed"),
    ],
)
def test_reference_that_the_files_do_not_answer_is_listed_with_the_reason(
    tmp_path: Path, timeout: str, reason: str
) -> None:
    declarations = """\
variable "index" {}
module "many" {
  count  = 2
  source = "./many"
}
resource "aws_lambda_function" "many" { count = 2 }
"""
    (tmp_path / "many").mkdir()
    (tmp_path / "many" / "main.tf").write_text('output "seconds" { value = 400 }\n')
    result = _lint(tmp_path, declarations + QUEUES % timeout + FUNCTION)
    assert _list_problems(result) == [reason]


@pytest.mark.parametrize(
    ("type_text", "default", "timeout"),
    [
        ("map(object({ seconds = optional(number, 400) }))", "{ a = {} }", "var.typed.a.seconds"),
        ("set(object({ seconds = optional(number, 400) }))", "[{}]", "var.typed[0].seconds"),
        (
            "object({ other = number, seconds = optional(number, 400) })",
            "{ other = 1 }",
            "var.typed.seconds",
        ),
        (
            "object({ inner = optional(object({ seconds = optional(number, 400) }), {}) })",
            "{}",
            "var.typed.inner.seconds",
        ),
        ("object({ seconds = optional(number, 12) })", "{ seconds = 400 }", "var.typed.seconds"),
        ("tuple([number])", "[400]", "var.typed[0]"),
    ],
)
def test_optional_part_of_a_variable_has_the_default_of_its_type(
    tmp_path: Path, type_text: str, default: str, timeout: str
) -> None:
    variable = TYPED_VARIABLE % (type_text, default)
    assert _list_problems(_lint(tmp_path, variable + QUEUES % timeout + FUNCTION)) == []
    short = variable.replace("400", "12")
    result = _lint(tmp_path, short + QUEUES % timeout + FUNCTION)
    assert _list_problems(result) == ["visibility_timeout_too_short"]


def test_same_resource_counts_once_in_a_set(tmp_path: Path) -> None:
    resource = "aws_lambda_function.bill"
    timeout = f"length(toset([{resource}, {resource}])) == 1 ? 400 : 12"
    assert _list_problems(_lint(tmp_path, QUEUES % timeout + FUNCTION)) == []


@pytest.mark.parametrize(
    ("region", "problem"),
    [
        ("data.aws_region.here.name", []),
        ("data.aws_region.here.id", []),
        ("data.aws_region.here.endpoint", ["data.aws_region.here is read when it is deployed"]),
    ],
)
def test_region_and_account_of_the_deployment_make_the_arn_of_a_declared_dlq(
    tmp_path: Path, region: str, problem: list[str]
) -> None:
    account = "data.aws_caller_identity.here.account_id"
    arn = f'"arn:aws:sqs:${{{region}}}:${{{account}}}:orders-dead"'
    queues = (QUEUES % 400).replace("aws_sqs_queue.dead.arn", arn)
    assert _list_problems(_lint(tmp_path, queues + FUNCTION)) == problem


def test_block_of_an_override_file_that_overrides_none_is_read(tmp_path: Path) -> None:
    result = _lint(tmp_path, "locals { seconds = 400 }\n", override=QUEUES % "local.seconds")
    assert (result.queues, _list_problems(result)) == (2, [])


def test_resource_without_a_name_is_left_out(tmp_path: Path) -> None:
    result = _lint(tmp_path, 'resource "aws_sqs_queue" {}\n' + QUEUES % 400)
    assert result.queues == 2


def test_folder_without_terraform_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotATemplate, match=r"holds no \.tf file"):
        read_terraform_folder(tmp_path, WorkBudget())


POLICY = """\
data "aws_iam_policy_document" "orders" {
  count = 1
  statement {
    actions   = ["sqs:SendMessage"]
    resources = [aws_sqs_queue.orders.arn]
    principals {
      type        = %s
      identifiers = ["*"]
    }
    condition {
      test     = %s
      variable = "aws:SourceArn"
      values   = ["arn:aws:sns:eu-west-1:111122223333:paid"]
    }
    %s
  }
}
variable "later" {}
resource "aws_sqs_queue_policy" "orders" {
  queue_url = aws_sqs_queue.orders.id
  policy    = %s
}
"""
JSON_OF_POLICY = "data.aws_iam_policy_document.orders[0].json"
DYNAMIC = "comes from a dynamic block that lint cannot work out: lint a plan"
UNKNOWN_BLOCKS = 'dynamic "%s" {\n for_each = var.later\n content {}\n }'


@pytest.mark.parametrize(
    "json_of_policy",
    [
        JSON_OF_POLICY,
        "data.aws_iam_policy_document.orders[var.later].json",
        "one(data.aws_iam_policy_document.orders[*].minified_json)",
    ],
)
def test_policy_of_a_repeated_document_is_read(tmp_path: Path, json_of_policy: str) -> None:
    policy = POLICY % ('"*"', '"StringLike"', "", json_of_policy)
    assert _list_problems(_lint(tmp_path, policy + QUEUES % 400)) == []
    public = policy.replace('"aws:SourceArn"', '"aws:UserAgent"')
    assert _list_problems(_lint(tmp_path, public + QUEUES % 400)) == ["policy_is_public"]


@pytest.mark.parametrize(
    ("principal_type", "test", "more", "reason"),
    [
        ("var.later", '"StringLike"', "", "a principal is not known"),
        ('"*"', "var.later", "", "a condition of a statement is not known"),
        ('"*"', '"StringLike"', UNKNOWN_BLOCKS % "principals", f"principals {DYNAMIC}"),
        ('"*"', '"StringLike"', UNKNOWN_BLOCKS % "condition", f"condition {DYNAMIC}"),
        (
            '"*"',
            '"StringLike"',
            'dynamic "condition" {\n content {}\n }',
            f"condition {DYNAMIC}",
        ),
    ],
)
def test_policy_with_an_unknown_part_of_a_statement_is_left_undecided(
    tmp_path: Path, principal_type: str, test: str, more: str, reason: str
) -> None:
    policy = POLICY % (principal_type, test, more, JSON_OF_POLICY)
    assert _list_problems(_lint(tmp_path, policy + QUEUES % 400)) == [reason]

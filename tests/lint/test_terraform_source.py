"""The findings of `mendq lint` in the Terraform files of a folder."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mendq.cli.app import app
from mendq.lint.decode import read_template_source
from mendq.lint.files import list_template_sources
from mendq.lint.judging import LintResult, lint
from mendq.lint.template import NotATemplate

# A queue without a DLQ whose timeout is below the function's, and the mapping that reads it.
QUEUE = """\
resource "aws_sqs_queue" "orders" {
  name                       = "orders"
  visibility_timeout_seconds = 10
}
"""
QUEUE_OF_LOCAL = QUEUE.replace("= 10", "= local.a")
FUNCTION = """\
resource "aws_lambda_function" "bill" {
  function_name = "bill"
  timeout       = 60
}
"""
MAPPING = """\
resource "aws_lambda_event_source_mapping" "bill" {
  event_source_arn = aws_sqs_queue.orders.arn
  function_name    = aws_lambda_function.bill.arn
  batch_size       = 1
}
"""
SOUND_QUEUE = """\
resource "aws_sqs_queue" "orders" {
  visibility_timeout_seconds = 360
  redrive_policy = jsonencode({
    deadLetterTargetArn = aws_sqs_queue.dead.arn
    maxReceiveCount     = 5
  })
}
resource "aws_sqs_queue" "dead" {
  message_retention_seconds = 1209600
}
"""


def _lint(path: Path, *texts: str, **named_texts: str) -> LintResult:
    """Write the texts as one file, and `named_texts` as `NAME.tf`, and lint the folder."""
    path.mkdir(exist_ok=True)
    if texts:
        (path / "main.tf").write_text("\n".join(texts))
    for name, text in named_texts.items():
        (path / f"{name}.tf").write_text(text)
    return _lint_path(path)


def _lint_path(path: Path) -> LintResult:
    (source,) = list_template_sources(str(path))
    return lint(
        read_template_source(source),
        source.file,
        source.deploy_target,
        ["tls_not_enforced"],
    )


def _list_symptoms(result: LintResult) -> list[str]:
    return sorted(finding.symptom for finding in result.findings)


FAULTY_SYMPTOMS = ["dlq_missing", "visibility_timeout_too_short"]


def test_sound_terraform_files_have_no_finding_and_nothing_undecided(tmp_path: Path) -> None:
    result = _lint(tmp_path, SOUND_QUEUE, FUNCTION, MAPPING)
    assert (result.findings, result.not_judged, result.queues) == ([], [], 2)


def test_faults_in_terraform_files_name_file_and_line_of_the_argument_or_the_block(
    tmp_path: Path,
) -> None:
    result = _lint(tmp_path, "# the queue", QUEUE, lambda_function=FUNCTION + MAPPING)
    places = {finding.symptom: finding for finding in result.findings}
    assert sorted(places) == FAULTY_SYMPTOMS
    timeout, dlq = places["visibility_timeout_too_short"], places["dlq_missing"]
    assert (timeout.file, timeout.line) == (f"{tmp_path.name}/main.tf", 4)
    assert timeout.path == "aws_sqs_queue.orders.visibility_timeout_seconds"
    assert timeout.remedy == ("visibility_timeout_seconds = 360",)
    assert (dlq.file, dlq.line, dlq.path) == (f"{tmp_path.name}/main.tf", 2, "aws_sqs_queue.orders")
    assert result.not_judged == []


# Ways to write the redrive policy of a sound queue. Each is the text of the argument.
SOUND_POLICIES = [
    "jsonencode({ deadLetterTargetArn : aws_sqs_queue.dead.arn, maxReceiveCount : 5 })",
    'jsonencode({ "deadLetterTargetArn" = "${aws_sqs_queue.dead.arn}", maxReceiveCount = "5" })',
    r'"{\"deadLetterTargetArn\":\"${aws_sqs_queue.dead.arn}\",\"maxReceiveCount\":5}"',
    '<<EOF\n{"deadLetterTargetArn": "${aws_sqs_queue.dead.arn}", "maxReceiveCount": ${var.n}}\nEOF',
    '<<-EOF\n  {"deadLetterTargetArn":\n "${local.arn}", "maxReceiveCount": ${2 + 3}}\n  EOF',
    "var.is_on ? jsonencode({deadLetterTargetArn = local.arn, maxReceiveCount = 5}) : null",
    "local.redrive_policy",
    "jsonencode(merge({ maxReceiveCount = 5 }, local.target))",
    "jsonencode({ deadLetterTargetArn = one(aws_sqs_queue.dead[*].arn), maxReceiveCount = 5 })",
    "jsonencode({ deadLetterTargetArn = try([][0], local.arn), maxReceiveCount = max(5, 3) })",
    "jsonencode(jsondecode(local.redrive_policy))",
    'format("{\\"deadLetterTargetArn\\":\\"%s\\",\\"maxReceiveCount\\":%d}", local.arn, 5)',
]
VALUES = """\
variable "n" { default = 5 }
variable "is_on" {
  type    = bool
  default = true
}
locals {
  count  = length(["a", "b", "c", "d", "e"])
  arn    = aws_sqs_queue.dead.arn
  target = { for key in ["deadLetterTargetArn"] : key => local.arn }
  redrive_policy = jsonencode({ deadLetterTargetArn = local.arn, maxReceiveCount = local.count })
}
resource "aws_sqs_queue" "dead" { message_retention_seconds = 14 * 24 * 60 * 60 }
"""


@pytest.mark.parametrize("policy", SOUND_POLICIES, ids=range(len(SOUND_POLICIES)))
def test_number_in_a_redrive_policy_is_judged_however_the_policy_is_written(
    tmp_path: Path, policy: str
) -> None:
    queue = f"""\
resource "aws_sqs_queue" "orders" {{
  visibility_timeout_seconds = 360
  redrive_policy = {policy}
}}
"""
    result = _lint(tmp_path, VALUES, queue, FUNCTION, MAPPING)
    assert (_list_symptoms(result), list(result.not_judged)) == ([], [])
    # The same policy with a lower number, whichever way the number is written.
    few_values = VALUES.replace('"c", "d", "e"', "").replace("default = 5", "default = 2")
    few_policy = policy.replace("5, 3", "2, 1").replace("2 + 3", "1 + 1").replace("5", "2")
    result = _lint(tmp_path, few_values, queue.replace(policy, few_policy), FUNCTION, MAPPING)
    assert (_list_symptoms(result), list(result.not_judged)) == (["max_receive_count_too_low"], [])


@pytest.mark.parametrize(
    ("timeout", "reason"),
    [
        ("var.seconds", "var.seconds has no default"),
        ("local.gone", "local.gone is not declared"),
        ("local.loop", "local.loop refers to itself"),
        ("data.aws_ssm_parameter.x.value", "is read when it is deployed"),
        ("module.elsewhere.seconds", "its module is not in this folder"),
        ("file_seconds(1)", "the function file_seconds"),
        ("aws_lambda_function.bill.last_modified", "known after the apply"),
        ('var.seconds == "" ? 60 : 600', "a condition decides it"),
        ("var.secret", "is a secret"),
        ('"%{ if true }60%{ endif }"', "a template directive"),
        ("{}.seconds", "a value has no attribute, key or index seconds"),
    ],
)
def test_value_that_the_files_do_not_determine_is_listed_as_not_judged_with_its_line(
    tmp_path: Path, timeout: str, reason: str
) -> None:
    declarations = """\
variable "seconds" {}
variable "secret" {
  sensitive = true
  default   = 60
}
module "elsewhere" { source = "git::https://example.com/x" }
locals { loop = local.loop }
"""
    queue = QUEUE.replace("= 10", f"= {timeout}")
    result = _lint(tmp_path, declarations, queue, FUNCTION, MAPPING)
    assert _list_symptoms(result) == ["dlq_missing"]
    (place,) = [place for place in result.not_judged if "aws_sqs_queue" in place.path]
    assert reason in place.because
    assert place.line == 11
    assert place.file == f"{tmp_path.name}/main.tf"
    assert place.symptoms == ("visibility_timeout_too_short",)


@pytest.mark.parametrize(
    ("timeout", "is_short"),
    [
        ("360", False),
        ('"360"', False),
        ("6 * var.timeout", False),
        ("var.timeout", True),
        ("local.by_name.orders", False),
        ('lookup(local.by_name, "gone", 9)', True),
        ('local.by_name["short"]', True),
        ("aws_lambda_function.bill.timeout * 6", False),
        ("aws_lambda_function.bill.timeout + 5", True),
        ("var.options.seconds", False),
        ("var.options.other", True),
        ("coalesce(null, 400)", False),
        ("-(-400)", False),
        ("6 < 6 ? 12 : 400", False),
        ("6 > 6 ? 12 : 400", False),
        ("6 <= 6 ? 400 : 12", False),
        ("6 >= 6 ? 400 : 12", False),
        ("var.list_of_options[0].seconds", False),
        ("var.list_of_options[0].other", True),
        ("{ a = 12, b = 400 }.b", False),
        ("null", True),
    ],
)
def test_timeout_is_worked_out_from_literals_defaults_locals_and_other_resources(
    tmp_path: Path, timeout: str, is_short: bool
) -> None:
    declarations = """\
variable "timeout" {
  type    = number # of the function
  default = 60
}
variable "options" {
  type    = object({ seconds = optional(number, 400), other = optional(number) })
  default = {}
}
variable "list_of_options" {
  type    = list(object({ seconds = optional(number, 400), other = optional(number) }))
  default = [{}]
}
locals { by_name = { orders = 360, "short" : 12 } }
"""
    queue = SOUND_QUEUE.replace("= 360", f"= {timeout}")
    result = _lint(tmp_path, declarations, queue, FUNCTION, MAPPING)
    symptoms = ["visibility_timeout_too_short"] if is_short else []
    assert (_list_symptoms(result), list(result.not_judged)) == (symptoms, [])


def test_mapping_that_names_a_version_behind_the_arn_of_the_function_is_judged(
    tmp_path: Path,
) -> None:
    arn = "aws_lambda_function.bill.arn"
    mapping = MAPPING.replace(arn, f'"${{{arn}}}:live"')
    result = _lint(tmp_path, SOUND_QUEUE.replace("360", "20"), FUNCTION, mapping)
    assert _list_symptoms(result) == ["visibility_timeout_too_short"]


def test_defaults_of_variables_that_count_are_named_and_tfvars_come_first(tmp_path: Path) -> None:
    declarations = 'variable "seconds" { default = 10 }\nvariable "unused" { default = 1 }\n'
    queue = SOUND_QUEUE.replace("= 360", "= var.seconds")
    result = _lint(tmp_path, declarations, queue, FUNCTION, MAPPING)
    assert result.defaults == [{"parameter": "var.seconds", "value": "10"}]
    assert _list_symptoms(result) == ["visibility_timeout_too_short"]
    (tmp_path / "terraform.tfvars").write_text("seconds = 20\n")
    (tmp_path / "b.auto.tfvars").write_text("seconds = 360 # enough\n")
    (tmp_path / "prod.tfvars").write_text("seconds = 5\n")
    result = _lint_path(tmp_path)
    assert (result.defaults, _list_symptoms(result)) == ([], [])


@pytest.mark.parametrize("repetition", ["count = 2", 'for_each = toset(["a", "b"])'])
def test_instances_of_count_and_for_each_are_judged_each_with_its_own_values(
    tmp_path: Path, repetition: str
) -> None:
    index = "count.index" if "count" in repetition else "each.key"
    first, second = ("[0]", "[1]") if "count" in repetition else ('["a"]', '["b"]')
    text = f"""\
locals {{ seconds = {{ "0" = 360, "1" = 10, a = 360, b = 10 }} }}
resource "aws_sqs_queue" "orders" {{
  {repetition}
  visibility_timeout_seconds = local.seconds[{index}]
  redrive_policy = jsonencode({{
    deadLetterTargetArn = aws_sqs_queue.dead[{index}].arn
    maxReceiveCount     = 5
  }})
}}
resource "aws_sqs_queue" "dead" {{
  {repetition}
  message_retention_seconds = 1209600
}}
resource "aws_lambda_event_source_mapping" "bill" {{
  {repetition}
  event_source_arn = aws_sqs_queue.orders[{index}].arn
  function_name    = aws_lambda_function.bill.function_name
  batch_size       = 1
}}
"""
    result = _lint(tmp_path, text, FUNCTION)
    assert [(finding.symptom, finding.resource) for finding in result.findings] == [
        ("visibility_timeout_too_short", f"aws_sqs_queue.orders{second}")
    ]
    assert result.not_judged == []
    assert result.queues == 4
    only_first = text.replace(f"dead[{index}]", f"dead{first}")
    assert _lint(tmp_path, only_first, FUNCTION).not_judged == []


def test_count_of_zero_makes_no_queue(tmp_path: Path) -> None:
    text = 'variable "is_on" { default = false }\n' + QUEUE.replace(
        "{\n", "{\n  count = var.is_on ? 1 : 0\n", 1
    )
    assert _lint(tmp_path, text).queues == 0


def test_mapping_whose_count_is_unknown_is_left_undecided_unless_its_queue_has_the_same(
    tmp_path: Path,
) -> None:
    count = "{\n  count = var.is_on ? 1 : 0\n"
    declaration = 'variable "is_on" {}\n'
    mapping = MAPPING.replace("{\n", count, 1)
    result = _lint(tmp_path, declaration, QUEUE, FUNCTION, mapping)
    assert _list_symptoms(result) == []
    assert [place.path for place in result.not_judged] == ["aws_lambda_event_source_mapping.bill"]
    queue = QUEUE.replace("{\n", count, 1)
    mapping = mapping.replace("orders.arn", "orders[0].arn")
    result = _lint(tmp_path, declaration, queue, FUNCTION, mapping)
    assert _list_symptoms(result) == FAULTY_SYMPTOMS


MODULE_QUEUE = QUEUE.replace("= 10", "= var.seconds") + (
    'variable "seconds" { default = 10 }\noutput "arn" { value = aws_sqs_queue.orders.arn }\n'
)


def test_local_module_is_read_with_the_values_that_its_call_passes(tmp_path: Path) -> None:
    (tmp_path / "queue").mkdir()
    (tmp_path / "queue" / "main.tf").write_text(MODULE_QUEUE)
    text = """\
module "long" {
  source  = "./queue"
  seconds = 400
}
module "short" {
  for_each = { a = 1 }
  source   = "./queue"
}
"""
    long_mapping = MAPPING.replace("aws_sqs_queue.orders.arn", "module.long.arn")
    short_mapping = MAPPING.replace("aws_sqs_queue.orders.arn", 'module.short["a"].arn').replace(
        '"bill"', '"other"'
    )
    result = _lint(tmp_path, text, FUNCTION, long_mapping, short_mapping)
    assert sorted((finding.symptom, finding.resource) for finding in result.findings) == [
        ("dlq_missing", "module.long.aws_sqs_queue.orders"),
        ("dlq_missing", 'module.short["a"].aws_sqs_queue.orders'),
        ("visibility_timeout_too_short", 'module.short["a"].aws_sqs_queue.orders'),
    ]
    assert {finding.file for finding in result.findings} == {f"{tmp_path.name}/queue/main.tf"}
    assert result.not_judged == []


@pytest.mark.parametrize(
    "source",
    ["terraform-aws-modules/other/aws", "../outside", "./gone", "./loop", "./out", "./circle"],
)
def test_module_from_elsewhere_is_listed_as_not_judged_and_no_file_outside_is_read(
    tmp_path: Path, source: str
) -> None:
    shop = tmp_path / "shop"
    for folder in ("outside", "shop/loop"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "outside" / "main.tf").write_text(MODULE_QUEUE)
    (shop / "out").symlink_to(tmp_path / "outside")
    (shop / "circle").symlink_to(shop / "circle")
    (shop / "loop" / "main.tf").write_text('module "m" { source = "../loop" }')
    mapping = MAPPING.replace("aws_sqs_queue.orders.arn", "module.m.arn")
    result = _lint(shop, f'module "m" {{ source = "{source}" }}', FUNCTION, mapping)
    assert result.queues == 0
    assert result.findings == []
    places = {place.path for place in result.not_judged}
    assert "aws_lambda_event_source_mapping.bill" in places
    assert any(path.startswith("module.m") for path in places)


def test_linked_file_from_outside_the_folder_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret.tf").write_text(QUEUE)
    shop = tmp_path / "shop"
    shop.mkdir()
    (shop / "link.tf").symlink_to(tmp_path / "secret.tf")
    result = _lint(shop, FUNCTION)
    assert result.queues == 0
    assert [place.because for place in result.not_judged] == ["a link to a file outside the folder"]


def test_link_in_a_circle_and_pipe_among_terraform_files_are_listed_and_not_opened(
    tmp_path: Path,
) -> None:
    (tmp_path / "circle.tf").symlink_to(tmp_path / "circle.tf")
    os.mkfifo(tmp_path / "pipe.tf")
    result = _lint(tmp_path, QUEUE)
    assert result.queues == 1
    assert {place.because for place in result.not_judged} == {
        "a link to a file outside the folder",
        "not a regular file",
    }


def test_list_that_locals_double_many_times_is_refused_before_it_is_converted(
    tmp_path: Path,
) -> None:
    lists = "".join(f"a{level} = [local.a{level + 1}, local.a{level + 1}]\n" for level in range(19))
    queue = 'resource "aws_sqs_queue" "q" {\n  policy = jsonencode(local.a0)\n}'
    with pytest.raises(NotATemplate, match="8,000,000 steps"):
        _lint(tmp_path, f"locals {{\n{lists}a19 = []\n}}", queue)


def test_override_file_changes_arguments_of_another_file_and_is_named(tmp_path: Path) -> None:
    override = 'resource "aws_sqs_queue" "orders" {\n  visibility_timeout_seconds = 20\n}\n'
    result = _lint(tmp_path, SOUND_QUEUE, FUNCTION, MAPPING, a_override=override)
    (finding,) = result.findings
    assert (finding.file, finding.line) == (f"{tmp_path.name}/a_override.tf", 2)
    assert "visibility timeout of 20 s" in finding.because


TLS_STATEMENT = """\
  statement {
    sid     = "tls"
    effect  = "Deny"
    actions = ["sqs:*"]
    resources = [aws_sqs_queue.orders.arn]
    principals {
      type        = "*"
      identifiers = ["*"]
    }
    condition {
      test     = "Bool"
      variable = "aws:SecureTransport"
      values   = ["false"]
    }
  }
"""
TOPIC_STATEMENT = """\
  statement {
    actions   = ["sqs:SendMessage"]
    resources = [aws_sqs_queue.orders.arn]
    principals {
      type        = "*"
      identifiers = ["*"]
    }
    condition {
      test     = "ArnEquals"
      variable = "aws:SourceArn"
      values   = [aws_sns_topic.paid.arn]
    }
  }
"""


def _lint_policy(path: Path, statements: str, more: str = "") -> tuple[list[str], int]:
    text = f"""\
{SOUND_QUEUE}
data "aws_iam_policy_document" "orders" {{
{statements}
}}
resource "aws_sqs_queue_policy" "orders" {{
  queue_url = aws_sqs_queue.orders.id
  policy    = data.aws_iam_policy_document.orders.json
}}
resource "aws_sns_topic" "paid" {{}}
{more}
"""
    path.mkdir(exist_ok=True)
    (path / "main.tf").write_text(text)
    (source,) = list_template_sources(str(path))
    result = lint(read_template_source(source), source.file, source.deploy_target)
    symptoms = [
        finding.symptom for finding in result.findings if finding.resource.endswith("orders")
    ]
    return symptoms, len(result.not_judged)


def test_policy_document_data_source_is_read_with_conditions_and_merged_documents(
    tmp_path: Path,
) -> None:
    assert _lint_policy(tmp_path, TLS_STATEMENT) == ([], 0)
    assert _lint_policy(tmp_path, TLS_STATEMENT + TOPIC_STATEMENT) == ([], 0)
    assert _lint_policy(tmp_path, TOPIC_STATEMENT) == (["tls_not_enforced"], 0)
    anyone = TOPIC_STATEMENT.partition("    condition")[0] + "  }\n"
    assert _lint_policy(tmp_path, TLS_STATEMENT + anyone) == (["policy_is_public"], 0)
    merged = "  source_policy_documents = [data.aws_iam_policy_document.tls.json]\n"
    other = f'data "aws_iam_policy_document" "tls" {{\n{TLS_STATEMENT}}}\n'
    assert _lint_policy(tmp_path, merged, other) == ([], 0)
    assert _lint_policy(tmp_path, merged.replace("tls", "gone"), other) == ([], 1)


@pytest.mark.parametrize(
    "more",
    [
        "  override_policy_documents = [data.aws_iam_policy_document.other.json]\n",
        '  dynamic "statement" {\n    for_each = var.gone\n    content {}\n  }\n',
    ],
    ids=["override", "dynamic"],
)
def test_policy_document_with_overrides_or_unknown_dynamic_statements_is_left_undecided(
    tmp_path: Path, more: str
) -> None:
    assert _lint_policy(tmp_path, TOPIC_STATEMENT + more) == ([], 1)


def test_policy_as_json_in_a_text_names_the_queue_and_is_read(tmp_path: Path) -> None:
    text = (
        SOUND_QUEUE
        + """\
resource "aws_sqs_queue_policy" "orders" {
  queue_url = "${aws_sqs_queue.orders.id}"
  policy = <<POLICY
{"Statement": [{"Effect": "Allow", "Principal": "*", "Action": "sqs:SendMessage",
  "Resource": "${aws_sqs_queue.orders.arn}"}]}
POLICY
}
"""
    )
    (finding,) = _lint(tmp_path, text).findings
    assert (finding.symptom, finding.line) == ("policy_is_public", 13)


def test_one_file_is_linted_with_the_values_of_its_folder_and_without_the_others_findings(
    tmp_path: Path,
) -> None:
    other = QUEUE.replace('"orders"', '"other"')
    _lint(tmp_path, QUEUE, MAPPING, more=FUNCTION + other)
    assert _list_symptoms(_lint_path(tmp_path / "main.tf")) == FAULTY_SYMPTOMS
    assert _list_symptoms(_lint_path(tmp_path / "more.tf")) == []


@pytest.mark.parametrize("other", [QUEUE, "x = ["])
def test_one_file_is_linted_alone_if_its_folder_is_no_module(tmp_path: Path, other: str) -> None:
    (tmp_path / "other.tf").write_text(other)
    (tmp_path / "main.tf").write_text(QUEUE + FUNCTION + MAPPING)
    assert _list_symptoms(_lint_path(tmp_path / "main.tf")) == FAULTY_SYMPTOMS


def test_command_shows_file_and_line_of_a_terraform_folder_and_ends_with_1(tmp_path: Path) -> None:
    _lint(tmp_path, QUEUE, FUNCTION, MAPPING)
    run = CliRunner().invoke(app, ["lint", str(tmp_path), "--format", "github"])
    assert run.exit_code == 1
    assert f"file={tmp_path / 'main.tf'},line=3,title=visibility_timeout_too_short" in run.output


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x = [", "line 1: no HCL: the file ends within an expression"),
        ('a = 1\nresource "aws_sqs_queue" "q" {\n', "line 3: no HCL: } is expected"),
        ("a = 1 b = 2", "line 1: no HCL: the end of the line is expected"),
        ("a = 1\n\na = 2", "line 3: no HCL: the argument a is set twice"),
        ("a = <<EOF\nx\n", "line 2: no HCL: the text from <<EOF has no end"),
        ('a = "x', 'line 1: no HCL: a text has no closing "'),
        ("\x00", "line 1: no HCL: a name is expected"),
        ("a = " + "[" * 5_000, "nested more than"),
        ("a = " + "-" * 5_000 + "1", "nested more than"),
        ("a {\n" * 5_000, "nested more than"),
        ("a = " + '"${' * 300, "nested more than"),
        ("locals {\n  a = b" + "[*]" * 5_000 + "\n}", "nested too deep"),
        ("locals {\n  a = 1" + "+1" * 5_000 + "\n}\n" + QUEUE_OF_LOCAL, "nested too deep"),
        ("#" * 300_000, "longer than 262,144 bytes"),
        ('resource "aws_sqs_queue" "q" {\n  count = 100000\n}', "more than 2,000"),
        ('resource "aws_sqs_queue" "q" {\n  for_each = toset(range(2001))\n}', ""),
    ],
    ids=range(16),
)
def test_terraform_file_that_cannot_be_read_is_refused_in_one_sentence_with_its_line(
    tmp_path: Path, text: str, says: str
) -> None:
    if not says:
        assert _lint(tmp_path, text).queues == 1, "one queue stands for all"
        return
    with pytest.raises(NotATemplate) as refused:
        _lint(tmp_path, text)
    assert says in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1


def test_terraform_file_that_is_no_utf_8_is_refused_with_the_byte(tmp_path: Path) -> None:
    (tmp_path / "main.tf").write_bytes(b"# \xff\n" + QUEUE.encode())
    with pytest.raises(NotATemplate, match=r"main\.tf: no UTF-8 at byte 2$"):
        _lint_path(tmp_path)


@pytest.mark.parametrize("text", ["{", "[" * 100_000], ids=["unclosed", "nested"])
def test_redrive_policy_that_is_no_json_is_named(tmp_path: Path, text: str) -> None:
    queue = QUEUE.replace("= 10", f'= 360\n  redrive_policy = "{text}"')
    result = _lint(tmp_path, queue)
    named_places = [finding.path for finding in result.findings]
    named_places += [place.path for place in result.not_judged]
    assert named_places == ["aws_sqs_queue.orders.redrive_policy"]


def test_comment_with_a_reason_ignores_a_finding_in_terraform_files_and_stale_ones_are_named(
    tmp_path: Path,
) -> None:
    queue = QUEUE.replace("{\n", "{\n  # mendq: ignore dlq_missing: an archive\n", 1)
    _lint(tmp_path, queue, FUNCTION, MAPPING)
    document = _run_lint(tmp_path)
    assert [finding["symptom"] for finding in document["templates"][0]["ignored"]] == [
        "dlq_missing"
    ]
    assert document["stale"] == []
    (tmp_path / "other.tf").write_text("# nothing\n")
    other_document = _run_lint(tmp_path / "other.tf")
    assert (other_document["findings"], other_document["stale"]) == (0, [])
    (tmp_path / "main.tf").write_text(queue)
    (stale_entry,) = _run_lint(tmp_path)["stale"]
    assert stale_entry["where"].endswith("main.tf, line 2")


def _run_lint(path: Path) -> Any:
    return json.loads(CliRunner().invoke(app, ["lint", str(path), "--format", "json"]).stdout)


MAPPING_BY_NAME = """\
data "aws_sqs_queue" "orders" {
  name = %s
}
data "aws_lambda_function" "bill" {
  function_name = "bill"
}
resource "aws_lambda_event_source_mapping" "bill" {
  event_source_arn = data.aws_sqs_queue.orders.arn
  function_name    = data.aws_lambda_function.bill.arn
  batch_size       = 1
}
"""


def test_data_source_that_names_a_queue_of_the_folder_is_that_queue(tmp_path: Path) -> None:
    result = _lint(tmp_path, QUEUE, FUNCTION, MAPPING_BY_NAME % '"orders"')
    assert (_list_symptoms(result), result.not_judged) == (FAULTY_SYMPTOMS, [])


@pytest.mark.parametrize("name", ['"Orders"', "var.name", "aws_sqs_queue.orders.arn"])
def test_data_source_of_another_or_an_unknown_name_is_not_judged(tmp_path: Path, name: str) -> None:
    result = _lint(tmp_path, QUEUE, FUNCTION, MAPPING_BY_NAME % name)
    assert _list_symptoms(result) == []
    assert "aws_sqs_queue.orders is read when it is deployed" in result.not_judged[0].because

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
        (
            _make_topic().replace('"paid" }', "var.topic }"),
            _attach(STATEMENT % ("sns.amazonaws.com", OTHER_TOPIC)),
        ),
        (_make_topic("policy = data.external.policy.result.json"),),
    ],
    ids=[
        "another protocol",
        "its topic",
        "any topic",
        "everybody",
        "a policy document",
        "a topic whose name is not known",
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
        (_make_topic(), _attach(STATEMENT % ("sns.amazonaws.com", OTHER_TOPIC))),
    ],
    ids=["no policy", "another service", "another topic"],
)
def test_lint_of_terraform_reports_a_subscription_that_the_policy_refuses(
    tmp_path: Path, texts: tuple[str, ...]
) -> None:
    result = _lint(tmp_path, *texts)
    (finding,) = [finding for finding in result.findings if finding.symptom == "producer_refused"]
    assert finding.resource == "aws_sqs_queue.orders"
    assert "aws_sns_topic_subscription.paid" in finding.because
    assert "aws_sns_topic.paid.arn" in "\n".join(finding.remedy)


# Producers of the queue, none of them with the right to send.
RULE = """\
resource "aws_cloudwatch_event_rule" "nightly" {
  name                = "nightly"
  schedule_expression = "rate(1 day)"
}
resource "aws_cloudwatch_event_target" "nightly" {
  rule = aws_cloudwatch_event_rule.nightly.name
  arn  = aws_sqs_queue.orders.arn
}
"""
RULE_DLQ = """\
resource "aws_cloudwatch_event_rule" "nightly" { name = "nightly" }
resource "aws_cloudwatch_event_target" "nightly" {
  rule = "nightly"
  arn  = "arn:aws:lambda:eu-west-1:111122223333:function:report"
  dead_letter_config { arn = aws_sqs_queue.orders.arn }
}
"""
BUCKET = """\
variable "stage" {}
resource "aws_s3_bucket" "uploads" { bucket = "uploads-${var.stage}" }
resource "aws_s3_bucket_notification" "uploads" {
  bucket = aws_s3_bucket.uploads.id
  queue {
    queue_arn = aws_sqs_queue.orders.arn
    events    = ["s3:ObjectCreated:*"]
  }
}
"""
TOPIC_DLQ = """\
resource "aws_sns_topic" "paid" { name = "paid" }
resource "aws_sns_topic_subscription" "shop" {
  topic_arn      = aws_sns_topic.paid.arn
  protocol       = "https"
  endpoint       = "https://shop.example"
  redrive_policy = jsonencode({deadLetterTargetArn = aws_sqs_queue.orders.arn})
}
"""
ROLE = """\
resource "aws_iam_role" "sender" {
  name               = "sender"
  assume_role_policy = "{}"
}
"""
SCHEDULE = """\
resource "aws_scheduler_schedule" "hourly" {
  schedule_expression = "rate(1 hour)"
  target {
    arn      = aws_sqs_queue.orders.arn
    role_arn = aws_iam_role.sender.arn
  }
}
"""
PIPE = """\
resource "aws_pipes_pipe" "stream" {
  source   = "arn:aws:kinesis:eu-west-1:111122223333:stream/clicks"
  target   = aws_sqs_queue.orders.arn
  role_arn = aws_iam_role.sender.arn
}
"""
FUNCTION = """\
resource "aws_lambda_function" "report" {
  function_name = "report"
  role          = aws_iam_role.sender.arn
  %s
}
"""
FUNCTION_DLQ = FUNCTION % "dead_letter_config { target_arn = aws_sqs_queue.orders.arn }"
FUNCTION_DESTINATION = (
    FUNCTION % ""
    + """\
resource "aws_lambda_function_event_invoke_config" "report" {
  function_name = aws_lambda_function.report.function_name
  destination_config {
    on_failure { destination = aws_sqs_queue.orders.arn }
  }
}
"""
)
QUEUE = 'resource "aws_sqs_queue" "orders" { name = "orders" }\n'
SERVICE_PRODUCERS = {
    "a rule": (RULE, "events.amazonaws.com", "aws_cloudwatch_event_rule.nightly.arn"),
    "a rule's DLQ": (RULE_DLQ, "events.amazonaws.com", "aws_cloudwatch_event_rule.nightly.arn"),
    "a bucket": (BUCKET, "s3.amazonaws.com", "aws_s3_bucket.uploads.arn"),
    "a subscription's DLQ": (TOPIC_DLQ, "sns.amazonaws.com", "aws_sns_topic.paid.arn"),
}
ROLE_PRODUCERS = {
    "a schedule": SCHEDULE,
    "a pipe": PIPE,
    "a function's DLQ": FUNCTION_DLQ,
    "a function's destination": FUNCTION_DESTINATION,
}


def _list_refusals(result: LintResult) -> list[str]:
    return [
        finding.resource for finding in result.findings if finding.symptom == "producer_refused"
    ]


def _list_open_producers(result: LintResult) -> list[str]:
    return [place.path for place in result.not_judged if place.symptoms == ("producer_refused",)]


def _grant_to_service(service: str, source_arn: str) -> str:
    condition = f'Condition = {{ArnEquals = {{"aws:SourceArn" = {source_arn}}}}}'
    return _attach(STATEMENT % (service, condition))


def _make_role_policy(action: str, role: str = "aws_iam_role.sender.name") -> str:
    statement = f'{{Effect = "Allow", Action = "{action}", Resource = aws_sqs_queue.orders.arn}}'
    return (
        'resource "aws_iam_role_policy" "sender" {\n'
        f"  role   = {role}\n"
        f"  policy = jsonencode({{Statement = [{statement}]}})\n}}\n"
    )


@pytest.mark.parametrize("producer", SERVICE_PRODUCERS)
def test_lint_of_terraform_reports_a_service_until_the_queue_policy_admits_it(
    tmp_path: Path, producer: str
) -> None:
    text, service, source_arn = SERVICE_PRODUCERS[producer]
    (refused,) = [
        finding
        for finding in _lint(tmp_path, QUEUE, text).findings
        if finding.symptom == "producer_refused"
    ]
    assert refused.resource == "aws_sqs_queue.orders"
    assert f'"aws:SourceArn": {source_arn}' in "\n".join(refused.remedy)
    other_source = _grant_to_service(service, '"arn:aws:sqs:eu-west-1:111122223333:other"')
    assert _list_refusals(_lint(tmp_path, QUEUE, text, other_source)) == ["aws_sqs_queue.orders"]
    admitted = _lint(tmp_path, QUEUE, text, _grant_to_service(service, source_arn))
    assert _list_refusals(admitted) == []
    assert _list_open_producers(admitted) == []


@pytest.mark.parametrize("producer", ROLE_PRODUCERS)
def test_lint_of_terraform_reports_a_role_until_its_policy_lets_it_send(
    tmp_path: Path, producer: str
) -> None:
    texts = (QUEUE, ROLE, ROLE_PRODUCERS[producer])
    refused = _lint(tmp_path, *texts, _make_role_policy("sqs:ReceiveMessage"))
    assert _list_refusals(refused) == ["aws_sqs_queue.orders"]
    admitted = _lint(tmp_path, *texts, _make_role_policy("sqs:SendMessage"))
    assert _list_refusals(admitted) == []
    assert _list_open_producers(admitted) == []


ATTACHMENT = """\
resource "aws_iam_role_policy_attachment" "a" {
  role       = aws_iam_role.sender.name
  policy_arn = %s
}
"""
ATTACHMENT_TO_ROLES = """\
resource "aws_iam_policy_attachment" "a" {
  name       = "a"
  roles      = [aws_iam_role.sender.name]
  policy_arn = aws_iam_policy.send.arn
}
"""
ONLY_ATTACHMENTS = """\
resource "aws_iam_role_policy_attachments_exclusive" "a" {
  role_name   = aws_iam_role.sender.name
  policy_arns = [aws_iam_policy.send.arn]
}
"""
SENDING_POLICY = """\
resource "aws_iam_policy" "send" {
  policy = jsonencode({Statement = [{
    Effect = "Allow", Action = "sqs:*", Resource = aws_sqs_queue.orders.arn
  }]})
}
"""
BASIC_POLICY = '"arn:aws:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole"'


@pytest.mark.parametrize(
    "texts",
    [
        (SENDING_POLICY, ATTACHMENT % "aws_iam_policy.send.arn"),
        (
            SENDING_POLICY,
            ATTACHMENT_TO_ROLES,
        ),
        (
            SENDING_POLICY,
            ONLY_ATTACHMENTS,
        ),
    ],
    ids=["an attachment", "an attachment to roles", "the only attachments"],
)
def test_lint_of_terraform_reads_attached_policies_of_a_role(
    tmp_path: Path, texts: tuple[str, ...]
) -> None:
    result = _lint(tmp_path, QUEUE, ROLE, SCHEDULE, *texts)
    assert _list_refusals(result) == []
    assert _list_open_producers(result) == []


@pytest.mark.parametrize(
    "text",
    [
        ATTACHMENT % "data.aws_iam_policy.company.arn",
        ATTACHMENT.replace("aws_iam_role.sender.name", "var.role") % BASIC_POLICY,
        'variable "on" {}\n'
        + SENDING_POLICY
        + ATTACHMENT.replace("  role ", "  count = var.on ? 1 : 0\n  role ")
        % "aws_iam_policy.send.arn",
        'module "x" {\n  source = "example/x/aws"\n  role = aws_iam_role.sender.name\n}\n',
        'variable "on" {}\n'
        + _make_role_policy("sqs:*").replace("  role ", "  count = var.on ? 1 : 0\n  role "),
        _make_role_policy("sqs:*").replace("aws_iam_role.sender.name", "var.role"),
    ],
    ids=[
        "a policy of another place",
        "a role that is not known",
        "an attachment that may be missing",
        "a module that is not read",
        "a policy that may be missing",
        "a policy whose role is not known",
    ],
)
def test_lint_of_terraform_leaves_open_what_a_role_may_do_if_a_policy_is_not_known(
    tmp_path: Path, text: str
) -> None:
    result = _lint(tmp_path, QUEUE, ROLE, SCHEDULE, text)
    assert _list_refusals(result) == []
    assert _list_open_producers(result) == ["aws_scheduler_schedule.hourly"]


def test_lint_of_terraform_counts_only_policies_of_the_role_itself(tmp_path: Path) -> None:
    other_role = ROLE.replace("sender", "other")
    texts = (QUEUE, ROLE, other_role, SCHEDULE, SENDING_POLICY, ATTACHMENT % BASIC_POLICY)
    attachment = (ATTACHMENT % "aws_iam_policy.send.arn").replace("sender", "other")
    other_attachment = attachment.replace('"a"', '"b"')
    elsewhere = ATTACHMENT.replace("aws_iam_role.sender.name", '"company-role"') % BASIC_POLICY
    result = _lint(tmp_path, *texts, other_attachment, elsewhere.replace('"a"', '"c"'))
    assert _list_refusals(result) == ["aws_sqs_queue.orders"]


KEY = """\
resource "aws_kms_key" "queue" { %s }
resource "aws_sns_topic" "paid" { name = "paid" }
resource "aws_sqs_queue" "orders" {
  name              = "orders"
  kms_master_key_id = aws_kms_key.queue.arn
}
resource "aws_sns_topic_subscription" "paid" {
  topic_arn = aws_sns_topic.paid.arn
  protocol  = "sqs"
  endpoint  = aws_sqs_queue.orders.arn
}
"""
KEY_POLICY = (
    'policy = jsonencode({Statement = [{Effect = "Allow", Principal = {Service = "%s"}, '
    'Action = ["kms:Decrypt", "kms:GenerateDataKey*"], Resource = "*"}]})'
)
SEPARATE_KEY_POLICY = """\
resource "aws_kms_key_policy" "queue" {
  key_id = %s
  %s
}
"""


@pytest.mark.parametrize(
    ("texts", "refusals"),
    [
        ((KEY % "",), ["aws_sqs_queue.orders"]),
        ((KEY % (KEY_POLICY % "s3.amazonaws.com"),), ["aws_sqs_queue.orders"]),
        ((KEY % (KEY_POLICY % "sns.amazonaws.com"),), []),
        (
            (
                KEY % "",
                SEPARATE_KEY_POLICY % ("aws_kms_key.queue.id", KEY_POLICY % "sns.amazonaws.com"),
            ),
            [],
        ),
        ((KEY % "", SEPARATE_KEY_POLICY % ("var.key", KEY_POLICY % "s3.amazonaws.com")), []),
    ],
    ids=["no policy", "another service", "SNS", "a separate policy", "a policy of some key"],
)
def test_lint_of_terraform_reports_a_key_whose_policy_refuses_the_producer(
    tmp_path: Path, texts: tuple[str, ...], refusals: list[str]
) -> None:
    grant = _attach(STATEMENT % ("sns.amazonaws.com", ITS_TOPIC))
    assert _list_refusals(_lint(tmp_path, *texts, grant)) == refusals


@pytest.mark.parametrize(
    "text",
    [
        RULE_DLQ.replace('resource "aws_cloudwatch_event_rule" "nightly" { name = "nightly" }', ""),
        BUCKET.replace("aws_s3_bucket.uploads.id", '"company-uploads"'),
    ],
    ids=["a rule", "a bucket"],
)
def test_lint_of_terraform_reports_a_producer_whose_owner_is_declared_elsewhere(
    tmp_path: Path, text: str
) -> None:
    result = _lint(tmp_path, QUEUE, text)
    (finding,) = [finding for finding in result.findings if finding.symptom == "producer_refused"]
    # The files have no reference to the owner that a statement could compare.
    assert "aws:SourceArn" not in "\n".join(finding.remedy)


def test_lint_of_terraform_names_no_default_of_a_producer_that_has_no_queue(tmp_path: Path) -> None:
    role = 'variable "stage" { default = "dev" }\n' + ROLE.replace('"sender"\n', '"${var.stage}"\n')
    assert _lint(tmp_path, QUEUE, role).defaults == []
    schedule = SCHEDULE.replace("  sched", '  count = var.stage == "dev" ? 1 : 0\n  sched')
    result = _lint(tmp_path, QUEUE, role, schedule)
    assert result.defaults == [{"parameter": "var.stage", "value": '"dev"'}]


def test_lint_of_terraform_knows_a_queue_in_an_arn_with_its_name(tmp_path: Path) -> None:
    """The name is not known, so only a reference to it can match."""
    queue = 'variable "stage" {}\n' + QUEUE.replace('"orders" }', '"orders-${var.stage}" }')
    statement = STATEMENT % ("events.amazonaws.com", "")
    arn = '"arn:aws:sqs:*:*:${aws_sqs_queue.orders.name}"'
    admitted = _attach(statement.replace("aws_sqs_queue.orders.arn", arn))
    result = _lint(tmp_path, queue, RULE, admitted)
    assert _list_refusals(result) == []
    assert _list_open_producers(result) == []


def test_lint_of_terraform_judges_each_instance_of_a_producer_by_its_own_queues_policy(
    tmp_path: Path,
) -> None:
    text = """\
locals { names = toset(["a", "b"]) }
resource "aws_sqs_queue" "orders" {
  for_each = local.names
  name     = each.key
}
resource "aws_cloudwatch_event_rule" "nightly" {
  for_each = local.names
  name     = "nightly-${each.key}"
}
resource "aws_cloudwatch_event_target" "nightly" {
  for_each = local.names
  rule     = aws_cloudwatch_event_rule.nightly[each.key].name
  arn      = aws_sqs_queue.orders[each.key].arn
}
resource "aws_sqs_queue_policy" "orders" {
  for_each  = local.names
  queue_url = aws_sqs_queue.orders[each.key].id
  policy    = jsonencode({Statement = [{
    Effect    = "Allow"
    Principal = {Service = "events.amazonaws.com"}
    Action    = "sqs:SendMessage"
    Resource  = aws_sqs_queue.orders[each.key].arn
    Condition = {ArnEquals = {"aws:SourceArn" = aws_cloudwatch_event_rule.nightly["a"].arn}}
  }]})
}
"""
    assert _list_refusals(_lint(tmp_path, text)) == ['aws_sqs_queue.orders["b"]']

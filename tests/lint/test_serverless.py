"""What `mendq lint` makes of a `serverless.yml`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from mendq.lint.decode import read_template
from mendq.lint.files import list_template_sources
from mendq.lint.folder import TemplateFolder
from mendq.lint.judging import LintResult, lint
from mendq.lint.serverless_producers import list_event_producers
from mendq.lint.template import MOST_TEMPLATE_BYTES, NotATemplate, WorkBudget
from mendq.lint.values import DeployTarget
from mendq.lint.view import make_sarif

QUEUES = """
resources:
  Resources:
    Orders:
      Type: AWS::SQS::Queue
      Properties:
        VisibilityTimeout: 36
        RedrivePolicy: {deadLetterTargetArn: !GetAtt OrdersDlq.Arn, maxReceiveCount: 5}
    OrdersDlq:
      Type: AWS::SQS::Queue
      Properties: {MessageRetentionPeriod: 1209600}
    TlsOnly:
      Type: AWS::SQS::QueuePolicy
      Properties:
        Queues: [!Ref Orders, !Ref OrdersDlq]
        PolicyDocument:
          Statement:
            - {Effect: Deny, Principal: "*", Action: "sqs:*", Resource: "*",
               Condition: {Bool: {"aws:SecureTransport": "false"}}}
"""
HEAD = "service: shop\nprovider: {name: aws}\n"
EVENT = "events: [{sqs: {arn: !GetAtt Orders.Arn, batchSize: 1}}]"


def _lint_serverless(functions: str, *, head: str = HEAD, queues: str = QUEUES) -> LintResult:
    content = f"{head}functions:\n{functions}{queues}".encode()
    return lint(read_template(content), "serverless.yml", DeployTarget())


def _list_findings(result: LintResult) -> list[str]:
    return [f"{finding.resource}: {finding.symptom}" for finding in result.findings]


def test_lint_of_a_function_with_the_default_timeout_of_the_framework_needs_36_seconds() -> None:
    """The Serverless Framework's default is 6 seconds."""
    function = f"  bill: {{handler: a.b, {EVENT}}}\n"
    result = _lint_serverless(function)
    assert _list_findings(result) == []
    assert result.not_judged == []
    shorter = QUEUES.replace("VisibilityTimeout: 36", "VisibilityTimeout: 35")
    result = _lint_serverless(function, queues=shorter)
    assert _list_findings(result) == ["Orders: visibility_timeout_too_short"]


@pytest.mark.parametrize(
    ("head", "timeout"),
    [
        (HEAD, "60"),
        (f"{HEAD}custom: {{seconds: 60}}\n", "'${self:custom.seconds}'"),
        (f"{HEAD}custom: {{seconds: {{dev: 60}}}}\n", "'${self:custom.seconds.${opt:stage}}'"),
        (HEAD, "\"${self:custom.none, '60'}\""),
        (HEAD, '"${self:custom.none, 60}"'),
        (
            f"{HEAD}custom: {{seconds: '${{self:custom.long}}', long: 60}}\n",
            "'${self:custom.seconds}'",
        ),
    ],
    ids=["number", "custom", "variable in a variable", "default text", "default number", "chain"],
)
def test_lint_finds_a_timeout_that_is_too_short_with_its_line(head: str, timeout: str) -> None:
    function = f"  bill: {{handler: a.b, timeout: {timeout}, {EVENT}}}\n"
    result = _lint_serverless(function, head=head)
    assert _list_findings(result) == ["Orders: visibility_timeout_too_short"]
    (finding,) = result.findings
    assert finding.path == "resources.Resources.Orders.Properties.VisibilityTimeout"
    assert finding.remedy == ("VisibilityTimeout: 360",)
    assert finding.line is not None


def test_lint_takes_a_functions_timeout_from_its_provider() -> None:
    head = "service: shop\nprovider: {name: aws, timeout: 60}\n"
    result = _lint_serverless(f"  bill: {{handler: a.b, {EVENT}}}\n", head=head)
    assert _list_findings(result) == ["Orders: visibility_timeout_too_short"]


@pytest.mark.parametrize("default", ["'60'", "60"], ids=["text", "number"])
def test_lint_says_which_default_of_a_variable_it_used(default: str) -> None:
    function = f'  bill: {{handler: a.b, timeout: "${{self:custom.none, {default}}}", {EVENT}}}\n'
    result = _lint_serverless(function)
    assert result.defaults == [{"parameter": f"self:custom.none, {default}", "value": "60"}]


def test_lint_replaces_serverless_variables_inside_the_yaml_value_of_a_variable() -> None:
    head = (
        f"{HEAD}custom:\n"
        "  event: {arn: !GetAtt Orders.Arn, batchSize: '${self:custom.size}'}\n"
        "  size: 10\n"
        "  orders: {VisibilityTimeout: '${self:custom.size}'}\n"
    )
    queues = """
resources:
  Resources:
    Orders: {Type: AWS::SQS::Queue, Properties: "${self:custom.orders}"}
"""
    result = _lint_serverless(
        "  bill: {handler: a.b, events: [sqs: '${self:custom.event}']}\n",
        head=head,
        queues=queues,
    )
    findings = _list_findings(result)
    assert "Orders: visibility_timeout_too_short" in findings
    assert "Orders: batch_failures_not_reported" in findings
    assert result.not_judged == []


def test_lint_refuses_a_serverless_file_with_a_variable_that_contains_itself() -> None:
    queues = (
        "resources: {Resources: {Orders: {Type: AWS::SQS::Queue, Properties: '${self:custom}'}}}"
    )
    content = f"{HEAD}custom: {{again: '${{self:custom}}'}}\n{queues}".encode()
    with pytest.raises(NotATemplate, match="contains itself"):
        read_template(content)


def test_lint_leaves_a_timeout_of_an_unknown_variable_undecided() -> None:
    function = f"  bill: {{handler: a.b, timeout: '${{ssm:/shop/timeout}}', {EVENT}}}\n"
    result = _lint_serverless(function)
    assert _list_findings(result) == []
    (place,) = result.not_judged
    assert place.path == "functions.bill.events.0.sqs"
    assert place.symptoms == ("visibility_timeout_too_short",)


@pytest.mark.parametrize(
    ("event", "findings"),
    [
        ("sqs: !GetAtt Orders.Arn", ["Orders: batch_failures_not_reported"]),
        (
            "sqs: {arn: !GetAtt Orders.Arn, enabled: false}",
            ["Orders: consumer_stopped", "Orders: batch_failures_not_reported"],
        ),
        ("sqs: {arn: !GetAtt Orders.Arn, functionResponseType: ReportBatchItemFailures}", []),
        ("sqs: {arn: !GetAtt Orders.Arn, batchSize: 10}", ["Orders: batch_failures_not_reported"]),
        ("http: {path: /, method: get}", []),
    ],
)
def test_lint_reads_the_settings_of_an_sqs_event(event: str, findings: list[str]) -> None:
    result = _lint_serverless(f"  bill: {{handler: a.b, events: [{{{event}}}]}}\n")
    assert _list_findings(result) == findings


def test_lint_finding_about_an_event_points_to_its_line() -> None:
    function = """  bill:
    handler: a.b
    events:
      - http: {path: /, method: get}
      - sqs: {arn: !GetAtt Orders.Arn}
"""
    (finding,) = _lint_serverless(function).findings
    assert finding.path == "functions.bill.events.1.sqs"
    assert finding.line == 8


def test_lint_of_standard_input_names_resources_in_other_files_as_unread() -> None:
    queues = """
resources:
  - ${file(other.yml)}
  - Resources:
      Orders: {Type: AWS::SQS::Queue, Properties: {VisibilityTimeout: 36}}
"""
    result = _lint_serverless(f"  bill: {{handler: a.b, {EVENT}}}\n", queues=queues)
    assert result.queues == 1
    (finding,) = [finding for finding in result.findings if finding.symptom == "dlq_missing"]
    assert finding.path == "resources.1.Resources.Orders"
    (place,) = result.not_judged
    assert place.path == "resources.0"
    assert place.because == "${file(other.yml)}: it is in another file"


@pytest.mark.parametrize(
    "functions",
    [
        "  bill: ${file(bill.yml)}\n",
        "  bill: [1, 2]\n",
        "  bill: {events: '${file(events.yml)}'}\n",
        "  bill: {events: [1, ~, {sqs: ~}, {sqs: [a]}, {sqs: {arn: {a: b}}}]}\n",
        "  - ${file(functions.yml)}\n",
        "  bill: {timeout: '${self:functions.bill.timeout}', events: [sqs: !GetAtt Orders.Arn]}\n",
    ],
)
def test_lint_of_malformed_or_split_functions_still_judges_the_queues(functions: str) -> None:
    result = _lint_serverless(functions)
    assert result.queues == 2
    assert "Orders: visibility_timeout_too_short" not in _list_findings(result)


def _lint_folder(folder: Path, files: Mapping[str, str]) -> LintResult:
    """Write files into a folder, and lint its `serverless.yml`."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    content = (folder / "serverless.yml").read_bytes()
    template = read_template(content, folder=TemplateFolder(folder))
    return lint(template, "serverless.yml", DeployTarget())


SLOW_FUNCTION = "  handler: a.b\n  timeout: 60\n  events: [sqs: !GetAtt Orders.Arn]\n"
ORDERS = "Orders: {Type: AWS::SQS::Queue, Properties: {VisibilityTimeout: 30}}\n"


@pytest.mark.parametrize(
    "files",
    [
        {
            "serverless.yml": f"{HEAD}functions: ${{file(parts/functions.yml)}}\n"
            "resources: ['${file(parts/queues.yml)}']\n",
            "parts/functions.yml": f"bill:\n{SLOW_FUNCTION}",
            "parts/queues.yml": f"Resources:\n  {ORDERS}",
        },
        {
            "serverless.yml": f"{HEAD}functions: [{{bill: '${{file(bill.yml):function}}'}}]\n"
            "resources: {Resources: '${file(queues.${opt:stage}.yml)}'}\n",
            "bill.yml": "function:\n" + SLOW_FUNCTION.replace("  ", "    "),
            "queues.dev.yml": ORDERS,
        },
        {
            "serverless.yml": f"{HEAD}functions:\n  bill:\n"
            + SLOW_FUNCTION.replace("  ", "    ")
            + "resources: {Resources: {Orders: '${file(parts/orders.json)}'}}\n",
            "parts/orders.json": '{"Type": "AWS::SQS::Queue", '
            '"Properties": "${file(parts/settings.yml)}"}',
            "parts/settings.yml": "VisibilityTimeout: ${self:custom.none, 30}",
        },
        {
            "serverless.yml": f"{HEAD}custom: ${{file(custom.yml)}}\n"
            "functions: {bill: {handler: a.b, timeout: '${self:custom.seconds}', "
            "events: [sqs: !GetAtt Orders.Arn]}}\n"
            f"resources: {{Resources: {{{ORDERS.strip()}}}}}\n",
            "custom.yml": "seconds: 60",
        },
    ],
    ids=["whole sections", "parts of sections", "JSON and a file in a file", "custom values"],
)
def test_lint_reads_parts_of_a_serverless_file_in_files_beside_it(
    tmp_path: Path, files: Mapping[str, str]
) -> None:
    result = _lint_folder(tmp_path, files)
    assert "Orders: visibility_timeout_too_short" in _list_findings(result)
    assert result.not_judged == []


def test_lint_finding_in_a_file_beside_a_serverless_file_names_that_file_and_its_line(
    tmp_path: Path,
) -> None:
    files = {
        "serverless.yml": f"{HEAD}functions:\n  bill: ${{file(bill.yml)}}\n"
        "resources:\n  - ${file(parts/queues.yml)}\n",
        "bill.yml": SLOW_FUNCTION.replace("  ", "", 1).replace("\n  ", "\n"),
        "parts/queues.yml": "Resources:\n  Orders:\n    Type: AWS::SQS::Queue\n"
        "    Properties:\n      VisibilityTimeout: 30\n",
    }
    result = _lint_folder(tmp_path, files)
    place_by_symptom = {
        finding.symptom: (finding.file, finding.line, finding.path) for finding in result.findings
    }
    assert place_by_symptom["visibility_timeout_too_short"] == (
        "parts/queues.yml",
        5,
        "resources.0.Resources.Orders.Properties.VisibilityTimeout",
    )
    assert place_by_symptom["batch_failures_not_reported"] == (
        "bill.yml",
        3,
        "functions.bill.events.0.sqs",
    )
    (sarif_run,) = make_sarif([result])["runs"]
    uris = {
        sarif_result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        for sarif_result in sarif_run["results"]
    }
    assert uris == {"parts/queues.yml", "bill.yml"}


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("../queues.yml", "it is not below the template's folder"),
        ("/etc/passwd.yml", "it is not below the template's folder"),
        ("link.yml", "it is not below the template's folder"),
        ("loop.yml", "it is not below the template's folder"),
        ("pipe.yml", "it is not a regular file"),
        ("none.yml", "there is no such file"),
        ("queues.js", "only YAML and JSON files are read"),
        ("broken.yml", "no YAML"),
    ],
)
def test_lint_lists_a_file_that_it_does_not_read_with_the_reason(
    tmp_path: Path, name: str, reason: str
) -> None:
    folder = tmp_path / "service"
    folder.mkdir()
    (tmp_path / "queues.yml").write_text(f"Resources:\n  {ORDERS}")
    (folder / "link.yml").symlink_to(tmp_path / "queues.yml")
    (folder / "loop.yml").symlink_to(folder / "loop.yml")
    os.mkfifo(folder / "pipe.yml")
    result = _lint_folder(
        folder,
        {
            "serverless.yml": f"{HEAD}resources:\n  - ${{file({name})}}\n"
            f"  - Resources: {{{ORDERS.strip()}}}\n",
            "broken.yml": "a: [",
            "queues.js": "module.exports = {}",
        },
    )
    assert result.queues == 1
    (place,) = result.not_judged
    assert place.path == "resources.0"
    assert reason in place.because


def test_lint_refuses_a_serverless_file_that_names_more_than_200_other_files(
    tmp_path: Path,
) -> None:
    parts = "".join(f"  - ${{file(none{number}.yml)}}\n" for number in range(201))
    with pytest.raises(NotATemplate, match="names more than 200 other files"):
        _lint_folder(tmp_path, {"serverless.yml": f"{HEAD}resources:\n{parts}"})


def test_lint_does_not_read_a_file_beside_a_serverless_file_that_is_too_long(
    tmp_path: Path,
) -> None:
    long_part = f"Resources:\n  {ORDERS}#" + "x" * MOST_TEMPLATE_BYTES
    files = {"serverless.yml": f"{HEAD}resources: ${{file(a.yml)}}\n", "a.yml": long_part}
    result = _lint_folder(tmp_path, files)
    assert result.queues == 0
    assert [place.because for place in result.not_judged] == [
        f"${{file(a.yml)}}: it is longer than {MOST_TEMPLATE_BYTES:,} bytes"
    ]


@pytest.mark.parametrize(
    "files",
    [
        {
            "serverless.yml": f"{HEAD}resources: ${{file(a.yml)}}\n",
            "a.yml": "Resources: ${file(a.yml)}",
        },
        {"serverless.yml": f"{HEAD}custom: ${{self:custom.a}}\nresources: ${{self:custom.b}}\n"},
    ],
    ids=["a file", "a mapping"],
)
def test_lint_refuses_a_serverless_file_with_a_part_that_contains_itself(
    tmp_path: Path, files: Mapping[str, str]
) -> None:
    with pytest.raises(NotATemplate, match="contains itself"):
        _lint_folder(tmp_path, files)


def test_lint_replaces_the_account_and_the_region_by_the_names_of_cloudformation() -> None:
    event = "sqs: 'arn:aws:sqs:${aws:region}:${aws:accountId}:orders'"
    queues = """
resources:
  Resources:
    Orders: {Type: AWS::SQS::Queue, Properties: {QueueName: orders, VisibilityTimeout: 35}}
"""
    result = _lint_serverless(f"  bill: {{handler: a.b, events: [{event}]}}\n", queues=queues)
    assert "Orders: visibility_timeout_too_short" in _list_findings(result)
    assert result.not_judged == []


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("constructs: {jobs: {type: queue}}\n", "constructs.jobs"),
        ("functions: {bill: {events: [snsSqs: {name: a}]}}\n", "functions.bill.events.0.snsSqs"),
    ],
)
def test_lint_lists_queues_of_plugins_as_not_judged(text: str, path: str) -> None:
    result = lint(read_template(f"{HEAD}{text}".encode()), "serverless.yml", DeployTarget())
    assert [(place.path, place.because) for place in result.not_judged] == [
        (path, "a plugin makes it")
    ]


def test_lint_remedy_for_unreported_batch_failures_is_a_setting_of_serverless() -> None:
    (finding,) = _lint_serverless("  bill: {events: [{sqs: !GetAtt Orders.Arn}]}\n").findings
    assert finding.remedy[1:] == ("functionResponseType: ReportBatchItemFailures",)


@pytest.mark.parametrize(
    ("arn", "is_found"),
    [
        ("arn:aws:sqs:eu-west-1:111122223333:orders", True),
        ("arn:aws:sqs:eu-west-1:111122223333:other", False),
        ("arn:aws:sqs:eu-west-1:XXXXXX:orders", False),
    ],
    ids=["name of a declared queue", "another name", "no account"],
)
def test_lint_takes_an_arn_with_the_name_of_a_declared_queue_for_that_queue(
    arn: str, is_found: bool
) -> None:
    queues = """
resources:
  Resources:
    Orders: {Type: AWS::SQS::Queue, Properties: {QueueName: orders, VisibilityTimeout: 35}}
"""
    result = _lint_serverless(f"  bill: {{handler: a.b, events: [sqs: '{arn}']}}\n", queues=queues)
    assert ("Orders: visibility_timeout_too_short" in _list_findings(result)) is is_found


def test_lint_infers_no_account_if_arns_with_the_name_name_two() -> None:
    events = (
        "[{sqs: 'arn:aws:sqs:eu-west-1:111122223333:orders'}, "
        "{sqs: 'arn:aws:sqs:eu-west-1:444455556666:orders'}]"
    )
    queues = """
resources:
  Resources:
    Orders: {Type: AWS::SQS::Queue, Properties: {QueueName: orders, VisibilityTimeout: 35}}
"""
    result = _lint_serverless(f"  bill: {{handler: a.b, events: {events}}}\n", queues=queues)
    assert "Orders: visibility_timeout_too_short" not in _list_findings(result)


def test_lint_says_which_variable_of_a_serverless_file_is_not_known() -> None:
    event = "sqs: '${ssm:/shop/queue}'"
    result = _lint_serverless(f"  bill: {{handler: a.b, events: [{event}]}}\n")
    (place,) = result.not_judged
    assert place.because == "${ssm:/shop/queue}: known when it is deployed"


def test_lint_refuses_a_serverless_file_whose_variables_take_too_much_work() -> None:
    custom = "custom: {long: '" + "x" * 60_000 + "'}\n"
    names = "".join(
        f"    Queue{number}: {{Type: AWS::SQS::Queue, Properties: {{QueueName: "
        "'${self:custom.long}${self:custom.long}'}}\n"
        for number in range(100)
    )
    content = f"{HEAD}{custom}resources:\n  Resources:\n{names}".encode()
    with pytest.raises(NotATemplate, match="steps"):
        read_template(content, WorkBudget(1_000_000))


def test_lint_reads_yaml_aliases_and_merge_keys() -> None:
    """The framework writes them out, so they are no reason to refuse the file."""
    head = f"{HEAD}custom:\n  long: &long {{timeout: 60}}\n  redrive: &redrive\n    "
    head += "RedrivePolicy: {deadLetterTargetArn: !GetAtt OrdersDlq.Arn, maxReceiveCount: 2}\n"
    queues = QUEUES.replace(
        "        RedrivePolicy: {deadLetterTargetArn: !GetAtt OrdersDlq.Arn, maxReceiveCount: 5}",
        "        <<: *redrive",
    )
    function = f"  bill: {{handler: a.b, <<: *long, {EVENT}}}\n"
    result = _lint_serverless(function, head=head, queues=queues)
    assert set(_list_findings(result)) == {
        "Orders: visibility_timeout_too_short",
        "Orders: max_receive_count_too_low",
    }
    assert result.not_judged == []
    line_by_symptom = {finding.symptom: finding.line for finding in result.findings}
    assert line_by_symptom["max_receive_count_too_low"] == 6


@pytest.mark.parametrize("reserved", [0, 1])
def test_lint_remedy_names_the_reserved_concurrency_as_serverless_does(reserved: int) -> None:
    result = _lint_serverless(
        f"  bill: {{handler: a.b, reservedConcurrency: {reserved}, {EVENT}}}\n"
    )
    (finding,) = result.findings
    assert "reservedConcurrency" in finding.remedy[0]
    assert "ReservedConcurrentExecutions" not in finding.remedy[0]


DLQ_POLICY = """
    ForEvents:
      Type: AWS::SQS::QueuePolicy
      Properties:
        Queues: [!Ref OrdersDlq]
        PolicyDocument:
          Statement:
            - {Effect: Allow, Principal: {Service: events.amazonaws.com}, Action: "sqs:SendMessage",
               Resource: !GetAtt OrdersDlq.Arn}
"""
QUEUES_WITHOUT_POLICY = QUEUES.partition("    TlsOnly:")[0]
RULE = (
    "events: [{eventBridge: {schedule: rate(1 hour), deadLetterQueueArn: !GetAtt OrdersDlq.Arn}}]"
)


def _list_refusals(result: LintResult) -> list[str]:
    return [
        f"{finding.resource}: {finding.because}"
        for finding in result.findings
        if finding.symptom == "producer_refused"
    ]


def test_rule_of_an_event_whose_dlq_refuses_it_is_reported_at_the_event() -> None:
    function = f"  bill: {{handler: a.b, {RULE}}}\n"
    result = _lint_serverless(function, queues=QUEUES_WITHOUT_POLICY)
    (refusal,) = _list_refusals(result)
    assert refusal.startswith("OrdersDlq: its policy does not let events.amazonaws.com, for the ")
    assert "rule functions.bill.events.0.eventBridge" in refusal
    remedies = [line for finding in result.findings for line in finding.remedy]
    assert "aws:SourceAccount:" in [line.strip() for line in remedies]
    result = _lint_serverless(function, queues=f"{QUEUES_WITHOUT_POLICY}{DLQ_POLICY}")
    assert _list_refusals(result) == []


def test_rule_on_a_bus_that_the_dlqs_policy_names_is_not_reported() -> None:
    """The name of the rule is only known when it is deployed."""
    rule = RULE.replace("schedule", "eventBus: shop, schedule")
    condition = "Resource: !GetAtt OrdersDlq.Arn, Condition: {ArnLike: {'aws:SourceArn': !Sub "
    arn = "'arn:aws:events:${AWS::Region}:${AWS::AccountId}:rule/shop/*'}}"
    policy = DLQ_POLICY.replace("Resource: !GetAtt OrdersDlq.Arn", f"{condition}{arn}")
    function = f"  bill: {{handler: a.b, {rule}}}\n"
    result = _lint_serverless(function, queues=f"{QUEUES_WITHOUT_POLICY}{policy}")
    assert _list_refusals(result) == []


@pytest.mark.parametrize(
    "topic", ["topicName: paid", "arn: 'arn:aws:sns:eu-west-1:111122223333:paid'"]
)
def test_dlq_of_an_sns_event_has_the_policy_that_the_framework_writes(topic: str) -> None:
    event = f"events: [{{sns: {{{topic}, redrivePolicy: {{deadLetterTargetRef: OrdersDlq}}}}}}]"
    function = f"  bill: {{handler: a.b, {event}}}\n"
    result = _lint_serverless(function, queues=QUEUES_WITHOUT_POLICY)
    assert _list_refusals(result) == []
    assert result.not_judged == []
    result = _lint_serverless(function, queues=f"{QUEUES_WITHOUT_POLICY}{DLQ_POLICY}")
    reasons = [place.because for place in result.not_judged]
    assert any("both set it, and SQS keeps only one" in reason for reason in reasons)


def test_destination_and_dlq_of_a_function_must_be_standard_queues() -> None:
    fifo = "\n    Fifo: {Type: AWS::SQS::Queue, Properties: {FifoQueue: true, QueueName: a.fifo}}\n"
    queues = f"{QUEUES_WITHOUT_POLICY}{fifo}"
    for setting in (
        "onError: !GetAtt Fifo.Arn",
        "destinations: {onFailure: {type: sqs, arn: !GetAtt Fifo.Arn}}",
        "destinations: {onSuccess: !GetAtt Fifo.Arn}",
    ):
        function = f"  bill: {{handler: a.b, {setting}}}\n"
        result = _lint_serverless(function, queues=queues)
        assert [refusal.partition(":")[0] for refusal in _list_refusals(result)] == ["Fifo"]


@pytest.mark.parametrize(
    "setting",
    [
        "destinations: {onFailure: {type: sqs, arn: !GetAtt OrdersDlq.Arn}}",
        "destinations: {onFailure: otherFunction}",
        "destinations: text",
        "events: [{eventBridge: {pattern: {source: [a]}}}, {sns: paid}, {eventBridge: text}]",
    ],
)
def test_function_that_the_framework_lets_send_is_neither_reported_nor_listed(
    setting: str,
) -> None:
    function = f"  bill: {{handler: a.b, {setting}}}\n"
    result = _lint_serverless(function, queues=QUEUES_WITHOUT_POLICY)
    assert _list_refusals(result) == []
    assert result.not_judged == []


@pytest.mark.parametrize("name", ["serverless.ts", "serverless.js", "serverless.mjs"])
def test_configuration_that_is_a_program_is_refused_with_what_to_lint(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / name).write_text("module.exports = {}")
    with pytest.raises(NotATemplate, match="run `serverless package`, and lint "):
        list(list_template_sources(str(tmp_path / name)))


def test_function_with_a_name_of_its_own_is_found_by_it() -> None:
    mapping = """
    ReadOrders:
      Type: AWS::Lambda::EventSourceMapping
      Properties: {EventSourceArn: !GetAtt Orders.Arn, FunctionName: billing, BatchSize: 1}
"""
    queues = QUEUES.replace("VisibilityTimeout: 36", "VisibilityTimeout: 35")
    function = "  bill: {handler: a.b, name: billing}\n"
    result = _lint_serverless(function, queues=f"{queues.rstrip()}{mapping}")
    assert _list_findings(result) == ["Orders: visibility_timeout_too_short"]


def test_resources_of_an_event_have_the_names_of_function_event_and_number() -> None:
    """Two events of the same function must not make the same resource."""
    redrive = {"deadLetterTargetRef": "OrdersDlq"}
    sns = {"topicName": "paid-bills", "redrivePolicy": redrive}
    topic, policy, subscription = list_event_producers("Bill", 3, "sns", sns)
    assert (topic.logical_id, topic.properties) == (
        "SNSTopicpaidbills",
        {"TopicName": "paid-bills"},
    )
    assert policy.logical_id == "BillSns3Policy"
    assert policy.properties["Queues"] == [{"Ref": "OrdersDlq"}]
    assert subscription.logical_id == "BillSns3"
    assert subscription.properties["Endpoint"] == {"Fn::GetAtt": ["Bill", "Arn"]}
    settings = {"deadLetterQueueArn": "arn", "eventBus": "shop"}
    (rule,) = list_event_producers("Bill", 3, "eventBridge", settings)
    assert (rule.logical_id, rule.properties["EventBusName"]) == ("BillEventBridge3", "shop")
    assert list(list_event_producers("Bill", 3, "eventBridge", {"eventBus": "shop"})) == []
    assert list(list_event_producers("Bill", 3, "sns", settings)) == []


def test_dlqs_of_a_functions_events_are_resources_of_the_template() -> None:
    event = "{sns: {topicName: paid, redrivePolicy: {deadLetterTargetRef: OrdersDlq}}}"
    functions = f"functions:\n  bill: {{handler: a.b, events: [{{http: get}}, {event}]}}\n"
    template = read_template(f"{HEAD}{functions}{QUEUES}".encode())
    subscription = template.resources["BillLambdaFunctionSns1"]
    endpoint = {"Fn::GetAtt": ["BillLambdaFunction", "Arn"]}
    assert subscription.properties["Endpoint"] == endpoint

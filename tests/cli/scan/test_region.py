"""Test `mendq scan` in a region without a stack, and beside a stack."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, ReadTimeoutError
from msgspec import structs
from typer.testing import CliRunner

from mendq.aws.errors import FactsUnavailable
from mendq.cases.finding import Finding, ScanResult
from mendq.catalogue import CATALOGUE
from mendq.cli import account as cli_account
from mendq.cli.app import app
from mendq.cli.exit_codes import CommandError, Exit
from mendq.cli.invocation import describe_error
from mendq.cli.scan.dry_run import ExpectedAction, MetricBudget
from mendq.cli.scan.region_scan import RegionScan
from mendq.model.facts import list_scan_read_actions
from mendq.model.queue import parse_queue_arn
from mendq.model.severity_class import SeverityClass
from mendq.scan.reader import Paces
from mendq.scan.severity import FindingSeverity
from tests.cli.builders import FakeDeployedAccount, Operator
from tests.cli.called_actions import record_called_actions
from tests.cli.scan.builders import (
    RETENTION,
    make_source_and_dlq,
    read_account_state,
    select_finding,
)

ARN = "arn:aws:sqs:us-east-1:123456789012:"


class UndeployedAccount(FakeDeployedAccount, frozen=True, dict=True):
    """An account without a stack. Any use of the stack's outputs or settings raises an error."""

    @property
    def outputs(self) -> Any:
        raise CommandError("no stack Mendq in us-east-1: give --stack or --region", Exit.NOT_FOUND)

    settings = outputs


@pytest.fixture
def stackless_operator(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> Operator:
    account = UndeployedAccount(operator.account.session, "Mendq", operator.account.known)
    monkeypatch.setattr(cli_account.Account, "from_options", lambda *_: account)
    return Operator(operator.aws, account)


def _make_unmanaged_source_and_dlq(operator: Operator, name: str = "orders") -> str:
    """Make a source and its DLQ without any tag. Return the DLQ's ARN."""
    sqs = operator.aws.clients.sqs
    kept: Any = {"MessageRetentionPeriod": RETENTION}
    dead = sqs.create_queue(QueueName=f"{name}-dlq", Attributes=kept)["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]
    redrive = {"deadLetterTargetArn": arn["QueueArn"], "maxReceiveCount": "5"}
    sqs.create_queue(QueueName=name, Attributes={"RedrivePolicy": json.dumps(redrive)})
    return arn["QueueArn"]


def test_scan_without_a_stack_reports_findings_with_commands_and_changes_nothing(
    stackless_operator: Operator,
) -> None:
    dead = _make_unmanaged_source_and_dlq(stackless_operator)
    before = read_account_state(stackless_operator)
    report = stackless_operator.run_json("scan")
    assert read_account_state(stackless_operator) == before
    finding = select_finding(report["findings"], dead, "dlq_retention_too_short")
    assert finding["severity"] == FindingSeverity.AT_RISK
    assert finding["class"] == "may_lose"
    assert (finding["account"], finding["region"]) == ("123456789012", "us-east-1")
    assert finding["first_step"] == "Raise the DLQ's retention period to 14 days."
    assert report["schema"] == 1
    (manual,) = finding["plan"]["commands"]
    assert manual.startswith("aws sqs set-queue-attributes --region us-east-1 --queue-url https://")
    assert manual.endswith("--attributes MessageRetentionPeriod=1209600")
    assert len(report["queues"]) == 2
    assert {*report["not_seen"]} == {*report["queues"]}, (
        "made just now, they cannot be measured yet"
    )
    assert report["metrics_asked"] == 0


def test_scan_class_option_shows_only_findings_of_the_named_classes(
    stackless_operator: Operator,
) -> None:
    _make_unmanaged_source_and_dlq(stackless_operator)
    every_class = [finding["class"] for finding in stackless_operator.run_json("scan")["findings"]]
    assert every_class == sorted(every_class, key=list(SeverityClass).index), "the worst first"
    report = stackless_operator.run_json("scan", "--class", "hygiene", "--class", "losing")
    assert {finding["class"] for finding in report["findings"]} == {"hygiene"}
    assert len(report["findings"]) == every_class.count("hygiene")


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ([], Exit.DONE),
        (["--fail-on", "losing"], Exit.DONE),
        (["--fail-on", "may_lose"], Exit.FAILED),
        (["--fail-on", "may_lose", "--ignore", "dlq_retention_too_short"], Exit.DONE),
        (["--fail-on", "may_lose", "--ignore", "dlq_retention_too_short:orders-dlq"], Exit.DONE),
        (["--fail-on", "may_lose", "--ignore", "dlq_retention_too_short:bills-dlq"], Exit.FAILED),
    ],
)
def test_scan_fail_on_option_fails_only_if_a_finding_of_the_class_is_shown(
    stackless_operator: Operator, options: list[str], code: Exit
) -> None:
    _make_unmanaged_source_and_dlq(stackless_operator)
    assert stackless_operator.run("scan", *options).exit_code == code


def test_scan_first_lines_name_the_account_and_the_queues_that_need_attention(
    stackless_operator: Operator,
) -> None:
    _make_unmanaged_source_and_dlq(stackless_operator)
    printed = stackless_operator.read_output("scan")
    first_line = (
        "2 queues of 123456789012, us-east-1: 1 needs attention, 1 with hygiene findings only"
    )
    assert first_line in printed
    assert "Raise the DLQ's retention period to 14 days." in printed
    assert "Nothing was changed" in printed


def test_scan_without_cloudwatch_rights_reports_attribute_findings_without_a_plan(
    stackless_operator: Operator,
) -> None:
    stackless_operator.aws.later(hours=-8)
    dead = _make_unmanaged_source_and_dlq(stackless_operator)
    stackless_operator.aws.later(hours=8)

    def refuse(**_: Any) -> None:
        raise _aws_refuses("AccessDenied", "GetMetricData")

    stackless_operator.account.session.events.register(
        "before-call.cloudwatch.GetMetricData", refuse
    )
    finding = select_finding(
        stackless_operator.run_json("scan")["findings"], dead, "dlq_retention_too_short"
    )
    assert finding["plan"]["would"] == "cannot say"
    assert "GetMetricData" in finding["plan"]["why"]
    assert (finding["plan"]["steps"], finding["plan"]["commands"]) == ([], [])


def test_scan_without_the_right_to_list_mappings_names_the_consumers_and_judges_the_rest(
    stackless_operator: Operator,
) -> None:
    dead = _make_unmanaged_source_and_dlq(stackless_operator)

    def refuse(**_: Any) -> None:
        raise _aws_refuses("AccessDenied", "ListEventSourceMappings")

    stackless_operator.account.session.events.register(
        "before-call.lambda.ListEventSourceMappings", refuse
    )
    report = stackless_operator.run_json("scan")
    assert select_finding(report["findings"], dead, "dlq_retention_too_short")
    assert report["not_seen"][dead].startswith("consumers not judged: Lambda consumers")


@pytest.fixture
def three_queues(stackless_operator: Operator) -> Operator:
    """An operator of an account with the queues orders, ordered and bills."""
    for name in ("orders", "ordered", "bills"):
        stackless_operator.aws.clients.sqs.create_queue(QueueName=name)
    return stackless_operator


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ((), {"orders", "ordered", "bills"}),
        (("--queue", "orders"), {"orders"}),
        (("--queue", f"{ARN}orders"), {"orders"}),
        (("--prefix", "order"), {"orders", "ordered"}),
        (("--queue", "bills", "--prefix", "orders"), {"bills", "orders"}),
    ],
    ids=["all queues", "name", "ARN", "prefix", "name and prefix"],
)
def test_scan_with_queue_and_prefix_options_reads_only_matching_queues(
    three_queues: Operator, options: tuple[str, ...], names: set[str]
) -> None:
    queue_arns = three_queues.run_json("scan", *options)["queues"]
    assert {arn.rpartition(":")[2] for arn in queue_arns} == names


def test_scan_of_a_queue_given_by_its_url_reads_only_that_queue(three_queues: Operator) -> None:
    url = three_queues.aws.url(f"{ARN}orders")
    assert [*three_queues.run_json("scan", "--queue", url)["queues"]] == [f"{ARN}orders"]


def test_scan_of_a_queue_that_does_not_exist_fails_and_still_scans_the_others(
    three_queues: Operator,
) -> None:
    options = ("--queue", "none", "--queue", "bills")
    absent = three_queues.run_json("scan", *options, code=Exit.NOT_FOUND)
    assert absent["not_seen"]["none"] == "there is no queue of that name"
    assert [arn.rpartition(":")[2] for arn in absent["queues"]] == ["bills"]


def test_scan_does_not_call_a_queue_absent_whose_name_could_not_be_listed(
    three_queues: Operator,
) -> None:
    def refuse(params: dict[str, Any], **_: Any) -> None:
        if "orders" in str(params["body"]):
            raise _aws_refuses("AccessDenied", "ListQueues")

    three_queues.account.session.events.register("before-call.sqs.ListQueues", refuse)
    options = ("--queue", "orders", "--queue", "bills")
    scanned = three_queues.run_json("scan", *options)
    assert "ListQueues" in scanned["not_seen"]["orders"]
    assert [arn.rpartition(":")[2] for arn in scanned["queues"]] == ["bills"]


def _deny_reading(operator: Operator, whose: str) -> None:
    """Deny GetQueueAttributes for queues whose name contains `whose`."""

    def refuse(params: Any, **_: Any) -> None:
        if whose in str(params["body"]):
            raise _aws_refuses("AccessDenied", "GetQueueAttributes")

    operator.account.session.events.register("before-call.sqs.GetQueueAttributes", refuse)


def test_scan_without_settings_does_not_report_a_notify_tag_with_an_unknown_team(
    stackless_operator: Operator,
) -> None:
    tags = {"mendq": "Heal", "mendq:notify": "payments"}
    stackless_operator.aws.clients.sqs.create_queue(QueueName="orders", tags=tags)
    findings = stackless_operator.run_json("scan", "--queue", "orders")["findings"]
    assert "notify" not in select_finding(findings, f"{ARN}orders", "tag_not_understood")["reason"]


def test_scan_lists_denied_off_and_quarantine_queues_as_not_seen_but_not_mendqs_own_queues(
    stackless_operator: Operator,
) -> None:
    off = stackless_operator.aws.queue("left-alone", "off")
    set_aside = stackless_operator.aws.queue("orders-quarantine")
    own = [
        stackless_operator.aws.queue(name, "off")
        for name in ("Mendq-Intake7A-XY", "mendq-probe.fifo")
    ]
    dead = _make_unmanaged_source_and_dlq(stackless_operator)

    _deny_reading(stackless_operator, "orders-dlq")
    report = stackless_operator.run_json("scan")
    assert set(report["not_seen"]) >= {off, dead, set_aside}
    assert not set(report["not_seen"]) & set(own), "the stack's own, which alarms watch"
    assert set_aside not in report["queues"]
    assert "AccessDenied" in report["not_seen"][dead]
    assert "Not fully judged" in stackless_operator.read_output("scan")


@pytest.mark.parametrize("measuring_minutes", [60, 1])
def test_scan_beside_a_stack_measures_a_new_queue_only_after_the_measuring_minutes_of_the_stack(
    operator: Operator, measuring_minutes: int
) -> None:
    """The queue is two minutes old."""
    queue = operator.aws.queue("orders", "observe")
    timing = replace(operator.account.known.timing, measuring_minutes=measuring_minutes)
    settings = structs.replace(operator.account.known, timing=timing)
    beside = FakeDeployedAccount(operator.account.session, "Mendq", settings)
    region_scan = RegionScan(beside, datetime.now(UTC) + timedelta(minutes=2), MetricBudget(100))
    *_, scanned = region_scan.run_scan()
    why = "not measured: made or changed too lately, as 60 minutes of it have to be counted"
    expected = {queue: why} if measuring_minutes == 60 else {}
    assert region_scan.explain_unchecked(scanned) == expected
    assert bool(scanned.metrics) is (measuring_minutes == 1)


@pytest.mark.parametrize(
    "odd", ["", "NaN", "1e999", "9" * 400, "<b>\x1b[31m\u202e", "{", "[" * 5_000]
)
def test_scan_with_malformed_queue_attributes_does_not_fail_and_escapes_the_attributes(
    operator: Operator, odd: str, tmp_path: Path
) -> None:
    """Attributes are text of others, and may change between two reads."""
    make_source_and_dlq(operator, "heal")
    seen = Counter[str]()

    def change_attributes(parsed: Any, **_: Any) -> None:
        seen.update(["GetQueueAttributes"])
        names = ("CreatedTimestamp", "LastModifiedTimestamp", "MessageRetentionPeriod", "Policy")
        if seen.total() > 2:
            parsed["Attributes"] |= dict.fromkeys(names, odd)

    operator.account.session.events.register("after-call.sqs.GetQueueAttributes", change_attributes)
    result = operator.run("scan", "--html", str(tmp_path / "scan.html"))
    assert result.exit_code == Exit.DONE, result.output
    page = (tmp_path / "scan.html").read_text()
    assert not {"\x1b", "\u202e"} & set(result.output + page)
    assert "<b>" not in page


def test_scan_reports_findings_without_a_plan_if_the_case_store_cannot_be_read(
    operator: Operator,
) -> None:
    dead = make_source_and_dlq(operator, "heal")

    def refuse(**_: Any) -> None:
        raise _aws_refuses("ThrottlingException", "GetItem")

    operator.account.session.events.register("before-call.dynamodb", refuse)
    finding = select_finding(operator.run_json("scan")["findings"], dead, "dlq_retention_too_short")
    assert finding["plan"]["would"] == "cannot say"


def test_scan_fails_if_no_queue_could_be_read(stackless_operator: Operator) -> None:
    _make_unmanaged_source_and_dlq(stackless_operator)

    _deny_reading(stackless_operator, "orders")
    assert len(stackless_operator.run_json("scan", code=1)["not_seen"]) == 2
    output = stackless_operator.read_output("scan", code=1)
    assert "no queue could be judged" in output
    assert "nothing was found" not in output
    assert "orders, orders-dlq: AWS refused GetQueueAttributes: AccessDenied: not now" in output


def test_scan_beside_a_stack_says_what_the_stack_would_do_to_managed_queues(
    operator: Operator,
) -> None:
    managed = make_source_and_dlq(operator, "propose")
    other = _make_unmanaged_source_and_dlq(operator, "bills")
    before = read_account_state(operator)
    findings = operator.run_json("scan")["findings"]
    assert read_account_state(operator) == before
    would_by_arn = {
        arn: select_finding(findings, arn, "dlq_retention_too_short")["plan"]["would"]
        for arn in (managed, other)
    }
    assert would_by_arn == {managed: "proposes", other: "could change"}


def _aws_refuses(code: str, operation: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "not now"}}, operation)


class UnreadableStackAccount(FakeDeployedAccount, frozen=True, dict=True):
    """An account with a stack whose settings cannot be read."""

    why: Any = None

    @property
    def settings(self) -> Any:
        raise self.why


UNREADABLE = (
    CommandError("the settings of heal: MENDQ_MODE is not known"),
    _aws_refuses("AccessDeniedException", "GetFunctionConfiguration"),
    _aws_refuses("Throttling", "DescribeStacks"),
    FactsUnavailable("the managed queues: Rate exceeded"),
    EndpointConnectionError(endpoint_url="https://lambda"),
)


@pytest.mark.parametrize("why", UNREADABLE, ids=str)
def test_scan_reports_findings_if_the_settings_of_the_stack_cannot_be_read(
    operator: Operator, monkeypatch: pytest.MonkeyPatch, why: Exception
) -> None:
    account = UnreadableStackAccount(
        operator.account.session, "Mendq", operator.account.known, why=why
    )
    monkeypatch.setattr(cli_account.Account, "from_options", lambda *_: account)
    dead = make_source_and_dlq(operator, "heal")
    report = operator.run_json("scan")
    assert report["not_seen"]["the stack Mendq"] == describe_error(why)
    plan = select_finding(report["findings"], dead, "dlq_retention_too_short")["plan"]
    assert plan["would"] == "could change"


def test_scan_without_the_describe_stacks_right_does_not_mention_a_stack(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    denied = _aws_refuses("AccessDenied", "DescribeStacks")
    account = UnreadableStackAccount(
        operator.account.session, "Mendq", operator.account.known, why=denied
    )
    monkeypatch.setattr(cli_account.Account, "from_options", lambda *_: account)
    assert operator.run_json("scan")["not_seen"] == {}


def read_scan_policy(operator: Operator) -> set[str]:
    """Return the actions of the policy that `mendq scan --policy` prints."""
    (statement,) = json.loads(operator.run("scan", "--policy").stdout)["Statement"]
    assert statement["Resource"] == ["*"]
    return set(statement["Action"])


def test_scan_policy_option_prints_exactly_the_read_actions_that_a_scan_needs(
    stackless_operator: Operator,
) -> None:
    allowed = read_scan_policy(stackless_operator)
    reads = ("Describe", "Get", "List")
    assert all(action.partition(":")[2].startswith(reads) for action in allowed)
    needs = {need for entry in CATALOGUE if entry.detection for need in entry.all_needs}
    needed = {action.iam_action for action in list_scan_read_actions(needs)}
    assert allowed == needed | {"sqs:ListQueues", "tag:GetResources"}


def test_scan_calls_only_actions_of_the_policy_that_its_option_prints(
    stackless_operator: Operator,
) -> None:
    allowed = read_scan_policy(stackless_operator)
    _make_unmanaged_source_and_dlq(stackless_operator)
    with record_called_actions() as called:
        CliRunner().invoke(app, ["scan"], catch_exceptions=False)
    assert {"sqs:GetQueueAttributes"} < called <= allowed


def test_scan_html_page_has_every_finding_and_no_script(
    stackless_operator: Operator, tmp_path: Path
) -> None:
    _make_unmanaged_source_and_dlq(stackless_operator)
    path = tmp_path / "scan.html"
    report = stackless_operator.run_json("scan", "--html", str(path))
    assert report["findings"]
    page = path.read_text()
    for finding in report["findings"]:
        assert finding["symptom"].replace("_", "_<wbr>") in page
    assert "<script" not in page
    assert "`" not in page


def test_scan_html_page_can_be_read_by_its_owner_only(
    stackless_operator: Operator, tmp_path: Path
) -> None:
    _make_unmanaged_source_and_dlq(stackless_operator)
    path = tmp_path / "scan.html"
    stackless_operator.run_json("scan", "--html", str(path))
    assert path.stat().st_mode & 0o777 == 0o600


def test_scan_lists_symptoms_that_only_failed_calls_show_and_none_that_a_scan_finds(
    stackless_operator: Operator,
) -> None:
    report = stackless_operator.run_json("scan")
    found_by_scan = {entry.name for entry in CATALOGUE if entry.detection}
    seen_in_calls = {entry.name for entry in CATALOGUE if entry.seen_as}
    assert report["by_failed_calls_alone"]
    assert set(report["by_failed_calls_alone"]) <= seen_in_calls - found_by_scan


@pytest.mark.parametrize("name", ["pipe", "link", "folder", "no/scan.html", ""])
def test_scan_refuses_an_unwritable_html_path_before_it_calls_sqs(
    stackless_operator: Operator, tmp_path: Path, name: str
) -> None:
    """An existing pipe stays: replacing it by a file would break the program that reads it."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    before = [(file.name, file.lstat().st_mode) for file in sorted(tmp_path.iterdir())]
    calls: list[str] = []
    stackless_operator.account.session.events.register(
        "before-call.sqs", lambda model, **_: calls.append(model)
    )
    stackless_operator.read_refusal(
        "scan", "--html", str(tmp_path / name if name else ""), code=Exit.USAGE
    )
    assert [(file.name, file.lstat().st_mode) for file in sorted(tmp_path.iterdir())] == before
    assert calls == []


def _count_metric_calls(operator: Operator) -> list[str]:
    calls: list[str] = []
    operator.account.session.events.register(
        "before-call.cloudwatch.GetMetricData", lambda model, **_: calls.append(model.name)
    )
    return calls


def test_scan_that_may_cost_more_than_a_dollar_asks_first_and_reads_no_metric_before(
    stackless_operator: Operator,
) -> None:
    stackless_operator.aws.queue("orders")
    calls = _count_metric_calls(stackless_operator)
    refusal = stackless_operator.read_refusal("scan", "--max-metrics", "100001", code=Exit.USAGE)
    assert "$1.00" in refusal
    assert "--yes" in refusal
    assert calls == []
    assert stackless_operator.run_json("scan", "--max-metrics", "100001", "--yes")["queues"]


def test_scan_that_may_cost_a_dollar_or_less_does_not_ask(stackless_operator: Operator) -> None:
    queue_arn = stackless_operator.aws.queue("orders")
    report = stackless_operator.run_json("scan", "--max-metrics", "100000")
    assert report["queues"] == [queue_arn]


def test_scan_may_ask_for_six_metrics_a_queue_by_default_and_says_the_price_first(
    three_queues: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mendq.cli.look.scan._LEAST_DEFAULT_METRIC_COUNT", 10)
    output = three_queues.read_output("scan")
    assert output.startswith("at most 18 metrics of CloudWatch, $0.00")


@pytest.mark.parametrize("unanswered_calls", [1, 2])
def test_scan_whose_stack_queues_cannot_be_listed_still_uses_its_measuring_minutes(
    operator: Operator, monkeypatch: pytest.MonkeyPatch, unanswered_calls: int
) -> None:
    timing = replace(operator.account.known.timing, measuring_minutes=1)
    settings = structs.replace(operator.account.known, timing=timing)
    beside = FakeDeployedAccount(operator.account.session, "Mendq", settings)
    operator.aws.queue("orders", "observe")
    timeout = ReadTimeoutError(endpoint_url="https://lambda")
    answers: list[object] = [timeout] * unanswered_calls + [()]

    def list_queues(*_: object) -> object:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr("mendq.cli.scan.dry_run.list_managed_queues", list_queues)
    region_scan = RegionScan(beside, datetime.now(UTC) + timedelta(minutes=2), MetricBudget(100))
    *_, scanned = region_scan.run_scan()
    assert scanned.unsettled_arns == ()
    assert scanned.metrics, "two minutes are enough for this stack"


QUEUES = 1_000
MOST_SECONDS = 60


@pytest.mark.long
def test_scan_of_1000_queues_needs_under_a_minute_at_its_call_rates(
    stackless_operator: Operator,
) -> None:
    """The time is the number of calls divided by the scan's call rates. No clock is read."""
    sqs = boto3.client("sqs", "us-east-1")
    calls: Counter[str] = Counter()
    for n in range(QUEUES):
        sqs.create_queue(QueueName=f"q{n}")
    stackless_operator.account.session.events.register(
        "before-call", lambda model, **_: calls.update([model.service_model.service_name])
    )
    paces = Paces()
    stackless_operator.run_json("scan")
    seconds = {
        "sqs": calls["sqs"] / (paces.sqs_pace.per_second or 1),
        "lambda": calls["lambda"] / (paces.lambda_pace.per_second or 1),
        "cloudwatch": calls["cloudwatch"] / (paces.cloudwatch_pace.per_second or 1),
    }
    assert calls["sqs"] >= QUEUES
    assert sum(seconds.values()) < MOST_SECONDS, seconds


def test_scan_leaves_muted_findings_out_and_reports_ended_and_stale_mutes(
    stackless_operator: Operator, tmp_path: Path
) -> None:
    dead = _make_unmanaged_source_and_dlq(stackless_operator)
    mutes = tmp_path / "mutes.toml"
    mute = '[[mute]]\nqueue = "{}"\nsymptom = "dlq_retention_too_short"\nreason = "r"\nuntil = {}\n'
    name = parse_queue_arn(dead).name
    mutes.write_text(mute.format(f"{name[:-3]}*", "2100-01-01") + mute.format(name, "2020-01-01"))
    report = stackless_operator.run_json("scan", "--config", str(mutes))
    assert not [
        finding for finding in report["findings"] if finding["symptom"] == "dlq_retention_too_short"
    ]
    (muted,) = report["muted"]
    assert (muted["queue_arn"], muted["class"], muted["until"]) == (dead, "may_lose", "2100-01-01")
    (ended,) = report["stale"]
    assert ended["where"].endswith("mutes.toml, mute 2")
    mutes.write_text(mute.format(name, "2020-01-01"))
    report = stackless_operator.run_json("scan", "--config", str(mutes))
    assert select_finding(report["findings"], dead, "dlq_retention_too_short")


def test_scan_reports_a_mute_as_stale_once_its_queue_was_checked_without_the_symptom(
    stackless_operator: Operator, tmp_path: Path
) -> None:
    stackless_operator.aws.later(hours=-8)
    stackless_operator.aws.clients.sqs.create_queue(QueueName="orders")
    stackless_operator.aws.later(hours=8)
    mutes = tmp_path / "mutes.toml"
    mute = '[[mute]]\nqueue = "{}"\nsymptom = "policy_is_public"\nreason = "r"\n'
    mute += "until = 2100-01-01\n"
    mutes.write_text(mute.format("orders") + mute.format("bills"))
    report = stackless_operator.run_json("scan", "--config", str(mutes))
    assert [stale["where"][-6:] for stale in report["stale"]] == ["mute 1"], (
        "no queue is named bills, so nothing is known about the second"
    )


def test_json_of_a_scan_names_the_symptom_that_explains_a_finding(
    stackless_operator: Operator,
) -> None:
    dlq_arn = _make_unmanaged_source_and_dlq(stackless_operator)
    source_arn = dlq_arn.removesuffix("-dlq")
    cause = Finding(source_arn, "consumer_failing", "nothing is finished")
    consequence = Finding(dlq_arn, "dlq_messages_arriving", "571 came", (source_arn,))
    region_scan = RegionScan(stackless_operator.account, datetime.now(UTC), MetricBudget(0))
    actions = {consequence: ExpectedAction("pages"), cause: ExpectedAction("pages")}
    findings = region_scan.document(ScanResult(), actions)["findings"]
    assert [(finding["symptom"], finding["explained_by"]) for finding in findings] == [
        ("consumer_failing", None),
        ("dlq_messages_arriving", "consumer_failing"),
    ]


def test_scan_of_one_queue_does_not_call_a_mute_of_several_queues_stale(
    stackless_operator: Operator, tmp_path: Path
) -> None:
    stackless_operator.aws.later(hours=-8)
    for name in ("orders-a", "orders-b"):
        stackless_operator.aws.clients.sqs.create_queue(QueueName=name)
    stackless_operator.aws.later(hours=8)
    mutes = tmp_path / "mutes.toml"
    mute = '[[mute]]\nqueue = "orders-*"\nsymptom = "policy_is_public"\nreason = "r"\n'
    mutes.write_text(f"{mute}until = 2100-01-01\n")
    options = ("--config", str(mutes))
    assert stackless_operator.run_json("scan", "--queue", "orders-a", *options)["stale"] == []
    (stale,) = stackless_operator.run_json("scan", *options)["stale"]
    assert "names 2 checked queues, and none has the symptom" in stale["because"]


def test_scan_with_a_wrong_mute_list_exits_2_and_asks_aws_nothing(
    stackless_operator: Operator, tmp_path: Path
) -> None:
    mutes = tmp_path / "mutes.toml"
    mutes.write_text('[[mute]]\nqueue = "orders"\n')
    refusal = stackless_operator.read_refusal("scan", "--config", str(mutes), code=2)
    assert "mute 1, until: is missing" in refusal

"""Commands on a scan-only stack: what they show, and what they refuse before they do anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest

from mendq.cases import items
from mendq.cli import account as cli_account
from mendq.cli.account import Account as OperatedAccount
from mendq.cli.doctor.check import Check, Status
from mendq.cli.doctor.checks import SCAN_ONLY_CHECK_FUNCTION_BY_NAME, Doctor, check_topics
from mendq.cli.doctor.deployment import Deployment
from mendq.cli.doctor.life import check_scan, read_scan_only_summary
from mendq.cli.exit_codes import CommandError
from mendq.model.consent import Consent
from mendq.model.limits import Limits
from mendq.model.settings import ScanOnlySettings
from mendq.redrive.progress import Stage
from mendq.scan.reader import Paces
from mendq.scan.scan_only import ScanOnlyContext, scan_and_report
from mendq.scan.store import SCAN_SUMMARY_KEY
from tests.account.account import Account, moto_account
from tests.cli.builders import FakeDeployedAccount, Operator
from tests.cli.redrive.builders import make_orders_queues
from tests.infra.synthesized import template_with

SCAN_ONLY_OUTPUTS = {
    "CaseTable": "case_store",
    "ScanFunction": "scan",
    "UrgentTopic": "arn:aws:sns:us-east-1:123456789012:urgent",
}


class ScanOnlyAccount(FakeDeployedAccount, frozen=True, dict=True):
    """An account with a made-up scan-only stack."""

    @property
    def outputs(self) -> Mapping[str, str]:
        return SCAN_ONLY_OUTPUTS


@pytest.fixture
def operator(monkeypatch: pytest.MonkeyPatch) -> Iterator[Operator]:
    """An operator whose stack is scan-only."""
    with moto_account() as moto:
        session = boto3.Session(region_name="us-east-1")
        account = ScanOnlyAccount(session, "Mendq", moto.settings)
        monkeypatch.setattr(cli_account.Account, "from_options", lambda *_: account)
        yield Operator(moto, account)


@pytest.mark.parametrize(
    "arguments",
    [
        ("approve", "orders"),
        ("decline", "orders"),
        ("close", "orders"),
        ("rollback", "orders"),
        ("rollback", "--since", "1d", "--dry-run"),
        ("freeze", "--yes"),
        ("policy", "pin", "orders", "--yes"),
        ("drill", "--yes"),
        ("confirm", "orders", "--yes"),
        ("confirm", "orders", "--revoke", "--yes"),
        ("report",),
    ],
)
def test_command_that_a_scan_only_stack_cannot_serve_is_refused_and_changes_nothing(
    operator: Operator, arguments: tuple[str, ...]
) -> None:
    operator.aws.queue("orders")
    before = operator.aws.case_store_items()
    message = operator.read_refusal(*arguments, code=1)
    assert message.startswith("stack Mendq is scan-only (scanOnly: true): ")
    assert message.endswith("nothing was done")
    assert operator.aws.case_store_items() == before
    assert operator.account.invoked == []


def test_unfinished_redrive_of_an_earlier_whole_stack_does_not_block_redrive_on_a_scan_only_stack(
    operator: Operator,
) -> None:
    """Nothing continues that redrive, and `mendq rollback` is refused here."""
    queues = make_orders_queues(operator)
    queues.write("one")
    queues.set_redrive_stage(Stage.SOAK)
    assert queues.redrive("--all", "--yes")["moved"] == 1
    assert queues.read_bodies(queues.source) == {"one"}


def test_redrive_on_a_scan_only_stack_moves_nothing_while_another_run_has_claimed_the_dlq(
    operator: Operator,
) -> None:
    """A run of the whole stack may end after its Lambda was deleted."""
    queues = make_orders_queues(operator)
    ids = {queues.write("one")}
    queues.set_redrive_stage(Stage.SOAK)
    assert queues.claim_dlq()
    error = queues.redrive("--all", "--yes", code=1)["error"]
    assert error["code"] == "redrive_running"
    assert queues.read_ids(queues.messages) == ids
    assert queues.read_ids(queues.source) == set()


def test_freeze_of_a_whole_stack_is_not_refused() -> None:
    """The near miss: a stack that has the scan and heal."""
    with moto_account() as moto:
        account = FakeDeployedAccount(
            boto3.Session(region_name="us-east-1"), "Mendq", moto.settings
        )
        assert not account.is_scan_only
        account.require_whole_stack("freeze")


def test_error_about_a_missing_output_says_that_the_stack_is_scan_only_and_how_to_get_it(
    operator: Operator,
) -> None:
    with pytest.raises(CommandError) as refused:
        operator.account.output("CaseBucket")
    assert "is scan-only (scanOnly: true)" in str(refused.value)
    assert "has no CaseBucket; deploy it without scanOnly to get one" in str(refused.value)


def test_cases_and_queues_say_that_a_scan_only_stack_opens_no_case_and_name_scan_dry_run(
    operator: Operator,
) -> None:
    operator.aws.queue("orders", "observe")
    assert "opens no case" in operator.read_output("cases")
    listed = operator.read_output("queues")
    assert "orders" in listed
    assert "no scan has come" not in listed
    assert "`mendq scan --dry-run` shows them" in listed


def test_settings_of_a_scan_only_stack_are_read_from_its_only_lambda_and_have_one_topic(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = ScanOnlySettings(
        account="123456789012",
        case_table="case_store",
        consent=Consent(queues=("orders",)),
        limits=Limits(scan_metrics_per_day=7),
        urgent_topic_arn=SCAN_ONLY_OUTPUTS["UrgentTopic"],
    )
    asked = []

    def answer(FunctionName: str) -> Any:  # noqa: N803 - boto3's name
        asked.append(FunctionName)
        return {"Environment": {"Variables": settings.to_environment()}}

    with moto_account() as moto:
        session = boto3.Session(region_name="us-east-1")
        monkeypatch.setattr(OperatedAccount, "outputs", SCAN_ONLY_OUTPUTS)
        account = OperatedAccount(session, "Mendq")
        monkeypatch.setattr(account.clients.functions, "get_function_configuration", answer)
        read = account.settings
        assert moto.settings.account == read.account
    assert asked == ["scan"]
    assert (read.consent, read.limits.scan_metrics_per_day) == (settings.consent, 7)
    assert {read.urgent_topic_arn, read.info_topic_arn} == {settings.urgent_topic_arn}


def _run_scan(account: Account) -> None:
    settings = ScanOnlySettings(
        account=account.settings.account,
        case_table=account.settings.case_table,
        consent=account.settings.consent,
        urgent_topic_arn=account.settings.urgent_topic_arn,
    )
    context = ScanOnlyContext(
        clients=account.clients,
        settings=settings,
        owner="scan",
        now=account.now,
        remaining_seconds=lambda: 900.0,
        paces=Paces(),
    )
    assert scan_and_report(context) is not None


def _check_scan(operator: Operator) -> Check:
    summary = read_scan_only_summary(operator.account)
    return check_scan(summary, operator.account, operator.aws.now)


def test_doctor_of_a_scan_only_stack_fails_before_the_first_scan_and_two_hours_after_the_last(
    operator: Operator,
) -> None:
    assert _check_scan(operator).status is Status.FAIL, "none in all the time since the deployment"
    operator.aws.queue("orders", "observe")
    _run_scan(operator.aws)
    check = _check_scan(operator)
    assert check.status is Status.OK
    assert "1 queues" in check.sentence
    operator.aws.later(hours=2)
    assert _check_scan(operator).status is Status.FAIL


def test_doctor_of_a_scan_only_stack_judges_a_malformed_scan_summary_like_no_scan_and_fails(
    operator: Operator,
) -> None:
    without_scan = _check_scan(operator)
    operator.aws.clients.dynamodb.put_item(
        TableName="case_store",
        Item={**SCAN_SUMMARY_KEY, **items.to_item_attributes(summary="{")},
    )
    check = _check_scan(operator)
    assert check.status is Status.FAIL
    assert check == without_scan


def test_doctor_checks_only_what_a_scan_only_stack_has(operator: Operator) -> None:
    doctor = Doctor(operator.account, datetime.now(UTC), is_scan_only=True)
    (check,) = SCAN_ONLY_CHECK_FUNCTION_BY_NAME["scan-only"](doctor)
    assert check.status is Status.OK
    assert "no trail, probe, cases, nightly job or weekly report" in check.sentence
    assert [topic.name for topic in check_topics(doctor)] == ["topic urgent"]
    assert SCAN_ONLY_CHECK_FUNCTION_BY_NAME.keys() == {
        "scan-only",
        "stack",
        "alarms",
        "alarm actions",
        "mute-rules",
        "topics",
        "scan",
        "mutes",
        "queues",
    }


def test_doctor_of_a_scan_only_stack_fails_if_the_actions_of_its_alarm_are_disabled(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "mendq-scan-missing"
    resources = [("AWS::CloudWatch::Alarm", "ScanMissing", name)]
    monkeypatch.setattr(Deployment, "resources", resources)
    alarm = template_with({"scanOnly": True}).only("AWS::CloudWatch::Alarm")
    operator.aws.clients.cloudwatch.put_metric_alarm(
        AlarmName=name,
        AlarmDescription=alarm["AlarmDescription"],
        AlarmActions=[operator.account.settings.urgent_topic_arn],
        ActionsEnabled=False,
        Namespace="AWS/Lambda",
        MetricName="Errors",
        Statistic="Sum",
        Period=300,
        EvaluationPeriods=1,
        Threshold=0,
        ComparisonOperator="GreaterThanThreshold",
    )
    doctor = Doctor(operator.account, datetime.now(UTC), is_scan_only=True)
    (check,) = SCAN_ONLY_CHECK_FUNCTION_BY_NAME["alarm actions"](doctor)
    assert check.status is Status.FAIL
    assert name in check.sentence


def test_cost_of_a_scan_only_stack_is_below_33_cents_plus_at_most_9_dollars_for_metrics(
    operator: Operator,
) -> None:
    operator.set_template(template_with({"scanOnly": True}).raw)
    operator.aws.queue("orders", "observe")
    document = operator.run_json("cost")["stack"]
    assert document["is_scan_only"]
    assert document["dollars_per_month"] < 0.33
    assert document["measuring_at_most_dollars_per_month"] == 9
    text = operator.read_output("cost")
    assert "at most $9.00 a month (limits.scanMetricsPerDay)" in text
    assert "the setting `dashboard`" not in text
    assert "The scan-only stack logs no call" in text

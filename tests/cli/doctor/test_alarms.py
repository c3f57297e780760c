"""Test what the doctor reports about alarms of the template: ringing, disabled and muted ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta, timezone
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.stub import Stubber
from msgspec import structs

from mendq.cli.doctor.alarms import StackAlarms
from mendq.cli.doctor.check import Check, Command, Log, Status
from mendq.cli.doctor.deployment import Deployment
from tests.architecture.aws_commands import find_mistake
from tests.cli.builders import FakeDeployedAccount, Operator
from tests.infra.synthesized import template_of

ROOT = Path(__file__).parents[3]
NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
FUNCTION = "AWS::Lambda::Function"
ALARM = "AWS::CloudWatch::Alarm"
COMPOSITE = "AWS::CloudWatch::CompositeAlarm"
# `no_faults` are alarms about fixes, not about faults of Mendq. `no_lambda` are alarms whose cause
# is not in a Lambda function. `logs` names the function whose log explains an alarm.
KNOWN: dict[str, Any] = json.loads(Path(__file__).with_name("alarms.json").read_text())
RETAINED = ["AlarmDescription", "AlarmActions", "Namespace", "MetricName", "Dimensions", "Metrics"]


@cache
def _describe_alarms() -> dict[str, dict[str, Any]]:
    """Return the template's alarms as CloudWatch describes them, by name without `mendq-`."""
    template = template_of("named")
    resources = {**template.all(ALARM), **template.all(COMPOSITE)}
    named = {
        logical: resource["Properties"].get("AlarmName")
        or resource["Properties"]["CompositeAlarmName"]
        for logical, resource in resources.items()
    }
    alarms = {}
    for logical, resource in resources.items():
        properties = resource["Properties"]
        alarm = {name: properties[name] for name in RETAINED if name in properties}
        if rule := properties.get("AlarmRule"):
            for other_logical, name in named.items():
                rule = rule.replace(
                    f'"arn:{other_logical}"', f'"arn:aws:cloudwatch:x:1:alarm:{name}"'
                )
            alarm["AlarmRule"] = rule
        alarm |= {"AlarmName": named[logical], "StateUpdatedTimestamp": NOW - timedelta(hours=2)}
        alarm |= {"StateValue": "ALARM", "ActionsEnabled": True}
        alarms[named[logical].removeprefix("mendq-")] = alarm
    return alarms


CheckAlarms = Callable[..., dict[str, Check]]


@pytest.fixture
def account(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> FakeDeployedAccount:
    """An account whose stack has the template's functions and alarms."""
    parts = [(FUNCTION, logical, logical) for logical in template_of("named").all(FUNCTION)]
    parts.extend(
        (COMPOSITE if "AlarmRule" in alarm else ALARM, "", alarm["AlarmName"])
        for alarm in _describe_alarms().values()
    )
    monkeypatch.setattr(Deployment, "resources", parts)
    actions = (
        action for alarm in _describe_alarms().values() for action in alarm.get("AlarmActions", ())
    )
    urgent = next(str(action) for action in actions if "Urgent" in action)
    settings = structs.replace(operator.account.known, urgent_topic_arn=urgent)
    made_at = NOW - timedelta(hours=100)
    return structs.replace(operator.account, known=settings, made_at=made_at)


def _stub_alarms(stub: Stubber, alarms: Iterable[Mapping[str, Any]]) -> None:
    """Answer DescribeAlarms with these alarms, each on a page of its own."""
    request: dict[str, Any] = {"AlarmNamePrefix": "mendq-"}
    request["AlarmTypes"] = ["CompositeAlarm", "MetricAlarm"]
    for alarm in alarms:
        kind = "CompositeAlarms" if "AlarmRule" in alarm else "MetricAlarms"
        page = {kind: [alarm], "NextToken": alarm["AlarmName"]}
        stub.add_response("describe_alarms", page, request)
        request = {**request, "NextToken": alarm["AlarmName"]}
    stub.add_response("describe_alarms", {}, request)


@pytest.fixture
def check_alarms(account: FakeDeployedAccount) -> CheckAlarms:
    """Check the stack while some alarms ring. Return the checks by name without `alarm mendq-`."""

    def look(
        ringing: str, *others: Mapping[str, Any], hours_old: float = 100, **logs: Log
    ) -> dict[str, Check]:
        aged_account = structs.replace(account, made_at=NOW - timedelta(hours=hours_old))
        deployment = Deployment(aged_account, logs=logs)
        with Stubber(aged_account.clients.cloudwatch) as stub:
            _stub_alarms(stub, (*map(_describe_alarms().__getitem__, ringing.split()), *others))
            checks = StackAlarms(aged_account, deployment, NOW).check_alarms()
            return {check.name.removeprefix("alarm mendq-"): check for check in checks}

    return look


def _check_actions(account: FakeDeployedAccount, *alarms: Mapping[str, Any]) -> Check:
    """Return the check of the actions while the stack has these alarms alone."""
    with Stubber(account.clients.cloudwatch) as stub:
        _stub_alarms(stub, alarms)
        (check,) = StackAlarms(account, Deployment(account), NOW).check_actions()
    return check


def _disable(name: str) -> dict[str, Any]:
    return {**_describe_alarms()[name], "ActionsEnabled": False, "StateValue": "OK"}


def test_doctor_is_ok_if_no_alarm_rings_or_only_alarms_about_fixes_ring(
    check_alarms: CheckAlarms,
) -> None:
    fine = {"alarms": Check("alarms", Status.OK, "none rings")}
    assert check_alarms("") == check_alarms(KNOWN["no_faults"]) == fine


def test_doctor_reports_no_alarm_that_is_ok_as_ringing(check_alarms: CheckAlarms) -> None:
    quiet_alarm = {**_describe_alarms()["not-healing"], "StateValue": "OK"}
    assert check_alarms("", quiet_alarm)["alarms"].status is Status.OK


def test_doctor_trusts_no_runbook_path_in_foreign_alarms_named_mendq(
    check_alarms: CheckAlarms,
) -> None:
    foreign_alarm = {"AlarmName": "mendq-orders-depth", "StateUpdatedTimestamp": NOW}
    foreign_alarm["StateValue"] = "ALARM"
    assert set(check_alarms("", foreign_alarm)) == {"alarms"}
    strange = {**foreign_alarm, "AlarmDescription": "Runbook: ../../x\n", "AlarmActions": ["arn:x"]}
    check = check_alarms("", strange)["orders-depth"]
    assert (check.status, check.remedy) == (Status.WARN, "docs/alarms.md")


def test_doctor_names_the_runbook_and_the_lambda_log_of_each_ringing_alarm(
    check_alarms: CheckAlarms,
) -> None:
    functions = template_of("named").all(FUNCTION)
    logs = {function: Log(f"/log/{function}", Command("")) for function in functions}
    checks = check_alarms(" ".join(_describe_alarms()), **logs)
    assert set(checks) == _describe_alarms().keys() - {*KNOWN["no_faults"].split()}
    for name, check in checks.items():
        assert check.sentence.startswith("has rung for 2 h"), name
        assert (ROOT / check.remedy.split(", then ")[-1]).is_file(), check
    silent = {name for name, check in checks.items() if "the log" not in check.remedy}
    assert silent >= {*KNOWN["no_lambda"].split()}
    for begins, names in KNOWN["logs"].items():
        (function,) = (name for name in functions if name.startswith(f"{begins}Function"))
        for name in names.split():
            assert f"the log /log/{function}, then" in checks[name].remedy
    remedy = "`mendq cases --open --region us-east-1`, then docs/runbooks/cases_escalated.md"
    assert checks["escalated-cases-open"].remedy == remedy, "of queues: their own command first"


@pytest.mark.parametrize(("ringing", "statuses"), KNOWN["statuses"].items())
def test_doctor_fails_for_ringing_alarms_that_page_about_mendq_and_warns_for_others(
    check_alarms: CheckAlarms, ringing: str, statuses: str
) -> None:
    checks = check_alarms(ringing)
    assert [checks[alarm].status for alarm in ringing.split()] == statuses.split()


@pytest.mark.parametrize(("name", "statuses"), KNOWN["young"].items())
def test_doctor_only_warns_on_a_new_stack_of_alarms_that_ring_until_the_first_probe_or_run(
    check_alarms: CheckAlarms, name: str, statuses: str
) -> None:
    found_statuses = [check_alarms(name, hours_old=hours)[name].status for hours in (1.3, 1.4)]
    assert found_statuses == statuses.split()


def test_doctor_fails_for_a_ringing_alarm_about_follow_up_errors_even_on_a_new_stack(
    check_alarms: CheckAlarms,
) -> None:
    check = check_alarms("follow-up-errors", hours_old=1.3)["follow-up-errors"]
    assert check.status is Status.FAIL


def test_doctor_ignores_disabled_actions_of_foreign_alarms_and_of_alarms_without_actions(
    account: FakeDeployedAccount,
) -> None:
    foreign_alarm = {**_disable("not-healing"), "AlarmName": "mendq-orders-depth"}
    alarms = (foreign_alarm, _disable("heal-failing"), _describe_alarms()["probe-lost"])
    check = _check_actions(account, *alarms)
    assert check.status is Status.OK
    assert "removed actions and added suppressors are not checked" in check.sentence


@pytest.mark.parametrize(
    ("disabled", "status"),
    [
        ("nightly-failing", Status.WARN),
        ("case-escalated", Status.WARN),
        ("nightly-failing not-healing", Status.FAIL),
    ],
    ids=["info", "urgent about queues", "urgent about Mendq"],
)
def test_doctor_fails_if_disabled_actions_hide_a_fault_of_mendq_else_warns_and_prints_the_cure(
    account: FakeDeployedAccount, disabled: str, status: Status
) -> None:
    check = _check_actions(account, *map(_disable, disabled.split()))
    assert check.status is status
    assert "nobody is notified" in check.sentence
    assert isinstance(check.remedy, Command)
    assert check.remedy.startswith("aws cloudwatch enable-alarm-actions --region us-east-1 ")
    assert check.remedy.split()[6:] == [f"mendq-{name}" for name in disabled.split()]
    assert find_mistake(check.remedy) == ""


RULE_ARN = "arn:aws:cloudwatch:us-east-1:123456789012:alarm-mute-rule:Sunday work; rm x"
STATUSES = {"Statuses": ["ACTIVE", "SCHEDULED"]}


def _check_mute_rules(
    account: FakeDeployedAccount, rule: Mapping[str, Any], muted: str, heard: str
) -> list[Check]:
    """Return the checks if the account has one rule, and the stack these alarms.

    The rule mutes the alarms `muted`. Those in `heard` have actions too and are not muted.
    """
    names = f"{muted} {heard}".split()
    with Stubber(account.clients.cloudwatch) as stub:
        stub.add_response("list_alarm_mute_rules", {"AlarmMuteRuleSummaries": [rule]}, STATUSES)
        foreign_alarm = {**_disable("probe-lost"), "AlarmName": "mendq-orders-depth"}
        _stub_alarms(stub, [foreign_alarm, *map(_describe_alarms().__getitem__, names)])
        for name in names:
            request = {**STATUSES, "AlarmName": f"mendq-{name}"}
            answer = {"AlarmMuteRuleSummaries": [rule] if name in muted.split() else []}
            stub.add_response("list_alarm_mute_rules", answer, request)
        return list(StackAlarms(account, Deployment(account), NOW).check_mute_rules())


def test_doctor_reads_no_alarm_if_the_account_has_no_mute_rule(
    account: FakeDeployedAccount,
) -> None:
    with Stubber(account.clients.cloudwatch) as stub:
        stub.add_response("list_alarm_mute_rules", {}, STATUSES)
        checks = list(StackAlarms(account, Deployment(account), NOW).check_mute_rules())
    assert checks == [Check("mute-rules", Status.OK, "none mutes an alarm of the stack")]


def test_doctor_is_ok_if_a_mute_rule_mutes_other_alarms_or_will_mute_later(
    account: FakeDeployedAccount,
) -> None:
    rule = {"AlarmMuteRuleArn": RULE_ARN, "Status": "ACTIVE"}
    (check,) = _check_mute_rules(account, rule, muted="", heard="not-healing probe-lost")
    assert check == Check("mute-rules", Status.OK, "none mutes an alarm of the stack")
    rule["Status"] = "SCHEDULED"
    (check,) = _check_mute_rules(account, rule, muted="probe-lost", heard="not-healing")
    assert (check.status, check.remedy) == (Status.OK, "")
    assert check.sentence.startswith("1 of the stack's alarms (mendq-probe-lost) will be muted")


def test_doctor_warns_while_a_mute_rule_mutes_alarms_of_the_stack_and_names_its_end(
    account: FakeDeployedAccount,
) -> None:
    expires_at = datetime(2026, 11, 23, 2, tzinfo=timezone(timedelta(hours=2)))
    rule = {"AlarmMuteRuleArn": RULE_ARN, "Status": "ACTIVE", "ExpireDate": expires_at}
    (check,) = _check_mute_rules(account, rule, muted="not-healing probe-lost", heard="heal-errors")
    assert check.status is Status.WARN
    assert check.sentence.startswith("2 of the stack's alarms (mendq-not-healing, mendq-probe-lost")
    assert "until 2026-11-23 00:00 UTC at the latest" in check.sentence
    assert "nobody is notified" in check.sentence
    assert isinstance(check.remedy, Command)
    assert check.remedy.endswith("--alarm-mute-rule-name 'Sunday work; rm x'")
    assert find_mistake(check.remedy) == ""


def test_doctor_does_not_judge_mute_rules_if_botocore_does_not_know_them(
    account: FakeDeployedAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest of CloudWatch is still there, as in a botocore from before the mute rules."""
    monkeypatch.setitem(vars(account), "clients", SimpleNamespace(cloudwatch=object()))
    (check,) = StackAlarms(account, Deployment(account), NOW).check_mute_rules()
    assert check.status is Status.UNKNOWN
    assert check.sentence.startswith("not judged: botocore")
    assert check.remedy.startswith("update boto3")

"""Test what the doctor reports about ringing alarms of the template."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from botocore.stub import Stubber
from msgspec import structs

from mendq.cli.doctor.alarms import StackAlarms
from mendq.cli.doctor.check import Check, Command, Log, Status
from mendq.cli.doctor.deployment import Deployment
from tests.cli.builders import Operator
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
        alarms[named[logical].removeprefix("mendq-")] = alarm
    return alarms


CheckAlarms = Callable[..., dict[str, Check]]


@pytest.fixture
def check_alarms(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> CheckAlarms:
    """Check the stack while some alarms ring. Return the checks by name without `alarm mendq-`."""
    parts = [(FUNCTION, logical, logical) for logical in template_of("named").all(FUNCTION)]
    monkeypatch.setattr(Deployment, "resources", parts)
    actions = (
        action for alarm in _describe_alarms().values() for action in alarm.get("AlarmActions", ())
    )
    urgent = next(str(action) for action in actions if "Urgent" in action)
    settings = structs.replace(operator.account.known, urgent_topic_arn=urgent)

    def look(
        ringing: str, *others: Mapping[str, Any], hours_old: float = 100, **logs: Log
    ) -> dict[str, Check]:
        made_at = NOW - timedelta(hours=hours_old)
        account = structs.replace(operator.account, known=settings, made_at=made_at)
        request: dict[str, Any] = {"AlarmNamePrefix": "mendq-", "StateValue": "ALARM"}
        request["AlarmTypes"] = ["CompositeAlarm", "MetricAlarm"]
        with Stubber(account.clients.cloudwatch) as stub:
            for alarm in (*map(_describe_alarms().__getitem__, ringing.split()), *others):
                kind = "CompositeAlarms" if "AlarmRule" in alarm else "MetricAlarms"
                page = {kind: [alarm], "NextToken": alarm["AlarmName"]}
                stub.add_response("describe_alarms", page, request)
                request = {**request, "NextToken": alarm["AlarmName"]}
            stub.add_response("describe_alarms", {}, request)
            checks = StackAlarms(account, Deployment(account, logs=logs), NOW).check_alarms()
            return {check.name.removeprefix("alarm mendq-"): check for check in checks}

    return look


def test_doctor_is_ok_if_no_alarm_rings_or_only_alarms_about_fixes_ring(
    check_alarms: CheckAlarms,
) -> None:
    fine = {"alarms": Check("alarms", Status.OK, "none rings")}
    assert check_alarms("") == check_alarms(KNOWN["no_faults"]) == fine


def test_doctor_ignores_foreign_alarms_named_mendq_and_trusts_no_runbook_path_in_such_alarms(
    check_alarms: CheckAlarms,
) -> None:
    foreign_alarm = {"AlarmName": "mendq-orders-depth", "StateUpdatedTimestamp": NOW}
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

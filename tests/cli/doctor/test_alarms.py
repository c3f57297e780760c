"""The alarms as the template makes them and CloudWatch describes them."""

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
ALARM, COMPOSITE = "AWS::CloudWatch::Alarm", "AWS::CloudWatch::CompositeAlarm"
# `no_faults` say how it stands with fixes, and are none of Mendq's; `no_lambda` are EventBridge's
# doing, people's, or those below them; `logs` says whose log is to be looked into.
KNOWN: dict[str, Any] = json.loads(Path(__file__).with_name("alarms.json").read_text())
RETAINED = ["AlarmDescription", "AlarmActions", "Namespace", "MetricName", "Dimensions", "Metrics"]


@cache
def _described() -> dict[str, dict[str, Any]]:
    """Every alarm of the template by its name without `mendq-`, with names in rules as AWS's."""
    template = template_of("named")
    made = {**template.all(ALARM), **template.all(COMPOSITE)}
    named = {
        logical: each["Properties"].get("AlarmName") or each["Properties"]["CompositeAlarmName"]
        for logical, each in made.items()
    }
    found = {}
    for logical, each in made.items():
        properties = each["Properties"]
        alarm = {name: properties[name] for name in RETAINED if name in properties}
        if rule := properties.get("AlarmRule"):
            for other, name in named.items():
                rule = rule.replace(f'"arn:{other}"', f'"arn:aws:cloudwatch:x:1:alarm:{name}"')
            alarm["AlarmRule"] = rule
        alarm |= {"AlarmName": named[logical], "StateUpdatedTimestamp": NOW - timedelta(hours=2)}
        found[named[logical].removeprefix("mendq-")] = alarm
    return found


Looked = Callable[..., dict[str, Check]]


@pytest.fixture
def looked(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> Looked:
    """The checks where these alarms ring, by their names without `alarm mendq-`."""
    parts = [(FUNCTION, each, each) for each in template_of("named").all(FUNCTION)]
    monkeypatch.setattr(Deployment, "resources", parts)
    actions = (action for each in _described().values() for action in each.get("AlarmActions", ()))
    urgent = next(str(each) for each in actions if "Urgent" in each)
    known = structs.replace(operator.account.known, urgent_topic_arn=urgent)

    def look(
        ringing: str, *others: Mapping[str, Any], hours_old: float = 100, **logs: Log
    ) -> dict[str, Check]:
        made_at = NOW - timedelta(hours=hours_old)
        account = structs.replace(operator.account, known=known, made_at=made_at)
        asked: dict[str, Any] = {"AlarmNamePrefix": "mendq-", "StateValue": "ALARM"}
        asked["AlarmTypes"] = ["CompositeAlarm", "MetricAlarm"]
        with Stubber(account.clients.cloudwatch) as stub:
            for each in (*map(_described().__getitem__, ringing.split()), *others):
                kind = "CompositeAlarms" if "AlarmRule" in each else "MetricAlarms"
                page = {kind: [each], "NextToken": each["AlarmName"]}
                stub.add_response("describe_alarms", page, asked)
                asked = {**asked, "NextToken": each["AlarmName"]}
            stub.add_response("describe_alarms", {}, asked)
            found = StackAlarms(account, Deployment(account, logs=logs), NOW).check_alarms()
            return {each.name.removeprefix("alarm mendq-"): each for each in found}

    return look


def test_doctor_is_ok_if_no_alarm_rings_or_only_alarms_about_fixes_ring(looked: Looked) -> None:
    fine = {"alarms": Check("alarms", Status.OK, "none rings")}
    assert looked("") == looked(KNOWN["no_faults"]) == fine


def test_doctor_ignores_foreign_alarms_named_mendq_and_trusts_no_runbook_path_in_such_alarms(
    looked: Looked,
) -> None:
    theirs = {"AlarmName": "mendq-orders-depth", "StateUpdatedTimestamp": NOW}
    assert set(looked("", theirs)) == {"alarms"}
    strange = {**theirs, "AlarmDescription": "Runbook: ../../x\n", "AlarmActions": ["arn:x"]}
    check = looked("", strange)["orders-depth"]
    assert (check.status, check.remedy) == (Status.WARN, "docs/alarms.md")


def test_doctor_names_the_runbook_and_the_lambda_log_of_each_ringing_alarm(looked: Looked) -> None:
    functions = template_of("named").all(FUNCTION)
    logs = {each: Log(f"/log/{each}", Command("")) for each in functions}
    checks = looked(" ".join(_described()), **logs)
    assert set(checks) == _described().keys() - {*KNOWN["no_faults"].split()}
    for name, check in checks.items():
        assert check.sentence.startswith("has rung for 2 h"), name
        assert (ROOT / check.remedy.split(", then ")[-1]).is_file(), check
    silent = {name for name, check in checks.items() if "the log" not in check.remedy}
    assert silent >= {*KNOWN["no_lambda"].split()}
    for begins, names in KNOWN["logs"].items():
        (function,) = (each for each in functions if each.startswith(f"{begins}Function"))
        for name in names.split():
            assert f"the log /log/{function}, then" in checks[name].remedy
    remedy = "`mendq cases --open --region us-east-1`, then docs/runbooks/cases_escalated.md"
    assert checks["escalated-cases-open"].remedy == remedy, "of queues: their own command first"


@pytest.mark.parametrize(("ringing", "statuses"), KNOWN["statuses"].items())
def test_doctor_fails_for_ringing_alarms_that_page_about_mendq_and_warns_for_others(
    looked: Looked, ringing: str, statuses: str
) -> None:
    checks = looked(ringing)
    assert [checks[each].status for each in ringing.split()] == statuses.split()


@pytest.mark.parametrize(("name", "statuses"), KNOWN["young"].items())
def test_doctor_only_warns_on_a_new_stack_of_alarms_that_ring_until_the_first_probe_or_run(
    looked: Looked, name: str, statuses: str
) -> None:
    found = [looked(name, hours_old=hours)[name].status for hours in (1.3, 1.4)]
    assert found == statuses.split()

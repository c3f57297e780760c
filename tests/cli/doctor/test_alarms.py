"""The alarms as the template makes them and CloudWatch describes them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from mendq.cli.doctor.alarms import Alarms
from mendq.cli.doctor.check import Check, Command, Log, Status
from mendq.cli.doctor.deployment import Deployment
from tests.cli.conftest import Operator
from tests.infra.synthesized import Template, template_of

ROOT = Path(__file__).parents[3]
NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
ALARM, COMPOSITE = "AWS::CloudWatch::Alarm", "AWS::CloudWatch::CompositeAlarm"
# `no_faults` say how it stands with fixes, and are none of Mendq's; `no_lambda` are EventBridge's
# doing, people's, or those below them; `logs` says whose log is to be looked into.
KNOWN: dict[str, Any] = json.loads(Path(__file__).with_name("alarms.json").read_text())
RETAINED = ["AlarmDescription", "AlarmActions", "Namespace", "MetricName", "Dimensions", "Metrics"]


def _names(words: str) -> list[str]:
    return [f"mendq-{each}" for each in words.split()]


def _described(template: Template) -> dict[str, dict[str, Any]]:
    """Every alarm of the template, by its name, with names in rules as AWS has them."""
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
        found[named[logical]] = alarm
    return found


@pytest.fixture(scope="session")
def template() -> Template:
    return template_of("named")


@pytest.fixture(scope="session")
def described(template: Template) -> dict[str, dict[str, Any]]:
    return _described(template)


@pytest.fixture
def deployed(operator: Operator, template: Template, monkeypatch: pytest.MonkeyPatch) -> Operator:
    """The stack's parts, named as they are in the template."""
    parts = [
        (kind, logical, logical)
        for kind in ("AWS::Lambda::Function", "AWS::SQS::Queue")
        for logical in template.all(kind)
    ]
    monkeypatch.setattr(Deployment, "parts", parts)
    return operator


def _looked(
    operator: Operator,
    *pages: Iterable[Mapping[str, Any]],
    hours_old: float = 100,
    logs: Mapping[str, Log] | None = None,
) -> dict[str, Check]:
    """By the name without `alarm mendq-`."""
    known = replace(operator.account.known, urgent_topic_arn=_topic("Urgent"))
    account = replace(operator.account, known=known, made_at=NOW - timedelta(hours=hours_old))
    asked: dict[str, Any] = {
        "AlarmNamePrefix": "mendq-",
        "StateValue": "ALARM",
        "AlarmTypes": ["CompositeAlarm", "MetricAlarm"],
    }
    with Stubber(account.clients.cloudwatch) as stub:
        for number, page in enumerate(pages, start=1):
            more = {"NextToken": f"page-{number}"} if number < len(pages) else {}
            answer: dict[str, Any] = {"CompositeAlarms": [], "MetricAlarms": [], **more}
            for each in page:
                answer["CompositeAlarms" if "AlarmRule" in each else "MetricAlarms"].append(each)
            stub.add_response("describe_alarms", answer, asked)
            asked = {**asked, **more}
        found = Alarms(account, Deployment(account, logs=dict(logs or {})), NOW).look()
        return {each.name.removeprefix("alarm mendq-"): each for each in found}


def _topic(name: str) -> str:
    (arn,) = {
        each
        for alarm in _described(template_of("named")).values()
        for each in alarm.get("AlarmActions", ())
        if name in each
    }
    return str(arn)


def _of(described: Mapping[str, Any], words: str) -> list[Any]:
    return [described[each] for each in _names(words)]


def test_where_none_rings_or_what_holds_a_page_back_is_no_fault(
    deployed: Operator, described: dict[str, dict[str, Any]]
) -> None:
    fine = {"alarms": Check("alarms", Status.OK, "none rings")}
    assert _looked(deployed, []) == fine
    assert _looked(deployed, _of(described, KNOWN["no_faults"])) == fine


def test_somebody_elses_alarm_of_such_a_name_is_none_of_ours(deployed: Operator) -> None:
    theirs = {"AlarmName": "mendq-orders-depth", "StateUpdatedTimestamp": NOW}
    assert set(_looked(deployed, [theirs])) == {"alarms"}
    strange = {**theirs, "AlarmDescription": "Runbook: ../../x\n", "AlarmActions": ["arn:x"]}
    check = _looked(deployed, [strange])["orders-depth"]
    assert (check.status, check.remedy) == (Status.WARN, "docs/alarms.md")


def test_each_alarm_is_named_with_its_runbook_and_its_log(
    deployed: Operator, described: dict[str, dict[str, Any]], template: Template
) -> None:
    every, functions = list(described.values()), template.all("AWS::Lambda::Function")
    logs = {each: Log(f"/log/{each}", Command("")) for each in functions}
    checks = _looked(deployed, every[:9], every[9:], logs=logs)
    told = {each.removeprefix("mendq-") for each in described}
    assert set(checks) == told - {*KNOWN["no_faults"].split()}
    for name, check in checks.items():
        assert check.says.startswith("has rung for 2 h"), name
        assert (ROOT / check.remedy.split(", then ")[-1]).is_file(), check
    silent = {name for name, check in checks.items() if "the log" not in check.remedy}
    assert silent >= {*KNOWN["no_lambda"].split()}
    for begins, names in KNOWN["logs"].items():
        (function,) = (each for each in functions if each.startswith(f"{begins}Function"))
        for name in names.split():
            assert f"the log /log/{function}, then" in checks[name].remedy
    remedy = "`mendq cases --open --region us-east-1`, then docs/runbooks/cases_escalated.md"
    assert checks["escalated-cases-open"].remedy == remedy, "of queues: their own command first"


def test_who_may_not_read_lambdas_still_hears_what_rings(
    deployed: Operator, described: dict[str, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(_: Deployment) -> None:
        raise ClientError({"Error": {"Code": "AccessDeniedException"}}, "ListStackResources")

    ringing = _of(described, "follow-up-errors")
    check = _looked(deployed, ringing)["follow-up-errors"]
    assert check.status is Status.FAIL
    assert check.remedy.startswith("the log of FollowUpFunction")
    monkeypatch.setattr(Deployment, "parts", property(denied))
    assert _looked(deployed, ringing)["follow-up-errors"].remedy.startswith("docs/runbooks/")


@pytest.mark.parametrize(("ringing", "statuses"), KNOWN["statuses"].items())
def test_only_what_wakes_people_about_mendq_itself_fails(
    deployed: Operator, described: dict[str, dict[str, Any]], ringing: str, statuses: str
) -> None:
    checks = _looked(deployed, _of(described, ringing))
    assert [checks[each].status for each in ringing.split()] == statuses.split()


@pytest.mark.parametrize(("name", "statuses"), KNOWN["young"].items())
def test_what_rings_until_the_first_sign_is_no_fault_of_a_new_stack(
    deployed: Operator, described: dict[str, dict[str, Any]], name: str, statuses: str
) -> None:
    for hours_old, status in zip((1.3, 1.4), statuses.split(), strict=True):
        assert _looked(deployed, _of(described, name), hours_old=hours_old)[name].status == status

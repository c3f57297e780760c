"""The alarms as the template makes them and CloudWatch describes them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from mendq.cli.doctor.alarms import Alarms
from mendq.cli.doctor.check import Check, Status
from mendq.cli.doctor.deployment import Deployment
from tests.cli.conftest import Operator
from tests.infra.synthesized import Template, template_of

ROOT = Path(__file__).parents[3]
NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
ALARM, COMPOSITE = "AWS::CloudWatch::Alarm", "AWS::CloudWatch::CompositeAlarm"
# They say how it stands with fixes, and are no faults of Mendq's.
NO_FAULTS = {
    "mendq-fix-being-verified",
    "mendq-fix-verified-for-long",
    "mendq-fixes-held-back",
    "mendq-fixes-many",
    "mendq-fixes-still-coming",
    "mendq-fixes-unusual",
}
# EventBridge's doing, people's, or those below them.
NO_LAMBDA = {
    "mendq-failed-calls-undelivered",
    "mendq-escalated-cases-open",
    "mendq-proposed-cases-open",
    "mendq-fixes-over-ceiling",
    "mendq-fixes-spike",
    "mendq-not-healing",
    "mendq-nightly-failing",
}


# Whose log is to be looked into.
LOGS = {
    "Heal": "heal-errors heal-failing intake-late own-dlq-intake",
    "FollowUp": "follow-up-errors heartbeat-missing own-dlq-follow-up",
    "RestorePolicy": "lambda-failing-restore-policy",
    "Scan": "own-dlq-scan",
    "StartNightly": "own-dlq-start-nightly",
    "Probe": "probe-lost",
    "WatchNightly": "nightly-missing week-failed report-missing",
    "DeliverReport": "report-not-delivered",
}


def _described(template: Template) -> dict[str, dict[str, Any]]:
    """Every alarm of the template, by its name, with names in rules as AWS has them."""
    made = {**template.all(ALARM), **template.all(COMPOSITE)}
    named = {
        logical: each["Properties"].get("AlarmName") or each["Properties"]["CompositeAlarmName"]
        for logical, each in made.items()
    }
    retained = [
        "AlarmDescription",
        "AlarmActions",
        "Namespace",
        "MetricName",
        "Dimensions",
        "Metrics",
    ]
    found = {}
    for logical, each in made.items():
        properties = each["Properties"]
        alarm = {name: properties[name] for name in retained if name in properties}
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


class _Lambdas:
    """`denied` are those who ask."""

    def __init__(self, *, denied: bool) -> None:
        self.denied = denied

    def get_function_configuration(self, FunctionName: str) -> dict[str, Any]:  # noqa: N803
        if self.denied:
            raise ClientError({"Error": {"Code": "AccessDeniedException"}}, "GetFunction")
        return {"LoggingConfig": {"LogGroup": f"/log/{FunctionName}"}}


def _looked(
    operator: Operator,
    *pages: Iterable[Mapping[str, Any]],
    hours_old: float = 100,
    denied: bool = False,
) -> dict[str, Check]:
    known = replace(operator.account.known, urgent_topic_arn=_topic("Urgent"))
    made_at = NOW - timedelta(hours=hours_old)
    account = replace(operator.account, known=known, made_at=made_at)
    vars(account.clients)["functions"] = _Lambdas(denied=denied)
    asked: dict[str, Any] = {
        "AlarmNamePrefix": "mendq-",
        "StateValue": "ALARM",
        "AlarmTypes": ["CompositeAlarm", "MetricAlarm"],
    }
    with Stubber(account.clients.cloudwatch) as stub:
        for number, page in enumerate(pages, start=1):
            composites = [each for each in page if "AlarmRule" in each]
            metrics = [each for each in page if "AlarmRule" not in each]
            more = {"NextToken": f"page-{number}"} if number < len(pages) else {}
            answer = {"CompositeAlarms": composites, "MetricAlarms": metrics, **more}
            stub.add_response("describe_alarms", answer, asked)
            asked = {**asked, **more}
        return {each.name: each for each in Alarms(account, Deployment(account), NOW).look()}


def _topic(name: str) -> str:
    (arn,) = {
        each
        for alarm in _described(template_of("named")).values()
        for each in alarm.get("AlarmActions", ())
        if name in each
    }
    return str(arn)


def _of(described: Mapping[str, Any], names: Collection[str]) -> list[Any]:
    return [described[each] for each in names]


def test_where_none_rings_or_what_holds_a_page_back_is_no_fault(
    deployed: Operator, described: dict[str, dict[str, Any]]
) -> None:
    fine = {"alarms": Check("alarms", Status.OK, "none rings")}
    assert _looked(deployed, []) == _looked(deployed, _of(described, NO_FAULTS)) == fine


def test_somebody_elses_alarm_of_such_a_name_is_none_of_ours(deployed: Operator) -> None:
    theirs = {"AlarmName": "mendq-orders-depth", "StateUpdatedTimestamp": NOW}
    assert set(_looked(deployed, [theirs])) == {"alarms"}
    strange = {**theirs, "AlarmDescription": "Runbook: ../../x\n", "AlarmActions": ["arn:x"]}
    check = _looked(deployed, [strange])["alarm mendq-orders-depth"]
    assert (check.status, check.remedy) == (Status.WARN, "docs/alarms.md")


def test_each_alarm_is_named_with_its_runbook_and_its_log(
    deployed: Operator, described: dict[str, dict[str, Any]], template: Template
) -> None:
    every = list(described.values())
    checks = _looked(deployed, every[:9], every[9:])
    assert set(checks) == {f"alarm {each}" for each in described if each not in NO_FAULTS}
    for name, check in checks.items():
        assert check.says.startswith("has rung for 2 h"), name
        runbook = check.remedy.split(", then ")[-1]
        assert (ROOT / runbook).is_file(), check
    silent = {name.split()[1] for name, check in checks.items() if "the log" not in check.remedy}
    assert silent == NO_LAMBDA
    functions = template.all("AWS::Lambda::Function")
    for begins, names in LOGS.items():
        (function,) = (each for each in functions if each.startswith(f"{begins}Function"))
        for name in names.split():
            assert f"the log /log/{function}, then" in checks[f"alarm mendq-{name}"].remedy


def test_who_may_not_read_lambdas_still_hears_what_rings(
    deployed: Operator, described: dict[str, dict[str, Any]]
) -> None:
    checks = _looked(deployed, _of(described, ["mendq-follow-up-errors"]), denied=True)
    check = checks["alarm mendq-follow-up-errors"]
    assert check.status is Status.FAIL
    assert check.remedy.startswith("the log of FollowUpFunction")


@pytest.mark.parametrize(
    ("ringing", "statuses"),
    [
        (["mendq-follow-up-errors"], [Status.FAIL]),
        (["mendq-week-failed"], [Status.WARN]),
        (["mendq-own-dlq-scan"], [Status.WARN]),
        (["mendq-heal-failing"], [Status.WARN]),
        (["mendq-not-healing", "mendq-heal-failing"], [Status.FAIL, Status.FAIL]),
        (["mendq-not-healing", "mendq-nightly-failed"], [Status.FAIL, Status.WARN]),
        (["mendq-nightly-failing", "mendq-nightly-failed"], [Status.WARN, Status.WARN]),
        (["mendq-escalated-cases-open"], [Status.WARN]),
        (["mendq-fixes-over-ceiling"], [Status.WARN]),
    ],
)
def test_only_what_wakes_people_about_mendq_itself_fails(
    deployed: Operator,
    described: dict[str, dict[str, Any]],
    ringing: list[str],
    statuses: list[Status],
) -> None:
    checks = _looked(deployed, _of(described, ringing))
    assert [checks[f"alarm {each}"].status for each in ringing] == statuses


def test_what_is_about_queues_says_its_own_command_first(
    deployed: Operator, described: dict[str, dict[str, Any]]
) -> None:
    checks = _looked(deployed, _of(described, ["mendq-escalated-cases-open"]))
    remedy = checks["alarm mendq-escalated-cases-open"].remedy
    assert remedy == (
        "`mendq cases --open --region us-east-1`, then docs/runbooks/cases_escalated.md"
    )


@pytest.mark.parametrize(
    ("name", "hours_old", "status"),
    [
        ("mendq-probe-lost", 1.3, Status.WARN),
        ("mendq-heartbeat-missing", 1.3, Status.WARN),
        ("mendq-probe-lost", 1.4, Status.FAIL),
        ("mendq-heartbeat-missing", 1.4, Status.FAIL),
        ("mendq-follow-up-errors", 1.3, Status.FAIL),
    ],
)
def test_what_rings_until_the_first_sign_is_no_fault_of_a_new_stack(
    deployed: Operator,
    described: dict[str, dict[str, Any]],
    name: str,
    hours_old: float,
    status: Status,
) -> None:
    checks = _looked(deployed, _of(described, [name]), hours_old=hours_old)
    assert checks[f"alarm {name}"].status is status

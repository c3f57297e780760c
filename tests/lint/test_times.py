"""Lint says which times of a queue contradict one another."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from mendq.lint.decode import read_template
from mendq.lint.judging import LintFinding, LintSeverity, lint
from mendq.lint.values import DeployTarget

QUEUE = "AWS::SQS::Queue"


def _lint_queue(receives: int | None = None, **properties: Any) -> list[LintFinding]:
    """Return the findings about times of a queue, which has a DLQ if `receives` is given."""
    resources = {"Orders": {"Type": QUEUE, "Properties": properties}}
    if receives is not None:
        dlq_arn = {"Fn::GetAtt": ["Dead", "Arn"]}
        redrive_policy = {"deadLetterTargetArn": dlq_arn, "maxReceiveCount": receives}
        properties["RedrivePolicy"] = redrive_policy
        resources["Dead"] = {"Type": QUEUE, "Properties": {"MessageRetentionPeriod": 1_209_600}}
    template = read_template(json.dumps({"Resources": resources}).encode())
    findings = lint(template, "template.json", DeployTarget()).findings
    return [finding for finding in findings if finding.symptom == "messages_expire"]


@pytest.mark.parametrize(
    ("receives", "properties"),
    [
        (None, {}),
        (5, {}),
        (5, {"VisibilityTimeout": 43_200}),
        (7, {"VisibilityTimeout": 43_200}),
        (100, {"VisibilityTimeout": 900}),
        (None, {"DelaySeconds": 900, "MessageRetentionPeriod": 931}),
        (None, {"VisibilityTimeout": 59, "MessageRetentionPeriod": 60}),
        (1, {"VisibilityTimeout": 59, "MessageRetentionPeriod": 60}),
        (50, {"VisibilityTimeout": 0, "MessageRetentionPeriod": 60}),
        (50, {"VisibilityTimeout": 900, "MessageRetentionPeriod": {"Fn::ImportValue": "days"}}),
        (50, {"VisibilityTimeout": {"Fn::ImportValue": "v"}, "MessageRetentionPeriod": 60}),
    ],
)
def test_lint_reports_no_times_that_fit_or_are_not_known(
    receives: int | None, properties: dict[str, Any]
) -> None:
    assert _lint_queue(receives, **properties) == []


@pytest.mark.parametrize(
    ("receives", "properties", "says"),
    [
        (None, {"DelaySeconds": 900, "MessageRetentionPeriod": 900}, "the delay of 900 s"),
        (None, {"DelaySeconds": 120, "MessageRetentionPeriod": 60}, "before anybody can receive"),
        (None, {"VisibilityTimeout": 60, "MessageRetentionPeriod": 60}, "at the first try"),
        (5, {"VisibilityTimeout": 900, "MessageRetentionPeriod": 300}, "at the first try"),
        (5, {"VisibilityTimeout": 900, "MessageRetentionPeriod": 3_600}, "reaches the DLQ"),
        (None, {"DelaySeconds": 900, "MessageRetentionPeriod": 930}, "at the first try"),
        (
            1,
            {"DelaySeconds": 500, "VisibilityTimeout": 300, "MessageRetentionPeriod": 700},
            "at the first try",
        ),
        (
            3,
            {"DelaySeconds": 300, "VisibilityTimeout": 40, "MessageRetentionPeriod": 360},
            "the delay of 300 s and 3 receives may take 420 s",
        ),
        (8, {"VisibilityTimeout": 43_200}, "8 receives"),
        (4, {"VisibilityTimeout": 900, "MessageRetentionPeriod": 3_600}, "4 receives"),
        (
            3,
            {"DelaySeconds": 900, "VisibilityTimeout": 900, "MessageRetentionPeriod": 600},
            "the delay of 900 s",
        ),
    ],
)
def test_lint_reports_the_worst_contradiction_of_times_once_as_an_error_that_its_remedy_ends(
    receives: int | None, properties: dict[str, Any], says: str
) -> None:
    (finding,) = _lint_queue(receives, **properties)
    assert finding.severity is LintSeverity.ERROR
    assert says in finding.because
    remedy = yaml.safe_load("\n".join(finding.remedy))
    assert _lint_queue(receives, **{**properties, **remedy}) == []


def test_receives_that_take_longer_than_any_retention_get_advice_in_words() -> None:
    (finding,) = _lint_queue(40, VisibilityTimeout=43_200, MessageRetentionPeriod=1_209_600)
    assert finding.remedy == ("# shorten the visibility timeout, or lower maxReceiveCount",)


def _make_consumed_queue(
    timeout: int, dlq_retention: Any = 1_209_600, **properties: Any
) -> dict[str, Any]:
    """Return the resources of a queue that a function with this timeout reads."""
    mapping = {
        "EventSourceArn": {"Fn::GetAtt": ["Orders", "Arn"]},
        "FunctionName": {"Ref": "Bill"},
        "BatchSize": 1,
    }
    return {
        "Orders": {"Type": QUEUE, "Properties": properties},
        "Dead": {"Type": QUEUE, "Properties": {"MessageRetentionPeriod": dlq_retention}},
        "Bill": {"Type": "AWS::Lambda::Function", "Properties": {"Timeout": timeout}},
        "Reads": {"Type": "AWS::Lambda::EventSourceMapping", "Properties": mapping},
    }


def _make_redrive_policy(receives: int) -> dict[str, Any]:
    return {"deadLetterTargetArn": {"Fn::GetAtt": ["Dead", "Arn"]}, "maxReceiveCount": receives}


def _lint_resources(resources: dict[str, Any]) -> list[LintFinding]:
    template = read_template(json.dumps({"Resources": resources}).encode())
    findings = lint(template, "template.json", DeployTarget()).findings
    return [finding for finding in findings if finding.symptom != "tls_not_enforced"]


def _apply_all(resources: dict[str, Any], findings: list[LintFinding]) -> dict[str, Any]:
    """Return the resources with the remedies of all findings."""
    queue = resources["Orders"]["Properties"]
    for finding in findings:
        for name, value in (yaml.safe_load("\n".join(finding.remedy)) or {}).items():
            if name == "maxReceiveCount":
                queue["RedrivePolicy"][name] = value
            elif isinstance(value, dict) and "Type" in value:
                resources[name] = value
            else:
                queue[name] = value
    return resources


@pytest.mark.parametrize(
    ("timeout", "properties", "symptom"),
    [
        (
            200,
            {
                "VisibilityTimeout": 100,
                "MessageRetentionPeriod": 600,
                "RedrivePolicy": _make_redrive_policy(5),
            },
            "visibility_timeout_too_short",
        ),
        (
            10,
            {
                "VisibilityTimeout": 900,
                "MessageRetentionPeriod": 3_600,
                "RedrivePolicy": _make_redrive_policy(2),
            },
            "max_receive_count_too_low",
        ),
        (10, {"VisibilityTimeout": 900, "MessageRetentionPeriod": 3_600}, "dlq_missing"),
    ],
)
def test_remedy_that_needs_a_longer_retention_prints_it_too(
    timeout: int, properties: dict[str, Any], symptom: str
) -> None:
    resources = _make_consumed_queue(timeout, **properties)
    findings = _lint_resources(resources)
    (finding,) = [finding for finding in findings if finding.symptom == symptom]
    assert "MessageRetentionPeriod: 345600" in finding.remedy
    after = _lint_resources(_apply_all(resources, findings))
    assert [finding.symptom for finding in after if finding.severity == "error"] == []


def test_longer_retention_of_a_source_names_the_dlq_that_must_keep_messages_longer() -> None:
    properties = {
        "VisibilityTimeout": 900,
        "MessageRetentionPeriod": 3_600,
        "RedrivePolicy": _make_redrive_policy(2),
    }
    (finding,) = _lint_resources(_make_consumed_queue(10, 345_600, **properties))
    assert finding.remedy == (
        "maxReceiveCount: 5",
        "MessageRetentionPeriod: 345600",
        "# set MessageRetentionPeriod of its DLQ Dead to 1209600",
    )


@pytest.mark.parametrize(
    "unknown",
    ["MessageRetentionPeriod", "DelaySeconds"],
)
def test_remedy_names_no_retention_if_a_time_is_not_known(unknown: str) -> None:
    properties = {
        "VisibilityTimeout": 900,
        "MessageRetentionPeriod": 3_600,
        "RedrivePolicy": _make_redrive_policy(2),
        unknown: {"Fn::ImportValue": "seconds"},
    }
    (finding,) = _lint_resources(_make_consumed_queue(10, **properties))
    assert finding.remedy == ("maxReceiveCount: 5",)


def test_remedy_names_no_retention_of_a_dlq_that_is_not_known() -> None:
    properties = {
        "VisibilityTimeout": 900,
        "MessageRetentionPeriod": 3_600,
        "RedrivePolicy": _make_redrive_policy(2),
    }
    resources = _make_consumed_queue(10, {"Fn::ImportValue": "seconds"}, **properties)
    (finding,) = _lint_resources(resources)
    assert finding.remedy == ("maxReceiveCount: 5", "MessageRetentionPeriod: 345600")


def test_remedy_keeps_the_retention_of_a_queue_whose_tag_cannot_be_read() -> None:
    properties = {
        "VisibilityTimeout": 100,
        "MessageRetentionPeriod": 3_600,
        "RedrivePolicy": _make_redrive_policy(2),
        "Tags": [{"Key": "mendq:max-processing-seconds", "Value": "long"}],
    }
    findings = _lint_resources(_make_consumed_queue(10, **properties))
    (finding,) = [finding for finding in findings if finding.symptom == "max_receive_count_too_low"]
    assert finding.remedy == ("maxReceiveCount: 5",)

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
        (None, {"DelaySeconds": 900, "MessageRetentionPeriod": 901}),
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

"""Lint says which filters of a queue's consumers delete messages."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mendq.lint.decode import read_template
from mendq.lint.judging import LintFinding, LintSeverity, lint
from mendq.lint.values import DeployTarget

QUEUE = {"Type": "AWS::SQS::Queue"}
ARN_OF_ORDERS = {"Fn::GetAtt": ["Orders", "Arn"]}
PAID = {"Filters": [{"Pattern": '{"body": {"state": ["paid"]}}'}]}
SENT = {"Filters": [{"Pattern": '{"body": {"state": ["sent"]}}'}]}
UNKNOWN = {"Filters": [{"Pattern": {"Fn::Sub": '{"body": {"shop": ["${Shop}"]}}'}}]}
ON_CONDITION = {"Fn::If": ["IsFiltered", PAID, {"Ref": "AWS::NoValue"}]}


def _list_findings(text: str) -> list[LintFinding]:
    result = lint(read_template(text.encode()), "template.yaml", DeployTarget())
    return [finding for finding in result.findings if finding.symptom == "filter_deletes_messages"]


def _lint_consumers(*filters: Any, **more: Any) -> list[LintFinding]:
    """Return the findings of a queue that functions with these filter criteria read."""
    resources: dict[str, Any] = {"Orders": QUEUE, **more}
    for number, filter_criteria in enumerate(filters):
        properties = {"EventSourceArn": ARN_OF_ORDERS, "FunctionName": {"Ref": f"Bill{number}"}}
        if filter_criteria is not None:
            properties["FilterCriteria"] = filter_criteria
        resources[f"Bill{number}"] = {"Type": "AWS::Lambda::Function"}
        resources[f"Reads{number}"] = {
            "Type": "AWS::Lambda::EventSourceMapping",
            "Properties": properties,
        }
    parameters = {"Shop": {"Type": "String"}}
    return _list_findings(json.dumps({"Parameters": parameters, "Resources": resources}))


def _make_pipe(filter_criteria: Any = None, **properties: Any) -> dict[str, Any]:
    parameters = {"FilterCriteria": filter_criteria} if filter_criteria else {}
    return {
        "Type": "AWS::Pipes::Pipe",
        "Properties": {
            "Source": ARN_OF_ORDERS,
            "SourceParameters": parameters,
            "Target": "arn:aws:states:eu-west-1:111122223333:stateMachine:x",
            **properties,
        },
    }


@pytest.mark.parametrize(
    "filters", [(), (None,), (None, None), ({"Filters": []},), ({},), (ON_CONDITION,)], ids=str
)
def test_lint_reports_no_consumers_without_a_filter_or_with_one_that_is_not_known(
    filters: tuple[Any, ...],
) -> None:
    assert _lint_consumers(*filters) == []


def test_filter_of_a_stream_or_of_a_disabled_mapping_is_no_fault() -> None:
    mapping = "AWS::Lambda::EventSourceMapping"
    stream = {"EventSourceArn": "arn:aws:kinesis:eu-west-1:111122223333:stream/x"}
    reads_stream = {"Type": mapping, "Properties": {**stream, "FilterCriteria": PAID}}
    disabled = {"EventSourceArn": ARN_OF_ORDERS, "FilterCriteria": PAID, "Enabled": False}
    is_disabled = {"Type": mapping, "Properties": disabled}
    assert _lint_consumers(None, Stream=reads_stream, Off=is_disabled) == []


@pytest.mark.parametrize("filters", [(PAID,), (UNKNOWN,), (PAID, PAID)], ids=str)
def test_one_filter_of_all_consumers_is_a_warning_at_the_mapping(filters: tuple[Any, ...]) -> None:
    (finding,) = _lint_consumers(*filters)
    assert finding.severity is LintSeverity.WARNING
    assert finding.path == "Resources.Reads0"
    assert (
        "Bill0 reads the queue with a filter: a message that it does not match" in finding.because
    )
    assert "remove the filter and handle them in the code" in finding.remedy[0]


@pytest.mark.parametrize(
    ("filters", "path", "filtered", "other"),
    [
        ((PAID, SENT), "Resources.Reads0", "Bill0", "Bill1"),
        ((None, SENT), "Resources.Reads1", "Bill1", "Bill0"),
        ((PAID, PAID, SENT), "Resources.Reads0", "Bill0", "Bill2"),
    ],
)
def test_different_filters_on_one_queue_are_one_error_at_the_first_filter(
    filters: tuple[Any, ...], path: str, filtered: str, other: str
) -> None:
    (finding,) = _lint_consumers(*filters)
    assert finding.severity is LintSeverity.ERROR
    assert finding.path == path
    assert finding.because.startswith(f"{filtered} reads this queue with a filter, and {other} ")
    assert "a queue of its own" in finding.remedy[0]


def test_filter_of_a_pipe_counts_like_that_of_a_mapping() -> None:
    (alone,) = _lint_consumers(Copy=_make_pipe(PAID))
    assert (alone.severity, alone.path) == (LintSeverity.WARNING, "Resources.Copy")
    (beside,) = _lint_consumers(PAID, Copy=_make_pipe())
    assert beside.severity is LintSeverity.ERROR
    assert "and the pipe Copy without one" in beside.because
    assert _lint_consumers(None, Copy=_make_pipe()) == []
    assert _lint_consumers(None, Copy=_make_pipe(PAID, DesiredState="STOPPED")) == []


def test_filters_of_sam_and_serverless_events_are_read() -> None:
    sam = """
Transform: AWS::Serverless-2016-10-31
Resources:
  Orders: {Type: AWS::SQS::Queue}
  Bill:
    Type: AWS::Serverless::Function
    Properties:
      Events:
        Paid:
          Type: SQS
          Properties:
            Queue: !GetAtt Orders.Arn
            FilterCriteria: {Filters: [{Pattern: '{"body": {"state": ["paid"]}}'}]}
"""
    (finding,) = _list_findings(sam)
    assert finding.path == "Resources.Bill.Properties.Events.Paid"
    serverless = """
service: shop
provider: {name: aws}
functions:
  bill:
    handler: a.b
    events: [{sqs: {arn: !GetAtt Orders.Arn, filterPatterns: [{body: {state: [paid]}}]}}]
  ship:
    handler: a.c
    events: [{sqs: {arn: !GetAtt Orders.Arn, filterPatterns: [{body: {state: [sent]}}]}}]
resources: {Resources: {Orders: {Type: AWS::SQS::Queue}}}
"""
    (finding,) = _list_findings(serverless)
    assert finding.severity is LintSeverity.ERROR

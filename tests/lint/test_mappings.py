"""Lint reports event source mappings that Lambda refuses, in templates and Terraform plans."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mendq.lint.decode import read_template
from mendq.lint.judging import LintResult, lint
from mendq.lint.values import DeployTarget
from mendq.model.severity_class import SeverityClass
from tests.lint.plans import make_arn, make_block, make_change, make_existing_queue, make_plan

LARGE_BATCH = "a BatchSize above 10 needs a MaximumBatchingWindowInSeconds of at least 1"
PLACE = "Resources.Reads"
ADDRESS = "aws_lambda_event_source_mapping.reads"
BOTH = "Lambda refuses the mapping: MaximumConcurrency and provisioned mode exclude each other"


def _lint_bytes(content: bytes) -> LintResult:
    return lint(read_template(content), "", DeployTarget())


def _make_resources(*, is_fifo: bool = False, **settings: Any) -> dict[str, Any]:
    """Return a queue, the function that reads it, and the mapping with these settings."""
    mapping = {
        "EventSourceArn": {"Fn::GetAtt": ["Orders", "Arn"]},
        "FunctionName": {"Ref": "Bill"},
        **settings,
    }
    queue_properties = {"FifoQueue": True} if is_fifo else {}
    return {
        "Orders": {"Type": "AWS::SQS::Queue", "Properties": queue_properties},
        "Bill": {"Type": "AWS::Lambda::Function", "Properties": {"Timeout": 5}},
        "Reads": {"Type": "AWS::Lambda::EventSourceMapping", "Properties": mapping},
    }


def _lint_mapping(*, is_fifo: bool = False, **settings: Any) -> list[str]:
    """Return what lint says of the mapping of a queue that a function reads."""
    resources = _make_resources(is_fifo=is_fifo, **settings)
    result = _lint_bytes(json.dumps({"Resources": resources}).encode())
    assert any(finding.symptom == "dlq_missing" for finding in result.findings)
    return _list_reasons(result, PLACE)


def _list_reasons(result: LintResult, place: str) -> list[str]:
    """Return why Lambda refuses the mapping at a place, and why lint cannot tell."""
    refusals = [finding for finding in result.findings if finding.symptom == "invalid_request"]
    assert {finding.severity_class for finding in refusals} <= {SeverityClass.STANDING_STILL}
    reasons = [finding.because for finding in refusals if finding.path == place]
    unknown_reasons = [other.because for other in result.not_judged if other.path == place]
    return reasons + unknown_reasons


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (
            {
                "ScalingConfig": {"MaximumConcurrency": 5},
                "ProvisionedPollerConfig": {"MaximumPollers": 10},
            },
            BOTH,
        ),
        (
            {"ProvisionedPollerConfig": {"MinimumPollers": 11, "MaximumPollers": 10}},
            "Lambda refuses the mapping: MinimumPollers must be at most MaximumPollers",
        ),
        (
            {"ProvisionedPollerConfig": {"MinimumPollers": 1}},
            "Lambda refuses the mapping: MinimumPollers is 1, and Lambda accepts 2 to 200",
        ),
        (
            {"ProvisionedPollerConfig": {"MaximumPollers": 10_001}},
            "Lambda refuses the mapping: MaximumPollers is 10,001, and Lambda accepts 2 to 10,000",
        ),
        (
            {"ScalingConfig": {"MaximumConcurrency": 1}},
            "Lambda refuses the mapping: MaximumConcurrency is 1, and Lambda accepts 2 to 1,000",
        ),
        (
            {"BatchSize": 11},
            f"Lambda refuses the mapping: {LARGE_BATCH}",
        ),
        (
            {"is_fifo": True, "BatchSize": 11},
            "Lambda refuses the mapping: a FIFO queue has a BatchSize of at most 10",
        ),
        (
            {"BatchSize": 10_001},
            "Lambda refuses the mapping: BatchSize is 10,001, and Lambda accepts 1 to 10,000",
        ),
        (
            {"is_fifo": True, "MaximumBatchingWindowInSeconds": 1},
            "Lambda refuses the mapping: a FIFO queue has no MaximumBatchingWindowInSeconds",
        ),
    ],
)
def test_lint_reports_why_lambda_refuses_a_mapping_and_still_judges_its_queue(
    settings: dict[str, Any], says: str
) -> None:
    assert _lint_mapping(**settings) == [says]


def test_lint_leaves_undecided_if_lambda_takes_a_mapping_that_depends_on_a_condition() -> None:
    pollers = {"Fn::If": ["Busy", {"MaximumPollers": 10}, {}]}
    assert _lint_mapping(
        ScalingConfig={"MaximumConcurrency": 5}, ProvisionedPollerConfig=pollers
    ) == ["how its mapping is set: Fn::If: a condition decides it"]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"ScalingConfig": {"MaximumConcurrency": 2}},
        {"ScalingConfig": {"MaximumConcurrency": 1_000}, "ProvisionedPollerConfig": {}},
        {"ProvisionedPollerConfig": {"MinimumPollers": 200, "MaximumPollers": 200}},
        {"ProvisionedPollerConfig": {"MaximumPollers": 10_000}, "ScalingConfig": {}},
        {"is_fifo": True, "ProvisionedPollerConfig": {"MaximumPollers": 2}},
        {"BatchSize": 11, "MaximumBatchingWindowInSeconds": 1},
        {"ProvisionedPollerConfig": {"Ref": "AWS::NoValue"}},
    ],
    ids=str,
)
def test_lint_says_nothing_about_a_mapping_that_lambda_takes(settings: dict[str, Any]) -> None:
    assert _lint_mapping(**settings) == []


def _lint_plan(unknown: dict[str, Any] | None = None, **arguments: Any) -> list[str]:
    """Return what lint says of a planned mapping of a queue that exists."""
    mapping = make_change(
        ADDRESS,
        {
            "event_source_arn": make_arn("orders"),
            "function_name": "bill",
            "enabled": True,
            "scaling_config": [],
            "provisioned_poller_config": [],
            **arguments,
        },
    )
    mapping["change"]["after_unknown"] = unknown or {}
    orders = make_existing_queue("aws_sqs_queue.orders", "orders")
    bill = make_change("aws_lambda_function.bill", {"function_name": "bill", "timeout": 5})
    blocks = [make_block(ADDRESS, event_source_arn=make_arn("orders"), function_name="bill")]
    result = _lint_bytes(make_plan(orders, bill, mapping, root={"resources": blocks}))
    return _list_reasons(result, ADDRESS)


def test_lint_reads_the_nested_blocks_of_a_mapping_in_a_terraform_plan() -> None:
    scaling = [{"maximum_concurrency": 5}]
    pollers = [{"minimum_pollers": 2, "maximum_pollers": 10, "poller_group_name": None}]
    assert _lint_plan(scaling_config=scaling, provisioned_poller_config=pollers) == [BOTH]
    assert _lint_plan(scaling_config=scaling) == []
    assert _lint_plan(provisioned_poller_config=pollers) == []
    few = [{"minimum_pollers": 1, "maximum_pollers": None}]
    assert _lint_plan(provisioned_poller_config=few) == [
        "Lambda refuses the mapping: MinimumPollers is 1, and Lambda accepts 2 to 200"
    ]


def test_number_of_pollers_that_is_known_after_the_apply_is_not_taken_as_unset() -> None:
    unknown = {"provisioned_poller_config": [{"maximum_pollers": True}], "scaling_config": [{}]}
    (because,) = _lint_plan(
        unknown,
        scaling_config=[{"maximum_concurrency": 5}],
        provisioned_poller_config=[{"minimum_pollers": 2}],
    )
    assert because.startswith("how its mapping is set: ")


def test_pollers_that_the_provider_computes_and_no_block_sets_are_none() -> None:
    unknown = {"provisioned_poller_config": True}
    assert _lint_plan(unknown, scaling_config=[{"maximum_concurrency": 5}]) == []


def test_lint_of_batches_without_failure_reports_points_to_the_mapping() -> None:
    result = _lint_bytes(json.dumps({"Resources": _make_resources(BatchSize=2)}).encode())
    (finding,) = [
        finding for finding in result.findings if finding.symptom == "batch_failures_not_reported"
    ]
    assert finding.path == PLACE
    assert finding.remedy[0] == (
        "# add to Reads. Then change the function's code to return batchItemFailures"
    )


@pytest.mark.parametrize(
    "settings",
    [
        {"BatchSize": 1},
        {"FunctionResponseTypes": ["ReportBatchItemFailures"]},
        {"FunctionResponseTypes": {"Fn::If": ["Known", ["ReportBatchItemFailures"], []]}},
        {"BatchSize": {"Fn::If": ["Known", 1, 10]}},
    ],
    ids=["one message", "reports", "reports by a condition", "size by a condition"],
)
def test_lint_of_a_mapping_that_reports_failures_or_may_do_so_has_no_finding_about_them(
    settings: dict[str, Any],
) -> None:
    result = _lint_bytes(json.dumps({"Resources": _make_resources(**settings)}).encode())
    assert "batch_failures_not_reported" not in {finding.symptom for finding in result.findings}


def test_lint_reports_each_mapping_of_a_queue_that_does_not_report_batch_failures() -> None:
    resources = _make_resources()
    resources["ReadsToo"] = resources["Reads"]
    resources["ReadsWell"] = _make_resources(FunctionResponseTypes=["ReportBatchItemFailures"])[
        "Reads"
    ]
    result = _lint_bytes(json.dumps({"Resources": resources}).encode())
    paths = [
        finding.path
        for finding in result.findings
        if finding.symptom == "batch_failures_not_reported"
    ]
    assert paths == ["Resources.Reads", "Resources.ReadsToo"]


@pytest.mark.parametrize(
    "enabled",
    [{"Ref": "IsEnabled"}, {"Fn::If": ["IsLive", True, False]}],
    ids=["a parameter without a default", "a condition"],
)
def test_lint_judges_a_mapping_as_enabled_if_that_is_not_known(enabled: dict[str, Any]) -> None:
    resources = _make_resources(Enabled=enabled)
    content = {"Parameters": {"IsEnabled": {"Type": "String"}}, "Resources": resources}
    result = _lint_bytes(json.dumps(content).encode())
    symptoms = {finding.symptom for finding in result.findings}
    assert {"dlq_missing", "batch_failures_not_reported"} <= symptoms
    assert "consumer_stopped" not in symptoms


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"ScalingConfig": "text"}, "ScalingConfig is not a mapping"),
        ({"BatchSize": "ten"}, "it is not a whole number"),
    ],
)
def test_setting_of_another_kind_is_left_undecided(settings: dict[str, Any], reason: str) -> None:
    result = _lint_bytes(json.dumps({"Resources": _make_resources(**settings)}).encode())
    assert [place.because for place in result.not_judged] == [f"how its mapping is set: {reason}"]


def _lint_event_source(event_source: Any, **settings: Any) -> list[str]:
    resources = _make_resources(EventSourceArn=event_source, BatchSize=1, **settings)
    parameters = {"Open": {"Type": "String"}}
    return _list_reasons(
        _lint_bytes(json.dumps({"Parameters": parameters, "Resources": resources}).encode()), PLACE
    )


def test_lint_reports_a_mapping_that_names_the_url_of_the_queue() -> None:
    assert _lint_event_source({"Ref": "Orders"}) == [
        "Lambda refuses the mapping: its EventSourceArn is the URL of the queue and not its ARN"
    ]


@pytest.mark.parametrize(
    ("filters", "reason"),
    [
        ([{"Pattern": "{body}"}], "the Pattern of a filter is not JSON"),
        ([{"Pattern": "[]"}], "the Pattern of a filter must be a JSON object"),
        (
            [{"Pattern": '{"body": {"state": "paid"}}'}],
            "in the Pattern of a filter, the values of 'state' must be a list",
        ),
        ([{"Pattern": "{}"}] * 11, "it has 11 filters, and Lambda accepts at most 10"),
    ],
)
def test_lint_reports_filters_that_lambda_refuses(filters: Any, reason: str) -> None:
    reasons = _lint_mapping(BatchSize=1, FilterCriteria={"Filters": filters})
    assert reasons == [f"Lambda refuses the mapping: {reason}"]


@pytest.mark.parametrize(
    "pattern",
    [
        '{"body": {"state": ["paid"]}}',
        '{"$or": [{"body": [1]}, {"body": [{"exists": true}]}]}',
        "{}",
        {"Fn::Sub": '{"body": {"state": ["${Open}"]}}'},
        "${file(filter.json)}",
    ],
    ids=str,
)
def test_lint_reports_no_filter_that_lambda_may_accept(pattern: Any) -> None:
    assert _lint_mapping(BatchSize=1, FilterCriteria={"Filters": [{"Pattern": pattern}]}) == []


def test_lint_reports_a_setting_of_streams_in_a_mapping_of_a_queue() -> None:
    reason = "Lambda refuses the mapping: a mapping of an SQS queue has no MaximumRetryAttempts"
    assert _lint_mapping(BatchSize=1, MaximumRetryAttempts=2) == [reason]
    for unknown in ({"Ref": "AWS::NoValue"}, {"Fn::ImportValue": "attempts"}):
        assert _lint_mapping(BatchSize=1, MaximumRetryAttempts=unknown) == []


@pytest.mark.parametrize(("timeout_seconds", "is_refused"), [(900, False), (901, True)])
def test_lint_reports_a_function_with_a_longer_timeout_than_lambda_has(
    timeout_seconds: int, is_refused: bool
) -> None:
    resources = _make_resources(BatchSize=1)
    resources["Bill"]["Properties"]["Timeout"] = timeout_seconds
    reasons = _list_reasons(_lint_bytes(json.dumps({"Resources": resources}).encode()), PLACE)
    assert [reason for reason in reasons if "Lambda accepts 1 to 900" in reason] == reasons
    assert bool(reasons) is is_refused


def _lint_two_mappings(first_function: Any, second_function: Any) -> list[str]:
    """Return why Lambda refuses the second of two mappings of one queue."""
    resources = _make_resources(BatchSize=1, FunctionName=first_function)
    second = {**resources["Reads"]["Properties"], "FunctionName": second_function}
    resources["ReadsToo"] = {**resources["Reads"], "Properties": second}
    resources["Other"] = resources["Bill"]
    live = {"FunctionName": {"Ref": "Bill"}, "FunctionVersion": "1", "Name": "live"}
    resources["Live"] = {"Type": "AWS::Lambda::Alias", "Properties": live}
    result = _lint_bytes(json.dumps({"Resources": resources}).encode())
    return [
        finding.because
        for finding in result.findings
        if finding.symptom == "invalid_request" and finding.path == "Resources.ReadsToo"
    ]


def test_lint_reports_the_second_mapping_of_one_function_and_queue() -> None:
    second_arn = {"Fn::GetAtt": ["Bill", "Arn"]}
    for function in ({"Ref": "Bill"}, second_arn):
        assert _lint_two_mappings({"Ref": "Bill"}, function) == [
            "Lambda refuses the mapping: Reads connects the same function and queue already"
        ]


@pytest.mark.parametrize(
    "second_function", [{"Ref": "Other"}, {"Ref": "Live"}, {"Fn::ImportValue": "function"}]
)
def test_lint_reports_no_second_mapping_of_another_function_or_alias(second_function: Any) -> None:
    assert _lint_two_mappings({"Ref": "Bill"}, second_function) == []
    assert _lint_two_mappings({"Fn::ImportValue": "function"}, second_function) == []

"""Lint says which consumers of a template stand still, or may run too seldom."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from mendq.lint.decode import read_template
from mendq.lint.judging import LintFinding, LintResult, LintSeverity, lint
from mendq.lint.values import DeployTarget

LOOKED_FOR = {"concurrency_too_small", "consumer_stopped", "consumer_throttled", "dlq_missing"}
QUEUE = "AWS::SQS::Queue"
ARN_OF_ORDERS = {"Fn::GetAtt": ["Orders", "Arn"]}


def _lint_text(text: str) -> LintResult:
    return lint(read_template(text.encode()), "template.yaml", DeployTarget())


def _list_findings(resources: dict[str, Any], **sections: Any) -> list[LintFinding]:
    result = _lint_text(json.dumps({**sections, "Resources": resources}))
    return [finding for finding in result.findings if finding.symptom in LOOKED_FOR]


def _make_resources(
    reserved: Any = None, receives: int = 3, *, is_fifo: bool = False, **mapping: Any
) -> dict[str, Any]:
    """Return a queue with a DLQ, the function that reads it, and the mapping."""
    fifo = {"FifoQueue": True} if is_fifo else {}
    redrive_policy = {
        "deadLetterTargetArn": {"Fn::GetAtt": ["Dead", "Arn"]},
        "maxReceiveCount": receives,
    }
    function: dict[str, Any] = {"Timeout": 5}
    if reserved is not None:
        function["ReservedConcurrentExecutions"] = reserved
    return {
        "Orders": {"Type": QUEUE, "Properties": {**fifo, "RedrivePolicy": redrive_policy}},
        "Dead": {"Type": QUEUE, "Properties": {**fifo, "MessageRetentionPeriod": 1_209_600}},
        "Bill": {"Type": "AWS::Lambda::Function", "Properties": function},
        "Reads": {
            "Type": "AWS::Lambda::EventSourceMapping",
            "Properties": {
                "EventSourceArn": ARN_OF_ORDERS,
                "FunctionName": {"Ref": "Bill"},
                **mapping,
            },
        },
    }


def _limit(runs: int) -> dict[str, Any]:
    return {"ScalingConfig": {"MaximumConcurrency": runs}}


def _poll(pollers: int) -> dict[str, Any]:
    return {"ProvisionedPollerConfig": {"MinimumPollers": 2, "MaximumPollers": pollers}}


@pytest.mark.parametrize(
    "resources",
    [
        _make_resources(),
        _make_resources(5),
        _make_resources(100, **_limit(100)),
        _make_resources(2, **_limit(2)),
        _make_resources(None, **_limit(50)),
        _make_resources(1, receives=11),
        _make_resources(1, is_fifo=True),
        _make_resources({"Fn::If": ["Small", 1, {"Ref": "AWS::NoValue"}]}),
        _make_resources(20, **_poll(2)),
        _make_resources(None, **_poll(200)),
    ],
)
def test_lint_reports_no_function_whose_reserved_concurrency_is_enough_or_not_known(
    resources: dict[str, Any],
) -> None:
    assert _list_findings(resources) == []


@pytest.mark.parametrize(
    ("resources", "says", "remedy"),
    [
        (_make_resources(1), "Lambda begins with 5 runs at once", "# reserve at least 5 for Bill"),
        (_make_resources(4, receives=10), "Lambda begins with 5 runs", "MaximumConcurrency: 4"),
        (_make_resources(1, **_limit(2)), "Lambda begins with 2 runs", "# reserve at least 5"),
        (_make_resources(5, **_limit(50)), "lets Bill run 50 times", "MaximumConcurrency: 5"),
        (_make_resources(5, 50, **_limit(6)), "lets Bill run 6 times", "MaximumConcurrency: 5"),
        (_make_resources(19, **_poll(2)), "lets Bill run 20 times", "# reserve at least 20"),
        (
            _make_resources(2, is_fifo=True, **_limit(9)),
            "lets Bill run 9 times",
            "MaximumConcurrency: 2",
        ),
    ],
)
def test_lint_warns_once_of_a_reserved_concurrency_that_is_too_small_at_the_mapping(
    resources: dict[str, Any], says: str, remedy: str
) -> None:
    (finding,) = _list_findings(resources)
    assert finding.symptom == "concurrency_too_small"
    assert finding.severity is LintSeverity.WARNING
    assert finding.path == "Resources.Reads"
    assert says in finding.because
    assert remedy in "\n".join(finding.remedy)


def test_limit_of_the_remedy_fits_the_reserved_concurrency() -> None:
    resources = _make_resources(5, **_limit(50))
    (finding,) = _list_findings(resources)
    resources["Reads"]["Properties"] |= yaml.safe_load("\n".join(finding.remedy))
    assert _list_findings(resources) == []


def _make_two_mappings(reserved: int, first_limit: int, second_limit: int) -> dict[str, Any]:
    """Return two queues that one function reads, each with a limit of its own."""
    resources = _make_resources(reserved, receives=5, **_limit(first_limit))
    resources["Parcels"] = resources["Orders"]
    second_mapping = {
        **resources["Reads"]["Properties"],
        "EventSourceArn": {"Fn::GetAtt": ["Parcels", "Arn"]},
        **_limit(second_limit),
    }
    resources["ReadsToo"] = {**resources["Reads"], "Properties": second_mapping}
    return resources


@pytest.mark.parametrize(
    ("limits", "remedy"),
    [((10, 10, 10), "# reserve at least 20 for Bill"), ((10, 6, 8), "MaximumConcurrency: 4")],
)
def test_limits_of_two_mappings_that_exceed_the_reserve_together_are_reported_once(
    limits: tuple[int, int, int], remedy: str
) -> None:
    resources = _make_two_mappings(*limits)
    (finding,) = _list_findings(resources)
    assert (finding.symptom, finding.path) == ("concurrency_too_small", "Resources.ReadsToo")
    assert f"together allow {sum(limits[1:])} runs at once" in finding.because
    assert remedy in "\n".join(finding.remedy)
    if not remedy.startswith("#"):
        resources["ReadsToo"]["Properties"] |= yaml.safe_load("\n".join(finding.remedy))
        assert _list_findings(resources) == []


def test_limits_of_two_mappings_that_fit_the_reserve_are_no_fault() -> None:
    assert _list_findings(_make_two_mappings(20, 10, 10)) == []


def test_function_with_a_reserved_concurrency_of_0_is_an_error_and_no_warning_besides() -> None:
    (finding,) = _list_findings(_make_resources(0, **_limit(10)))
    assert (finding.symptom, finding.severity) == ("consumer_throttled", LintSeverity.ERROR)
    assert finding.path == "Resources.Reads"
    assert "Lambda never runs Bill, because its reserved concurrency is 0" in finding.because


def test_disabled_mapping_is_an_error_unless_something_else_reads_the_queue() -> None:
    resources = _make_resources(Enabled=False)
    (finding,) = _list_findings(resources)
    assert (finding.symptom, finding.severity) == ("consumer_stopped", LintSeverity.ERROR)
    assert finding.path == "Resources.Reads"
    assert finding.remedy == ("# add to Reads", "Enabled: true")
    other_mapping = {**resources["Reads"]["Properties"], "Enabled": True}
    resources["ReadsToo"] = {"Type": resources["Reads"]["Type"], "Properties": other_mapping}
    assert _list_findings(resources) == []


def test_settings_of_a_queue_are_judged_for_the_function_of_a_disabled_mapping() -> None:
    resources = _make_resources(Enabled=False)
    del resources["Orders"]["Properties"]["RedrivePolicy"]
    symptoms = {finding.symptom for finding in _list_findings(resources)}
    assert symptoms == {"consumer_stopped", "dlq_missing"}


def test_concurrency_and_filter_of_a_disabled_mapping_are_no_fault() -> None:
    filters = {"Filters": [{"Pattern": '{"body": {"paid": [true]}}'}]}
    resources = _make_resources(1, Enabled=False, FilterCriteria=filters)
    assert [finding.symptom for finding in _list_findings(resources)] == ["consumer_stopped"]


def test_mapping_that_a_string_in_capitals_disables_is_an_error() -> None:
    (finding,) = _list_findings(_make_resources(Enabled="False"))
    assert (finding.symptom, finding.severity) == ("consumer_stopped", LintSeverity.ERROR)


def test_mapping_that_a_parameter_enables_is_judged_only_by_its_default() -> None:
    resources = _make_resources(Enabled={"Ref": "IsEnabled"})
    assert _list_findings(resources, Parameters={"IsEnabled": {"Type": "String"}}) == []
    switched_off = {"IsEnabled": {"Type": "String", "Default": "false"}}
    (finding,) = _list_findings(resources, Parameters=switched_off)
    assert finding.symptom == "consumer_stopped"


def test_disabled_mapping_of_a_dlq_waits_for_somebody_who_wants_the_messages() -> None:
    resources = _make_resources()
    resources["Again"] = {
        "Type": "AWS::Lambda::EventSourceMapping",
        "Properties": {
            "EventSourceArn": {"Fn::GetAtt": ["Dead", "Arn"]},
            "FunctionName": {"Ref": "Bill"},
            "Enabled": False,
        },
    }
    assert _list_findings(resources) == []


def _make_pipe(**properties: Any) -> dict[str, Any]:
    target = {"Target": "arn:aws:states:eu-west-1:111122223333:stateMachine:x", **properties}
    return {"Type": "AWS::Pipes::Pipe", "Properties": {"Source": ARN_OF_ORDERS, **target}}


def test_pipe_that_reads_a_queue_without_dlq_is_reported_as_dlq_missing() -> None:
    resources = {"Orders": {"Type": QUEUE}, "Copy": _make_pipe()}
    (finding,) = _list_findings(resources)
    assert (finding.symptom, finding.severity) == ("dlq_missing", LintSeverity.ERROR)
    assert "the pipe Copy cannot handle" in finding.because


def test_pipe_counts_as_a_consumer_beside_a_disabled_mapping() -> None:
    resources = {**_make_resources(Enabled=False), "Copy": _make_pipe()}
    assert _list_findings(resources) == []


def test_pipe_with_a_dlq_or_to_a_queue_is_no_fault() -> None:
    with_dlq = {**_make_resources(), "Copy": _make_pipe()}
    assert _list_findings(with_dlq) == []
    only_target = _make_pipe(Source="arn:aws:kinesis:eu-west-1:111122223333:stream/x")
    only_target["Properties"]["Target"] = ARN_OF_ORDERS
    assert _list_findings({"Orders": {"Type": QUEUE}, "Copy": only_target}) == []


def test_stopped_pipe_is_reported_as_a_stopped_consumer() -> None:
    resources = {"Orders": {"Type": QUEUE}, "Copy": _make_pipe(DesiredState="STOPPED")}
    (finding,) = _list_findings(resources)
    assert finding.symptom == "consumer_stopped"
    assert finding.path == "Resources.Copy"
    assert finding.remedy == ("# add to Copy", "DesiredState: RUNNING")


def test_pipe_whose_state_a_condition_decides_is_not_reported() -> None:
    state = {"Fn::If": ["IsLive", "RUNNING", "STOPPED"]}
    resources = {"Orders": {"Type": QUEUE}, "Copy": _make_pipe(DesiredState=state)}
    assert _list_findings(resources) == []


def test_sam_event_that_is_disabled_and_reserved_concurrency_of_globals_are_reported() -> None:
    text = """
Transform: AWS::Serverless-2016-10-31
Globals: {Function: {ReservedConcurrentExecutions: 2}}
Resources:
  Orders:
    Type: AWS::SQS::Queue
    Properties: {RedrivePolicy: {deadLetterTargetArn: !GetAtt Dead.Arn, maxReceiveCount: 5}}
  Late: {Type: AWS::SQS::Queue}
  Dead: {Type: AWS::SQS::Queue, Properties: {MessageRetentionPeriod: 1209600}}
  Bill:
    Type: AWS::Serverless::Function
    Properties:
      Events:
        Order: {Type: SQS, Properties: {Queue: !GetAtt Orders.Arn}}
        Late: {Type: SQS, Properties: {Queue: !GetAtt Late.Arn, Enabled: false}}
"""
    findings = {
        finding.symptom: finding
        for finding in _lint_text(text).findings
        if finding.symptom in LOOKED_FOR
    }
    assert findings.keys() == {"concurrency_too_small", "consumer_stopped", "dlq_missing"}
    events = "Resources.Bill.Properties.Events"
    assert findings["concurrency_too_small"].path == f"{events}.Order"
    assert findings["consumer_stopped"].path == f"{events}.Late"
    assert findings["consumer_stopped"].remedy[0] == "# add to Bill.Properties.Events.Late"


def test_remedies_for_a_serverless_event_are_settings_of_its_language() -> None:
    text = """
service: shop
provider: {name: aws}
functions:
  bill:
    handler: a.b
    reservedConcurrency: 3
    events:
      - sqs: {arn: !GetAtt Orders.Arn, maximumConcurrency: 9}
      - sqs: {arn: !GetAtt Late.Arn, enabled: false}
resources:
  Resources:
    Orders: {Type: AWS::SQS::Queue}
    Late: {Type: AWS::SQS::Queue}
"""
    remedy_by_symptom = {
        finding.symptom: "\n".join(finding.remedy) for finding in _lint_text(text).findings
    }
    assert "\nmaximumConcurrency: 3" in remedy_by_symptom["concurrency_too_small"]
    assert "\nenabled: true" in remedy_by_symptom["consumer_stopped"]


def _lint_pipe(timeout: Any = 300, visibility: int = 30, **pipe: Any) -> list[LintFinding]:
    """Return the findings about the visibility timeout of a queue whose pipe runs a function."""
    resources = _make_resources(receives=5)
    del resources["Reads"]
    resources["Orders"]["Properties"]["VisibilityTimeout"] = visibility
    resources["Bill"]["Properties"]["Timeout"] = timeout
    properties = {"Source": ARN_OF_ORDERS, "Target": {"Fn::GetAtt": ["Bill", "Arn"]}, **pipe}
    resources["Copy"] = {"Type": "AWS::Pipes::Pipe", "Properties": properties}
    result = _lint_text(json.dumps({"Resources": resources}))
    return [
        finding for finding in result.findings if finding.symptom == "visibility_timeout_too_short"
    ]


WINDOW = {"SqsQueueParameters": {"MaximumBatchingWindowInSeconds": 10}}


@pytest.mark.parametrize(
    ("timeout", "visibility", "pipe", "severity_class", "advice"),
    [
        (300, 30, {}, "will_lose", "1,800 s"),
        (30, 100, {}, "may_lose", "180 s"),
        (30, 185, {"SourceParameters": WINDOW}, "may_lose", "190 s"),
        (30, 185, {"Enrichment": {"Fn::GetAtt": ["Bill", "Arn"]}}, "may_lose", "360 s"),
    ],
)
def test_pipe_needs_a_visibility_timeout_of_six_times_what_its_functions_may_run(
    timeout: int, visibility: int, pipe: dict[str, Any], severity_class: str, advice: str
) -> None:
    (finding,) = _lint_pipe(timeout, visibility, **pipe)
    assert finding.severity_class == severity_class
    assert "the functions of its pipe Copy may run" in finding.because
    assert finding.because.endswith(f"AWS recommends {advice}")
    assert "Lambda refuses" not in finding.because, "only Lambda's own mappings are refused"
    assert finding.remedy[0].startswith("VisibilityTimeout: ")


@pytest.mark.parametrize(
    ("timeout", "visibility", "pipe"),
    [
        (30, 180, {}),
        (
            300,
            30,
            {
                "TargetParameters": {
                    "LambdaFunctionParameters": {"InvocationType": "FIRE_AND_FORGET"}
                }
            },
        ),
        (300, 30, {"Target": {"Fn::ImportValue": "bill"}}),
        ({"Fn::ImportValue": "timeout"}, 30, {}),
        (300, 30, {"DesiredState": "STOPPED"}),
    ],
    ids=["six times", "not waited for", "another stack", "not known", "stopped"],
)
def test_pipe_that_has_time_or_is_not_known_has_no_finding_about_the_timeout(
    timeout: Any, visibility: int, pipe: dict[str, Any]
) -> None:
    assert _lint_pipe(timeout, visibility, **pipe) == []

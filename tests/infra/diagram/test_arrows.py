"""The arrows of a template: each way on which a service sends by itself."""

from __future__ import annotations

from typing import Any

from infra.diagram.arrows import FEEDS, NOTICES, PARKS, SENDS, STARTS, TELLS, WRITES, Arrow, arrows
from infra.diagram.references import references
from tests.infra.synthesized import template_of


def _found() -> set[tuple[str, str, str]]:
    found = arrows(template_of("default").raw["Resources"])
    return {(each.source[:-8], each.does, each.target[:-8]) for each in found}


def test_the_way_of_one_failure_is_there() -> None:
    assert {
        ("IntakeFailedCalls", SENDS, "IntakeQueue"),
        ("IntakeFailedCalls", PARKS, "IntakeUndelivered"),
        ("IntakeQueue", FEEDS, "HealFunction"),
        ("IntakeQueue", PARKS, "IntakeDeadLetters"),
    } <= _found()


def test_clocks_trails_and_what_is_noticed_too() -> None:
    assert {
        ("SchedulesFollowUp", STARTS, "FollowUpFunction"),
        ("SchedulesFollowUp", PARKS, "FollowUpDeadLetters"),
        ("ReportsBucket", NOTICES, "DeliverReportSummaryWritten"),
        ("NightApplication", NOTICES, "WatchNightRunEnded"),
    } <= _found()
    trails = {each for each in _found() if each[1] == WRITES}
    assert {each[2] for each in trails} == {"TrailBucket"}


def test_alarms_tell_topics() -> None:
    told = {each[2] for each in _found() if each[1] == TELLS}
    assert told == {"TopicsUrgentTopic", "TopicsInfoTopic"}


def test_what_lies_outside_the_template_gets_no_arrow() -> None:
    rule: dict[str, Any] = {
        "Type": "AWS::Events::Rule",
        "Properties": {"Targets": [{"Arn": "arn:aws:sqs:us-east-1:111122223333:elsewhere"}]},
    }
    assert list(arrows({"Rule": rule})) == []
    rule["Properties"]["Targets"][0]["Arn"] = {"Ref": "Missing"}
    assert list(arrows({"Rule": rule})) == []


def test_an_arrow_is_found_in_each_way_to_write_a_reference() -> None:
    queue = {"Type": "AWS::SQS::Queue", "Properties": {}}
    for arn in ({"Ref": "Queue"}, {"Fn::GetAtt": ["Queue", "Arn"]}, {"Fn::Sub": "${Queue.Arn}"}):
        rule = {"Type": "AWS::Events::Rule", "Properties": {"Targets": [{"Arn": arn}]}}
        found = list(arrows({"Rule": rule, "Queue": queue}))
        assert found == [Arrow("Rule", "Queue", SENDS)]


def test_references_of_dependencies_and_joins() -> None:
    value = {"DependsOn": ["A", "B"], "Fn::Join": ["", [{"Ref": "C"}, "text"]]}
    assert references(value) == {"A", "B", "C"}
    assert references({"DependsOn": "A"}) == {"A"}
    assert references("${A}") == set()

"""What the template says of itself: who starts and tells whom, and who may touch what."""

from __future__ import annotations

from typing import Any

import pytest

from docs import stack
from docs.stack_outline import (
    FEEDS,
    PARKS,
    SENDS,
    STARTS,
    WRITES,
    YOUR_QUEUES,
    Arrow,
    arrows,
    parts,
    references,
    starts,
    title,
    touched,
)
from tests.infra.synthesized import template_of


def _resources(settings: str = "tagged") -> Any:
    return template_of(settings).raw["Resources"]


def test_every_way_on_which_a_service_sends_by_itself_is_an_arrow() -> None:
    found = {(each.source[:-8], each.does, each.target[:-8]) for each in arrows(_resources())}
    assert {
        ("IntakeFailedCalls", SENDS, "IntakeQueue"),
        ("IntakeFailedCalls", PARKS, "IntakeUndelivered"),
        ("IntakeQueue", FEEDS, "HealFunction"),
        ("IntakeQueue", PARKS, "IntakeDlq"),
        ("SchedulesFollowUp", STARTS, "FollowUpFunction"),
        ("SchedulesFollowUp", PARKS, "FollowUpDlq"),
    } <= found


QUEUE = {"Type": "AWS::SQS::Queue", "Properties": {}}


@pytest.mark.parametrize(
    ("arn", "found"),
    [
        ({"Ref": "Missing"}, []),
        ({"Fn::GetAtt": ["Queue", "Arn"]}, [Arrow("Rule", "Queue", SENDS)]),
        ({"Fn::Sub": "${Queue.Arn}"}, [Arrow("Rule", "Queue", SENDS)]),
    ],
)
def test_an_arrow_is_found_in_each_way_to_write_a_reference_within_the_template(
    arn: object, found: list[Arrow]
) -> None:
    rule = {"Type": "AWS::Events::Rule", "Properties": {"Targets": [{"Arn": arn}]}}
    assert list(arrows({"Rule": rule, "Queue": QUEUE})) == found
    assert references({"Fn::Join": ["", [{"Ref": "A"}, "text"]]}) == {"A"}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("tagged", {"heal", "attach_dlq", "restore_policy", "redrive", "rollback"}),
        ("default", set()),
    ],
)
def test_who_may_write_to_queues_is_who_may(settings: str, expected: set[str]) -> None:
    template = _resources(settings)
    granted = {name: touched(name, template).get(YOUR_QUEUES, set()) for name in parts(template)}
    assert {title(name, template) for name, verbs in granted.items() if WRITES in verbs} == expected


def test_each_part_is_started_by_what_the_template_says() -> None:
    template = _resources()
    by_part: dict[str, list[str]] = {}
    for source, how, target in starts(template):
        by = how or title(source, template)
        by_part.setdefault(title(target, template), []).append(by)
    assert by_part["follow_up"] == ["every minute"]
    assert by_part["start_nightly"] == ["each day at 02:00 UTC", "each Mon at 06:00 UTC"]
    assert by_part["heal"] == ["the intake queue", "follow_up", "approve", "scan"]
    assert by_part["the intake queue"] == ["Failed SQS calls of anyone but Mendq itself"]
    assert by_part["the nightly job"] == ["start_nightly"]
    assert "rollback" not in by_part
    assert 'a_person["a person"] --> rollback["rollback"]' in stack.picture()

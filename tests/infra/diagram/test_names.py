"""What the picture leaves out is named, and nothing falls between the two."""

from __future__ import annotations

import pytest

from infra.diagram.names import DRAWN, LEFT_OUT, left_out, title
from tests.infra.synthesized import SETTINGS, template_of


@pytest.mark.parametrize("settings", SETTINGS)
def test_what_is_left_out_is_named_once(settings: str) -> None:
    found = left_out(template_of(settings).raw["Resources"])
    assert sorted(found) == ["logs", "policies", "roles"]


def test_what_is_not_there_is_not_said_to_be_left_out() -> None:
    assert left_out({"Role": {"Type": "AWS::IAM::Role"}, "Queue": {"Type": "AWS::SQS::Queue"}}) == (
        "roles",
    )


def test_a_type_that_nobody_thought_of_stops_the_page() -> None:
    resources = {**template_of("default").raw["Resources"], "Gateway": {"Type": "AWS::EC2::Vpc"}}
    with pytest.raises(ValueError, match="says nothing of Gateway"):
        left_out(resources)


def test_nothing_is_both() -> None:
    assert DRAWN.isdisjoint(LEFT_OUT)


@pytest.mark.parametrize(
    ("name", "kind", "called"),
    [
        ("TopicsUrgentTopic43BC6B7B", "AWS::SNS::Topic", "the urgent topic"),
        ("TopicsKey64CE8550", "AWS::KMS::Key", "the topics key"),
        ("IntakeQueue6FB53B87", "AWS::SQS::Queue", "the intake queue"),
        ("LedgerTable9343E4AA", "AWS::DynamoDB::Table", "the ledger table"),
    ],
)
def test_a_resource_is_called_by_its_logical_id(name: str, kind: str, called: str) -> None:
    assert title(name, {name: {"Type": kind, "Properties": {}}}) == called

"""Queues in words, by what the template says of them alone."""

from __future__ import annotations

from typing import Any

import pytest

from infra.diagram.arrows import arrows
from infra.diagram.card import Card
from infra.diagram.queues import cards, parked_in
from infra.diagram.queues import parks as parks_of

DEAD = {"deadLetterTargetArn": {"Fn::GetAtt": ["Dead", "Arn"]}, "maxReceiveCount": 3}


def _queue(**properties: Any) -> dict[str, Any]:
    return {"Type": "AWS::SQS::Queue", "Properties": properties}


def _fed(**properties: Any) -> dict[str, Any]:
    """A queue that feeds a Lambda."""
    mapping = {"EventSourceArn": {"Ref": "Queue"}, "FunctionName": {"Ref": "Reader"}}
    reader = {"Handler": "functions.handlers.reader.handler"}
    return {
        "Queue": _queue(**properties),
        "Dead": _queue(),
        "Reader": {"Type": "AWS::Lambda::Function", "Properties": reader},
        "Mapping": {"Type": "AWS::Lambda::EventSourceMapping", "Properties": mapping},
    }


def _card(resources: dict[str, Any]) -> Card:
    feeding, filled = cards(resources, tuple(arrows(resources)))
    assert not filled
    (card,) = feeding["Reader"]
    return card


@pytest.mark.parametrize(
    ("properties", "says"),
    [
        ({}, "keeps messages for 4 days"),
        ({"MessageRetentionPeriod": 3_600}, "keeps messages for 1 hour"),
        ({"MessageRetentionPeriod": 5_400}, "keeps messages for 90 minutes"),
        ({"MessageRetentionPeriod": "90"}, "keeps messages for 90 seconds"),
        ({"FifoQueue": True, "ContentBasedDeduplication": True}, "keeps messages for 4 days"),
        (
            {"FifoQueue": True},
            "refuses messages without a deduplication id, keeps others for 4 days",
        ),
    ],
)
def test_what_a_queue_does(properties: dict[str, Any], says: str) -> None:
    assert _card(_fed(**properties)).says == says


def test_a_queue_without_dead_letters_parks_nothing() -> None:
    assert _card(_fed()).touches == ()
    assert _card(_fed(RedrivePolicy=DEAD)).touches == (
        "parks in its dead letters what fails 3 times",
    )


def test_a_queue_that_is_only_parked_in_has_no_card() -> None:
    resources = _fed(RedrivePolicy=DEAD)
    found = tuple(arrows(resources))
    assert parked_in(found) == {"Dead"}
    assert [each.title for made in cards(resources, found)[0].values() for each in made] == [
        "the queue"
    ]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"MaximumRetryAttempts": 0}, ["is not tried again where it fails"]),
        ({"MaximumRetryAttempts": 2}, []),
        (
            {
                "MaximumRetryAttempts": 0,
                "DestinationConfig": {"OnFailure": {"Destination": {"Ref": "Dead"}}},
            },
            ["parks what fails in its dead letters"],
        ),
    ],
)
def test_what_becomes_of_a_call_that_failed(given: dict[str, Any], said: list[str]) -> None:
    invoked = {"FunctionName": {"Ref": "Reader"}, **given}
    config = {"Type": "AWS::Lambda::EventInvokeConfig", "Properties": invoked}
    resources = {**_fed(), "Config": config}
    assert list(parks_of("Reader", resources, tuple(arrows(resources)))) == said
    assert list(parks_of("Dead", resources, tuple(arrows(resources)))) == []

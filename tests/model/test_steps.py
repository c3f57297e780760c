from __future__ import annotations

import pytest

from mendq.model.queue import Redrive, RedriveAllow
from mendq.model.steps import (
    HELD,
    STEPS,
    AllowRedriveFrom,
    AttachDlq,
    AttributeStep,
    CreateDlq,
    DeduplicateByContent,
    DeduplicateByGroup,
    LimitThroughputByGroup,
    NumberStep,
    RedriveMessages,
    RestorePolicy,
    SetKmsDataKeyReusePeriod,
    SetVisibilityTimeout,
    WordStep,
)

_DEAD = "arn:aws:sqs:us-east-1:123456789012:orders-dlq"
_SOURCES = tuple(f"arn:aws:sqs:us-east-1:123456789012:orders-{n}" for n in range(10))
# Those that are neither a number nor one of two words.
TEXTS: dict[type[AttributeStep], AttributeStep] = {
    CreateDlq: CreateDlq("", _DEAD),
    AttachDlq: AttachDlq("", Redrive(_DEAD, 100).text),
    AllowRedriveFrom: AllowRedriveFrom(
        RedriveAllow("byQueue").text, RedriveAllow("byQueue", _SOURCES).text
    ),
    RestorePolicy: RestorePolicy("", "{}"),
    RedriveMessages: RedriveMessages(HELD, _DEAD),
}


def widest(kind: type[AttributeStep]) -> AttributeStep:
    """The furthest that a fix of this kind may go."""
    if issubclass(kind, NumberStep):
        return kind(kind.minimum, kind.maximum)
    if issubclass(kind, WordStep):
        return kind(kind.shipped, kind.wanted)
    return TEXTS[kind]


@pytest.mark.parametrize("kind", STEPS)
def test_the_furthest_of_every_kind_is_within_its_bounds(kind: type[AttributeStep]) -> None:
    assert widest(kind).out_of_bounds() is None


@pytest.mark.parametrize(
    "step",
    [
        DeduplicateByContent("true", "false"),
        DeduplicateByGroup("queue", "queue"),
        DeduplicateByGroup("tenant", "messageGroup"),
        LimitThroughputByGroup("perQueue", "perQueueId"),
        SetKmsDataKeyReusePeriod(300, 3_601),
        SetVisibilityTimeout(30, 30),
        SetVisibilityTimeout(30, 29),
        SetVisibilityTimeout(30, 43_201),
        SetVisibilityTimeout(-2, -1),
    ],
)
def test_a_step_that_does_not_rise_or_leaves_its_range_says_so(step: AttributeStep) -> None:
    assert step.out_of_bounds()


def test_a_step_within_its_range_has_no_fault() -> None:
    assert SetVisibilityTimeout(0, 1).out_of_bounds() is None
    assert SetVisibilityTimeout(30, 43_200).out_of_bounds() is None


@pytest.mark.parametrize("kind", STEPS)
def test_the_inverse_of_the_inverse_is_the_step(kind: type[AttributeStep]) -> None:
    step = widest(kind)
    assert step.inverse() != step
    assert step.inverse().inverse() == step

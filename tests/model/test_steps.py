"""Test the bounds of each step, and the value that a step reads from a queue's attributes."""

from __future__ import annotations

from typing import Any

import pytest

from mendq.model.queue import RedriveAllowPolicy, RedrivePolicy
from mendq.model.steps import (
    MESSAGES_HELD_IN_DLQ_VALUE,
    STEP_CLASSES,
    AllowRedriveFrom,
    AttachDlq,
    AttributeStep,
    CreateDlq,
    LowerVisibilityTimeout,
    NumberStep,
    RedriveMessages,
    RestorePolicy,
    SetVisibilityTimeout,
    WordStep,
    find_step_class,
    has_value_in_queue,
    is_permanent,
)
from tests.model.tables import table

DEAD = "arn:aws:sqs:us-east-1:123456789012:orders-dlq"
SOURCES = tuple(f"arn:aws:sqs:us-east-1:123456789012:orders-{n:02}" for n in range(11))


def make_by_queue_policy(*sources: str) -> str:
    return RedriveAllowPolicy("byQueue", tuple(sorted(sources))).text


# The furthest allowed step of each kind that sets neither a number nor one of two words.
FURTHEST_TEXT_STEPS: dict[type[AttributeStep], AttributeStep] = {
    CreateDlq: CreateDlq("", DEAD),
    AttachDlq: AttachDlq("", RedrivePolicy(DEAD, 100).text),
    AllowRedriveFrom: AllowRedriveFrom(make_by_queue_policy(), make_by_queue_policy(*SOURCES[:10])),
    RestorePolicy: RestorePolicy("", "{}"),
    RedriveMessages: RedriveMessages(MESSAGES_HELD_IN_DLQ_VALUE, DEAD),
}


@pytest.mark.parametrize("kind", STEP_CLASSES)
def test_largest_allowed_change_of_every_step_class_is_within_its_bounds(
    kind: type[AttributeStep],
) -> None:
    if issubclass(kind, NumberStep):
        step: AttributeStep = kind(kind.minimum, kind.maximum)
    else:
        words = issubclass(kind, WordStep)
        step = kind(kind.default_word, kind.fix_word) if words else FURTHEST_TEXT_STEPS[kind]  # type: ignore[attr-defined]
    assert step.find_bounds_fault() is None


def test_smallest_timeout_redrive_policy_and_allow_policy_step_is_within_its_bounds() -> None:
    assert SetVisibilityTimeout(0, 1).find_bounds_fault() is None
    assert AttachDlq("", RedrivePolicy(DEAD, 3).text).find_bounds_fault() is None
    assert (
        AllowRedriveFrom(
            make_by_queue_policy(*SOURCES[:8]), make_by_queue_policy(*SOURCES[:9])
        ).find_bounds_fault()
        is None
    )


@pytest.mark.parametrize(("after", "is_allowed"), [(30, True), (29, False), (31, False)])
def test_lower_visibility_step_may_only_lower_the_timeout_and_not_below_30_seconds(
    after: int, *, is_allowed: bool
) -> None:
    fault = LowerVisibilityTimeout(31, after).find_bounds_fault()
    assert (fault is None) is is_allowed
    assert LowerVisibilityTimeout(31, 32).find_bounds_fault() is not None


def test_set_visibility_step_may_not_lower_the_timeout() -> None:
    assert SetVisibilityTimeout(31, 30).find_bounds_fault() is not None


def test_stored_visibility_timeout_step_is_read_as_the_set_step() -> None:
    """Undoing either step is a plain set, up or down."""
    assert find_step_class(LowerVisibilityTimeout.attribute) is SetVisibilityTimeout


@pytest.mark.parametrize("before", ["", '{"Statement":[]}', "{} "])
def test_restore_policy_is_within_bounds_whatever_text_it_replaces(before: str) -> None:
    assert RestorePolicy(before, "{}").find_bounds_fault() is None


STEP_CLASS_BY_NAME = {step_class.__name__: step_class for step_class in STEP_CLASSES}


@pytest.mark.parametrize(("kind", "before", "after"), table("out of bounds"))
def test_step_outside_its_bounds_reports_a_fault(kind: str, before: Any, after: Any) -> None:
    assert STEP_CLASS_BY_NAME[kind](before, after).find_bounds_fault()


def test_current_value_of_a_policy_step_is_the_same_for_every_spelling_of_the_json() -> None:
    """AWS returns its own spelling of the JSON, and a person's template has another."""
    spelling = f'{{"maxReceiveCount": "5",\n "deadLetterTargetArn": "{DEAD}"}}'
    ours = RedrivePolicy(DEAD, 5).text
    for text in (spelling, ours):
        assert AttachDlq.value_in({"RedrivePolicy": text}) == ours
    swapped = (
        f'{{"sourceQueueArns": ["{SOURCES[1]}", "{SOURCES[0]}"], "redrivePermission":"byQueue"}}'
    )
    assert AllowRedriveFrom.value_in({"RedriveAllowPolicy": swapped}) == make_by_queue_policy(
        *SOURCES[:2]
    )


def test_redrive_is_the_only_step_without_a_queue_attribute() -> None:
    without_value = [step for step in STEP_CLASSES if not step.has_value_in_queue]
    assert without_value == [find_step_class("Dlq")]
    assert not has_value_in_queue("Dlq")


def test_current_value_of_a_redrive_is_that_messages_are_held_whatever_the_attributes() -> None:
    for attributes in ({}, {"RedrivePolicy": "{}"}):
        assert RedriveMessages.value_in(attributes) == MESSAGES_HELD_IN_DLQ_VALUE


def test_redrive_cannot_be_undone() -> None:
    assert is_permanent("Dlq")


def test_step_that_this_version_does_not_know_counts_as_a_queue_attribute() -> None:
    assert has_value_in_queue("OfAnOlderMendq")


def test_current_value_of_an_unreadable_policy_attribute_is_its_raw_text() -> None:
    assert AttachDlq.value_in({"RedrivePolicy": "{"}) == "{"
    assert AllowRedriveFrom.value_in({"RedriveAllowPolicy": "[]"}) == "[]"


def test_current_value_of_an_absent_policy_attribute_is_empty() -> None:
    assert AttachDlq.value_in({}) == ""
    assert AllowRedriveFrom.value_in({}) == ""


def test_current_value_of_the_create_step_is_the_arn_of_the_dlq() -> None:
    assert CreateDlq.value_in({"DeadLetterQueue": DEAD}) == DEAD

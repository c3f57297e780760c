"""How far each step may go, what undoes it, and whose it is."""

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


def by_queue(*sources: str) -> str:
    return RedriveAllowPolicy("byQueue", tuple(sorted(sources))).text


# Those that are neither a number nor one of two words.
TEXTS: dict[type[AttributeStep], AttributeStep] = {
    CreateDlq: CreateDlq("", DEAD),
    AttachDlq: AttachDlq("", RedrivePolicy(DEAD, 100).text),
    AllowRedriveFrom: AllowRedriveFrom(by_queue(), by_queue(*SOURCES[:10])),
    RestorePolicy: RestorePolicy("", "{}"),
    RedriveMessages: RedriveMessages(MESSAGES_HELD_IN_DLQ_VALUE, DEAD),
}


@pytest.mark.parametrize("kind", STEP_CLASSES)
def test_the_furthest_of_every_kind_is_within_its_bounds(
    kind: type[AttributeStep],
) -> None:
    if issubclass(kind, NumberStep):
        step: AttributeStep = kind(kind.minimum, kind.maximum)
    else:
        words = issubclass(kind, WordStep)
        step = kind(kind.default_word, kind.fix_word) if words else TEXTS[kind]  # type: ignore[attr-defined]
    assert step.find_bounds_fault() is None


def test_the_least_of_a_kind_is_within_its_bounds() -> None:
    assert SetVisibilityTimeout(0, 1).find_bounds_fault() is None
    assert AttachDlq("", RedrivePolicy(DEAD, 3).text).find_bounds_fault() is None
    assert (
        AllowRedriveFrom(by_queue(*SOURCES[:8]), by_queue(*SOURCES[:9])).find_bounds_fault() is None
    )


def test_a_visibility_timeout_goes_down_by_a_step_of_its_own_and_not_below_sqs_s() -> None:
    assert LowerVisibilityTimeout(31, 30).find_bounds_fault() is None
    for after in (29, 31, 32):
        assert LowerVisibilityTimeout(31, after).find_bounds_fault()
    assert SetVisibilityTimeout(31, 30).find_bounds_fault()
    assert find_step_class(LowerVisibilityTimeout.attribute) is SetVisibilityTimeout, (
        "as it is undone"
    )


@pytest.mark.parametrize("before", ["", '{"Statement":[]}', "{} "])
def test_restore_policy_is_within_bounds_whatever_text_it_replaces(before: str) -> None:
    assert RestorePolicy(before, "{}").find_bounds_fault() is None


BY_NAME = {each.__name__: each for each in STEP_CLASSES}


@pytest.mark.parametrize(("kind", "before", "after"), table("out of bounds"))
def test_beyond_its_bounds_a_step_says_so(kind: str, before: Any, after: Any) -> None:
    assert BY_NAME[kind](before, after).find_bounds_fault()


def test_spelling_makes_no_difference_to_what_stands_there() -> None:
    """AWS answers with a spelling of its own; a person's template has another."""
    spelling = f'{{"maxReceiveCount": "5",\n "deadLetterTargetArn": "{DEAD}"}}'
    ours = RedrivePolicy(DEAD, 5).text
    for text in (spelling, ours):
        assert AttachDlq.value_in({"RedrivePolicy": text}) == ours
    swapped = (
        f'{{"sourceQueueArns": ["{SOURCES[1]}", "{SOURCES[0]}"], "redrivePermission":"byQueue"}}'
    )
    assert AllowRedriveFrom.value_in({"RedriveAllowPolicy": swapped}) == by_queue(*SOURCES[:2])


def test_the_step_that_sends_messages_back_alone_leaves_no_value_and_is_never_taken_back() -> None:
    assert [each for each in STEP_CLASSES if not each.has_value_in_queue] == [
        find_step_class("Dlq")
    ]
    assert (
        is_permanent("Dlq"),
        has_value_in_queue("Dlq"),
        has_value_in_queue("OfAnOlderMendq"),
    ) == (
        True,
        False,
        True,
    )
    for attributes in ({}, {"RedrivePolicy": "{}"}):
        assert RedriveMessages.value_in(attributes) == MESSAGES_HELD_IN_DLQ_VALUE


def test_what_is_absent_or_cannot_be_read_stands_as_it_is() -> None:
    assert AttachDlq.value_in({"RedrivePolicy": "{"}) == "{"
    assert AllowRedriveFrom.value_in({"RedriveAllowPolicy": "[]"}) == "[]"
    assert (AttachDlq.value_in({}), AllowRedriveFrom.value_in({})) == ("", "")
    assert CreateDlq.value_in({"DeadLetterQueue": DEAD}) == DEAD

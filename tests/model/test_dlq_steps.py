"""How far the steps about DLQ messages may go."""

from __future__ import annotations

import pytest

from mendq.catalogue.examples import STANDARD_ARN
from mendq.model.queue import Redrive, RedriveAllow
from mendq.model.steps import (
    AllowRedriveFrom,
    AttachDlq,
    CreateDlq,
    DlqStep,
    Owner,
)

DEAD = "arn:aws:sqs:us-east-1:123456789012:orders-dlq"
SOURCES = tuple(f"{STANDARD_ARN}{n:02}" for n in range(11))


def by_queue(*sources: str) -> str:
    return RedriveAllow("byQueue", tuple(sorted(sources))).text


@pytest.mark.parametrize(
    "step",
    [
        CreateDlq("", DEAD),
        AttachDlq("", Redrive(DEAD, 3).text),
        AttachDlq("", Redrive(DEAD, 100).text),
        AllowRedriveFrom(by_queue(), by_queue(SOURCES[0])),
        AllowRedriveFrom(by_queue(*SOURCES[:8]), by_queue(*SOURCES[:10])),
    ],
)
def test_within_its_bounds_a_step_has_no_fault(step: DlqStep) -> None:
    assert step.out_of_bounds() is None
    assert step.owner is Owner.ATTACH_DLQ


@pytest.mark.parametrize(
    "step",
    [
        CreateDlq(DEAD, DEAD),
        CreateDlq("", "orders-dlq"),
        CreateDlq("", "arn:aws:sqs:us-east-1:123456789012:orders dlq"),
        AttachDlq("", ""),
        AttachDlq("", Redrive(DEAD, 2).text),
        AttachDlq("", Redrive(DEAD, 101).text),
        AttachDlq("", Redrive("orders-dlq", 5).text),
        AttachDlq(Redrive(DEAD, 5).text, Redrive(f"{DEAD}-2", 5).text),
        AttachDlq("", Redrive(DEAD, 5).text.replace("5}", '5,"more":1}')),
        AttachDlq("", Redrive(DEAD, 5).text.replace(":5", ': "5"')),
        AllowRedriveFrom(by_queue(SOURCES[0]), '{"redrivePermission":"allowAll"}'),
        AllowRedriveFrom('{"redrivePermission":"denyAll"}', by_queue(SOURCES[0])),
        AllowRedriveFrom("", by_queue(SOURCES[0])),
        AllowRedriveFrom("{", by_queue(SOURCES[0])),
        AllowRedriveFrom(by_queue(SOURCES[0]), by_queue(SOURCES[1])),
        AllowRedriveFrom(by_queue(SOURCES[0]), by_queue(SOURCES[0])),
        AllowRedriveFrom(by_queue(), by_queue("*")),
        AllowRedriveFrom(by_queue(*SOURCES[:10]), by_queue(*SOURCES)),
    ],
)
def test_beyond_its_bounds_a_step_says_so(step: DlqStep) -> None:
    assert step.out_of_bounds()


def test_spelling_makes_no_difference_to_what_stands_there() -> None:
    """AWS answers with a spelling of its own; a person's template has another."""
    spelling = f'{{"maxReceiveCount": "5",\n "deadLetterTargetArn": "{DEAD}"}}'
    ours = Redrive(DEAD, 5).text
    assert AttachDlq.standing_in({"RedrivePolicy": spelling}) == ours
    assert AttachDlq.standing_in({"RedrivePolicy": ours}) == ours
    assert AttachDlq.standing_in({}) == ""
    swapped = (
        f'{{"sourceQueueArns": ["{SOURCES[1]}", "{SOURCES[0]}"], "redrivePermission":"byQueue"}}'
    )
    assert AllowRedriveFrom.standing_in({"RedriveAllowPolicy": swapped}) == by_queue(*SOURCES[:2])


def test_what_cannot_be_read_stands_as_it_is() -> None:
    assert AttachDlq.standing_in({"RedrivePolicy": "{"}) == "{"
    assert AllowRedriveFrom.standing_in({"RedriveAllowPolicy": "[]"}) == "[]"
    assert AllowRedriveFrom.standing_in({}) == ""


def test_taking_it_back_leaves_what_stood_there() -> None:
    attached = AttachDlq("", Redrive(DEAD, 5).text)
    assert attached.inverse().after == ""
    allowed = AllowRedriveFrom(by_queue(SOURCES[0]), by_queue(*SOURCES[:2]))
    assert allowed.inverse().after == by_queue(SOURCES[0])


def test_a_queue_once_made_is_retained() -> None:
    assert CreateDlq.stays
    assert not AttachDlq.stays
    assert CreateDlq.standing_in({"DeadLetterQueue": DEAD}) == DEAD

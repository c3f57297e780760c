"""Attributes that SQS refuses, near-misses first."""

from __future__ import annotations

import pytest

from local_account.sqs.attributes import RANGES, Target, refusal_of

STANDARD = Target(is_fifo=False, is_new=False)
FIFO = Target(is_fifo=True, is_new=False)
NEW_STANDARD = Target(is_fifo=False, is_new=True)
NEW_FIFO = Target(is_fifo=True, is_new=True)


@pytest.mark.parametrize(("name", "bounds"), sorted(RANGES.items()))
def test_ranges(name: str, bounds: tuple[int, int]) -> None:
    least, most = bounds
    for inside in (least, most):
        assert refusal_of({name: str(inside)}, STANDARD) is None
    for outside in (str(least - 1), str(most + 1), "", "ten", "1.5", "٣"):
        refusal = refusal_of({name: outside}, STANDARD)
        assert refusal is not None
        assert refusal.name == "InvalidAttributeValue"
        assert refusal.message == f"Invalid value for the parameter {name}."


@pytest.mark.parametrize(
    ("target", "attributes"),
    [
        (FIFO, {"ContentBasedDeduplication": "true"}),
        (FIFO, {"FifoQueue": "true"}),
        (NEW_STANDARD, {"FifoQueue": "true"}),  # refused by its name, not here
        (FIFO, {"DeduplicationScope": "messageGroup", "FifoThroughputLimit": "perMessageGroupId"}),
        (FIFO, {"FifoThroughputLimit": "perQueue"}),
        (STANDARD, {"KmsMasterKeyId": "alias/mine", "SqsManagedSseEnabled": "false"}),
        (STANDARD, {"KmsMasterKeyId": "", "SqsManagedSseEnabled": "true"}),
        (STANDARD, {"Policy": "", "RedrivePolicy": "", "RedriveAllowPolicy": ""}),
        (STANDARD, {"Policy": '{"Statement": []}'}),
        (STANDARD, {}),
    ],
)
def test_near_misses_are_taken(target: Target, attributes: dict[str, str]) -> None:
    assert refusal_of(attributes, target) is None


@pytest.mark.parametrize(
    ("target", "attributes", "name", "message"),
    [
        (STANDARD, {"Nonsense": "1"}, "InvalidAttributeName", "Unknown Attribute Nonsense."),
        (STANDARD, {"QueueArn": "x"}, "InvalidAttributeName", "Unknown Attribute QueueArn."),
        (
            FIFO,
            {"ApproximateNumberOfMessages": "0"},
            "InvalidAttributeName",
            "Unknown Attribute ApproximateNumberOfMessages.",
        ),
        (
            NEW_STANDARD,
            {"ContentBasedDeduplication": "true"},
            "InvalidAttributeName",
            "Unknown Attribute ContentBasedDeduplication.",
        ),
        (
            NEW_STANDARD,
            {"DeduplicationScope": "queue"},
            "InvalidAttributeName",
            "You can specify the DeduplicationScope only when FifoQueue is set to true.",
        ),
        (
            STANDARD,
            {"FifoThroughputLimit": "perQueue"},
            "InvalidAttributeName",
            "You can specify the FifoThroughputLimit only when FifoQueue is set to true.",
        ),
        (
            STANDARD,
            {"FifoQueue": "true"},
            "InvalidAttributeName",
            "Unknown Attribute FifoQueue.",
        ),
        (
            FIFO,
            {"FifoQueue": "false"},
            "InvalidAttributeValue",
            (
                "Invalid value for the parameter FifoQueue. "
                "Reason: Modifying queue type is not supported."
            ),
        ),
        (
            FIFO,
            {"DeduplicationScope": "group"},
            "InvalidAttributeValue",
            "Invalid value for the parameter DeduplicationScope.",
        ),
        (
            STANDARD,
            {"Policy": "{"},
            "InvalidAttributeValue",
            "Invalid value for the parameter Policy.",
        ),
        (
            STANDARD,
            {"KmsMasterKeyId": "alias/mine", "SqsManagedSseEnabled": "true"},
            "InvalidAttributeName",
            (
                "You can use one type of server-side encryption (SSE) at one time. "
                "You can either enable KMS SSE or SQS SSE."
            ),
        ),
    ],
)
def test_refusals(target: Target, attributes: dict[str, str], name: str, message: str) -> None:
    refusal = refusal_of(attributes, target)
    assert refusal is not None
    assert (refusal.name, refusal.message, refusal.status) == (name, message, 400)


@pytest.mark.parametrize(
    ("current", "attributes"),
    [
        ({}, {"FifoThroughputLimit": "perMessageGroupId"}),
        ({"DeduplicationScope": "queue"}, {"FifoThroughputLimit": "perMessageGroupId"}),
        (
            {"DeduplicationScope": "messageGroup", "FifoThroughputLimit": "perMessageGroupId"},
            {"DeduplicationScope": "queue"},
        ),
    ],
)
def test_the_throughput_pair_is_judged_as_it_would_end(
    current: dict[str, str], attributes: dict[str, str]
) -> None:
    assert refusal_of(attributes, Target(is_fifo=True, is_new=False, current=current))


def test_one_bad_attribute_refuses_the_whole_call() -> None:
    assert refusal_of({"VisibilityTimeout": "30", "DelaySeconds": "901"}, STANDARD)

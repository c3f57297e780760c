"""Test which values SQS accepts for a queue, and what a refused redrive policy still tells."""

from __future__ import annotations

import pytest

from mendq.model.queue_limits import (
    RANGE_BY_ATTRIBUTE,
    find_range_refusal,
    find_redrive_key,
    find_redrive_refusal,
)
from mendq.model.steps import SetMessageRetention, SetVisibilityTimeout


@pytest.mark.parametrize("redrive_policy", ["no JSON", "[]", 5, None])
def test_redrive_policy_that_is_no_mapping_has_no_keys_and_is_not_called_refused(
    redrive_policy: object,
) -> None:
    assert find_redrive_key(redrive_policy, "maxReceiveCount") is None
    assert find_redrive_refusal(redrive_policy) is None


def test_redrive_key_in_other_letters_tells_which_dlq_is_meant() -> None:
    assert find_redrive_key({"DeadLetterTargetArn": "x"}, "deadLetterTargetArn") == "x"
    assert find_redrive_key('{"DEADLETTERTARGETARN": "x"}', "deadLetterTargetArn") == "x"


def test_attribute_without_a_range_is_never_refused_for_its_number() -> None:
    assert find_range_refusal("QueueName", 99_999_999) is None


def test_steps_have_the_ranges_of_sqs() -> None:
    for step_class in (SetVisibilityTimeout, SetMessageRetention):
        number_range = RANGE_BY_ATTRIBUTE[step_class.attribute]
        assert (step_class.minimum, step_class.maximum) == (
            number_range.minimum,
            number_range.maximum,
        )

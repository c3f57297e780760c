"""Attributes, names and DLQs as boto3 sees them: what is refused changes nothing."""

from __future__ import annotations

import json
import uuid
from functools import partial
from typing import Any

import pytest

from local_account.process import LocalAccount
from mendq.model.queue import RedrivePolicy
from tests.local_account.queues import error_of, new_queue

pytestmark = pytest.mark.account
INVALID_NAME = "InvalidAttributeName"
INVALID_VALUE = "InvalidAttributeValue"


REFUSED: tuple[tuple[dict[str, str], str, str], ...] = (
    ({"Nonsense": "1"}, INVALID_NAME, "Unknown Attribute Nonsense."),
    ({"QueueArn": "arn:x"}, INVALID_NAME, "Unknown Attribute QueueArn."),
    ({"FifoQueue": "false"}, INVALID_NAME, "Unknown Attribute FifoQueue."),
    ({"VisibilityTimeout": "43201"}, INVALID_VALUE, "Value must be between 0 and 43200."),
    ({"SqsManagedSseEnabled": "yes"}, INVALID_VALUE, "parameter SqsManagedSseEnabled."),
    ({"Policy": "[]"}, INVALID_VALUE, "Invalid value for the parameter Policy."),
    (
        {"RedriveAllowPolicy": '{"redrivePermission": "byQueue"}'},
        "InvalidParameterValue",
        "is invalid. Reason: It is allowAll, denyAll, or byQueue with 1 to 10",
    ),
    ({"RedriveAllowPolicy": '{"a": 1}'}, "InvalidParameterValue", "with 1 to 10"),
    ({"ContentBasedDeduplication": "true"}, INVALID_NAME, "Unknown Attribute Content"),
    ({"DeduplicationScope": "queue"}, INVALID_NAME, "only when FifoQueue is set to true."),
)


def test_invalid_queue_attribute_is_refused_with_the_sqs_error_and_changes_nothing(
    account: LocalAccount,
) -> None:
    queue = new_queue(account)
    name = f"test-{uuid.uuid4()}"
    before = queue.attributes()
    for attributes, code, message in REFUSED:
        refused = error_of(partial(queue.set, **{"DelaySeconds": "7", **attributes}))
        assert (refused[0], message in refused[1]) == (code, True)
        create = partial(queue.sqs.create_queue, QueueName=name, Attributes=attributes)
        assert error_of(create)[0] == code
    assert queue.attributes() == before
    assert error_of(lambda: queue.sqs.get_queue_url(QueueName=name))[0].endswith("NonExistentQueue")


def _to(arn: str) -> str:
    return json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 5})


def test_redrive_policy_is_refused_for_a_dlq_of_wrong_type_missing_or_not_allowed(
    account: LocalAccount,
) -> None:
    source = new_queue(account, fifo=True)
    standard = new_queue(account)
    fitting = new_queue(account, fifo=True)
    by_others = {"redrivePermission": "byQueue", "sourceQueueArns": [standard.arn]}
    for arn, allowed in (
        (standard.arn, None),
        (fitting.arn + "-gone", None),
        (fitting.arn, {"redrivePermission": "denyAll"}),
        (fitting.arn, by_others),
    ):
        fitting.set(RedriveAllowPolicy=json.dumps(allowed) if allowed else "")
        assert error_of(partial(source.set, RedrivePolicy=_to(arn)))[0] == "InvalidParameterValue"
    assert "RedrivePolicy" not in source.attributes()
    by_others["sourceQueueArns"] = [source.arn]
    fitting.set(RedriveAllowPolicy=json.dumps(by_others))
    source.set(RedrivePolicy=_to(fitting.arn))
    assert fitting.arn in source.attributes()["RedrivePolicy"]


def _bodies(messages: list[dict[str, Any]]) -> list[str]:
    return [message["Body"] for message in messages]


def test_fifo_dlq_takes_head_and_followers_of_a_batch_together_and_in_order(
    account: LocalAccount,
) -> None:
    """The receives of a batch are counted for each of its messages: SQS gives them one fate."""
    source = new_queue(account, fifo=True)
    dlq = new_queue(account, fifo=True)
    source.set(RedrivePolicy=json.dumps({"deadLetterTargetArn": dlq.arn, "maxReceiveCount": 2}))
    sent = [f"message {number}" for number in range(12)]
    for body in sent:
        source.send(body, group="one")
    for receives in ("1", "2"):
        batch = source.receive_some(MessageSystemAttributeNames=["ApproximateReceiveCount"])
        assert _bodies(batch) == sent[:10]
        counts = {message["Attributes"]["ApproximateReceiveCount"] for message in batch}
        assert counts == {receives}
        for message in batch:
            source.change(message["ReceiptHandle"], 0)
    assert _bodies(source.receive_some()) == sent[10:]
    assert _bodies(dlq.receive_some()) == sent[:10]


def test_fifo_group_moves_nothing_to_the_dlq_while_its_head_is_in_flight(
    account: LocalAccount,
) -> None:
    source = new_queue(account, fifo=True)
    dlq = new_queue(account, fifo=True)
    source.set(RedrivePolicy=json.dumps({"deadLetterTargetArn": dlq.arn, "maxReceiveCount": 1}))
    for body in ("head", "second", "third"):
        source.send(body, group="locked")
    source.send("free", group="other")
    head, *others = source.receive_some(VisibilityTimeout=60)
    for message in others:
        source.change(message["ReceiptHandle"], 0)
    assert source.receive_some() == []
    assert _bodies(dlq.receive_some()) == ["free"], "another group is not held up"
    source.change(head["ReceiptHandle"], 0)
    assert source.receive_some() == []
    assert _bodies(dlq.receive_some()) == ["head", "second", "third"]


def test_message_moves_between_two_queues_that_are_each_others_dlq_only_by_receives(
    tiny: LocalAccount,
) -> None:
    first, second = new_queue(tiny), new_queue(tiny)
    first.set(RedrivePolicy=RedrivePolicy(second.arn, 2).text)
    second.set(RedrivePolicy=RedrivePolicy(first.arn, 2).text)
    first.send()
    for _ in range(2):
        first.receive(seconds=0)
    assert first.receive_some() == []
    assert second.count() == 1
    for _ in range(2):
        second.receive(seconds=0)
        assert (first.count(), second.count()) == (0, 1)
    assert second.receive_some() == []
    (message,) = first.receive_some(AttributeNames=["ApproximateReceiveCount"])
    assert message["Attributes"]["ApproximateReceiveCount"] == "5"

"""Attributes, names and DLQs as boto3 sees them: what is refused changes nothing."""

from __future__ import annotations

import json
import uuid
from functools import partial

import pytest

from local_account.process import LocalAccount
from tests.local_account.queues import error_of, new_queue

pytestmark = pytest.mark.account
INVALID_NAME, INVALID_VALUE = "InvalidAttributeName", "InvalidAttributeValue"


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


def test_refused_attributes(account: LocalAccount) -> None:
    queue, name = new_queue(account), f"test-{uuid.uuid4()}"
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


def test_a_dlq_has_to_fit(account: LocalAccount) -> None:
    source, standard = new_queue(account, fifo=True), new_queue(account)
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

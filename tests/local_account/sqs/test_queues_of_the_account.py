"""Attributes and redrive policies as boto3 sees them refused: and nothing changed."""

from __future__ import annotations

import json
import uuid
from functools import partial

import pytest

from local_account.process import LocalAccount
from tests.local_account.queues import error_of, new_queue

pytestmark = pytest.mark.account


@pytest.mark.parametrize(
    ("attributes", "code", "message"),
    [
        ({"Nonsense": "1"}, "InvalidAttributeName", "Unknown Attribute Nonsense."),
        ({"QueueArn": "arn:x"}, "InvalidAttributeName", "Unknown Attribute QueueArn."),
        (
            {"VisibilityTimeout": "43201"},
            "InvalidAttributeValue",
            (
                "Invalid value for the parameter VisibilityTimeout. "
                "Value must be between 0 and 43200."
            ),
        ),
        (
            {"RedriveAllowPolicy": '{"redrivePermission": "byQueue"}'},
            "InvalidParameterValue",
            (
                'Value {"redrivePermission": "byQueue"} for parameter RedriveAllowPolicy is '
                "invalid. Reason: sourceQueueArns goes with byQueue, and only with it."
            ),
        ),
        (
            {"ContentBasedDeduplication": "true"},
            "InvalidAttributeName",
            "Unknown Attribute ContentBasedDeduplication.",
        ),
        (
            {"KmsMasterKeyId": "alias/aws/sqs", "SqsManagedSseEnabled": "true"},
            "InvalidAttributeName",
            (
                "You can use one type of server-side encryption (SSE) at one time. "
                "You can either enable KMS SSE or SQS SSE."
            ),
        ),
    ],
)
def test_refused_attributes(
    account: LocalAccount, attributes: dict[str, str], code: str, message: str
) -> None:
    queue = new_queue(account)
    before = queue.attributes()
    good_beside_bad = {"DelaySeconds": "7", **attributes}
    assert error_of(lambda: queue.set(**good_beside_bad)) == (code, message)
    assert queue.attributes() == before
    name = f"test-{uuid.uuid4()}"
    create = {"QueueName": name, "Attributes": attributes}
    assert error_of(lambda: queue.sqs.create_queue(**create)) == (code, message)
    assert error_of(lambda: queue.sqs.get_queue_url(QueueName=name))[0].endswith("NonExistentQueue")


def test_what_is_allowed_is_set(account: LocalAccount) -> None:
    queue = new_queue(account, fifo=True)
    pair = {"DeduplicationScope": "messageGroup", "FifoThroughputLimit": "perMessageGroupId"}
    queue.set(VisibilityTimeout="43200", **pair)
    assert pair.items() <= queue.attributes().items()
    assert error_of(lambda: queue.set(DeduplicationScope="queue"))[0] == "InvalidAttributeValue"


def test_one_encryption_ends_the_other(account: LocalAccount) -> None:
    queue = new_queue(account, SqsManagedSseEnabled="true")
    queue.set(KmsMasterKeyId="alias/aws/sqs")
    assert queue.attributes()["SqsManagedSseEnabled"] == "false"
    queue.set(SqsManagedSseEnabled="true")
    assert "KmsMasterKeyId" not in queue.attributes()


def test_a_dlq_has_to_fit(account: LocalAccount) -> None:
    source, standard = new_queue(account, fifo=True), new_queue(account)
    fitting = new_queue(account, fifo=True)

    def redrive_to(arn: str) -> None:
        source.set(RedrivePolicy=json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 5}))

    for arn in (standard.arn, fitting.arn + "-gone"):
        assert error_of(partial(redrive_to, arn))[0] == "InvalidParameterValue"
    fitting.set(RedriveAllowPolicy='{"redrivePermission": "denyAll"}')
    assert error_of(lambda: redrive_to(fitting.arn))[0] == "InvalidParameterValue"
    assert "RedrivePolicy" not in source.attributes()
    fitting.set(RedriveAllowPolicy='{"redrivePermission": "allowAll"}')
    redrive_to(fitting.arn)
    assert fitting.arn in source.attributes()["RedrivePolicy"]


@pytest.mark.parametrize(
    ("name", "attributes"),
    [("bad name", {}), ("x" * 81, {}), ("a.fifo", {}), ("a", {"FifoQueue": "true"})],
)
def test_names_that_no_queue_can_have(
    account: LocalAccount, name: str, attributes: dict[str, str]
) -> None:
    sqs = account.client("sqs")
    code, _ = error_of(lambda: sqs.create_queue(QueueName=name, Attributes=attributes))
    assert code == "InvalidParameterValue"


def test_a_changed_queue_leaves_visibilities_that_run_alone(account: LocalAccount) -> None:
    queue = new_queue(account, VisibilityTimeout="600")
    queue.send()
    queue.receive()
    queue.set(VisibilityTimeout="0")
    assert queue.count() == 0
    assert queue.count("ApproximateNumberOfMessagesNotVisible") == 1

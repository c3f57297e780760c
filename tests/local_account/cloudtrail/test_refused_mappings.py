"""CloudTrail records a mapping that Lambda refuses, and a trail brings it to the default bus."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local_account.process import LocalAccount
from mendq.model.failed_call import read_refused_mapping
from tests.local_account.callers import ALL_OF_SQS, new_function
from tests.local_account.queues import Queue, new_queue
from tests.local_account.trail import Listener

pytestmark = pytest.mark.account


def refuse_mapping(account: LocalAccount) -> Queue:
    """Make a queue and a slower function, and try to connect them. Return the queue."""
    queue = new_queue(account, VisibilityTimeout="30")
    function = new_function(account, ALL_OF_SQS, Timeout=60)
    with pytest.raises(ClientError, match="less than Function timeout: 60 seconds"):
        function.client.create_event_source_mapping(
            FunctionName=function.name, EventSourceArn=queue.arn
        )
    return queue


def test_refused_mapping_is_in_the_event_history_with_lambdas_sentence(tiny: LocalAccount) -> None:
    queue = refuse_mapping(tiny)
    attribute: Any = {
        "AttributeKey": "EventName",
        "AttributeValue": "CreateEventSourceMapping20150331",
    }
    answer = tiny.client("cloudtrail").lookup_events(LookupAttributes=[attribute])
    calls = [
        read_refused_mapping(json.loads(event["CloudTrailEvent"])) for event in answer["Events"]
    ]
    (call,) = [call for call in calls if call and call.queue_arn == queue.arn]
    assert call.refused_function_seconds == 60


def test_refused_mapping_reaches_the_default_bus_if_a_trail_logs_management_events(
    account: LocalAccount,
) -> None:
    listener = Listener(
        account, {"source": ["aws.lambda"], "detail": {"errorCode": [{"exists": True}]}}
    )
    queue = refuse_mapping(account)
    (event,) = listener.events(at_least=1)
    call = read_refused_mapping(event)
    assert call is not None
    assert (call.queue_arn, call.refused_function_seconds) == (queue.arn, 60)

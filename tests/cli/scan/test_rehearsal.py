"""A rehearsal's clients only look, whoever forgets it."""

from __future__ import annotations

import pytest

from mendq.cli.look.dry_run import WouldChange, looking
from tests.cli.conftest import Operator


def test_what_changes_something_is_never_sent(operator: Operator) -> None:
    clients, queue = looking(operator.account.session), operator.aws.queue("orders")
    url = operator.aws.url(queue)
    with pytest.raises(WouldChange, match="SetQueueAttributes"):
        clients.sqs_for_writing.set_queue_attributes(
            QueueUrl=url, Attributes={"VisibilityTimeout": "1"}
        )
    with pytest.raises(WouldChange, match="ReceiveMessage"):
        clients.sqs.receive_message(QueueUrl=url)
    with pytest.raises(WouldChange, match="PutItem"):
        clients.dynamodb.put_item(TableName="case_store", Item={"pk": {"S": "a"}, "sk": {"S": "b"}})
    with pytest.raises(WouldChange, match="Invoke"):
        clients.functions.invoke(FunctionName="heal")
    assert operator.aws.visibility(queue) == 30
    assert operator.aws.case_store_items() == {}


def test_what_reads_is_sent(operator: Operator) -> None:
    clients = looking(operator.account.session)
    assert clients.dynamodb.scan(TableName="case_store")["Items"] == []
    assert clients.region == "us-east-1"

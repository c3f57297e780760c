"""Who names a DLQ, which names are free, what is encrypted: as boto3 sees it."""

from __future__ import annotations

import json
import uuid
from functools import partial

import pytest

from local_account.process import LocalAccount
from local_account.switch import SwitchRefused
from tests.local_account.callers import user
from tests.local_account.queues import Queue, error_of, new_queue
from tests.local_account.roles import allow

pytestmark = pytest.mark.account


def _to(dead: Queue) -> str:
    return json.dumps({"deadLetterTargetArn": dead.arn, "maxReceiveCount": 5})


def test_exactly_the_sources_of_a_dlq_are_listed(account: LocalAccount) -> None:
    dead, other = new_queue(account), new_queue(account)
    sources = [new_queue(account, RedrivePolicy=_to(dead)) for _ in range(3)]
    new_queue(account, RedrivePolicy=_to(other))
    pages = dead.sqs.get_paginator("list_dead_letter_source_queues").paginate(
        QueueUrl=dead.url, PaginationConfig={"PageSize": 2}
    )
    listed = [page["queueUrls"] for page in pages]
    assert [len(each) for each in listed] == [2, 1]
    assert {url for page in listed for url in page} == {each.url for each in sources}
    sources[0].set(RedrivePolicy="")
    at_once = dead.sqs.list_dead_letter_source_queues(QueueUrl=dead.url)
    assert set(at_once["queueUrls"]) == {each.url for each in sources[1:]}
    assert dead.sqs.list_dead_letter_source_queues(QueueUrl=sources[0].url)["queueUrls"] == []


def test_listing_move_tasks_needs_a_permission_on_that_queue(account: LocalAccount) -> None:
    allowed, other = new_queue(account), new_queue(account)
    both = ["sqs:ListMessageMoveTasks", "sqs:GetQueueAttributes"]
    _, identity = user(account, allow(both, allowed.arn))
    sqs = account.client("sqs", **identity)
    sqs.list_message_move_tasks(SourceArn=allowed.arn)
    denied = partial(sqs.list_message_move_tasks, SourceArn=other.arn)
    code, message = error_of(denied)
    assert code.startswith("AccessDenied")
    assert other.arn in message


def test_a_task_of_somebody_else_is_listed_until_it_ends(account: LocalAccount) -> None:
    dead = new_queue(account)
    list_them = partial(dead.sqs.list_message_move_tasks, SourceArn=dead.arn, MaxResults=10)
    assert list_them()["Results"] == []
    dead.send()
    account.put_move_task(dead.arn)
    (task,) = list_them()["Results"]
    assert (task["Status"], task["SourceArn"]) == ("RUNNING", dead.arn)
    assert (task["ApproximateNumberOfMessagesToMove"], bool(task["TaskHandle"])) == (1, True)
    account.put_move_task(dead.arn, "COMPLETED")
    assert [each["Status"] for each in list_them()["Results"]] == ["COMPLETED"]
    account.put_move_task(dead.arn)
    newest = dead.sqs.list_message_move_tasks(SourceArn=dead.arn)["Results"]
    assert [each["Status"] for each in newest] == ["RUNNING"]
    with pytest.raises(SwitchRefused):
        account.put_move_task(f"{dead.arn}-gone")
    gone = partial(dead.sqs.list_message_move_tasks, SourceArn=f"{dead.arn}-gone")
    assert error_of(gone)[0] == "ResourceNotFoundException"


def test_a_name_is_taken_by_what_stands_otherwise(account: LocalAccount) -> None:
    queue = new_queue(account, VisibilityTimeout="7")
    name = queue.url.rpartition("/")[2]
    create = partial(queue.sqs.create_queue, QueueName=name)
    assert create()["QueueUrl"] == create(Attributes={"VisibilityTimeout": "7"})["QueueUrl"]
    before = queue.attributes()
    code, message = error_of(partial(create, Attributes={"VisibilityTimeout": "8"}))
    assert code == "QueueAlreadyExists"
    assert message.endswith("a different value for attribute VisibilityTimeout")
    assert queue.attributes() == before


def test_a_deleted_name_is_not_free_at_once(account: LocalAccount) -> None:
    queue = new_queue(account)
    name = queue.url.rpartition("/")[2]
    queue.sqs.delete_queue(QueueUrl=queue.url)
    code, _ = error_of(partial(queue.sqs.create_queue, QueueName=name))
    assert code == "AWS.SimpleQueueService.QueueDeletedRecently"
    queue.sqs.create_queue(QueueName=f"{name}-{uuid.uuid4().hex[:6]}")


def test_a_new_queue_is_encrypted_unless_it_is_said_not_to_be(account: LocalAccount) -> None:
    assert new_queue(account).attributes()["SqsManagedSseEnabled"] == "true"
    bare = new_queue(account, SqsManagedSseEnabled="false")
    assert bare.attributes()["SqsManagedSseEnabled"] == "false"
    by_kms = new_queue(account, KmsMasterKeyId="alias/orders")
    assert by_kms.attributes()["SqsManagedSseEnabled"] == "false"

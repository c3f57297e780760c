"""Queues with a KMS key: SQS refuses calls whose key is unusable or not granted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

from local_account.process import LocalAccount
from local_account.where import ACCOUNT
from mendq.model.queue import RedrivePolicy
from tests.local_account.callers import (
    ALL_OF_SQS,
    OTHER_ACCOUNT,
    allow,
    new_function,
    policy,
    user,
)
from tests.local_account.queues import Queue, error_of, eventually, new_queue

pytestmark = pytest.mark.account


@dataclass(frozen=True)
class Key:
    """A KMS key and the client that made it."""

    kms: Any
    arn: str

    def disable(self) -> None:
        self.kms.disable_key(KeyId=self.arn)

    def enable(self) -> None:
        self.kms.enable_key(KeyId=self.arn)


def _new_key(account: LocalAccount, **settings: Any) -> Key:
    kms = account.client("kms")
    return Key(kms, kms.create_key(**settings)["KeyMetadata"]["Arn"])


def _as_user(account: LocalAccount, queue: Queue, *statements: dict[str, Any]) -> Queue:
    """The same queue, called by a new user with all rights on SQS and these statements."""
    _, credentials = user(account, ALL_OF_SQS, *statements)
    return replace(queue, sqs=account.client("sqs", **credentials))


def _fail_code(call: Any) -> str:
    return error_of(call)[0]


def _read_receive_count(queue: Queue) -> str:
    (message,) = queue.receive_some(AttributeNames=["ApproximateReceiveCount"], WaitTimeSeconds=10)
    return str(message["Attributes"]["ApproximateReceiveCount"])


@pytest.mark.parametrize("fifo", [False, True])
def test_disabled_key_refuses_sends_and_receives_and_changes_nothing_until_it_is_enabled(
    tiny: LocalAccount, fifo: bool
) -> None:
    key = _new_key(tiny)
    queue = new_queue(tiny, fifo=fifo, KmsMasterKeyId=key.arn)
    queue.send()
    key.disable()
    code, text = error_of(queue.send)
    assert (code, text) == ("KMS.DisabledException", f"{key.arn} is disabled.")
    assert _fail_code(queue.receive_some) == "KMS.DisabledException"
    assert queue.count() == 1
    key.enable()
    assert _read_receive_count(queue) == "1"


def test_batch_to_a_queue_with_a_disabled_key_fails_as_a_whole(tiny: LocalAccount) -> None:
    key = _new_key(tiny)
    queue = new_queue(tiny, KmsMasterKeyId=key.arn)
    key.disable()
    entries = [{"Id": "a", "MessageBody": "a"}, {"Id": "b", "MessageBody": "b"}]
    code = _fail_code(lambda: queue.sqs.send_message_batch(QueueUrl=queue.url, Entries=entries))
    assert (code, queue.count()) == ("KMS.DisabledException", 0)


def test_key_that_will_be_deleted_refuses_sends_and_receives(tiny: LocalAccount) -> None:
    key = _new_key(tiny)
    queue = new_queue(tiny, KmsMasterKeyId=key.arn)
    queue.send()
    key.kms.schedule_key_deletion(KeyId=key.arn, PendingWindowInDays=7)
    code, text = error_of(queue.send)
    assert (code, text) == ("KMS.InvalidStateException", f"{key.arn} is pending deletion.")
    assert _fail_code(queue.receive_some) == "KMS.InvalidStateException"


@pytest.mark.parametrize("missing", ["alias/never-made", "no-such-id", "arn:nonsense"])
def test_missing_key_refuses_sends(tiny: LocalAccount, missing: str) -> None:
    queue = new_queue(tiny, KmsMasterKeyId=missing)
    assert _fail_code(queue.send) == "KMS.NotFoundException"
    assert queue.count() == 0


def test_key_for_signatures_refuses_sends(tiny: LocalAccount) -> None:
    key = _new_key(tiny, KeySpec="RSA_2048", KeyUsage="SIGN_VERIFY")
    queue = new_queue(tiny, KmsMasterKeyId=key.arn)
    assert _fail_code(queue.send) == "KMS.InvalidKeyUsageException"


def test_user_sends_and_receives_only_with_kms_rights_on_the_key(tiny: LocalAccount) -> None:
    key = _new_key(tiny)
    queue = new_queue(tiny, KmsMasterKeyId=key.arn)
    without_rights = _as_user(tiny, queue)
    reader = _as_user(tiny, queue, allow("kms:Decrypt", key.arn))
    sender = _as_user(tiny, queue, allow(["kms:GenerateDataKey", "kms:Decrypt"], key.arn))
    for refused in (without_rights, reader):
        assert _fail_code(refused.send) == "KMS.AccessDeniedException"
    sender.send()
    assert _fail_code(without_rights.receive_some) == "KMS.AccessDeniedException"
    assert _read_receive_count(reader) == "1"


def test_key_policy_that_names_nobody_of_the_account_refuses_its_root_user(
    tiny: LocalAccount,
) -> None:
    arn, _ = user(tiny)
    statement = {**allow("kms:*", "*"), "Principal": {"AWS": arn}}
    key = _new_key(tiny, Policy=policy(statement), BypassPolicyLockoutSafetyCheck=True)
    queue = new_queue(tiny, KmsMasterKeyId=key.arn)
    assert _fail_code(queue.send) == "KMS.AccessDeniedException"


def test_message_keeps_its_key_after_the_queue_has_another_one(tiny: LocalAccount) -> None:
    old_key, new_key = _new_key(tiny), _new_key(tiny)
    queue = new_queue(tiny, KmsMasterKeyId=old_key.arn)
    queue.send()
    queue.set(KmsMasterKeyId=new_key.arn)
    old_key.disable()
    assert _fail_code(queue.receive_some) == "KMS.DisabledException"
    queue.set(SqsManagedSseEnabled="true")
    assert _fail_code(queue.receive_some) == "KMS.DisabledException"
    queue.send()
    assert queue.count() == 2


def test_message_sent_before_the_queue_had_a_key_is_received_without_it(
    tiny: LocalAccount,
) -> None:
    key = _new_key(tiny)
    queue = new_queue(tiny)
    queue.send()
    queue.set(KmsMasterKeyId=key.arn)
    key.disable()
    assert _read_receive_count(queue) == "1"


def test_message_keeps_its_key_in_a_dlq_without_a_key(tiny: LocalAccount) -> None:
    key = _new_key(tiny)
    dlq = new_queue(tiny)
    redrive_policy = RedrivePolicy(dlq.arn, 1).text
    queue = new_queue(tiny, KmsMasterKeyId=key.arn, RedrivePolicy=redrive_policy)
    queue.send()
    queue.receive(seconds=0)
    assert queue.receive_some() == []
    assert dlq.count() == 1
    key.disable()
    assert _fail_code(dlq.receive_some) == "KMS.DisabledException"


def test_key_that_aws_manages_needs_no_grant_in_its_account_and_refuses_other_accounts(
    tiny: LocalAccount,
) -> None:
    queue = new_queue(tiny, KmsMasterKeyId="alias/aws/sqs")
    other_arn, credentials = user(tiny, ALL_OF_SQS, allow("kms:*", "*"), of=OTHER_ACCOUNT)
    queue.set(Policy=policy({**allow("sqs:*", queue.arn), "Principal": {"AWS": other_arn}}))
    _as_user(tiny, queue).send()
    other = replace(queue, sqs=tiny.client("sqs", **credentials))
    assert _fail_code(other.receive_some) == "KMS.AccessDeniedException"
    assert _read_receive_count(queue) == "1"


def test_mapping_receives_nothing_while_the_key_is_disabled(tiny: LocalAccount) -> None:
    key = _new_key(tiny)
    queue = new_queue(tiny, KmsMasterKeyId=key.arn)
    function = new_function(tiny, ALL_OF_SQS, allow("kms:Decrypt", key.arn))
    queue.send()
    key.disable()
    mapping = function.client.create_event_source_mapping(
        FunctionName=function.name, EventSourceArn=queue.arn
    )
    eventually(lambda: any(f"{key.arn} is disabled" in line for line in tiny.log_lines))
    assert queue.count() == 1
    key.enable()
    counts = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")
    eventually(lambda: not any(queue.count(name) for name in counts))
    function.client.delete_event_source_mapping(UUID=mapping["UUID"])


def test_mapping_receives_nothing_if_the_role_may_not_decrypt(tiny: LocalAccount) -> None:
    key = _new_key(tiny)
    queue = new_queue(tiny, KmsMasterKeyId=key.arn)
    function = new_function(tiny, ALL_OF_SQS)
    queue.send()
    mapping = function.client.create_event_source_mapping(
        FunctionName=function.name, EventSourceArn=queue.arn
    )
    role_name = function.client.get_function_configuration(FunctionName=function.name)["Role"]
    session_name = f"assumed-role/{role_name.rpartition('/')[2]}/service is not authorized"
    eventually(lambda: any(session_name in line for line in tiny.log_lines))
    assert queue.count() == 1
    function.client.delete_event_source_mapping(UUID=mapping["UUID"])


def test_topic_reaches_a_queue_only_if_the_key_policy_admits_sns(tiny: LocalAccount) -> None:
    admin = {**allow("kms:*", "*"), "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}}
    sns_statement = {**allow("kms:*", "*"), "Principal": {"Service": "sns.amazonaws.com"}}
    topic = tiny.client("sns").create_topic(Name="to-encrypted-queues")["TopicArn"]
    queues = [
        new_queue(tiny, KmsMasterKeyId=key)
        for key in (
            "alias/aws/sqs",
            _new_key(tiny, Policy=policy(admin)).arn,
            _new_key(tiny, Policy=policy(admin, sns_statement)).arn,
        )
    ]
    for queue in queues:
        anyone = {**allow("sqs:SendMessage", queue.arn), "Principal": "*"}
        queue.set(Policy=policy(anyone))
        tiny.client("sns").subscribe(TopicArn=topic, Protocol="sqs", Endpoint=queue.arn)
    tiny.client("sns").publish(TopicArn=topic, Message="hello")
    eventually(lambda: queues[2].count() == 1)
    assert [queue.count() for queue in queues] == [0, 0, 1]

"""Denied calls: AWS's error text names the policy that refused, in boto3 and CloudTrail."""

from __future__ import annotations

from typing import Any

import pytest

from local_account.process import LocalAccount
from tests.local_account.callers import ALL_OF_SQS, OTHER_ACCOUNT, policy, user
from tests.local_account.queues import Queue, error_of, eventually, new_queue
from tests.local_account.trail import TrailFiles

NO_IDENTITY = "because no identity-based policy allows the sqs:sendmessage action"
NO_RESOURCE = "because no resource-based policy allows the sqs:sendmessage action"
IDENTITY_DENIES = "with an explicit deny in an identity-based policy"
RESOURCE_DENIES = "with an explicit deny in a resource-based policy"
SEND = "sqs:SendMessage"
pytestmark = pytest.mark.account
Denial = tuple[str, str]


def _make_denial(caller: str, queue: Queue, why: str) -> Denial:
    who = f"User: {caller} is not authorized to perform: sqs:sendmessage"
    return "AccessDenied", f"{who} on resource: {queue.arn} {why}"


def _statement(effect: str, queue: Queue, who: str = "*") -> dict[str, Any]:
    principal = who if who == "*" else {"AWS": who}
    return {"Effect": effect, "Principal": principal, "Action": SEND, "Resource": queue.arn}


def _send(account: LocalAccount, queue: Queue, **credentials: str) -> None:
    account.client("sqs", **credentials).send_message(QueueUrl=queue.url, MessageBody="x")


def _send_and_catch_denial(account: LocalAccount, queue: Queue, **credentials: str) -> Denial:
    return error_of(lambda: _send(account, queue, **credentials))


def test_denied_send_names_missing_or_explicit_deny_in_identity_based_policy(
    account: LocalAccount,
) -> None:
    queue = new_queue(account)
    nobody, key = user(account)
    assert _send_and_catch_denial(account, queue, **key) == _make_denial(nobody, queue, NO_IDENTITY)
    deny = {"Effect": "Deny", "Action": SEND, "Resource": "*"}
    denied, key = user(account, ALL_OF_SQS, deny)
    queue.set(Policy=policy(_statement("Allow", queue)))
    assert _send_and_catch_denial(account, queue, **key) == _make_denial(
        denied, queue, IDENTITY_DENIES
    )
    assert queue.count() == 0


def test_explicit_deny_in_a_queue_policy_refuses_user_and_root_and_is_recorded(
    account: LocalAccount,
) -> None:
    queue = new_queue(account)
    arn, key = user(account, ALL_OF_SQS)
    files = TrailFiles(account)
    _send(account, queue, **key)
    queue.set(Policy=policy(_statement("Deny", queue)))
    by_user = _make_denial(arn, queue, RESOURCE_DENIES)
    by_root = _make_denial("arn:aws:iam::000000000000:root", queue, RESOURCE_DENIES)
    assert (
        _send_and_catch_denial(account, queue, **key),
        _send_and_catch_denial(account, queue),
    ) == (by_user, by_root)
    assert queue.count() == 1
    eventually(lambda: len(files.records(queue, "SendMessage")) == 3)
    failed = [record for record in files.records(queue, "SendMessage") if "errorCode" in record]
    recorded = {(record["errorCode"], record["errorMessage"]) for record in failed}
    assert recorded == {by_user, by_root}


def test_cross_account_send_needs_queue_and_identity_policy_and_is_recorded_as_another_accounts(
    account: LocalAccount,
) -> None:
    queue = new_queue(account)
    files = TrailFiles(account)
    arn, key = user(account, ALL_OF_SQS, of=OTHER_ACCOUNT)
    poor_arn, poor_key = user(account, of=OTHER_ACCOUNT)
    assert _send_and_catch_denial(account, queue, **key) == _make_denial(arn, queue, NO_RESOURCE)
    queue.set(Policy=policy(_statement("Allow", queue, OTHER_ACCOUNT)))
    _send(account, queue, **key)
    assert _send_and_catch_denial(account, queue, **poor_key) == _make_denial(
        poor_arn, queue, NO_IDENTITY
    )
    assert queue.count() == 1
    eventually(lambda: len(files.records(queue, "SendMessage")) == 3)
    for record in files.records(queue, "SendMessage"):
        assert record["userIdentity"]["type"] == "AWSAccount"
        assert record["userIdentity"]["accountId"] == OTHER_ACCOUNT
        assert "arn" not in record["userIdentity"]
        assert record["recipientAccountId"] == "000000000000"
        assert record["sharedEventID"]

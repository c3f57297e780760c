"""Denied calls: AWS's words for which policy refused, as boto3 gets and CloudTrail records them."""

from __future__ import annotations

from typing import Any

import pytest

from local_account.process import LocalAccount
from tests.local_account.callers import ALL_OF_SQS, OTHER_ACCOUNT, policy, user
from tests.local_account.queues import Queue, error_of, eventually, new_queue
from tests.local_account.trail import TrailFiles

NO_IDENTITY = "because no identity-based policy allows the {} action"
NO_RESOURCE = "because no resource-based policy allows the {} action"
IDENTITY_DENIES = "with an explicit deny in an identity-based policy"
RESOURCE_DENIES = "with an explicit deny in a resource-based policy"
SEND = "sqs:SendMessage"
pytestmark = pytest.mark.account


def _message(caller: str, action: str, queue: Queue, why: str) -> str:
    return (
        f"User: {caller} is not authorized to perform: {action} on resource: {queue.arn} "
        f"{why.format(action)}"
    )


def _denied(caller: str, action: str, queue: Queue, why: str) -> tuple[str, str]:
    return "AccessDenied", _message(caller, action, queue, why)


def _statement(effect: str, queue: Queue, who: str = "*", action: str = SEND) -> dict[str, Any]:
    principal = who if who == "*" else {"AWS": who}
    return {"Effect": effect, "Principal": principal, "Action": action, "Resource": queue.arn}


def _send(account: LocalAccount, queue: Queue, **credentials: str) -> None:
    account.client("sqs", **credentials).send_message(QueueUrl=queue.url, MessageBody="x")


def test_a_user_whom_nothing_allows(account: LocalAccount) -> None:
    queue, (arn, key), files = new_queue(account), user(account), TrailFiles(account)
    denied = _denied(arn, "sqs:sendmessage", queue, NO_IDENTITY)
    assert error_of(lambda: _send(account, queue, **key)) == denied
    assert queue.count() == 0
    _recorded(files, queue, denied)


def test_a_user_whose_own_policy_denies(account: LocalAccount) -> None:
    queue = new_queue(account)
    deny = {"Effect": "Deny", "Action": SEND, "Resource": "*"}
    arn, key = user(account, ALL_OF_SQS, deny)
    queue.set(Policy=policy(_statement("Allow", queue)))
    assert error_of(lambda: _send(account, queue, **key)) == _denied(
        arn, "sqs:sendmessage", queue, IDENTITY_DENIES
    )


def test_the_queues_policy_denies_whoever_it_is(account: LocalAccount) -> None:
    queue, (arn, key), files = new_queue(account), user(account, ALL_OF_SQS), TrailFiles(account)
    _send(account, queue, **key)
    queue.set(Policy=policy(_statement("Deny", queue)))
    by_user = _denied(arn, "sqs:sendmessage", queue, RESOURCE_DENIES)
    by_root = _denied("arn:aws:iam::000000000000:root", "sqs:sendmessage", queue, RESOURCE_DENIES)
    assert error_of(lambda: _send(account, queue, **key)) == by_user
    assert error_of(lambda: _send(account, queue)) == by_root
    assert queue.count() == 1
    _recorded(files, queue, by_user, by_root)


def test_a_batch_needs_the_action_of_its_entries(account: LocalAccount) -> None:
    queue, entries = new_queue(account), [{"Id": "1", "MessageBody": "x"}]
    batch = {"QueueUrl": queue.url, "Entries": entries}
    _, may = user(account, {"Effect": "Allow", "Action": SEND, "Resource": queue.arn})
    account.client("sqs", **may).send_message_batch(**batch)
    arn, may_not = user(
        account, {"Effect": "Allow", "Action": "sqs:ReceiveMessage", "Resource": queue.arn}
    )
    denied = error_of(lambda: account.client("sqs", **may_not).send_message_batch(**batch))
    assert denied == _denied(arn, "sqs:sendmessage", queue, NO_IDENTITY)


def test_across_accounts_both_have_to_allow(account: LocalAccount) -> None:
    queue, files = new_queue(account), TrailFiles(account)
    arn, key = user(account, ALL_OF_SQS, of=OTHER_ACCOUNT)
    poor_arn, poor_key = user(account, of=OTHER_ACCOUNT)
    silent = _denied(arn, "sqs:sendmessage", queue, NO_RESOURCE)
    assert error_of(lambda: _send(account, queue, **key)) == silent
    queue.set(Policy=policy(_statement("Allow", queue, OTHER_ACCOUNT)))
    _send(account, queue, **key)
    poor = _denied(poor_arn, "sqs:sendmessage", queue, NO_IDENTITY)
    assert error_of(lambda: _send(account, queue, **poor_key)) == poor
    assert queue.count() == 1
    eventually(lambda: len(files.records(queue, "SendMessage")) == 3)
    for record in files.records(queue, "SendMessage"):
        assert record["userIdentity"]["type"] == "AWSAccount"
        assert record["userIdentity"]["accountId"] == OTHER_ACCOUNT
        assert "arn" not in record["userIdentity"]
        assert record["recipientAccountId"] == "000000000000"
        assert record["sharedEventID"]


def _recorded(files: TrailFiles, queue: Queue, *denials: tuple[str, str]) -> None:
    def failed() -> list[dict[str, Any]]:
        return [each for each in files.records(queue, "SendMessage") if "errorCode" in each]

    eventually(lambda: len(failed()) == len(denials))
    written = {(each["errorCode"], each["errorMessage"]) for each in failed()}
    assert written == set(denials)
    assert all(each["requestID"] for each in failed())

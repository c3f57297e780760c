"""Test that calls with expired or invalid credentials notify people and change nothing."""

from __future__ import annotations

import pytest

from tests.account.account import Account
from tests.heal.operators import fail_calls, list_states

EXPIRED = {
    "eventName": "ReceiveMessage",
    "errorCode": "ExpiredTokenException",
    "errorMessage": "The security token included in the request is expired",
}


@pytest.mark.parametrize(
    "code", ["ExpiredTokenException", "UnrecognizedClientException", "SignatureDoesNotMatch"]
)
def test_invalid_credentials_of_a_consumer_notify_once_and_change_nothing(
    account: Account, code: str
) -> None:
    queue = account.queue()
    before = account.attributes(queue)
    fail_calls(account, queue, **{**EXPIRED, "errorCode": code})
    fail_calls(account, queue, "again", **{**EXPIRED, "errorCode": code})
    ((_, text),) = account.pages("urgent")
    assert "credentials have expired or are invalid" in text
    assert list_states(account) == ["escalated"]
    assert account.attributes(queue) == before


def test_a_single_expired_call_and_calls_of_people_who_look_notify_nobody(account: Account) -> None:
    queue = account.queue()
    account.heal(account.late_deletes(queue, "one", **EXPIRED))
    fail_calls(account, queue, "look", **{**EXPIRED, "eventName": "GetQueueAttributes"})
    assert account.pages("urgent") == []
    assert list_states(account) == []

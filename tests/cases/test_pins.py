"""A queue has one pin. Generations are used once, and no pin is overwritten unseen."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from mendq.cases.pins import Pins
from mendq.model.policy import Pin, digest_of_policy
from tests.account.account import ACCOUNT, REGION, Account

QUEUE = f"arn:aws:sqs:{REGION}:{ACCOUNT}:orders"
# Bytes that JSON, DynamoDB or an editor could change.
POLICY = '{ "Statement" : [ ] ,\n\t"Id":"\u00fc\u2028\\u00fc" }\r\n'


def _pins(account: Account) -> Pins:
    return Pins(account.clients.dynamodb, account.settings.case_table)


def _pin(account: Account, generation: int = 1, policy: str = POLICY) -> Pin:
    then = account.now - timedelta(days=1)
    return Pin(QUEUE, policy, digest_of_policy(policy), generation, account.now, "ada", then, then)


def test_queue_without_a_pin_has_none_and_its_last_generation_is_zero(account: Account) -> None:
    pins = _pins(account)
    assert pins.load(QUEUE) is None
    assert pins.load_last_generation(QUEUE) == 0


def test_pin_is_stored_byte_for_byte_for_its_own_queue_only(account: Account) -> None:
    pins = _pins(account)
    pin = _pin(account)
    assert pins.put(pin)
    assert pins.load(QUEUE) == pin
    assert pins.load(f"{QUEUE}2") is None


def test_pin_can_be_put_a_second_time_if_the_first_answer_was_lost(account: Account) -> None:
    pins = _pins(account)
    pin = _pin(account)
    assert pins.put(pin)
    assert pins.put(pin)
    assert pins.load(QUEUE) == pin


@pytest.mark.parametrize("generation", [1, 2, 4])
def test_pin_whose_generation_does_not_follow_the_stored_one_is_refused(
    account: Account, generation: int
) -> None:
    pins = _pins(account)
    pins.put(_pin(account, 1))
    pins.put(_pin(account, 2, "{}"))
    assert not pins.put(replace(_pin(account, generation), pinned_by="eve"))
    found = pins.load(QUEUE)
    assert found is not None
    assert (found.generation, found.pinned_by) == (2, "ada")


def test_pin_after_a_removed_one_is_stored_only_with_a_new_generation(account: Account) -> None:
    pins = _pins(account)
    pin = _pin(account)
    pins.put(pin)
    assert pins.remove(pin)
    assert pins.load(QUEUE) is None
    assert pins.load_last_generation(QUEUE) == 1
    assert not pins.put(_pin(account, 1, "{}"))
    assert pins.put(_pin(account, 2, "{}"))


def test_pin_is_not_removed_by_a_request_that_names_an_older_generation(account: Account) -> None:
    pins = _pins(account)
    first = _pin(account)
    pins.put(first)
    pins.remove(first)
    second = _pin(account, 2, "{}")
    assert pins.put(second)
    assert not pins.remove(first)
    assert pins.load(QUEUE) == second

"""Heal and the mutes of the settings: failed calls of a muted symptom."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec import structs

from mendq.model.mutes import Mute
from tests.account.account import STARTS_AT, Account
from tests.heal.builders import list_refusal_codes, make_late_deletes

SYMPTOM = "visibility_timeout_too_short"
TODAY = STARTS_AT.date()


@pytest.fixture(autouse=True)
def fixed_clock(account: Account) -> None:
    account.now = STARTS_AT


def _mute(account: Account, queue: str = "orders*", symptom: str = SYMPTOM, days: int = 0) -> None:
    mute = Mute(queue, symptom, "late deletes are harmless here", TODAY + timedelta(days=days))
    account.settings = structs.replace(account.settings, mutes=(mute,))


def test_failed_calls_of_a_muted_symptom_open_no_case_change_nothing_and_notify_nobody(
    account: Account,
) -> None:
    queue_arn = account.queue()
    timeout = account.visibility(queue_arn)
    _mute(account)
    result = account.heal(make_late_deletes(account, [queue_arn]))
    assert list_refusal_codes(result) == ["muted"]
    (outcome,) = result.outcome_by_group.values()
    assert outcome.refusal is not None
    assert outcome.refusal.reason == (
        f"muted in the settings until {TODAY}: late deletes are harmless here"
    )
    assert result.error_by_message_id == {}, "SQS must not deliver the calls again"
    assert account.visibility(queue_arn) == timeout
    assert (account.transitions(), account.pages("info"), account.pages("urgent")) == ([], [], [])


@pytest.mark.parametrize(
    ("queue", "symptom", "days"),
    [
        pytest.param("orders*", SYMPTOM, -1, id="ended"),
        pytest.param("bills*", SYMPTOM, 0, id="other queues"),
        pytest.param("orders*", "dlq_missing", 0, id="another symptom"),
    ],
)
def test_failed_calls_without_a_mute_that_holds_are_fixed(
    account: Account, queue: str, symptom: str, days: int
) -> None:
    queue_arn = account.queue()
    timeout = account.visibility(queue_arn)
    _mute(account, queue, symptom, days)
    account.heal(make_late_deletes(account, [queue_arn]))
    assert account.visibility(queue_arn) > timeout


def test_mute_does_not_hide_that_the_fix_of_an_open_case_does_not_help(account: Account) -> None:
    """The failed calls are noted with the case, which would be verified without them."""
    queue_arn = account.queue()
    account.heal(make_late_deletes(account, [queue_arn]))
    _mute(account)
    account.later(minutes=20)
    result = account.heal(make_late_deletes(account, [queue_arn]))
    assert list_refusal_codes(result) == ["case_already_open"]
    view = account.run().case_store.look(queue_arn, SYMPTOM, ())
    assert view.failures.sightings

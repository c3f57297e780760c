"""A page whose taking was answered by nobody is this run's to send all the same."""

from __future__ import annotations

import pytest

from functions.aws.desk import Desk
from functions.aws.ledger_pages import LedgerPages
from functions.healing.ledger_view import PageRecord
from functions.healing.page import Page
from tests.functions.aws.conftest import Account
from tests.functions.aws.faults import Fault
from tests.functions.aws.operators import desk_of

PAGE = Page("Mendq: something", "is the matter\n")


@pytest.fixture(autouse=True)
def _no_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("botocore.endpoint.time.sleep", lambda _: None)


def _pages_of(desk: Desk) -> LedgerPages:
    return LedgerPages(desk.clients.dynamodb, desk.settings.ledger_table)


def _left_unsent(account: Account) -> PageRecord:
    """By a run that died before it could send it."""
    pages = _pages_of(desk_of(account))
    record = pages.due_for_account("pulse", "lost", PAGE, account.now)
    assert record is not None
    account.later(minutes=2)
    return record


def test_another_run_has_taken_it(account: Account) -> None:
    record = _left_unsent(account)
    pages = _pages_of(desk_of(account))
    assert pages.take("account", "pulse", record, account.now) is not None
    assert pages.take("account", "pulse", record, account.now) is None


def test_taken_and_the_answer_lost_it_is_still_sent(account: Account) -> None:
    record = _left_unsent(account)
    fault = Fault(account, "answer_lost", 1)
    assert desk_of(account).pager.send_left_unsent("account", "pulse", record)
    assert fault.call == "dynamodb.UpdateItem"
    assert account.pages("urgent") == [(PAGE.subject, PAGE.body)]


@pytest.mark.parametrize("days_since_the_last", [None, 2])
def test_a_page_about_the_account_survives_its_own_lost_answer(
    account: Account, days_since_the_last: int | None
) -> None:
    if days_since_the_last:
        desk_of(account).pager.send_about_account("pulse", "lost", PAGE)
        account.later(days=days_since_the_last)
    sent = len(account.pages("urgent"))
    fault = Fault(account, "answer_lost", 2)
    desk_of(account).pager.send_about_account("pulse", "lost", PAGE)
    assert fault.call == "dynamodb.PutItem"
    assert len(account.pages("urgent")) == sent + 1

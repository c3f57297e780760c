"""Queues in moto, by the clock of the account."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.account.account import Account, account
from tests.redrive.world import Redriving, redriving, timed_by
from tests.scan.scanner import scanner

__all__ = ["account", "scanner"]


@pytest.fixture
def timed(account: Account) -> Iterator[Account]:
    with timed_by(account):
        yield account


@pytest.fixture
def here() -> Iterator[Redriving]:
    with redriving() as made:
        yield made


@pytest.fixture
def fifo() -> Iterator[Redriving]:
    with redriving("orders.fifo") as made:
        yield made

"""Source queues and DLQs in moto, by the clock of the account."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.account.account import account
from tests.redrive.world import RedriveWorld, make_redrive_world
from tests.scan.scanner import scanner

__all__ = ["account", "scanner"]


@pytest.fixture
def world() -> Iterator[RedriveWorld]:
    with make_redrive_world() as redrive_world:
        yield redrive_world


@pytest.fixture
def fifo_world() -> Iterator[RedriveWorld]:
    with make_redrive_world("orders.fifo") as redrive_world:
        yield redrive_world

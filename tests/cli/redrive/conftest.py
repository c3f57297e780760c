"""Fixtures of the tests of redrive commands."""

from __future__ import annotations

import sys

import pytest

from mendq.cli import output
from mendq.cli.redrive import work
from tests.cli.builders import Operator
from tests.cli.redrive.builders import OrdersQueues, make_orders_queues


@pytest.fixture(autouse=True)
def somebody_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend to have a terminal if the test replaces `confirm`."""

    def is_there() -> bool:
        return vars(work)["confirm"] is not output.confirm or sys.stdin.isatty()

    monkeypatch.setattr(output, "has_terminal", is_there)


@pytest.fixture
def queues(operator: Operator) -> OrdersQueues:
    return make_orders_queues(operator)

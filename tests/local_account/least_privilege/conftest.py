"""An account of its own: its roles lose actions, and nothing in it runs by itself."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import pytest

from local_account.process import LocalAccount
from tests.local_account.least_privilege.enforced import Enforced

SETTINGS = {
    "limits": {"massSymptomShare": 1, "writesPerMinute": 100},
    "queues": ["named-*"],
    "report": {"sender": "reports@example.com", "recipients": ["ada@example.com"]},
}


class OfOneClientEach(LocalAccount):
    """Making a client takes longer than most calls."""

    @cached_property
    def _clients(self) -> dict[str, Any]:
        return {}

    def client(self, service_name: str, **identity: Any) -> Any:
        """Of the account's root the same each time."""
        if identity or service_name not in self._clients:
            made = super().client(service_name, **identity)
            return made if identity else self._clients.setdefault(service_name, made)
        return self._clients[service_name]


@pytest.fixture(scope="session")
def enforced() -> Iterator[Enforced]:
    """One for every function."""
    with OfOneClientEach(settings=SETTINGS) as running:
        here = Enforced(running)
        here.silence()
        yield here

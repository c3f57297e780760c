"""A Lambda deployed with the settings of an account in moto."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import structs

from functions.entry import Entry
from mendq.aws.clients import Clients
from tests.account.account import Account, moto_account
from tests.functions.builders import Deploy, reset_to_cold_start


@pytest.fixture
def account() -> Iterator[Account]:
    """An account at the present time, because a Lambda reads the clock of its machine."""
    with moto_account() as made:
        yield made


@pytest.fixture
def deploy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Deploy]:
    """Set a handler's environment from the account's settings and `changes`, and start it cold."""
    deployed_handlers: list[Entry[Any]] = []

    def deploy_handler(handler: Entry[Any], account: Account, /, **changes: Any) -> None:
        account_settings = {
            "seal_table": "seals",
            **structs.asdict(account.settings),
            **changes,
        }
        handler_settings = {}
        for name in handler.settings_class.__struct_fields__:
            if name in account_settings:
                handler_settings[name] = account_settings[name]
        settings = handler.settings_class(**handler_settings)
        for variable, text in settings.to_environment().items():
            monkeypatch.setenv(variable, text)
        monkeypatch.setattr(Clients, "for_lambda", lambda: account.clients)
        reset_to_cold_start(handler)
        deployed_handlers.append(handler)

    yield deploy_handler
    for handler in deployed_handlers:
        reset_to_cold_start(handler)

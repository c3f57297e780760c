"""The fixture of every test that runs a command."""

from __future__ import annotations

from collections.abc import Iterator

import boto3
import pytest

from mendq.cli import account as cli_account
from tests.account.account import moto_account
from tests.cli.builders import FakeDeployedAccount, Operator


@pytest.fixture
def operator(monkeypatch: pytest.MonkeyPatch) -> Iterator[Operator]:
    with moto_account() as moto:
        session = boto3.Session(region_name="us-east-1")
        account = FakeDeployedAccount(session, "Mendq", moto.settings)
        monkeypatch.setattr(cli_account.Account, "from_options", lambda *_: account)
        yield Operator(moto, account)

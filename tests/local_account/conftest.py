"""Two local accounts: one with Mendq's stack, one with a small stack written by hand."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from local_account.process import LocalAccount
from tests.local_account.accounts import SETTINGS, TINY_ASSEMBLY


@pytest.fixture(scope="session")
def account() -> Iterator[LocalAccount]:
    """The account with the stack deployed and permissions enforced."""
    with LocalAccount(SETTINGS) as running:
        yield running


@pytest.fixture(scope="session")
def tiny() -> Iterator[LocalAccount]:
    with LocalAccount(options=("--assembly", str(TINY_ASSEMBLY))) as running:
        yield running

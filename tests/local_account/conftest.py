"""One running account for every test that needs one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from local_account.process import LocalAccount


@pytest.fixture(scope="session")
def account() -> Iterator[LocalAccount]:
    """The account with the stack deployed and permissions enforced."""
    with LocalAccount() as running:
        yield running

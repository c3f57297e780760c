"""One running account for every test that needs one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from local_account.process import LocalAccount

RECORDED_ERRORS = Path(__file__).resolve().parents[3] / "shared" / "data" / "sqs-real-errors.json"


@pytest.fixture(scope="session")
def account() -> Iterator[LocalAccount]:
    """The account with the stack deployed and permissions enforced."""
    with LocalAccount() as running:
        yield running

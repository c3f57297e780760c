"""Two accounts for every test that needs one: the stack's, and one of a stack written by hand.

The second holds resources of every kind that the account handles: it must deploy what an assembly
holds, not what it knows.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from local_account.process import LocalAccount

TINY = Path(__file__).parent / "tiny_assembly"
SENDER, READERS = "reports@example.com", ["ada@example.com", "grace@example.org"]
# Many queues of many tests show the same within the hour: nowhere else is that nobody's fault.
SETTINGS = {
    "limits": {"massSymptomShare": 1, "writesPerMinute": 100},
    "report": {"sender": SENDER, "recipients": READERS},
}


@pytest.fixture(scope="session")
def account() -> Iterator[LocalAccount]:
    """The account with the stack deployed and permissions enforced."""
    with LocalAccount(SETTINGS) as running:
        yield running


@pytest.fixture(scope="session")
def tiny() -> Iterator[LocalAccount]:
    with LocalAccount(options=("--assembly", str(TINY))) as running:
        yield running

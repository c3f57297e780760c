"""The night as an operator runs it, on files of one account."""

from __future__ import annotations

from tests.analytics.authored import Account, burst
from tests.analytics.conftest import RunNight


def test_a_burst_is_one_incident(account: Account, run_night: RunNight) -> None:
    account.publish("11-10", burst("11-10 09:00"))
    assert run_night("11-10") == 0
    [incident] = account.rows("incidents", "11-10")
    assert incident["failed_calls"] == 3
    assert incident["label"] == "lease_expired"
    assert incident["outcome"] == "not_seen"
    print(incident, account.rows("quality", "11-10"), list(account.written()))

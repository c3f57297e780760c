"""The probe Lambda as the schedule calls it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from functions import probe
from mendq.aws.clients import Clients
from mendq.model.settings import ProbeSettings
from mendq.probe.probe import QUEUE_NAME, Probe
from mendq.probe.send import ProbeRecord
from tests.functions.test_heal import Context, metrics
from tests.heal.conftest import ACCOUNT, Account

CONTEXT: Any = Context()
HOUR = timedelta(hours=1)


@pytest.fixture(autouse=True)
def _lambda(account: Account, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    settings = ProbeSettings(
        ACCOUNT,
        case_table="case_store",
        urgent_topic_arn=account.settings.urgent_topic_arn,
        probe_queue_url=account.url(account.queue(QUEUE_NAME, tag=None)),
    )
    for variable, text in settings.to_environment().items():
        monkeypatch.setenv(variable, text)
    monkeypatch.setattr(Clients, "of_this_lambda", lambda: account.clients)
    probe._cold_start.cache_clear()
    yield
    probe._cold_start.cache_clear()


def _known(account: Account) -> Probe:
    known = ProbeRecord(account.clients.dynamodb, "case_store").read()
    assert known is not None
    return known


@pytest.mark.parametrize("time", ["2099-01-01T00:00:00Z", "9999-12-31T23:59:59Z"])
def test_a_time_to_come_does_not_end_the_probe(account: Account, time: str) -> None:
    probe.handler({"time": time}, CONTEXT)
    known = _known(account)
    assert known.scheduled_at <= datetime.now(UTC)
    following = known.next_one(known.scheduled_at + HOUR, known.sent_at + HOUR)
    assert following.lost_in_a_row == 1


def test_the_time_of_the_schedule_is_noted(account: Account) -> None:
    scheduled_at = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=2)
    probe.handler({"time": f"{scheduled_at:%Y-%m-%dT%H:%M:%SZ}"}, CONTEXT)
    assert _known(account).scheduled_at == scheduled_at


def test_how_many_were_lost_is_sent_each_time(
    account: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    for lost, hours_ago in enumerate((3, 2, 1)):
        scheduled_at = datetime.now(UTC) - hours_ago * HOUR
        probe.handler({"time": f"{scheduled_at:%Y-%m-%dT%H:%M:%SZ}"}, CONTEXT)
        assert metrics(capsys.readouterr().out) == {"ProbesLostInARow": lost}

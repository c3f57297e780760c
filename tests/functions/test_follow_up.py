"""follow_up as its schedule calls it: the clock it is given, the cases moved, the gauges sent."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from functions import follow_up
from mendq.aws.clients import Clients
from mendq.aws.errors import CaseStoreUnavailable
from mendq.model.settings import CaseSettings, FollowUpSettings, variable_of
from tests.functions.test_heal import Context, metrics
from tests.heal.conftest import Account
from tests.heal.operators import OWNERS

CONTEXT: Any = Context()
AGE = "OldestOpenCaseAgeSeconds"
AHEAD = variable_of("most_days_ahead")
WAITED_FOR = "FixesBeingVerified"
A_MINUTE = 60


@pytest.fixture(autouse=True)
def _lambda(account: Account, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    shared = {name: getattr(account.settings, name) for name in CaseSettings.__dataclass_fields__}
    settings = FollowUpSettings(**shared, owners=OWNERS)
    for variable, text in settings.to_environment().items():
        monkeypatch.setenv(variable, text)
    monkeypatch.delenv(AHEAD, raising=False)
    monkeypatch.setattr(Clients, "of_this_lambda", lambda: account.clients)
    follow_up._cold_start.cache_clear()
    yield
    follow_up._cold_start.cache_clear()


@pytest.fixture
def _put_forward(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the local account lets it be."""
    monkeypatch.setenv(AHEAD, "15")
    follow_up._cold_start.cache_clear()


def _proposed(account: Account) -> None:
    queue = account.queue(tag="propose", VisibilityTimeout="30")
    account.heal(account.late_deletes(queue, "a", "b", "c"))


def _at(moment: datetime) -> follow_up.Scheduled:
    return {"time": f"{moment:%Y-%m-%dT%H:%M:%SZ}"}


def test_nothing_open_sends_zeros_of_what_is_watched(
    capsys: pytest.CaptureFixture[str],
) -> None:
    answer = follow_up.handler(_at(datetime.now(UTC)), CONTEXT)
    assert answer == dict.fromkeys(("open", "moved", "called", "errors"), 0)
    gauges = ("EscalatedCasesOpen", "ProposedCasesOpen", WAITED_FOR, AGE)
    assert metrics(capsys.readouterr().out) == dict.fromkeys(("AutoFixes", *gauges), 0)


@pytest.mark.usefixtures("_put_forward")
def test_what_is_open_and_for_how_long(
    account: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    _proposed(account)
    capsys.readouterr()
    answer = follow_up.handler(_at(account.now + timedelta(hours=2)), CONTEXT)
    assert answer == {"open": 1, "moved": 0, "called": 0, "errors": 0}
    sent = metrics(capsys.readouterr().out)
    assert (sent["ProposedCasesOpen"], sent[AGE]) == (1, 2 * 3_600)


@pytest.mark.usefixtures("_put_forward")
@pytest.mark.parametrize("year", [2099, 9999])
def test_a_time_to_come_is_held_to_two_weeks_and_a_day(
    account: Account, capsys: pytest.CaptureFixture[str], year: int
) -> None:
    _proposed(account)
    capsys.readouterr()
    answer = follow_up.handler({"time": f"{year}-01-01T00:00:00Z"}, CONTEXT)
    assert (answer["moved"], answer["errors"]) == (1, 0)
    age_seconds = metrics(capsys.readouterr().out)[AGE]
    assert 0 <= age_seconds - timedelta(days=15).total_seconds() < A_MINUTE
    assert [each["to"] for each in account.transitions()] == ["proposed", "expired"]


@pytest.mark.usefixtures("_put_forward")
def test_many_fixes_are_waited_for_where_an_alarm_may_ring_and_while_they_are_young(
    account: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("orders", "invoices", "returns"):
        queue = account.queue(name, VisibilityTimeout="30")
        account.heal(account.late_deletes(queue, "a", "b", "c"))
    for minutes, waited_for in ((5, 0), (13, 3), (15, 0)):
        capsys.readouterr()
        follow_up.handler(_at(account.now + timedelta(minutes=minutes)), CONTEXT)
        assert metrics(capsys.readouterr().out)[WAITED_FOR] == waited_for


@pytest.mark.usefixtures("_put_forward")
def test_how_long_a_fix_took_is_sent_once_it_is_verified(
    account: Account, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mendq.follow_up.follow_up.messages_deleted", lambda *_: 7)
    queue = account.queue(VisibilityTimeout="30")
    account.heal(account.late_deletes(queue, "a", "b", "c"))
    capsys.readouterr()
    answer = follow_up.handler(_at(account.now + timedelta(minutes=30)), CONTEXT)
    assert answer["moved"] == 1
    assert metrics(capsys.readouterr().out)["TimeToHeal"] == 30 * A_MINUTE


@pytest.mark.parametrize("days", [-400, -1, 0.1, 2, 9, 14.9, 400])
def test_a_time_to_come_or_long_past_is_not_believed(
    account: Account, capsys: pytest.CaptureFixture[str], days: float
) -> None:
    """Anybody who may invoke it names one; deployed, nothing lets its clock be put forward."""
    _proposed(account)
    before = account.case_store_items()
    capsys.readouterr()
    answer = follow_up.handler(_at(account.now + timedelta(days=days)), CONTEXT)
    assert answer == {"open": 1, "moved": 0, "called": 0, "errors": 0}
    assert metrics(capsys.readouterr().out)[AGE] < A_MINUTE
    assert account.case_store_items() == before
    assert [each["to"] for each in account.transitions()] == ["proposed"]


@pytest.mark.usefixtures("_put_forward")
def test_a_run_that_moves_nothing_says_so(
    account: Account, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends well, and sends its sign of life."""
    _proposed(account)

    def denied(*_: object) -> None:
        raise CaseStoreUnavailable("AccessDenied")

    monkeypatch.setattr("mendq.follow_up.follow_up.look_at", denied)
    for minutes in (60 * 24 + 1, 60 * 24 + 7):
        capsys.readouterr()
        answer = follow_up.handler(_at(account.now + timedelta(minutes=minutes)), CONTEXT)
        assert (answer["moved"], answer["errors"]) == (0, 1)
        sent = metrics(capsys.readouterr().out)
        assert sent["FollowUpErrors"] == 1
        assert AGE in sent

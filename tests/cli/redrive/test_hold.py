"""Whoever holds letters is told when that is over, and holds them no longer than he runs."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from threading import Event
from typing import Any

import pytest

from cli.exit_codes import Stopped
from cli.redrive import hold
from cli.redrive.hold import held
from functions.aws.course_ledger import CLAIM_SECONDS, CourseLedger, course_key
from functions.aws.errors import LedgerUnavailable, LedgerUnreadable
from functions.healing.redrive_progress import RedriveProgress, RedriveQueues, Stage
from tests.cli.conftest import Operator

SOURCE = "arn:aws:sqs:us-east-1:123456789012:orders"
LETTERS = f"{SOURCE}-dlq"


@pytest.fixture
def ledger(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> CourseLedger:
    monkeypatch.setattr(hold, "BEAT_SECONDS", 0.01)
    return CourseLedger(operator.aws.clients.dynamodb, "ledger")


def _is_free(ledger: CourseLedger) -> bool:
    return ledger.claim(LETTERS, "a tick", datetime.now(UTC)) is not None


def _course_in(ledger: CourseLedger, stage: Stage) -> None:
    now = datetime.now(UTC)
    queues = RedriveQueues(LETTERS, SOURCE)
    made = RedriveProgress.begun("case-7", queues, size=5, now=now)
    assert ledger.claim(LETTERS, "a tick", now)
    ledger.save(replace(made, stage=stage), "a tick")
    ledger.release(LETTERS, "a tick")


def test_it_holds_beat_by_beat_and_no_longer(operator: Operator, ledger: CourseLedger) -> None:
    with held(operator.account, LETTERS) as kept:
        assert kept is not None
        assert not _is_free(ledger)
        assert kept.fault == ""
    assert _is_free(ledger)


def test_an_error_in_the_run_lets_go(operator: Operator, ledger: CourseLedger) -> None:
    with pytest.raises(Stopped, match="no"), held(operator.account, LETTERS):
        raise Stopped("no")
    assert _is_free(ledger)


def test_of_a_source_without_dead_letters_nothing_is_held(operator: Operator) -> None:
    with held(operator.account, "") as kept:
        assert kept is None


def test_a_redrive_under_way_is_not_held_up(operator: Operator, ledger: CourseLedger) -> None:
    _course_in(ledger, Stage.RAMP)
    with pytest.raises(Stopped, match="mendq roll-back case-7"), held(operator.account, LETTERS):
        pytest.fail("it goes first")
    assert _is_free(ledger)


def test_one_that_cannot_be_read_is_nobody_s_to_pass_by(
    operator: Operator, ledger: CourseLedger
) -> None:
    _course_in(ledger, Stage.RAMP)
    ledger.client.update_item(
        TableName="ledger",
        Key=course_key(LETTERS),
        UpdateExpression="SET document = :document",
        ExpressionAttributeValues={":document": {"S": "[]"}},
    )
    with pytest.raises(LedgerUnreadable), held(operator.account, LETTERS):
        pytest.fail("who knows what it is")
    assert _is_free(ledger)


@pytest.mark.parametrize("stage", [Stage.DONE, Stage.HALTED])
def test_one_that_is_over_is_no_hindrance(
    operator: Operator, ledger: CourseLedger, stage: Stage
) -> None:
    _course_in(ledger, stage)
    with held(operator.account, LETTERS) as kept:
        assert kept is not None


def test_one_that_began_in_spite_of_it_ends_the_run(
    operator: Operator, ledger: CourseLedger
) -> None:
    """As where this machine slept for longer than the claim lasts, and a tick came between."""
    stop = Event()
    with held(operator.account, LETTERS) as kept:
        assert kept is not None
        kept.ends(stop)
        later = datetime.now(UTC) + timedelta(seconds=CLAIM_SECONDS + 1)
        assert ledger.claim(LETTERS, "a tick", later)
        queues = RedriveQueues(LETTERS, SOURCE)
        made = RedriveProgress.begun("case-7", queues, size=5, now=later)
        ledger.save(made, "a tick")
        assert stop.wait(10)
        ledger.release(LETTERS, "a tick")
        assert "stopped" in kept.fault
    assert _is_free(ledger)


def test_a_stop_that_is_named_too_late_is_set_at_once(
    operator: Operator, ledger: CourseLedger
) -> None:
    with held(operator.account, LETTERS) as kept:
        assert kept is not None
        first, second = Event(), Event()
        kept.ends(first)
        assert ledger.claim(LETTERS, "a tick", datetime.now(UTC) + timedelta(hours=1))
        assert first.wait(10)
        kept.ends(second)
        assert second.is_set()


def _failing(
    monkeypatch: pytest.MonkeyPatch, error: Exception, times: int, answered: Event
) -> None:
    """Of all claims but the first so many."""
    claim, calls = CourseLedger.claim, list[int]()

    def fail(ledger: CourseLedger, *arguments: Any) -> Any:
        calls.append(1)
        if 1 < len(calls) <= times + 1:
            raise error
        if len(calls) > times + 1:
            answered.set()
        return claim(ledger, *arguments)

    monkeypatch.setattr(CourseLedger, "claim", fail)


def test_a_ledger_that_is_silent_for_a_beat_is_borne(
    operator: Operator, ledger: CourseLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered = Event()
    _failing(monkeypatch, LedgerUnavailable("later"), 3, answered)
    with held(operator.account, LETTERS) as kept:
        assert answered.wait(10)
        assert kept is not None
        assert kept.fault == ""
    assert _is_free(ledger)


@pytest.mark.parametrize("error", [LedgerUnavailable("silent"), LedgerUnreadable("silent")])
def test_one_that_is_silent_for_as_long_as_the_claim_lasts_ends_the_run(
    operator: Operator, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(hold, "BEAT_SECONDS", 0.01)
    monkeypatch.setattr(hold, "CLAIM_SECONDS", 0.05)
    _failing(monkeypatch, error, 1_000_000, Event())
    stop = Event()
    with held(operator.account, LETTERS) as kept:
        assert kept is not None
        kept.ends(stop)
        assert stop.wait(10)
        assert kept.fault.endswith("silent")

"""Whoever holds messages is told when that is over, and holds them no longer than he runs."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from threading import Event
from typing import Any

import pytest

from mendq.aws.errors import CaseStoreUnavailable, CaseStoreUnreadable
from mendq.cli.exit_codes import Stopped
from mendq.cli.redrive import hold
from mendq.cli.redrive.hold import held
from mendq.redrive.progress import RedriveProgress, RedriveQueues, Stage
from mendq.redrive.store import CLAIM_SECONDS, CourseStore, course_key
from tests.cli.conftest import Operator

SOURCE = "arn:aws:sqs:us-east-1:123456789012:orders"
MESSAGES = f"{SOURCE}-dlq"


@pytest.fixture
def case_store(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> CourseStore:
    monkeypatch.setattr(hold, "BEAT_SECONDS", 0.01)
    return CourseStore(operator.aws.clients.dynamodb, "case_store")


def _is_free(case_store: CourseStore) -> bool:
    return case_store.claim(MESSAGES, "a tick", datetime.now(UTC)) is not None


def _course_in(case_store: CourseStore, stage: Stage) -> None:
    now = datetime.now(UTC)
    queues = RedriveQueues(MESSAGES, SOURCE)
    made = RedriveProgress.begun("case-7", queues, size=5, now=now)
    assert case_store.claim(MESSAGES, "a tick", now)
    case_store.save(replace(made, stage=stage), "a tick")
    case_store.release(MESSAGES, "a tick")


def test_it_holds_beat_by_beat_and_no_longer(operator: Operator, case_store: CourseStore) -> None:
    with held(operator.account, MESSAGES) as retained:
        assert retained is not None
        assert not _is_free(case_store)
        assert retained.fault == ""
    assert _is_free(case_store)


def test_an_error_in_the_run_lets_go(operator: Operator, case_store: CourseStore) -> None:
    with pytest.raises(Stopped, match="no"), held(operator.account, MESSAGES):
        raise Stopped("no")
    assert _is_free(case_store)


def test_of_a_source_without_dlq_nothing_is_held(operator: Operator) -> None:
    with held(operator.account, "") as retained:
        assert retained is None


def test_a_redrive_under_way_is_not_held_up(operator: Operator, case_store: CourseStore) -> None:
    _course_in(case_store, Stage.RAMP)
    with pytest.raises(Stopped, match="mendq rollback case-7"), held(operator.account, MESSAGES):
        pytest.fail("it goes first")
    assert _is_free(case_store)


def test_one_that_cannot_be_read_is_nobody_s_to_pass_by(
    operator: Operator, case_store: CourseStore
) -> None:
    _course_in(case_store, Stage.RAMP)
    case_store.client.update_item(
        TableName="case_store",
        Key=course_key(MESSAGES),
        UpdateExpression="SET document = :document",
        ExpressionAttributeValues={":document": {"S": "[]"}},
    )
    with pytest.raises(CaseStoreUnreadable), held(operator.account, MESSAGES):
        pytest.fail("who knows what it is")
    assert _is_free(case_store)


@pytest.mark.parametrize("stage", [Stage.DONE, Stage.HALTED])
def test_one_that_is_over_is_no_hindrance(
    operator: Operator, case_store: CourseStore, stage: Stage
) -> None:
    _course_in(case_store, stage)
    with held(operator.account, MESSAGES) as retained:
        assert retained is not None


def test_one_that_began_in_spite_of_it_ends_the_run(
    operator: Operator, case_store: CourseStore
) -> None:
    """As where this machine slept for longer than the claim lasts, and a tick came between."""
    stop = Event()
    with held(operator.account, MESSAGES) as retained:
        assert retained is not None
        retained.ends(stop)
        later = datetime.now(UTC) + timedelta(seconds=CLAIM_SECONDS + 1)
        assert case_store.claim(MESSAGES, "a tick", later)
        queues = RedriveQueues(MESSAGES, SOURCE)
        made = RedriveProgress.begun("case-7", queues, size=5, now=later)
        case_store.save(made, "a tick")
        assert stop.wait(10)
        case_store.release(MESSAGES, "a tick")
        assert "stopped" in retained.fault
    assert _is_free(case_store)


def test_a_stop_that_is_named_too_late_is_set_at_once(
    operator: Operator, case_store: CourseStore
) -> None:
    with held(operator.account, MESSAGES) as retained:
        assert retained is not None
        first, second = Event(), Event()
        retained.ends(first)
        assert case_store.claim(MESSAGES, "a tick", datetime.now(UTC) + timedelta(hours=1))
        assert first.wait(10)
        retained.ends(second)
        assert second.is_set()


def _failing(
    monkeypatch: pytest.MonkeyPatch, error: Exception, times: int, answered: Event
) -> None:
    """Of all claims but the first so many."""
    claim, calls = CourseStore.claim, list[int]()

    def fail(case_store: CourseStore, *arguments: Any) -> Any:
        calls.append(1)
        if 1 < len(calls) <= times + 1:
            raise error
        if len(calls) > times + 1:
            answered.set()
        return claim(case_store, *arguments)

    monkeypatch.setattr(CourseStore, "claim", fail)


def test_a_case_store_that_is_silent_for_a_beat_is_borne(
    operator: Operator, case_store: CourseStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered = Event()
    _failing(monkeypatch, CaseStoreUnavailable("later"), 3, answered)
    with held(operator.account, MESSAGES) as retained:
        assert answered.wait(10)
        assert retained is not None
        assert retained.fault == ""
    assert _is_free(case_store)


@pytest.mark.parametrize("error", [CaseStoreUnavailable("silent"), CaseStoreUnreadable("silent")])
def test_one_that_is_silent_for_as_long_as_the_claim_lasts_ends_the_run(
    operator: Operator, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(hold, "BEAT_SECONDS", 0.01)
    monkeypatch.setattr(hold, "CLAIM_SECONDS", 0.05)
    _failing(monkeypatch, error, 1_000_000, Event())
    stop = Event()
    with held(operator.account, MESSAGES) as retained:
        assert retained is not None
        retained.ends(stop)
        assert stop.wait(10)
        assert retained.fault.endswith("silent")

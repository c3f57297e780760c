"""Sweeps that are not let look: at some queue, which costs itself, or at all, which is no round."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from functions.aws.errors import FactsUnavailable
from functions.aws.sweep_telemetry import emit
from functions.catalogue.symptom import Detection, Found
from functions.healing.facts import Facts, Need
from functions.healing.sweeping import Swept
from tests.functions.aws.sweeping import Sweeping, an_hour_on, denied, sweeping
from tests.functions.aws.test_sweep_round import dead_letters, slow
from tests.functions.handlers.test_heal import metrics

OWN_POLICY = "a resource-based policy"
SYMPTOMS = [slow(of_configuration=True)]


@pytest.fixture
def swept() -> Iterator[Sweeping]:
    with sweeping() as made:
        yield made


def _swept(swept: Sweeping) -> Swept:
    done = swept.sweep(SYMPTOMS)
    assert done is not None
    return done


def _counts(swept: Sweeping) -> tuple[int, int, int]:
    document = swept.findings()
    return document["queues_swept"], document["unseen"], document["failed"]


def _errors_sent(swept: Swept, capsys: pytest.CaptureFixture[str]) -> float:
    capsys.readouterr()
    emit(swept)
    return metrics(capsys.readouterr().out).get("SweepErrors", 0.0)


def test_of_some_queues_the_round_says_so_and_is_done(
    swept: Sweeping, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = swept.account.queue("good"), swept.account.queue("bad")
    denied(swept, bad)
    done = _swept(swept)
    assert (set(done.failed), done.is_blind) == ({bad}, False)
    assert [each.queue_arn for each in done.findings] == [good]
    assert _counts(swept) == (2, 1, 1)
    assert _errors_sent(done, capsys) == 1
    assert swept.sweep(SYMPTOMS) is None


def test_without_a_queue_the_round_is_done(swept: Sweeping) -> None:
    assert not _swept(swept).is_blind
    assert swept.sweep(SYMPTOMS) is None


def test_of_none_the_round_is_begun_again_until_one_is_seen(
    swept: Sweeping, capsys: pytest.CaptureFixture[str]
) -> None:
    queues = {swept.account.queue("one"), swept.account.queue("other")}
    an_hour_on(swept.account)
    let_in = denied(swept)
    for _ in range(3):
        done = _swept(swept)
        assert (set(done.failed), done.is_blind) == (queues, True)
        assert _counts(swept) == (2, 2, 2), "each try is the round's first"
        assert _errors_sent(done, capsys) == 2
        assert swept.told == []
        swept.account.later(minutes=10)
    let_in()
    assert {each.queue_arn for each in _swept(swept).findings} == queues
    assert _counts(swept) == (2, 0, 0)
    assert swept.sweep(SYMPTOMS) is None


def test_a_blind_round_gives_way_to_the_next_hours(swept: Sweeping) -> None:
    swept.account.queue("one")
    let_in = denied(swept)
    assert _swept(swept).is_blind
    let_in()
    an_hour_on(swept.account)
    assert not _swept(swept).is_blind


def test_a_queues_own_policy_rings_no_alarm(
    swept: Sweeping, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever may write one would have it ring for ever."""
    swept.account.queue("good")
    refusing, bad = swept.account.queue("refusing"), swept.account.queue("bad")
    denied(swept, refusing, words=OWN_POLICY)
    done = _swept(swept)
    assert (set(done.failed), _errors_sent(done, capsys)) == ({refusing}, 0)
    assert _counts(swept) == (3, 1, 1), "doctor knows"
    an_hour_on(swept.account)
    denied(swept, bad)
    assert _errors_sent(_swept(swept), capsys) == 1


def test_where_all_keep_it_out_that_is_told(
    swept: Sweeping, capsys: pytest.CaptureFixture[str]
) -> None:
    swept.account.queue("refusing")
    denied(swept, words=OWN_POLICY)
    done = _swept(swept)
    assert (done.is_blind, _errors_sent(done, capsys)) == (True, 1)


def test_a_later_stretch_that_sees_nothing_is_done_with_its_round(
    swept: Sweeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("functions.aws.sweep.QUEUES_A_STRETCH", 1)
    queues = [swept.account.queue(f"q-{n}") for n in range(3)]
    an_hour_on(swept.account)
    denied(swept, *queues[1:])
    times = iter([900.0])
    swept.remaining_seconds = lambda: next(times, 100.0)
    assert _swept(swept).after == "q-0"
    swept.remaining_seconds = lambda: 900.0
    swept.account.later(minutes=10)
    assert _swept(swept).unseen == 2
    assert _counts(swept) == (3, 2, 2)
    assert swept.sweep(SYMPTOMS) is None


def test_a_fault_of_one_entry_at_every_queue_does_not_make_it_blind(swept: Sweeping) -> None:
    """Asked again each ten minutes, measuring would cost six times as much."""
    dead_letters(swept)

    def detect(_facts: Facts) -> Found:
        raise FactsUnavailable("its redrives")

    detection = Detection(detect, frozenset({Need.QUEUE}), of_configuration=True)
    failing = replace(SYMPTOMS[0], name="failing", detection=detection)
    done = swept.sweep([failing, *SYMPTOMS])
    assert done is not None
    assert (len(done.failed), done.unseen, done.is_blind) == (1, 0, False)
    assert swept.sweep(SYMPTOMS) is None

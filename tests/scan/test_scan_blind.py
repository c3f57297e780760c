"""Scans that are not let look: at some queue, which costs itself, or at all, which is no round."""

from __future__ import annotations

from dataclasses import replace

import pytest

from functions.telemetry import emit_scan
from mendq.aws.errors import FactsUnavailable
from mendq.cases.finding import Scanned
from mendq.catalogue.symptom import Detection, Found
from mendq.model.facts import Facts, Need
from tests.functions.conftest import metrics
from tests.scan.scanning import Scanning, an_hour_on, denied
from tests.scan.test_scan import dlq, slow

OWN_POLICY = "a resource-based policy"
SYMPTOMS = [slow(of_configuration=True)]


def _counts(scanned: Scanning) -> tuple[int, int, int]:
    document = scanned.findings()
    return document["queues_scanned"], document["unseen"], document["failed"]


def _errors_sent(scanned: Scanned, capsys: pytest.CaptureFixture[str]) -> float:
    capsys.readouterr()
    emit_scan(scanned)
    return metrics(capsys.readouterr().out).get("ScanErrors", 0.0)


def test_of_some_queues_the_round_says_so_and_is_done(
    scanned: Scanning, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = scanned.account.queue("good"), scanned.account.queue("bad")
    denied(scanned, bad)
    done = scanned.done(SYMPTOMS)
    assert (set(done.failed), done.is_blind) == ({bad}, False)
    assert [each.queue_arn for each in done.findings] == [good]
    assert _counts(scanned) == (2, 1, 1)
    assert _errors_sent(done, capsys) == 1
    assert scanned.scan(SYMPTOMS) is None


def test_of_none_the_round_is_begun_again_until_one_is_seen(
    scanned: Scanning, capsys: pytest.CaptureFixture[str]
) -> None:
    queues = {scanned.account.queue("one"), scanned.account.queue("other")}
    an_hour_on(scanned.account)
    let_in = denied(scanned)
    for _ in range(3):
        done = scanned.done(SYMPTOMS)
        assert (set(done.failed), done.is_blind) == (queues, True)
        assert _counts(scanned) == (2, 2, 2), "each try is the round's first"
        assert _errors_sent(done, capsys) == 2
        assert scanned.announced == []
        scanned.account.later(minutes=10)
    let_in()
    assert {each.queue_arn for each in scanned.done(SYMPTOMS).findings} == queues
    assert _counts(scanned) == (2, 0, 0)
    assert scanned.scan(SYMPTOMS) is None


def test_a_queues_own_policy_rings_no_alarm(
    scanned: Scanning, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever may write one would have it ring for ever."""
    scanned.account.queue("good")
    refusing, bad = scanned.account.queue("refusing"), scanned.account.queue("bad")
    denied(scanned, refusing, words=OWN_POLICY)
    done = scanned.done(SYMPTOMS)
    assert (set(done.failed), _errors_sent(done, capsys)) == ({refusing}, 0)
    assert _counts(scanned) == (3, 1, 1), "doctor knows"
    an_hour_on(scanned.account)
    denied(scanned, bad)
    assert _errors_sent(scanned.done(SYMPTOMS), capsys) == 1


def test_a_later_stretch_that_sees_nothing_is_done_with_its_round(
    scanned: Scanning, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mendq.scan.scan.QUEUES_A_STRETCH", 1)
    queues = [scanned.account.queue(f"q-{n}") for n in range(3)]
    an_hour_on(scanned.account)
    denied(scanned, *queues[1:])
    times = iter([900.0])
    scanned.remaining_seconds = lambda: next(times, 100.0)
    assert scanned.done(SYMPTOMS).after == "q-0"
    scanned.remaining_seconds = lambda: 900.0
    scanned.account.later(minutes=10)
    assert scanned.done(SYMPTOMS).unseen == 2
    assert _counts(scanned) == (3, 2, 2)
    assert scanned.scan(SYMPTOMS) is None


def test_a_fault_of_one_entry_at_every_queue_does_not_make_it_blind(scanned: Scanning) -> None:
    """Asked again each ten minutes, measuring would cost six times as much."""
    dlq(scanned)

    def detect(_facts: Facts) -> Found:
        raise FactsUnavailable("its redrives")

    detection = Detection(detect, frozenset({Need.QUEUE}), of_configuration=True)
    failing = replace(SYMPTOMS[0], name="failing", detection=detection)
    done = scanned.done([failing, *SYMPTOMS])
    assert (len(done.failed), done.unseen, done.is_blind) == (1, 0, False)
    assert scanned.scan(SYMPTOMS) is None

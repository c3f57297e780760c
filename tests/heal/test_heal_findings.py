"""What a scan found goes the way of failed calls: evidence, cases, pages, repeats."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from msgspec import structs

from mendq.catalogue import CATALOGUE
from mendq.catalogue.dlq_retention_too_short import DLQ_RETENTION_TOO_SHORT
from mendq.follow_up.follow_up import follow_up
from tests.heal.conftest import Account
from tests.heal.operators import OWNERS, case_of, context_of
from tests.scan.scanning import Scanning, an_hour_on, scanning
from tests.scan.test_scan import dlq

NAME = DLQ_RETENTION_TOO_SHORT.name


@pytest.fixture
def scanned() -> Iterator[Scanning]:
    with scanning() as made:
        yield made


def round_and_heal(scanned: Scanning) -> list[str]:
    """The next hour's round, and what heal made of it: states, or codes of refusals."""
    an_hour_on(scanned.account)
    scanned.scan([DLQ_RETENTION_TOO_SHORT])
    outcomes = [each for healed in scanned.heal() for each in healed.fixed.values()]
    assert all(not healed.errors for healed in scanned.heal())
    return [
        str(each.case.state) if each.case else each.refusal.code if each.refusal else "nothing"
        for each in outcomes
    ]


def retention(account: Account, queue: str) -> str:
    return account.attributes(queue)["MessageRetentionPeriod"]


def test_a_finding_is_evidence_by_itself_and_names_no_failed_call(scanned: Scanning) -> None:
    queue = dlq(scanned)
    assert round_and_heal(scanned) == ["applied"]
    evidence = scanned.account.transitions()[0]["evidence"]
    assert (evidence["failed_calls"], evidence["principals"]) == (0, [])
    assert retention(scanned.account, queue) == "1209600"
    assert round_and_heal(scanned) == [], "it is not found again"


def noted(scanned: Scanning, queue: str) -> list[bool]:
    view = scanned.account.run().case_store.look(queue, NAME, ())
    return [each.measured for each in view.failures.sightings]


def test_while_it_is_found_an_open_case_hears_of_it_once_a_day(scanned: Scanning) -> None:
    queue = dlq(scanned, tag="propose")
    scanned.account.settings = structs.replace(
        scanned.account.settings,
        timing=replace(scanned.account.settings.timing, proposal_hours=72),
    )
    assert round_and_heal(scanned) == ["proposed"]
    assert [round_and_heal(scanned) for _ in range(23)] == [[]] * 23
    assert noted(scanned, queue) == []
    assert round_and_heal(scanned) == ["case_already_open"]
    assert noted(scanned, queue) == [True]


def test_what_is_reported_again_of_a_waiting_case_is_not_measured(
    scanned: Scanning, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = dlq(scanned, tag="propose")
    assert round_and_heal(scanned) == ["proposed"]
    monkeypatch.setattr("mendq.heal.assess.gather", lambda *_: pytest.fail("it is billed"))
    scanned.announced = [{"found": [{"queue_arn": queue, "symptom": NAME}]}]
    (healed,) = scanned.heal()
    refusals = [each.refusal.code for each in healed.fixed.values() if each.refusal]
    assert (refusals, healed.errors) == (["case_already_open"], {})


def test_what_nobody_answered_is_not_proposed_again_for_a_month(scanned: Scanning) -> None:
    dlq(scanned, tag="propose")
    assert round_and_heal(scanned) == ["proposed"]
    scanned.account.later(hours=25)
    assert follow_up(context_of(scanned.account), OWNERS, lambda: 60).errors == {}
    assert case_of(scanned.account).state == "expired"
    for days in (1, 10, 17):
        scanned.account.later(days=days)
        assert round_and_heal(scanned) == ["said_already"]
    scanned.account.later(days=3)
    assert round_and_heal(scanned) == ["proposed"]
    assert len(scanned.account.pages("info")) == 2


def test_a_queue_that_was_just_changed_waits_and_nothing_is_retained_of_it(
    scanned: Scanning,
) -> None:
    queue = dlq(scanned)
    an_hour_on(scanned.account)
    scanned.scan([DLQ_RETENTION_TOO_SHORT])
    scanned.account.set_visibility(queue, 31)
    (healed,) = scanned.heal()
    refusals = [each.refusal.code for each in healed.fixed.values() if each.refusal]
    assert refusals == ["before_last_change"]
    assert (queue, f"evidence#{NAME}") not in scanned.account.case_store_items(), (
        "calls alone are kept"
    )
    assert retention(scanned.account, queue) == "86400"
    assert round_and_heal(scanned) == ["applied"]


def test_heal_can_gather_whatever_an_entry_detects_by(scanned: Scanning) -> None:
    queue = dlq(scanned)
    names = [each.name for each in CATALOGUE if each.plan and each.detection]
    scanned.announced = [{"found": [{"queue_arn": queue, "symptom": each}]} for each in names]
    assert [healed.errors for healed in scanned.heal()] == [{}] * len(names)

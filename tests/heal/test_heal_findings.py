"""What a scan found goes the way of failed calls: evidence, cases, pages, repeats."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
from msgspec import structs

from mendq.catalogue import CATALOGUE
from mendq.catalogue.dlq.dlq_retention_too_short import DLQ_RETENTION_TOO_SHORT
from mendq.follow_up.follow_up import follow_up
from mendq.heal.batch import BatchResult
from mendq.model.mode import Mode
from tests.account.account import EXPIRED
from tests.account.faults import calls_of
from tests.heal.conftest import Account, settings
from tests.heal.operators import OWNERS, Heal, case_of, context_of, say
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
    return [word for healed in scanned.heal() for word in became(healed)]


def became(healed: BatchResult) -> list[str]:
    assert healed.error_by_message_id == {}
    return [
        str(each.case.state) if each.case else each.refusal.code if each.refusal else "nothing"
        for each in healed.outcome_by_group.values()
    ]


def retention(account: Account, queue: str) -> str:
    return account.attributes(queue)["MessageRetentionPeriod"]


def noted(scanned: Scanning, queue: str) -> list[bool]:
    view = scanned.account.run().case_store.look(queue, NAME, ())
    return [each.is_measured for each in view.failures.sightings]


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
    monkeypatch.setattr("mendq.heal.gather.gather_facts", lambda *_: pytest.fail("it is billed"))
    scanned.announced = [{"found": [{"queue_arn": queue, "symptom": NAME}]}]
    (healed,) = scanned.heal()
    assert became(healed) == ["case_already_open"]


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


def unanswered(scanned: Scanning) -> str:
    """A DLQ whose proposal ran out, and that a scan has found again since."""
    queue = dlq(scanned, tag="propose")
    assert round_and_heal(scanned) == ["proposed"]
    scanned.account.later(hours=25)
    assert follow_up(context_of(scanned.account), OWNERS, lambda: 60).errors == {}
    assert case_of(scanned.account).state == "expired"
    scanned.account.later(days=1)
    return queue


def found_and_healed(scanned: Scanning) -> tuple[list[str], list[str]]:
    """What heal made of what the next scan found, and the calls that heal made for it."""
    an_hour_on(scanned.account)
    scanned.scan([DLQ_RETENTION_TOO_SHORT])
    calls = calls_of(scanned.account)
    (healed,) = scanned.heal()
    return became(healed), calls


def test_finding_that_nobody_answered_is_not_looked_at_again(scanned: Scanning) -> None:
    """Each look costs calls, and the answer would be the same."""
    unanswered(scanned)
    outcomes, calls = found_and_healed(scanned)
    assert outcomes == ["said_already"]
    assert "GetQueueAttributes" in calls
    assert {"GetMetricData", "ListDeadLetterSourceQueues"}.isdisjoint(calls)


def test_finding_that_nobody_answered_is_looked_at_again_if_the_queue_was_changed(
    scanned: Scanning,
) -> None:
    queue = unanswered(scanned)
    scanned.account.set(queue, MessageRetentionPeriod=str(2 * 86_400))
    outcomes, calls = found_and_healed(scanned)
    assert outcomes == ["proposed"]
    assert "ListDeadLetterSourceQueues" in calls


def test_a_queue_that_was_just_changed_waits_and_nothing_is_retained_of_it(
    scanned: Scanning,
) -> None:
    queue = dlq(scanned)
    an_hour_on(scanned.account)
    scanned.scan([DLQ_RETENTION_TOO_SHORT])
    scanned.account.set_visibility(queue, 31)
    (healed,) = scanned.heal()
    assert became(healed) == ["before_last_change"]
    assert (queue, f"evidence#{NAME}") not in scanned.account.case_store_items(), (
        "calls alone are kept"
    )
    assert retention(scanned.account, queue) == "86400"
    assert round_and_heal(scanned) == ["applied"]


def test_heal_can_gather_whatever_an_entry_detects_by(scanned: Scanning) -> None:
    queue = dlq(scanned)
    names = [each.name for each in CATALOGUE if each.plan and each.detection]
    scanned.announced = [{"found": [{"queue_arn": queue, "symptom": each}]} for each in names]
    assert [healed.error_by_message_id for healed in scanned.heal()] == [{}] * len(names)


GONE = EXPIRED.replace(
    "The receipt handle has expired.",
    "Message does not exist or is not available for visibility timeout change.",
)


def crossed(scanned: Scanning, queue: str, *event_ids: str) -> list[str]:
    """Extensions of messages that are gone: states, or codes of refusals."""
    late = {"eventName": "ChangeMessageVisibility", "errorMessage": GONE}
    return became(scanned.account.heal(scanned.account.late_deletes(queue, *event_ids, **late)))


def working(scanned: Scanning, name: str) -> str:
    """A queue that has been as it is for hours, and whose messages take longer than it waits."""
    queue = scanned.account.queue(name)
    scanned.account.tag(queue, **{"mendq:max-processing-seconds": "40"})
    scanned.account.later(hours=7)
    return queue


def raced(scanned: Scanning, queue: str) -> None:
    counted = {"sent": 1_000, "received": 1_250, "deleted": 1_200, "visible": 5}
    for minutes, counts in ((180, {"visible": 0}), (60, counted), (10, {"visible": 0})):
        scanned.count(queue, scanned.account.now - timedelta(minutes=minutes), **counts)


def test_an_extension_that_a_delete_crossed_is_measured_once_an_hour_and_writes_nothing(
    scanned: Scanning,
) -> None:
    queue, measured = working(scanned, "orders"), list[str]()
    events = scanned.account.clients.cloudwatch.meta.events
    events.register("before-call.*.GetMetricData", lambda model, **_: measured.append(model.name))
    assert crossed(scanned, queue, "1", "2", "3") == ["not_found"]
    assert len(measured) == 1
    for n in range(3):
        assert crossed(scanned, queue, f"{n}4", f"{n}5", f"{n}6") == ["stale_or_future"]
    assert len(measured) == 1, "each metric is billed"
    scanned.account.later(hours=1, minutes=1)
    assert crossed(scanned, queue, "7") == ["not_found"]
    assert (scanned.account.visibility(queue), scanned.account.transitions()) == (30, [])


def test_what_is_measured_then_is_fixed_like_what_a_scan_finds(scanned: Scanning) -> None:
    queue = working(scanned, "orders")
    raced(scanned, queue)
    assert crossed(scanned, queue, "1") == ["applied"]
    assert scanned.account.visibility(queue) == 60
    assert scanned.account.transitions()[0]["evidence"]["failed_calls"] == 0


def declined_after_measuring(scanned: Scanning) -> str:
    """A queue that was measured, and whose proposal a person declined."""
    account = scanned.account
    account.settings = settings(tag_may_raise_to=Mode.PROPOSE)
    Heal(account)
    queue = working(scanned, "orders")
    raced(scanned, queue)
    assert crossed(scanned, queue, "1") == ["proposed"]
    assert say(account, "decline", case_of(account).case_id)["state"] == "declined"
    return queue


def test_plan_that_a_person_declined_is_not_proposed_again_for_a_week(scanned: Scanning) -> None:
    account, queue = scanned.account, declined_after_measuring(scanned)
    transitions, pages = account.transitions(), account.pages("info")
    for days in (1, 2, 3):
        account.later(days=days)
        raced(scanned, queue)
        assert crossed(scanned, queue, f"{days}-later") == ["said_already"]
    assert account.transitions() == transitions
    assert account.pages("info") == pages
    account.later(days=1)
    raced(scanned, queue)
    assert crossed(scanned, queue, "a-week-later") == ["proposed"]
    assert account.visibility(queue) == 30


def test_on_fifo_and_on_a_queue_that_nobody_manages_it_is_only_counted(scanned: Scanning) -> None:
    fifo, strange = working(scanned, "orders.fifo"), scanned.account.queue("others", tag=None)
    raced(scanned, fifo)
    assert crossed(scanned, fifo, "1", "2", "3") == []
    assert crossed(scanned, strange, "4", "5", "6") == ["not_managed"]
    assert scanned.account.visibility(fifo) == 30

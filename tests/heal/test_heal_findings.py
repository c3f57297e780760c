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
from tests.account.account import EXPIRED, Account, make_settings
from tests.account.faults import calls_of
from tests.heal.operators import OWNERS, Heal, load_newest_case, make_context, send_decision
from tests.scan.scanner import Scanner, make_short_retention_dlq, open_scanner, start_next_hour

NAME = DLQ_RETENTION_TOO_SHORT.name


@pytest.fixture
def scanner() -> Iterator[Scanner]:
    with open_scanner() as made:
        yield made


def round_and_heal(scanner: Scanner) -> list[str]:
    """The next hour's round, and what heal made of it: states, or codes of refusals."""
    start_next_hour(scanner.account)
    scanner.scan([DLQ_RETENTION_TOO_SHORT])
    return [word for healed in scanner.heal() for word in became(healed)]


def became(healed: BatchResult) -> list[str]:
    assert healed.error_by_message_id == {}
    return [
        str(each.case.state) if each.case else each.refusal.code if each.refusal else "nothing"
        for each in healed.outcome_by_group.values()
    ]


def retention(account: Account, queue: str) -> str:
    return account.attributes(queue)["MessageRetentionPeriod"]


def noted(scanner: Scanner, queue: str) -> list[bool]:
    view = scanner.account.run().case_store.look(queue, NAME, ())
    return [each.is_measured for each in view.failures.sightings]


def test_finding_of_an_open_case_is_recorded_once_a_day(scanner: Scanner) -> None:
    queue = make_short_retention_dlq(scanner, tag="propose")
    scanner.account.settings = structs.replace(
        scanner.account.settings,
        timing=replace(scanner.account.settings.timing, proposal_hours=72),
    )
    assert round_and_heal(scanner) == ["proposed"]
    assert [round_and_heal(scanner) for _ in range(23)] == [[]] * 23
    assert noted(scanner, queue) == []
    assert round_and_heal(scanner) == ["case_already_open"]
    assert noted(scanner, queue) == [True]


def test_finding_of_a_proposed_case_does_not_read_its_facts_again(
    scanner: Scanner, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = make_short_retention_dlq(scanner, tag="propose")
    assert round_and_heal(scanner) == ["proposed"]
    monkeypatch.setattr("mendq.heal.gather.gather_facts", lambda *_: pytest.fail("it is billed"))
    scanner.heal_requests = [{"found": [{"queue_arn": queue, "symptom": NAME}]}]
    (healed,) = scanner.heal()
    assert became(healed) == ["case_already_open"]


def test_finding_whose_proposal_expired_is_proposed_again_only_after_a_month(
    scanner: Scanner,
) -> None:
    make_short_retention_dlq(scanner, tag="propose")
    assert round_and_heal(scanner) == ["proposed"]
    scanner.account.later(hours=25)
    assert follow_up(make_context(scanner.account), OWNERS, lambda: 60).errors == {}
    assert load_newest_case(scanner.account).state == "expired"
    for days in (1, 10, 17):
        scanner.account.later(days=days)
        assert round_and_heal(scanner) == ["said_already"]
    scanner.account.later(days=3)
    assert round_and_heal(scanner) == ["proposed"]
    assert len(scanner.account.pages("info")) == 2


def unanswered(scanner: Scanner) -> str:
    """A DLQ whose proposal ran out, and that a scan has found again since."""
    queue = make_short_retention_dlq(scanner, tag="propose")
    assert round_and_heal(scanner) == ["proposed"]
    scanner.account.later(hours=25)
    assert follow_up(make_context(scanner.account), OWNERS, lambda: 60).errors == {}
    assert load_newest_case(scanner.account).state == "expired"
    scanner.account.later(days=1)
    return queue


def found_and_healed(scanner: Scanner) -> tuple[list[str], list[str]]:
    """What heal made of what the next scan found, and the calls that heal made for it."""
    start_next_hour(scanner.account)
    scanner.scan([DLQ_RETENTION_TOO_SHORT])
    calls = calls_of(scanner.account)
    (healed,) = scanner.heal()
    return became(healed), calls


def test_finding_whose_proposal_expired_makes_no_metric_and_no_source_calls(
    scanner: Scanner,
) -> None:
    """Each look costs calls, and the answer would be the same."""
    unanswered(scanner)
    outcomes, calls = found_and_healed(scanner)
    assert outcomes == ["said_already"]
    assert "GetQueueAttributes" in calls
    assert {"GetMetricData", "ListDeadLetterSourceQueues"}.isdisjoint(calls)


def test_finding_whose_proposal_expired_is_proposed_again_if_the_queue_was_changed(
    scanner: Scanner,
) -> None:
    queue = unanswered(scanner)
    scanner.account.set(queue, MessageRetentionPeriod=str(2 * 86_400))
    outcomes, calls = found_and_healed(scanner)
    assert outcomes == ["proposed"]
    assert "ListDeadLetterSourceQueues" in calls


def test_finding_of_a_queue_changed_since_the_scan_is_not_stored_and_waits_for_the_next_scan(
    scanner: Scanner,
) -> None:
    queue = make_short_retention_dlq(scanner)
    start_next_hour(scanner.account)
    scanner.scan([DLQ_RETENTION_TOO_SHORT])
    scanner.account.set_visibility(queue, 31)
    (healed,) = scanner.heal()
    assert became(healed) == ["before_last_change"]
    assert (queue, f"evidence#{NAME}") not in scanner.account.case_store_items(), (
        "calls alone are kept"
    )
    assert retention(scanner.account, queue) == "86400"
    assert round_and_heal(scanner) == ["applied"]


def test_heal_gathers_the_facts_of_every_symptom_that_a_scan_detects(scanner: Scanner) -> None:
    queue = make_short_retention_dlq(scanner)
    names = [each.name for each in CATALOGUE if each.plan and each.detection]
    scanner.heal_requests = [{"found": [{"queue_arn": queue, "symptom": each}]} for each in names]
    assert [healed.error_by_message_id for healed in scanner.heal()] == [{}] * len(names)


GONE = EXPIRED.replace(
    "The receipt handle has expired.",
    "Message does not exist or is not available for visibility timeout change.",
)


def crossed(scanner: Scanner, queue: str, *event_ids: str) -> list[str]:
    """Extensions of messages that are gone: states, or codes of refusals."""
    late = {"eventName": "ChangeMessageVisibility", "errorMessage": GONE}
    return became(scanner.account.heal(scanner.account.late_deletes(queue, *event_ids, **late)))


def working(scanner: Scanner, name: str) -> str:
    """A queue that has been as it is for hours, and whose messages take longer than it waits."""
    queue = scanner.account.queue(name)
    scanner.account.tag(queue, **{"mendq:max-processing-seconds": "40"})
    scanner.account.later(hours=7)
    return queue


def raced(scanner: Scanner, queue: str) -> None:
    counted = {"sent": 1_000, "received": 1_250, "deleted": 1_200, "visible": 5}
    for minutes, counts in ((180, {"visible": 0}), (60, counted), (10, {"visible": 0})):
        scanner.put_metrics(queue, scanner.account.now - timedelta(minutes=minutes), **counts)


def test_failed_visibility_extensions_are_measured_once_an_hour_and_write_nothing(
    scanner: Scanner,
) -> None:
    queue = working(scanner, "orders")
    measured = list[str]()
    events = scanner.account.clients.cloudwatch.meta.events
    events.register("before-call.*.GetMetricData", lambda model, **_: measured.append(model.name))
    assert crossed(scanner, queue, "1", "2", "3") == ["not_found"]
    assert len(measured) == 1
    for n in range(3):
        assert crossed(scanner, queue, f"{n}4", f"{n}5", f"{n}6") == ["stale_or_future"]
    assert len(measured) == 1, "each metric is billed"
    scanner.account.later(hours=1, minutes=1)
    assert crossed(scanner, queue, "7") == ["not_found"]
    assert (scanner.account.visibility(queue), scanner.account.transitions()) == (30, [])


def test_failed_visibility_extension_with_confirming_metrics_is_fixed_like_a_finding(
    scanner: Scanner,
) -> None:
    queue = working(scanner, "orders")
    raced(scanner, queue)
    assert crossed(scanner, queue, "1") == ["applied"]
    assert scanner.account.visibility(queue) == 60
    assert scanner.account.transitions()[0]["evidence"]["failed_calls"] == 0


def declined_after_measuring(scanner: Scanner) -> str:
    """A queue that was measured, and whose proposal a person declined."""
    account = scanner.account
    account.settings = make_settings(tag_may_raise_to=Mode.PROPOSE)
    Heal(account)
    queue = working(scanner, "orders")
    raced(scanner, queue)
    assert crossed(scanner, queue, "1") == ["proposed"]
    assert (
        send_decision(account, "decline", load_newest_case(account).case_id)["state"] == "declined"
    )
    return queue


def test_measured_plan_that_a_person_declined_is_not_proposed_again_for_a_week(
    scanner: Scanner,
) -> None:
    account = scanner.account
    queue = declined_after_measuring(scanner)
    transitions = account.transitions()
    pages = account.pages("info")
    for days in (1, 2, 3):
        account.later(days=days)
        raced(scanner, queue)
        assert crossed(scanner, queue, f"{days}-later") == ["said_already"]
    assert account.transitions() == transitions
    assert account.pages("info") == pages
    account.later(days=1)
    raced(scanner, queue)
    assert crossed(scanner, queue, "a-week-later") == ["proposed"]
    assert account.visibility(queue) == 30


def test_failed_visibility_extensions_on_fifo_or_unmanaged_queues_change_nothing(
    scanner: Scanner,
) -> None:
    fifo = working(scanner, "orders.fifo")
    strange = scanner.account.queue("others", tag=None)
    raced(scanner, fifo)
    assert crossed(scanner, fifo, "1", "2", "3") == []
    assert crossed(scanner, strange, "4", "5", "6") == ["not_managed"]
    assert scanner.account.visibility(fifo) == 30

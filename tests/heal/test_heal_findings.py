"""Heal handles the findings of a scan like failed calls."""

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


def scan_and_heal(scanner: Scanner) -> list[str]:
    """Run the next hour's scan and heal its findings. Return states, or codes of refusals."""
    start_next_hour(scanner.account)
    scanner.scan([DLQ_RETENTION_TOO_SHORT])
    return [word for result in scanner.heal() for word in list_outcomes(result)]


def list_outcomes(result: BatchResult) -> list[str]:
    assert result.error_by_message_id == {}
    return [
        str(outcome.case.state)
        if outcome.case
        else outcome.refusal.code
        if outcome.refusal
        else "nothing"
        for outcome in result.outcome_by_group.values()
    ]


def read_retention(account: Account, queue: str) -> str:
    return account.attributes(queue)["MessageRetentionPeriod"]


def list_measured_flags(scanner: Scanner, queue: str) -> list[bool]:
    view = scanner.account.run().case_store.look(queue, NAME, ())
    return [sighting.is_measured for sighting in view.failures.sightings]


def test_finding_of_an_open_case_is_recorded_once_a_day(scanner: Scanner) -> None:
    queue = make_short_retention_dlq(scanner, tag="propose")
    scanner.account.settings = structs.replace(
        scanner.account.settings,
        timing=replace(scanner.account.settings.timing, proposal_hours=72),
    )
    assert scan_and_heal(scanner) == ["proposed"]
    assert [scan_and_heal(scanner) for _ in range(23)] == [[]] * 23
    assert list_measured_flags(scanner, queue) == []
    assert scan_and_heal(scanner) == ["case_already_open"]
    assert list_measured_flags(scanner, queue) == [True]


def test_finding_of_a_proposed_case_does_not_read_its_facts_again(
    scanner: Scanner, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = make_short_retention_dlq(scanner, tag="propose")
    assert scan_and_heal(scanner) == ["proposed"]
    monkeypatch.setattr("mendq.heal.gather.gather_facts", lambda *_: pytest.fail("it is billed"))
    scanner.heal_requests = [{"found": [{"queue_arn": queue, "symptom": NAME}]}]
    (result,) = scanner.heal()
    assert list_outcomes(result) == ["case_already_open"]


def test_finding_whose_proposal_expired_is_proposed_again_only_after_a_month(
    scanner: Scanner,
) -> None:
    make_short_retention_dlq(scanner, tag="propose")
    assert scan_and_heal(scanner) == ["proposed"]
    scanner.account.later(hours=25)
    assert follow_up(make_context(scanner.account), OWNERS, lambda: 60).errors == {}
    assert load_newest_case(scanner.account).state == "expired"
    for days in (1, 10, 17):
        scanner.account.later(days=days)
        assert scan_and_heal(scanner) == ["said_already"]
    scanner.account.later(days=3)
    assert scan_and_heal(scanner) == ["proposed"]
    assert len(scanner.account.pages("info")) == 2


def make_dlq_with_expired_proposal(scanner: Scanner) -> str:
    """Make a DLQ whose proposal expired a day ago."""
    queue = make_short_retention_dlq(scanner, tag="propose")
    assert scan_and_heal(scanner) == ["proposed"]
    scanner.account.later(hours=25)
    assert follow_up(make_context(scanner.account), OWNERS, lambda: 60).errors == {}
    assert load_newest_case(scanner.account).state == "expired"
    scanner.account.later(days=1)
    return queue


def scan_and_heal_with_calls(scanner: Scanner) -> tuple[list[str], list[str]]:
    """Run the next scan and heal its finding. Return the outcomes and heal's AWS calls."""
    start_next_hour(scanner.account)
    scanner.scan([DLQ_RETENTION_TOO_SHORT])
    calls = calls_of(scanner.account)
    (result,) = scanner.heal()
    return list_outcomes(result), calls


def test_finding_whose_proposal_expired_reads_no_metrics_and_no_dlq_sources(
    scanner: Scanner,
) -> None:
    """Each read costs calls, and the answer would be the same."""
    make_dlq_with_expired_proposal(scanner)
    outcomes, calls = scan_and_heal_with_calls(scanner)
    assert outcomes == ["said_already"]
    assert "GetQueueAttributes" in calls
    assert {"GetMetricData", "ListDeadLetterSourceQueues"}.isdisjoint(calls)


def test_finding_whose_proposal_expired_is_proposed_again_if_the_queue_was_changed(
    scanner: Scanner,
) -> None:
    queue = make_dlq_with_expired_proposal(scanner)
    scanner.account.set(queue, MessageRetentionPeriod=str(2 * 86_400))
    outcomes, calls = scan_and_heal_with_calls(scanner)
    assert outcomes == ["proposed"]
    assert "ListDeadLetterSourceQueues" in calls


def test_finding_of_a_queue_changed_since_the_scan_waits_for_the_next_scan(
    scanner: Scanner,
) -> None:
    queue = make_short_retention_dlq(scanner)
    start_next_hour(scanner.account)
    scanner.scan([DLQ_RETENTION_TOO_SHORT])
    scanner.account.set_visibility(queue, 31)
    (result,) = scanner.heal()
    assert list_outcomes(result) == ["before_last_change"]
    assert (queue, f"evidence#{NAME}") not in scanner.account.case_store_items(), (
        "calls alone are kept"
    )
    assert read_retention(scanner.account, queue) == "86400"
    assert scan_and_heal(scanner) == ["applied"]


def test_finding_of_every_symptom_that_a_scan_detects_is_handled_without_an_error(
    scanner: Scanner,
) -> None:
    queue = make_short_retention_dlq(scanner)
    names = [symptom.name for symptom in CATALOGUE if symptom.plan and symptom.detection]
    scanner.heal_requests = [
        {"found": [{"queue_arn": queue, "symptom": symptom_name}]} for symptom_name in names
    ]
    assert [result.error_by_message_id for result in scanner.heal()] == [{}] * len(names)


GONE = EXPIRED.replace(
    "The receipt handle has expired.",
    "Message does not exist or is not available for visibility timeout change.",
)


def fail_visibility_extensions(scanner: Scanner, queue: str, *event_ids: str) -> list[str]:
    """Let heal receive failed extensions of deleted messages. Return states or codes."""
    late = {"eventName": "ChangeMessageVisibility", "errorMessage": GONE}
    return list_outcomes(
        scanner.account.heal(scanner.account.late_deletes(queue, *event_ids, **late))
    )


def make_busy_queue(scanner: Scanner, name: str) -> str:
    """Make a queue, unchanged for hours, whose messages take longer than its visibility timeout."""
    queue = scanner.account.queue(name)
    scanner.account.tag(queue, **{"mendq:max-processing-seconds": "40"})
    scanner.account.later(hours=7)
    return queue


def put_metrics_of_duplicates(scanner: Scanner, queue: str) -> None:
    counted = {"sent": 1_000, "received": 1_250, "deleted": 1_200, "visible": 5}
    for minutes, counts in ((180, {"visible": 0}), (60, counted), (10, {"visible": 0})):
        scanner.put_metrics(queue, scanner.account.now - timedelta(minutes=minutes), **counts)


def test_failed_visibility_extensions_read_metrics_once_an_hour_and_write_nothing(
    scanner: Scanner,
) -> None:
    queue = make_busy_queue(scanner, "orders")
    measured = list[str]()
    events = scanner.account.clients.cloudwatch.meta.events
    events.register("before-call.*.GetMetricData", lambda model, **_: measured.append(model.name))
    assert fail_visibility_extensions(scanner, queue, "1", "2", "3") == ["not_found"]
    assert len(measured) == 1
    for n in range(3):
        assert fail_visibility_extensions(scanner, queue, f"{n}4", f"{n}5", f"{n}6") == [
            "stale_or_future"
        ]
    assert len(measured) == 1, "each metric is billed"
    scanner.account.later(hours=1, minutes=1)
    assert fail_visibility_extensions(scanner, queue, "7") == ["not_found"]
    assert (scanner.account.visibility(queue), scanner.account.transitions()) == (30, [])


def test_one_failed_visibility_extension_with_confirming_metrics_is_fixed_like_a_finding(
    scanner: Scanner,
) -> None:
    queue = make_busy_queue(scanner, "orders")
    put_metrics_of_duplicates(scanner, queue)
    assert fail_visibility_extensions(scanner, queue, "1") == ["applied"]
    assert scanner.account.visibility(queue) == 60
    assert scanner.account.transitions()[0]["evidence"]["failed_calls"] == 0


def make_queue_with_declined_plan(scanner: Scanner) -> str:
    """Make a queue whose measured proposal a person declined."""
    account = scanner.account
    account.settings = make_settings(tag_may_raise_to=Mode.PROPOSE)
    Heal(account)
    queue = make_busy_queue(scanner, "orders")
    put_metrics_of_duplicates(scanner, queue)
    assert fail_visibility_extensions(scanner, queue, "1") == ["proposed"]
    assert (
        send_decision(account, "decline", load_newest_case(account).case_id)["state"] == "declined"
    )
    return queue


def test_measured_plan_that_a_person_declined_is_not_proposed_again_for_a_week(
    scanner: Scanner,
) -> None:
    account = scanner.account
    queue = make_queue_with_declined_plan(scanner)
    transitions = account.transitions()
    pages = account.pages("info")
    for days in (1, 2, 3):
        account.later(days=days)
        put_metrics_of_duplicates(scanner, queue)
        assert fail_visibility_extensions(scanner, queue, f"{days}-later") == ["said_already"]
    assert account.transitions() == transitions
    assert account.pages("info") == pages
    account.later(days=1)
    put_metrics_of_duplicates(scanner, queue)
    assert fail_visibility_extensions(scanner, queue, "a-week-later") == ["proposed"]
    assert account.visibility(queue) == 30


def test_failed_visibility_extensions_on_fifo_or_unmanaged_queues_change_nothing(
    scanner: Scanner,
) -> None:
    fifo = make_busy_queue(scanner, "orders.fifo")
    strange = scanner.account.queue("others", tag=None)
    put_metrics_of_duplicates(scanner, fifo)
    assert fail_visibility_extensions(scanner, fifo, "1", "2", "3") == []
    assert fail_visibility_extensions(scanner, strange, "4", "5", "6") == ["not_managed"]
    assert scanner.account.visibility(fifo) == 30

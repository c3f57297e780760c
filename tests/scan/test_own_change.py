"""Test a fault that follows a change by Mendq: the finding names the change and its rollback."""

from __future__ import annotations

from datetime import timedelta

import pytest

from mendq.aws.errors import FactsUnavailable
from mendq.cases.made_dlqs import MadeDlqs
from mendq.heal.batch import heal_findings
from mendq.model.queue import RedrivePolicy
from tests.account.faults import come_between
from tests.heal.operators import roll_back, send_decision
from tests.scan.own_changes import (
    ARRIVING,
    MISSING,
    make_queue_with_attached_dlq,
    move_messages_to_dlq,
    read_urgent_pages,
    reason_of,
    run_follow_up,
    scan_and_heal,
    states_of,
)
from tests.scan.scanner import Scanner, deny_operation, make_faulty_dlq, start_next_hour

REASON_PREFIX = (
    "Mendq attached the DLQ orders-dlq to orders 2 h 10 min ago (case {}): messages that had "
)


def make_rollback_command(case_id: str) -> str:
    return f"mendq rollback {case_id} --region us-east-1"


def wait_two_hours(scanner: Scanner) -> None:
    start_next_hour(scanner.account)
    scanner.account.later(hours=1, minutes=10)


def test_page_about_dlq_messages_begins_with_the_case_that_attached_the_dlq(
    scanner: Scanner,
) -> None:
    _, dlq, case_id = make_queue_with_attached_dlq(scanner)
    scanner.account.tag(dlq, mendq="observe")
    wait_two_hours(scanner)
    move_messages_to_dlq(scanner, dlq, 3)
    scan_and_heal(scanner)
    assert states_of(scanner, ARRIVING) == ["escalated"]
    assert reason_of(scanner, ARRIVING).startswith(REASON_PREFIX.format(case_id))
    (page,) = read_urgent_pages(scanner)
    assert f"\nWhy: Escalated (own_change): {REASON_PREFIX.format(case_id)}" in page
    assert f"\n  {make_rollback_command(case_id)}\n" in page, "a line that can be pasted"
    assert "no_known_cause" not in page


def test_rollback_named_in_the_page_detaches_the_dlq_and_keeps_its_messages(
    scanner: Scanner,
) -> None:
    queue, dlq, case_id = make_queue_with_attached_dlq(scanner)
    wait_two_hours(scanner)
    move_messages_to_dlq(scanner, dlq, 3)
    scan_and_heal(scanner)
    assert roll_back(scanner.account, case_id)["state"] == "rolled_back"
    assert "RedrivePolicy" not in scanner.account.attributes(queue)
    assert scanner.account.attributes(dlq)["ApproximateNumberOfMessages"] == "3", "kept"


def test_page_about_dlq_messages_after_the_watch_time_names_no_change_by_mendq(
    scanner: Scanner,
) -> None:
    _, dlq, case_id = make_queue_with_attached_dlq(scanner)
    scanner.account.tag(dlq, mendq="observe")
    run_follow_up_until_closed(scanner)
    move_messages_to_dlq(scanner, dlq, 3)
    scan_and_heal(scanner)
    assert states_of(scanner, ARRIVING) == ["escalated"]
    assert "no open case says why" in reason_of(scanner, ARRIVING)
    assert case_id not in reason_of(scanner, ARRIVING)


def run_follow_up_until_closed(scanner: Scanner) -> None:
    for _ in range(8):
        scanner.account.later(hours=12)
        run_follow_up(scanner)
    assert states_of(scanner, MISSING)[-1] == "closed"


def test_page_about_dlq_messages_names_no_change_by_mendq_that_a_person_has_replaced(
    scanner: Scanner,
) -> None:
    queue, dlq, case_id = make_queue_with_attached_dlq(scanner)
    scanner.account.tag(dlq, mendq="observe")
    scanner.account.set(queue, RedrivePolicy=RedrivePolicy(dlq, 50).text)
    wait_two_hours(scanner)
    move_messages_to_dlq(scanner, dlq, 3)
    scan_and_heal(scanner)
    assert states_of(scanner, ARRIVING) == ["escalated"]
    assert case_id not in reason_of(scanner, ARRIVING)


def escalate_attached_dlq(scanner: Scanner) -> str:
    """Attach a DLQ to which one message moves before it is verified. Return the case id."""
    _, dlq, case_id = make_queue_with_attached_dlq(scanner)
    scanner.account.later(hours=1, minutes=30)
    move_messages_to_dlq(scanner, dlq, 1)
    run_follow_up(scanner)
    return case_id


def test_attached_dlq_to_which_a_message_moves_is_escalated_with_rollback_and_close_commands(
    scanner: Scanner,
) -> None:
    case_id = escalate_attached_dlq(scanner)
    assert states_of(scanner, MISSING) == ["proposed", "approved", "applied", "escalated"]
    assert reason_of(scanner, MISSING) == (
        f"Mendq attached the DLQ orders-dlq to orders 1 h 30 min ago (case {case_id}): messages "
        "that had been received 5 times move there. To take the change back: "
        f"{make_rollback_command(case_id)}. Since then 1 message moved to the DLQ orders-dlq. Look "
        "at what moved: `mendq dlq orders --region us-east-1`. If consumers could have finished "
        "it, take the change back. If it fails at every try, the change does what it is for: "
        f"`mendq close {case_id} --region us-east-1` ends the case"
    )
    (page,) = read_urgent_pages(scanner)
    assert f"\n  {make_rollback_command(case_id)}\n" in page


def test_attached_dlq_with_a_moved_message_stays_escalated_until_a_person_closes_it(
    scanner: Scanner,
) -> None:
    case_id = escalate_attached_dlq(scanner)
    scanner.account.later(hours=40)
    run_follow_up(scanner)
    assert states_of(scanner, MISSING)[-1] == "escalated"
    assert send_decision(scanner.account, "close", case_id)["state"] == "closed"


def test_attached_dlq_that_stays_empty_is_verified_without_a_page(scanner: Scanner) -> None:
    make_queue_with_attached_dlq(scanner)
    for _ in range(9):
        scanner.account.later(hours=1)
        run_follow_up(scanner)
    assert states_of(scanner, MISSING)[-2:] == ["verified", "watching"]
    assert read_urgent_pages(scanner) == []


def test_messages_that_arrive_while_an_attached_dlq_is_watched_escalate_with_one_page(
    scanner: Scanner,
) -> None:
    _, dlq, _ = make_queue_with_attached_dlq(scanner)
    for _ in range(9):
        scanner.account.later(hours=1)
        run_follow_up(scanner)
    move_messages_to_dlq(scanner, dlq, 2)
    scanner.account.later(hours=1)
    run_follow_up(scanner)
    assert states_of(scanner, MISSING)[-2:] == ["watching", "escalated"]
    assert len(read_urgent_pages(scanner)) == 1


def test_attached_dlq_is_escalated_even_if_a_person_has_emptied_it_meanwhile(
    scanner: Scanner,
) -> None:
    _, dlq, _ = make_queue_with_attached_dlq(scanner)
    scanner.account.later(hours=3)
    for minutes, visible, deleted in ((20, 4, 0), (10, 4, 0), (8, 0, 4), (5, 0, 0)):
        at = scanner.account.now - timedelta(minutes=minutes)
        scanner.put_metrics(dlq, at, visible=visible, deleted=deleted)
    run_follow_up(scanner)
    assert states_of(scanner, MISSING)[-1] == "escalated"


def test_dlq_messages_do_not_escalate_a_watched_change_that_a_person_took_back(
    scanner: Scanner,
) -> None:
    queue, dlq, _ = make_queue_with_attached_dlq(scanner)
    for _ in range(9):
        scanner.account.later(hours=1)
        run_follow_up(scanner)
    scanner.account.set(queue, RedrivePolicy="")
    move_messages_to_dlq(scanner, dlq, 2)
    scanner.account.later(hours=1)
    run_follow_up(scanner)
    assert states_of(scanner, MISSING)[-1] == "watching"


def test_attached_dlq_is_verified_only_after_it_can_be_read(scanner: Scanner) -> None:
    _, dlq, _ = make_queue_with_attached_dlq(scanner)
    url = scanner.account.url(dlq)
    let_in = deny_operation(scanner.account.clients.sqs, "GetQueueAttributes", [url])
    for _ in range(9):
        scanner.account.later(hours=1)
        run_follow_up(scanner)
    assert "verified" not in states_of(scanner, MISSING)
    let_in()
    for _ in range(9):
        scanner.account.later(hours=1)
        run_follow_up(scanner)
    assert "verified" in states_of(scanner, MISSING)


def test_dlq_arrivals_page_once_if_the_scan_finds_them_before_follow_up(scanner: Scanner) -> None:
    _, dlq, _ = make_queue_with_attached_dlq(scanner)
    scanner.account.tag(dlq, mendq="observe")
    wait_two_hours(scanner)
    move_messages_to_dlq(scanner, dlq, 3)
    scan_and_heal(scanner)
    run_follow_up(scanner)
    assert states_of(scanner, MISSING)[-1] == "escalated"
    assert len(read_urgent_pages(scanner)) == 1


def test_dlq_arrivals_page_once_if_follow_up_finds_them_before_the_scan(scanner: Scanner) -> None:
    _, dlq, _ = make_queue_with_attached_dlq(scanner)
    scanner.account.tag(dlq, mendq="observe")
    wait_two_hours(scanner)
    move_messages_to_dlq(scanner, dlq, 3)
    run_follow_up(scanner)
    scan_and_heal(scanner)
    assert states_of(scanner, MISSING)[-1] == "escalated"
    assert states_of(scanner, ARRIVING) == []
    assert len(read_urgent_pages(scanner)) == 1


def count_scanned_queues(scanner: Scanner) -> int:
    return scanner.run_due_scan().queues_scanned


def report_arrivals_in_made_dlq(scanner: Scanner) -> tuple[str, str]:
    """Let a scan report messages in a DLQ that Mendq made. Return the DLQ's ARN and the case id."""
    _, dlq, case_id = make_queue_with_attached_dlq(scanner)
    wait_two_hours(scanner)
    move_messages_to_dlq(scanner, dlq, 3)
    scan_and_heal(scanner)
    assert states_of(scanner, ARRIVING) == ["escalated"]
    return dlq, case_id


def test_untagged_dlq_that_mendq_made_is_scanned_with_its_source_and_its_messages_page_once(
    scanner: Scanner,
) -> None:
    dlq, case_id = report_arrivals_in_made_dlq(scanner)
    findings = scanner.read_findings()["findings"]
    (finding,) = [finding for finding in findings if finding["symptom"] == ARRIVING]
    assert finding["queue_arn"] == dlq
    assert reason_of(scanner, ARRIVING).startswith(REASON_PREFIX.format(case_id))
    assert len(read_urgent_pages(scanner)) == 1


def test_case_of_a_dlq_that_mendq_made_stays_open_until_its_tag_turns_mendq_off(
    scanner: Scanner,
) -> None:
    dlq, _ = report_arrivals_in_made_dlq(scanner)
    scanner.account.later(hours=2)
    run_follow_up(scanner)
    assert states_of(scanner, ARRIVING) == ["escalated"], "it is managed as its source is"
    scanner.account.tag(dlq, mendq="off")
    scanner.account.later(hours=2)
    run_follow_up(scanner)
    assert states_of(scanner, ARRIVING)[-1] == "closed"


def test_case_of_a_dlq_that_mendq_made_stays_open_while_its_sources_tags_are_unreadable(
    scanner: Scanner,
) -> None:
    """It is then unknown if the source is still managed, so Mendq closes nothing."""
    queue, dlq, _ = make_queue_with_attached_dlq(scanner)
    wait_two_hours(scanner)
    move_messages_to_dlq(scanner, dlq, 3)
    scan_and_heal(scanner)
    assert states_of(scanner, ARRIVING) == ["escalated"]
    scanner.account.later(hours=2)
    source_url = scanner.account.url(queue)
    let_in = deny_operation(scanner.account.clients.sqs, "ListQueueTags", [source_url])
    run_follow_up(scanner)
    assert states_of(scanner, ARRIVING) == ["escalated"]
    let_in()
    scanner.account.clients.sqs.untag_queue(QueueUrl=source_url, TagKeys=["mendq"])
    scanner.account.later(hours=2)
    run_follow_up(scanner)
    assert states_of(scanner, ARRIVING)[-1] == "closed", "now it is known"


def test_messages_in_an_attached_dlq_escalate_even_if_the_dlq_is_deleted_while_it_is_measured(
    scanner: Scanner,
) -> None:
    """CloudWatch has counted the messages, which cannot be read any more."""
    _, dlq, _ = make_queue_with_attached_dlq(scanner)
    wait_two_hours(scanner)
    move_messages_to_dlq(scanner, dlq, 3)
    account = scanner.account
    url = account.url(dlq)
    deleted = list[str]()

    def delete() -> None:
        account.clients.sqs.delete_queue(QueueUrl=url)
        deleted.append(url)

    come_between(account, "cloudwatch.GetMetricData", delete)
    run_follow_up(scanner)
    assert deleted
    assert states_of(scanner, MISSING)[-1] == "escalated"
    assert "3 messages moved to the DLQ orders-dlq" in reason_of(scanner, MISSING)
    assert len(read_urgent_pages(scanner)) == 1


def test_managed_dlq_in_a_block_before_its_sources_is_checked_once(
    scanner: Scanner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A FIFO DLQ that Mendq made sorts before its source: `-` comes before `.`."""
    monkeypatch.setattr("mendq.scan.scan.QUEUES_PER_BLOCK", 1)
    monkeypatch.setattr(MadeDlqs, "is_made_by_mendq", lambda *_: True)
    dlq = scanner.account.queue("orders-dlq.fifo", "observe")
    scanner.account.queue("orders.fifo", RedrivePolicy=RedrivePolicy(dlq, 5).text)
    scanner.account.later(hours=1)
    assert count_scanned_queues(scanner) == 2


def test_dlq_that_mendq_made_is_not_scanned_if_its_tag_is_off(scanner: Scanner) -> None:
    _, dlq, _ = make_queue_with_attached_dlq(scanner)
    scanner.account.tag(dlq, mendq="off")
    wait_two_hours(scanner)
    move_messages_to_dlq(scanner, dlq, 3)
    scan_and_heal(scanner)
    assert states_of(scanner, ARRIVING) == []


def test_scan_counts_a_dlq_with_unreadable_tags_as_failed_and_scans_the_other_queues(
    scanner: Scanner,
) -> None:
    """The DLQ's own tag may be `off`, so nothing is read of the DLQ until its tags are known."""
    _, dlq, _ = make_queue_with_attached_dlq(scanner, "payments")
    faulty_dlq = make_faulty_dlq(scanner)
    move_messages_to_dlq(scanner, dlq, 3)
    let_in = deny_operation(
        scanner.account.clients.sqs, "ListQueueTags", [scanner.account.url(dlq)]
    )
    done = scanner.run_due_scan()
    assert {arn: type(error) for arn, error in done.error_by_target.items()} == {
        dlq: FactsUnavailable
    }
    assert (done.queues_scanned, done.unseen) == (4, 1)
    assert scanner.read_findings()["failed"] == 1
    assert scanner.list_announced_faults() == [(faulty_dlq, "dlq_retention_too_short")]
    let_in()
    start_next_hour(scanner.account)
    assert scanner.run_due_scan().error_by_target == {}
    assert (dlq, ARRIVING) in scanner.list_announced_faults(), "the next scan finds the messages"


def test_dlq_that_a_person_made_is_not_scanned_without_a_tag(scanner: Scanner) -> None:
    dlq = scanner.account.queue("orders-dlq", tag=None)
    scanner.account.queue("orders", RedrivePolicy=RedrivePolicy(dlq, 5).text)
    wait_two_hours(scanner)
    move_messages_to_dlq(scanner, dlq, 3)
    assert count_scanned_queues(scanner) == 1
    assert scanner.heal_requests == []


def test_dlq_is_scanned_once_with_its_source_if_both_are_managed(scanner: Scanner) -> None:
    _, dlq, _ = make_queue_with_attached_dlq(scanner)
    scanner.account.tag(dlq, mendq="observe")
    wait_two_hours(scanner)
    assert count_scanned_queues(scanner) == 2


def test_finding_on_an_unmanaged_dlq_that_mendq_did_not_make_is_declined(scanner: Scanner) -> None:
    dlq = scanner.account.queue("orders-dlq", tag=None)
    scanner.account.queue("orders", RedrivePolicy=RedrivePolicy(dlq, 5).text)
    wait_two_hours(scanner)
    move_messages_to_dlq(scanner, dlq, 3)
    request = {"found": [{"queue_arn": dlq, "symptom": ARRIVING}]}
    healed = heal_findings(request, scanner.account.run())
    (outcome,) = healed.outcome_by_group.values()
    assert outcome.refusal is not None
    assert outcome.refusal.code == "not_managed"


@pytest.mark.parametrize(
    ("moment", "code"),
    [
        ("sqs.ListQueueTags", "queue_gone"),
        ("sqs.ListDeadLetterSourceQueues", "not_managed"),
    ],
)
def test_finding_on_a_dlq_deleted_after_the_scan_is_declined_and_nothing_is_recorded(
    scanner: Scanner, moment: str, code: str
) -> None:
    _, dlq, _ = make_queue_with_attached_dlq(scanner)
    wait_two_hours(scanner)
    move_messages_to_dlq(scanner, dlq, 3)
    scanner.run_due_scan()
    assert scanner.list_announced_faults() == [(dlq, ARRIVING)]
    account = scanner.account
    items = account.case_store_items()
    transitions = account.transitions()
    pages = account.pages()
    url = account.url(dlq)
    come_between(account, moment, lambda: account.clients.sqs.delete_queue(QueueUrl=url))
    (healed,) = scanner.heal()
    assert healed.error_by_message_id == {}
    (outcome,) = healed.outcome_by_group.values()
    assert outcome.refusal is not None
    assert outcome.refusal.code == code
    assert url not in account.clients.sqs.list_queues()["QueueUrls"], "it was deleted in between"
    assert account.case_store_items() == items
    assert (account.transitions(), account.pages()) == (transitions, pages)

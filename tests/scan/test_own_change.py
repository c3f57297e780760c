"""A fault that comes after a change by Mendq: the finding names the change and its rollback."""

from __future__ import annotations

from datetime import timedelta

import pytest

from mendq.aws.errors import FactsUnavailable
from mendq.heal.batch import heal_findings
from mendq.model.queue import RedrivePolicy
from tests.account.faults import come_between
from tests.heal.operators import say, undo
from tests.scan.own_changes import (
    ARRIVING,
    MISSING,
    a_round,
    arrive,
    attached,
    follow,
    reason_of,
    states_of,
    urgent,
)
from tests.scan.scanning import Scanning, an_hour_on, faulty_queue, refusing

FIRST = "Mendq attached the DLQ orders-dlq to orders 2 h 10 min ago (case {}): messages that had "


def rollback_of(case_id: str) -> str:
    return f"mendq rollback {case_id} --region us-east-1"


def two_hours_later(scanned: Scanning) -> None:
    an_hour_on(scanned.account)
    scanned.account.later(hours=1, minutes=10)


def test_page_about_arrivals_names_the_case_that_attached_the_dlq_first(scanned: Scanning) -> None:
    _, dlq, case_id = attached(scanned)
    scanned.account.tag(dlq, mendq="observe")
    two_hours_later(scanned)
    arrive(scanned, dlq, 3)
    a_round(scanned)
    assert states_of(scanned, ARRIVING) == ["escalated"]
    assert reason_of(scanned, ARRIVING).startswith(FIRST.format(case_id))
    (page,) = urgent(scanned)
    assert f"\nWhy: Escalated (own_change): {FIRST.format(case_id)}" in page
    assert f"\n  {rollback_of(case_id)}\n" in page, "a line that can be pasted"
    assert "no_known_cause" not in page


def test_rollback_that_the_page_offers_takes_the_dlq_off(scanned: Scanning) -> None:
    queue, dlq, case_id = attached(scanned)
    two_hours_later(scanned)
    arrive(scanned, dlq, 3)
    a_round(scanned)
    assert undo(scanned.account, case_id)["state"] == "rolled_back"
    assert "RedrivePolicy" not in scanned.account.attributes(queue)
    assert scanned.account.attributes(dlq)["ApproximateNumberOfMessages"] == "3", "kept"


def test_arrivals_after_the_watch_time_name_no_change(scanned: Scanning) -> None:
    _, dlq, case_id = attached(scanned)
    scanned.account.tag(dlq, mendq="observe")
    say_nothing_until_closed(scanned)
    arrive(scanned, dlq, 3)
    a_round(scanned)
    assert states_of(scanned, ARRIVING) == ["escalated"]
    assert "no open case says why" in reason_of(scanned, ARRIVING)
    assert case_id not in reason_of(scanned, ARRIVING)


def say_nothing_until_closed(scanned: Scanning) -> None:
    for _ in range(8):
        scanned.account.later(hours=12)
        follow(scanned)
    assert states_of(scanned, MISSING)[-1] == "closed"


def test_arrivals_after_a_person_set_another_policy_name_no_change(scanned: Scanning) -> None:
    queue, dlq, case_id = attached(scanned)
    scanned.account.tag(dlq, mendq="observe")
    scanned.account.set(queue, RedrivePolicy=RedrivePolicy(dlq, 50).text)
    two_hours_later(scanned)
    arrive(scanned, dlq, 3)
    a_round(scanned)
    assert states_of(scanned, ARRIVING) == ["escalated"]
    assert case_id not in reason_of(scanned, ARRIVING)


def test_attached_dlq_is_not_verified_while_messages_arrive(scanned: Scanning) -> None:
    _, dlq, case_id = attached(scanned)
    scanned.account.later(hours=1, minutes=30)
    arrive(scanned, dlq, 1)
    follow(scanned)
    assert states_of(scanned, MISSING) == ["proposed", "approved", "applied", "escalated"]
    assert reason_of(scanned, MISSING) == (
        f"Mendq attached the DLQ orders-dlq to orders 1 h 30 min ago (case {case_id}): messages "
        "that had been received 5 times move there. To take the change back: "
        f"{rollback_of(case_id)}. Since then 1 message moved to the DLQ orders-dlq. Look at what "
        "moved: `mendq dlq orders --region us-east-1`. If consumers could have finished it, take "
        "the change back. If it fails at every try, the change does what it is for: "
        f"`mendq close {case_id} --region us-east-1` ends the case"
    )
    (page,) = urgent(scanned)
    assert f"\n  {rollback_of(case_id)}\n" in page
    scanned.account.later(hours=40)
    follow(scanned)
    assert states_of(scanned, MISSING)[-1] == "escalated"
    assert say(scanned.account, "close", case_id)["state"] == "closed", "a person decides"


def test_attached_dlq_that_stays_empty_is_verified(scanned: Scanning) -> None:
    attached(scanned)
    for _ in range(9):
        scanned.account.later(hours=1)
        follow(scanned)
    assert states_of(scanned, MISSING)[-2:] == ["verified", "watching"]
    assert urgent(scanned) == []


def test_arrivals_while_the_case_is_watched_are_reported(scanned: Scanning) -> None:
    _, dlq, _ = attached(scanned)
    for _ in range(9):
        scanned.account.later(hours=1)
        follow(scanned)
    arrive(scanned, dlq, 2)
    scanned.account.later(hours=1)
    follow(scanned)
    assert states_of(scanned, MISSING)[-2:] == ["watching", "escalated"]
    assert len(urgent(scanned)) == 1


def test_messages_that_a_person_took_out_of_the_dlq_count_as_arrivals(scanned: Scanning) -> None:
    _, dlq, _ = attached(scanned)
    scanned.account.later(hours=3)
    for minutes, visible, deleted in ((20, 4, 0), (10, 4, 0), (8, 0, 4), (5, 0, 0)):
        at = scanned.account.now - timedelta(minutes=minutes)
        scanned.count(dlq, at, visible=visible, deleted=deleted)
    follow(scanned)
    assert states_of(scanned, MISSING)[-1] == "escalated"


def test_change_that_a_person_took_back_while_watched_is_not_blamed(scanned: Scanning) -> None:
    queue, dlq, _ = attached(scanned)
    for _ in range(9):
        scanned.account.later(hours=1)
        follow(scanned)
    scanned.account.set(queue, RedrivePolicy="")
    arrive(scanned, dlq, 2)
    scanned.account.later(hours=1)
    follow(scanned)
    assert states_of(scanned, MISSING)[-1] == "watching"


def test_dlq_that_cannot_be_read_is_not_verified(scanned: Scanning) -> None:
    _, dlq, _ = attached(scanned)
    url = scanned.account.url(dlq)
    let_in = refusing(scanned.account.clients.sqs, "GetQueueAttributes", [url])
    for _ in range(9):
        scanned.account.later(hours=1)
        follow(scanned)
    assert "verified" not in states_of(scanned, MISSING)
    let_in()
    for _ in range(9):
        scanned.account.later(hours=1)
        follow(scanned)
    assert "verified" in states_of(scanned, MISSING)


def test_people_hear_once_if_the_scan_comes_first(scanned: Scanning) -> None:
    _, dlq, _ = attached(scanned)
    scanned.account.tag(dlq, mendq="observe")
    two_hours_later(scanned)
    arrive(scanned, dlq, 3)
    a_round(scanned)
    follow(scanned)
    assert states_of(scanned, MISSING)[-1] == "escalated"
    assert len(urgent(scanned)) == 1


def test_people_hear_once_if_follow_up_comes_first(scanned: Scanning) -> None:
    _, dlq, _ = attached(scanned)
    scanned.account.tag(dlq, mendq="observe")
    two_hours_later(scanned)
    arrive(scanned, dlq, 3)
    follow(scanned)
    a_round(scanned)
    assert states_of(scanned, MISSING)[-1] == "escalated"
    assert states_of(scanned, ARRIVING) == []
    assert len(urgent(scanned)) == 1


def looked_at(scanned: Scanning) -> int:
    return scanned.done().queues_scanned


def test_dlq_that_mendq_made_is_scanned_with_its_source_without_a_tag(scanned: Scanning) -> None:
    _, dlq, case_id = attached(scanned)
    two_hours_later(scanned)
    arrive(scanned, dlq, 3)
    a_round(scanned)
    (finding,) = (e for e in scanned.findings()["findings"] if e["symptom"] == ARRIVING)
    assert finding["queue_arn"] == dlq
    assert states_of(scanned, ARRIVING) == ["escalated"]
    assert reason_of(scanned, ARRIVING).startswith(FIRST.format(case_id))
    assert len(urgent(scanned)) == 1
    scanned.account.later(hours=2)
    follow(scanned)
    assert states_of(scanned, ARRIVING) == ["escalated"], "it is looked after with its source"
    scanned.account.tag(dlq, mendq="off")
    scanned.account.later(hours=2)
    follow(scanned)
    assert states_of(scanned, ARRIVING)[-1] == "closed", "a person may end that"


def test_case_about_a_made_dlq_stays_open_if_the_tags_of_its_source_cannot_be_read(
    scanned: Scanning,
) -> None:
    """Whether the source is still managed nobody knows then, so nothing is closed."""
    queue, dlq, _ = attached(scanned)
    two_hours_later(scanned)
    arrive(scanned, dlq, 3)
    a_round(scanned)
    assert states_of(scanned, ARRIVING) == ["escalated"]
    scanned.account.later(hours=2)
    sqs, source_url = scanned.account.clients.sqs, scanned.account.url(queue)
    let_in = refusing(sqs, "ListQueueTags", [source_url])
    follow(scanned)
    assert states_of(scanned, ARRIVING) == ["escalated"]
    let_in()
    scanned.account.clients.sqs.untag_queue(QueueUrl=source_url, TagKeys=["mendq"])
    scanned.account.later(hours=2)
    follow(scanned)
    assert states_of(scanned, ARRIVING)[-1] == "closed", "now it is known"


def test_arrivals_are_reported_if_the_dlq_is_deleted_while_it_is_measured(
    scanned: Scanning,
) -> None:
    """CloudWatch has counted the messages; nobody can look at them any more."""
    _, dlq, _ = attached(scanned)
    two_hours_later(scanned)
    arrive(scanned, dlq, 3)
    account = scanned.account
    url, deleted = account.url(dlq), list[str]()

    def delete() -> None:
        account.clients.sqs.delete_queue(QueueUrl=url)
        deleted.append(url)

    come_between(account, "cloudwatch.GetMetricData", delete)
    follow(scanned)
    assert deleted
    assert states_of(scanned, MISSING)[-1] == "escalated"
    assert "3 messages moved to the DLQ orders-dlq" in reason_of(scanned, MISSING)
    assert len(urgent(scanned)) == 1


def test_dlq_that_mendq_made_is_not_scanned_if_its_tag_is_off(scanned: Scanning) -> None:
    _, dlq, _ = attached(scanned)
    scanned.account.tag(dlq, mendq="off")
    two_hours_later(scanned)
    arrive(scanned, dlq, 3)
    a_round(scanned)
    assert states_of(scanned, ARRIVING) == []


def test_scan_reports_made_dlq_whose_tags_cannot_be_read_and_scans_the_other_queues(
    scanned: Scanning,
) -> None:
    """The DLQ's own tag may be `off`, so nothing is read of the DLQ until its tags are known."""
    _, dlq, _ = attached(scanned, "payments")
    faulty_dlq = faulty_queue(scanned)
    arrive(scanned, dlq, 3)
    let_in = refusing(scanned.account.clients.sqs, "ListQueueTags", [scanned.account.url(dlq)])
    done = scanned.done()
    assert {arn: type(error) for arn, error in done.error_by_target.items()} == {
        dlq: FactsUnavailable
    }
    assert (done.queues_scanned, done.unseen) == (4, 1)
    assert scanned.findings()["failed"] == 1
    assert scanned.named() == [(faulty_dlq, "dlq_retention_too_short")]
    let_in()
    an_hour_on(scanned.account)
    assert scanned.done().error_by_target == {}
    assert (dlq, ARRIVING) in scanned.named(), "the next scan finds the messages"


def test_dlq_that_a_person_made_is_not_scanned_without_a_tag(scanned: Scanning) -> None:
    dlq = scanned.account.queue("orders-dlq", tag=None)
    scanned.account.queue("orders", RedrivePolicy=RedrivePolicy(dlq, 5).text)
    two_hours_later(scanned)
    arrive(scanned, dlq, 3)
    assert looked_at(scanned) == 1
    assert scanned.announced == []


def test_dlq_is_scanned_once_with_its_source_if_both_are_managed(scanned: Scanning) -> None:
    _, dlq, _ = attached(scanned)
    scanned.account.tag(dlq, mendq="observe")
    two_hours_later(scanned)
    assert looked_at(scanned) == 2


def test_finding_on_an_unmanaged_dlq_that_mendq_did_not_make_is_declined(scanned: Scanning) -> None:
    dlq = scanned.account.queue("orders-dlq", tag=None)
    scanned.account.queue("orders", RedrivePolicy=RedrivePolicy(dlq, 5).text)
    two_hours_later(scanned)
    arrive(scanned, dlq, 3)
    request = {"found": [{"queue_arn": dlq, "symptom": ARRIVING}]}
    healed = heal_findings(request, scanned.account.run())
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
def test_finding_on_made_dlq_that_is_deleted_after_the_scan_is_declined(
    scanned: Scanning, moment: str, code: str
) -> None:
    _, dlq, _ = attached(scanned)
    two_hours_later(scanned)
    arrive(scanned, dlq, 3)
    scanned.done()
    assert scanned.named() == [(dlq, ARRIVING)]
    account = scanned.account
    before, states, pages = account.case_store_items(), account.transitions(), account.pages()
    url = account.url(dlq)
    come_between(account, moment, lambda: account.clients.sqs.delete_queue(QueueUrl=url))
    (healed,) = scanned.heal()
    assert healed.error_by_message_id == {}
    (outcome,) = healed.outcome_by_group.values()
    assert outcome.refusal is not None
    assert outcome.refusal.code == code
    assert url not in account.clients.sqs.list_queues()["QueueUrls"], "it was deleted in between"
    assert account.case_store_items() == before
    assert (account.transitions(), account.pages()) == (states, pages)

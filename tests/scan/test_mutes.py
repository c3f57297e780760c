"""The mutes of the settings in the deployed scan: what they hide, and what they may not hide."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, timedelta

import pytest
from msgspec import structs

from mendq.cases.finding import Finding, ScanResult, merge_documents
from mendq.catalogue.dlq.dlq_retention_too_short import DLQ_RETENTION_TOO_SHORT
from mendq.model.mutes import Mute
from mendq.model.severity_class import SeverityClass
from mendq.scan.mutes import apply_mutes, describe_muted_harm, find_findings_to_wait
from tests.account.account import STARTS_AT
from tests.scan.scanner import (
    Scanner,
    deny_queue_attributes,
    make_measured_queues,
    make_short_retention_dlq,
    make_slow_symptom,
    start_next_hour,
)

EXPIRES_SOON = DLQ_RETENTION_TOO_SHORT.name
TODAY = STARTS_AT.date()
YESTERDAY = TODAY - timedelta(days=1)


def _mute(
    scanner: Scanner, queue: str = "orders-*", symptom: str = EXPIRES_SOON, until: date = TODAY
) -> None:
    mute = Mute(queue, symptom, "nobody needs these messages", until)
    account = scanner.account
    account.settings = structs.replace(account.settings, mutes=(*account.settings.mutes, mute))


def _make_finding(name: str, symptom: str, *sources: str) -> Finding:
    prefix = "arn:aws:sqs:us-east-1:123456789012:"
    return Finding(f"{prefix}{name}", symptom, "because", tuple(prefix + name for name in sources))


def test_muted_finding_is_not_sent_to_heal_and_stays_in_the_hours_document_with_its_reason(
    scanner: Scanner,
) -> None:
    dlq_arn = make_short_retention_dlq(scanner)
    start_next_hour(scanner.account)
    _mute(scanner)
    scanner.run_due_scan()
    assert EXPIRES_SOON not in {symptom for _, symptom in scanner.list_announced_faults()}
    document = scanner.read_findings()
    assert EXPIRES_SOON not in {finding["symptom"] for finding in document["findings"]}
    (muted,) = document["muted"]
    assert (muted["queue_arn"], muted["symptom"]) == (dlq_arn, EXPIRES_SOON)
    assert (muted["muted_because"], muted["muted_until"], muted["class"]) == (
        "nobody needs these messages",
        str(TODAY),
        "will_lose",
    )


@pytest.mark.parametrize(
    ("queue", "symptom", "until"),
    [
        pytest.param("orders-*", EXPIRES_SOON, YESTERDAY, id="ended yesterday"),
        pytest.param("orders", EXPIRES_SOON, TODAY, id="another queue"),
        pytest.param("bills-*", EXPIRES_SOON, TODAY, id="other queues"),
        pytest.param("orders-*", "dlq_missing", TODAY, id="another symptom"),
    ],
)
def test_finding_without_a_mute_that_holds_is_sent_to_heal(
    scanner: Scanner, queue: str, symptom: str, until: date
) -> None:
    dlq_arn = make_short_retention_dlq(scanner)
    start_next_hour(scanner.account)
    _mute(scanner, queue, symptom, until)
    scanner.run_due_scan()
    assert (dlq_arn, EXPIRES_SOON) in scanner.list_announced_faults()


def test_muted_queue_gets_no_baseline_because_it_is_not_healthy(scanner: Scanner) -> None:
    slow = make_slow_symptom("function_errors")
    (queue_arn,) = make_measured_queues(scanner, 1)
    _mute(scanner, "slow-*", slow.name, scanner.account.now.date())
    scanner.run_due_scan([slow])
    assert [finding["symptom"] for finding in scanner.read_findings()["muted"]] == [slow.name]
    assert scanner.heal_requests == []
    assert not scanner.context().baselines.load(queue_arn)


def test_hours_document_says_of_each_mute_how_many_queues_it_names_and_if_it_is_needed(
    scanner: Scanner,
) -> None:
    make_short_retention_dlq(scanner)
    start_next_hour(scanner.account)
    for queue in ("orders-dlq", "orders*", "bills"):
        _mute(scanner, queue)
    _mute(scanner, "orders-dlq", "message_too_long")
    scanner.run_due_scan([DLQ_RETENTION_TOO_SHORT])
    counts = [
        (use["queue"], use["findings"], use["checked"], use["unchecked"])
        for use in scanner.read_findings()["mutes"]
    ]
    assert counts == [
        ("orders-dlq", 1, 1, 0),
        ("orders*", 1, 1, 0),
        ("bills", 0, 0, 0),
        # No scan can find it, so the mute is never called stale.
        ("orders-dlq", 0, 0, 1),
    ]


def test_queue_that_could_not_be_read_counts_as_unchecked_so_its_mute_is_not_stale(
    scanner: Scanner,
) -> None:
    dlq_arn = make_short_retention_dlq(scanner)
    start_next_hour(scanner.account)
    _mute(scanner)
    deny_queue_attributes(scanner, dlq_arn)
    scanner.run_due_scan([DLQ_RETENTION_TOO_SHORT])
    (use,) = scanner.read_findings()["mutes"]
    assert (use["checked"], use["unchecked"]) == (0, 1)


def test_two_runs_of_an_hour_add_their_counts_and_keep_all_muted_findings() -> None:
    mute = Mute("q-*", EXPIRES_SOON, "why", TODAY)
    documents = []
    for name in ("q-1", "q-2"):
        result = ScanResult(findings=(_make_finding(name, EXPIRES_SOON),))
        documents.append(apply_mutes(result, [name], [mute], TODAY).document(STARTS_AT))
    merged = merge_documents(*documents)
    assert [finding["queue_arn"][-3:] for finding in merged["muted"]] == ["q-1", "q-2"]
    (use,) = merged["mutes"]
    assert (use["findings"], use["checked"]) == (2, 2)
    # A document of an earlier version has neither.
    earlier = {name: documents[0][name] for name in documents[0].keys() - {"muted", "mutes"}}
    assert merge_documents(earlier, documents[1])["mutes"] == documents[1]["mutes"]


STOPPED = _make_finding("orders", "consumer_stopped")
EXPIRE = _make_finding("orders", "messages_expire")
NO_DLQ = _make_finding("orders", "dlq_missing")
GIVES_WAY_TO = {
    "messages_expire": frozenset({"consumer_stopped"}),
    "dlq_missing": frozenset({"consumer_stopped"}),
}


@pytest.mark.parametrize(
    ("reported", "muted", "waiting"),
    [
        pytest.param([STOPPED, EXPIRE], [], {EXPIRE}, id="nothing is muted"),
        pytest.param([EXPIRE], [STOPPED], set(), id="lost messages do not wait for what is muted"),
        pytest.param([NO_DLQ], [STOPPED], {NO_DLQ}, id="a fix waits for what is muted"),
        pytest.param([NO_DLQ, EXPIRE], [], set(), id="nothing to wait for"),
    ],
)
def test_mute_hides_no_other_symptom_and_lets_no_fix_go_before_its_time(
    reported: list[Finding], muted: Iterable[Finding], waiting: set[Finding]
) -> None:
    assert find_findings_to_wait(reported, muted, GIVES_WAY_TO) == waiting


@pytest.mark.parametrize(
    ("classes", "text"),
    [
        ([], ""),
        ([SeverityClass.HYGIENE, SeverityClass.MAY_LOSE], ""),
        ([SeverityClass.LOSING], "1 muted finding loses or duplicates messages"),
        (
            [SeverityClass.WILL_LOSE, SeverityClass.EXPOSED, SeverityClass.EXPOSED],
            "2 muted findings leave queues open to anyone, 1 muted finding will lose messages",
        ),
    ],
)
def test_harm_of_muted_findings_is_said_if_queues_are_open_or_messages_are_lost(
    classes: list[SeverityClass], text: str
) -> None:
    assert describe_muted_harm(map(str, classes)) == text

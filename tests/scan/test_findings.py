"""Test findings: their requests to heal, their order, and the document of an hour's scan."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.cases.finding import (
    MAXIMUM_FINDINGS_PER_CALL,
    Finding,
    ScanResult,
    count_allowed_last_metrics,
    count_allowed_metrics,
    find_waiting_findings,
    group_into_calls,
    make_heal_request,
    merge_documents,
    read_finding_references,
    scan_order_key,
    start_of_hour,
)

NOW = datetime(2026, 11, 16, 9, 30, 5, tzinfo=UTC)
_FINDINGS = st.builds(
    Finding,
    st.integers(0, 60).map(lambda n: f"arn:aws:sqs:us-east-1:123456789012:q-{n}"),
    st.sampled_from(["slow", "late", "lost"]),
    st.just("because"),
)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.sets(_FINDINGS))
def test_findings_are_sent_to_heal_once_each_in_calls_of_one_symptom_and_limited_size(
    findings: set[Finding],
) -> None:
    calls = list(group_into_calls(sorted(findings)))
    references = []
    for call in calls:
        assert len(call) <= MAXIMUM_FINDINGS_PER_CALL
        symptoms = {finding.symptom for finding in call}
        assert len(symptoms) == 1
        references += read_finding_references(json.loads(make_heal_request(call)))
    assert len(references) == len(findings)
    sent = {(reference.queue_arn, reference.symptom) for reference in references}
    assert sent == {(finding.queue_arn, finding.symptom) for finding in findings}


def _make_finding(name: str, symptom: str, *sources: str) -> Finding:
    prefix = "arn:aws:sqs:us-east-1:123456789012:"
    source_arns = tuple(prefix + source for source in sources)
    return Finding(f"{prefix}{name}", symptom, "because", source_arns)


# The late symptom gives way to the other two, and the lost one to the slow one.
GIVES_WAY_TO = {"late": frozenset({"lost", "slow"}), "lost": frozenset({"slow"})}
LATE_ON_A = _make_finding("a", "late")
LOST_ON_A = _make_finding("a", "lost")
SLOW_ON_A = _make_finding("a", "slow")
LOST_ON_B = _make_finding("b", "lost")
SLOW_ON_B_WITH_SOURCE_A = _make_finding("b", "slow", "a")
LATE_ON_DLQ_OF_A = _make_finding("a-dlq", "late", "a")


@pytest.mark.parametrize(
    ("findings", "waiting"),
    [
        pytest.param([LATE_ON_A, LOST_ON_A], {LATE_ON_A: "lost"}, id="same queue"),
        pytest.param(
            [LATE_ON_A, LOST_ON_A, SLOW_ON_A],
            {LATE_ON_A: "lost", LOST_ON_A: "slow"},
            id="three on the same queue",
        ),
        pytest.param(
            [LATE_ON_A, LOST_ON_B, SLOW_ON_B_WITH_SOURCE_A], {LOST_ON_B: "slow"}, id="the DLQ's"
        ),
        pytest.param([LATE_ON_DLQ_OF_A, LOST_ON_A], {LATE_ON_DLQ_OF_A: "lost"}, id="its source's"),
        pytest.param([LATE_ON_DLQ_OF_A, LOST_ON_B], {}, id="another queue's"),
    ],
)
def test_finding_waits_for_a_symptom_it_gives_way_to_on_the_same_queue_or_its_sources(
    findings: list[Finding], waiting: dict[Finding, str]
) -> None:
    assert find_waiting_findings(findings, GIVES_WAY_TO) == waiting


SLOW_ON_A_AND_B = [SLOW_ON_A, SLOW_ON_B_WITH_SOURCE_A]
LATE_ON_SHARED_DLQ = replace(
    _make_finding("a-dlq", "late", "a", "b"),
    possible_source_arns=(SLOW_ON_A.queue_arn, SLOW_ON_B_WITH_SOURCE_A.queue_arn),
)


@pytest.mark.parametrize("symptoms_of_sources", [[SLOW_ON_A], [SLOW_ON_B_WITH_SOURCE_A], []])
def test_finding_about_arrived_messages_is_sent_if_one_possible_source_shows_no_symptom(
    symptoms_of_sources: list[Finding],
) -> None:
    findings = [LATE_ON_SHARED_DLQ, *symptoms_of_sources]
    assert LATE_ON_SHARED_DLQ not in find_waiting_findings(findings, GIVES_WAY_TO)


def test_finding_about_arrived_messages_waits_if_every_possible_source_shows_a_symptom() -> None:
    waiting = find_waiting_findings([LATE_ON_SHARED_DLQ, *SLOW_ON_A_AND_B], GIVES_WAY_TO)
    assert waiting == {LATE_ON_SHARED_DLQ: "slow"}


def test_finding_about_arrived_messages_does_not_wait_for_a_symptom_without_a_page() -> None:
    silent_finding = replace(SLOW_ON_A, should_page=False)
    findings = [LATE_ON_SHARED_DLQ, silent_finding, SLOW_ON_B_WITH_SOURCE_A]
    assert LATE_ON_SHARED_DLQ not in find_waiting_findings(findings, GIVES_WAY_TO)


def test_finding_about_arrived_messages_does_not_wait_for_a_page_that_itself_waits() -> None:
    """The lost symptom would page, and waits for a slow one that does not."""
    dlq_finding = replace(LATE_ON_SHARED_DLQ, possible_source_arns=(SLOW_ON_A.queue_arn,))
    findings = [dlq_finding, LOST_ON_A, replace(SLOW_ON_A, should_page=False)]
    assert find_waiting_findings(findings, GIVES_WAY_TO) == {LOST_ON_A: "slow"}
    paged_findings = [dlq_finding, LOST_ON_A, SLOW_ON_A]
    assert find_waiting_findings(paged_findings, GIVES_WAY_TO) == {
        LOST_ON_A: "slow",
        dlq_finding: "slow",
    }


def test_finding_about_arrived_messages_does_not_wait_for_a_symptom_of_the_dlq_without_a_page() -> (
    None
):
    own_finding = replace(_make_finding("a-dlq", "lost"), should_page=False)
    findings = [LATE_ON_SHARED_DLQ, own_finding]
    assert LATE_ON_SHARED_DLQ not in find_waiting_findings(findings, GIVES_WAY_TO)
    own_page = replace(own_finding, should_page=True)
    waiting = find_waiting_findings([LATE_ON_SHARED_DLQ, own_page], GIVES_WAY_TO)
    assert waiting == {LATE_ON_SHARED_DLQ: "lost"}


def test_finding_waits_for_no_symptom_that_it_does_not_give_way_to() -> None:
    assert find_waiting_findings([LOST_ON_A, LATE_ON_A], {}) == {}


@given(_JSON)
def test_read_references_accepts_any_json_and_never_returns_too_many(found: Any) -> None:
    assert len(read_finding_references({"found": found})) <= MAXIMUM_FINDINGS_PER_CALL


@given(st.lists(_FINDINGS), st.lists(_FINDINGS))
def test_merged_document_of_two_scans_lists_each_finding_once_in_order(
    first_findings: list[Finding], second_findings: list[Finding]
) -> None:
    first = ScanResult(findings=tuple(first_findings))
    second = ScanResult(findings=tuple(second_findings))
    document = merge_documents(first.document(NOW), second.document(NOW))
    listed = [(finding["queue_arn"], finding["symptom"]) for finding in document["findings"]]
    findings = [*first_findings, *second_findings]
    assert listed == sorted({(finding.queue_arn, finding.symptom) for finding in findings})


def test_merged_document_of_two_scans_adds_counts_and_keeps_the_newest_time_and_levels() -> None:
    newest_levels = {"a": {"backlog": 1}, "b": {"backlog": 2}}
    first = ScanResult(
        queues_scanned=3,
        suspects=2,
        measured=1,
        skip_reason_by_arn={"a": "spent"},
        levels_by_arn={"a": {"backlog": 3}, "b": newest_levels["b"]},
    )
    second = ScanResult(
        queues_scanned=4, suspects=1, measured=1, levels_by_arn={"a": newest_levels["a"]}
    )
    document = merge_documents(first.document(NOW), second.document(NOW + timedelta(minutes=10)))
    assert document["queues_scanned"] == 7
    assert (document["suspects"], document["measured"]) == (3, 2)
    assert document["skipped_for_budget"] == 1
    assert document["queues"] == newest_levels
    assert document["at"].startswith("2026-11-16T09:40")


def test_daily_metric_budget_grows_every_second_hour_from_a_12th_to_the_whole_budget() -> None:
    shares = [count_allowed_metrics(20_000, NOW.replace(hour=hour)) for hour in range(24)]
    assert shares[0] == shares[1] == 20_000 // 12
    assert shares[-1] == 20_000
    assert shares[::2] == shares[1::2] == sorted(set(shares))


def test_budget_of_queues_without_a_sign_leaves_the_next_hours_share_to_suspects() -> None:
    for hour in range(0, 24, 2):
        now = NOW.replace(hour=hour)
        left = count_allowed_metrics(24_000, now) - count_allowed_last_metrics(24_000, now)
        assert left == 1_000


def test_daily_metric_budget_of_zero_allows_no_metric() -> None:
    assert count_allowed_metrics(0, NOW) == 0


def test_scan_order_begins_with_more_than_ten_different_queues_over_a_day() -> None:
    queues = [f"q-{n}" for n in range(50)]
    hours = [start_of_hour(NOW) + timedelta(hours=n) for n in range(24)]
    first_queues = set()
    for hour in hours:
        keys = {scan_order_key(queue, hour): queue for queue in queues}
        first_queues.add(keys[min(keys)])
    assert len(first_queues) > 10

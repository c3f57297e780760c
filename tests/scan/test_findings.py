"""Test findings: their requests to heal, their order, and the document of an hour's scan."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mendq.cases.finding import (
    MAXIMUM_FINDINGS_PER_CALL,
    Finding,
    ScanResult,
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
def test_findings_are_sent_to_heal_once_each_grouped_by_symptom_and_bounded_in_number(
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


def test_finding_waits_for_a_symptom_it_gives_way_to_on_the_same_queue_or_its_sources() -> None:
    before = {"late": frozenset({"lost", "slow"}), "lost": frozenset({"slow"})}
    lost = _make_finding("a", "lost")
    late = _make_finding("a", "late")
    assert find_waiting_findings([late, lost], before) == {late: "lost"}
    assert find_waiting_findings([late, lost, _make_finding("a", "slow")], before) == {
        late: "lost",
        lost: "slow",
    }
    assert find_waiting_findings(
        [late, _make_finding("b", "lost"), _make_finding("b", "slow", "a")], before
    ) == {_make_finding("b", "lost"): "slow"}
    of_source = _make_finding("a-dlq", "late", "a")
    assert find_waiting_findings([of_source, lost], before) == {of_source: "lost"}
    assert find_waiting_findings([of_source, _make_finding("b", "lost")], before) == {}
    assert find_waiting_findings([lost, late], {}) == {}


@given(_JSON)
def test_read_references_accepts_any_json_and_never_returns_too_many(found: Any) -> None:
    assert len(read_finding_references({"found": found})) <= MAXIMUM_FINDINGS_PER_CALL


@given(st.lists(_FINDINGS), st.lists(_FINDINGS))
def test_merged_document_of_two_scans_sums_counts_and_lists_each_finding_once(
    first_findings: list[Finding], second_findings: list[Finding]
) -> None:
    first = ScanResult(
        queues_scanned=3,
        suspects=2,
        measured=1,
        skipped_arns=("a",),
        findings=tuple(first_findings),
    )
    newest_levels = {"a": {"backlog": 1}, "b": {"backlog": 2}}
    first = replace(first, levels_by_arn={"a": {"backlog": 3}, "b": newest_levels["b"]})
    second = ScanResult(queues_scanned=4, suspects=1, measured=1, findings=tuple(second_findings))
    second = replace(second, levels_by_arn={"a": newest_levels["a"]})
    document = merge_documents(first.document(NOW), second.document(NOW + timedelta(minutes=10)))
    assert document["queues_scanned"] == 7
    assert (document["suspects"], document["measured"]) == (3, 2)
    assert document["skipped_for_budget"] == 1
    assert document["queues"] == newest_levels
    assert document["at"].startswith("2026-11-16T09:40")
    listed = [(finding["queue_arn"], finding["symptom"]) for finding in document["findings"]]
    findings = [*first_findings, *second_findings]
    assert listed == sorted({(finding.queue_arn, finding.symptom) for finding in findings})


def test_daily_metric_budget_is_spread_over_the_hours_and_reaches_its_whole_at_the_last() -> None:
    shares = [count_allowed_metrics(20_000, NOW.replace(hour=hour)) for hour in range(24)]
    assert shares[0] == 833
    assert shares[-1] == 20_000
    assert shares == sorted(shares)
    assert count_allowed_metrics(0, NOW) == 0


def test_scan_order_begins_with_another_queue_in_most_hours() -> None:
    queues = [f"q-{n}" for n in range(50)]
    hours = [start_of_hour(NOW) + timedelta(hours=n) for n in range(24)]
    first_queues = set()
    for hour in hours:
        keys = {scan_order_key(queue, hour): queue for queue in queues}
        first_queues.add(keys[min(keys)])
    assert len(first_queues) > 10

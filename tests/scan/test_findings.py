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
def test_heal_is_said_each_once_by_symptom_and_never_too_many(findings: set[Finding]) -> None:
    calls = list(group_into_calls(sorted(findings)))
    assert all(len(each) <= MAXIMUM_FINDINGS_PER_CALL for each in calls)
    assert all(len({finding.symptom for finding in each}) == 1 for each in calls)
    announced = [
        named
        for each in calls
        for named in read_finding_references(json.loads(make_heal_request(each)))
    ]
    said, found = ({(e.queue_arn, e.symptom) for e in each} for each in (announced, findings))
    assert (len(announced), said) == (len(findings), found)


def _found(name: str, symptom: str, *sources: str) -> Finding:
    prefix = "arn:aws:sqs:us-east-1:123456789012:"
    return Finding(f"{prefix}{name}", symptom, "because", tuple(prefix + each for each in sources))


def test_what_gives_way_waits_for_what_is_found_on_the_same_queue_or_its_sources() -> None:
    before = {"late": frozenset({"lost", "slow"}), "lost": frozenset({"slow"})}
    lost, late = _found("a", "lost"), _found("a", "late")
    assert find_waiting_findings([late, lost], before) == {late: "lost"}
    assert find_waiting_findings([late, lost, _found("a", "slow")], before) == {
        late: "lost",
        lost: "slow",
    }
    assert find_waiting_findings([late, _found("b", "lost"), _found("b", "slow", "a")], before) == {
        _found("b", "lost"): "slow"
    }
    of_source = _found("a-dlq", "late", "a")
    assert find_waiting_findings([of_source, lost], before) == {of_source: "lost"}
    assert find_waiting_findings([of_source, _found("b", "lost")], before) == {}
    assert find_waiting_findings([lost, late], {}) == {}


@given(_JSON)
def test_a_request_may_be_anything(found: Any) -> None:
    assert len(read_finding_references({"found": found})) <= MAXIMUM_FINDINGS_PER_CALL


@given(st.lists(_FINDINGS), st.lists(_FINDINGS))
def test_a_round_of_two_scans_counts_both_and_names_each_finding_once(
    one: list[Finding], other: list[Finding]
) -> None:
    first = ScanResult(
        queues_scanned=3, suspects=2, measured=1, skipped_arns=("a",), findings=tuple(one)
    )
    stood = {"a": {"backlog": 1}, "b": {"backlog": 2}}
    first = replace(first, levels_by_arn={"a": {"backlog": 3}, "b": stood["b"]})
    second = ScanResult(queues_scanned=4, suspects=1, measured=1, findings=tuple(other))
    second = replace(second, levels_by_arn={"a": stood["a"]})
    document = merge_documents(first.document(NOW), second.document(NOW + timedelta(minutes=10)))
    assert document["queues_scanned"] == 7
    assert (document["suspects"], document["measured"]) == (3, 2)
    assert document["skipped_for_budget"] == 1
    assert document["queues"] == stood
    assert document["at"].startswith("2026-11-16T09:40")
    named = [(each["queue_arn"], each["symptom"]) for each in document["findings"]]
    assert named == sorted({(each.queue_arn, each.symptom) for each in (*one, *other)})


def test_a_days_metrics_last_the_day() -> None:
    shares = [count_allowed_metrics(20_000, NOW.replace(hour=hour)) for hour in range(24)]
    assert shares[0] == 833
    assert shares[-1] == 20_000
    assert shares == sorted(shares)
    assert count_allowed_metrics(0, NOW) == 0


def test_each_hour_other_queues_come_first() -> None:
    queues = [f"q-{n}" for n in range(50)]
    hours = [start_of_hour(NOW) + timedelta(hours=n) for n in range(24)]
    firsts = {min(queues, key=lambda each: scan_order_key(each, hour)) for hour in hours}
    assert len(firsts) > 10

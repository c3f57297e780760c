"""Heal uses the metrics of the scan that found a symptom, except before a write."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from msgspec import json

from mendq.cases.finding import Finding, make_heal_request
from mendq.cases.measured_facts import LONGEST_AGE, MeasuredFacts, unpack_measured_facts
from mendq.catalogue.consumers.consumer_failing import CONSUMER_FAILING
from mendq.catalogue.symptom import QueueExample
from mendq.catalogue.visibility.visibility_timeout_too_short import VISIBILITY_TIMEOUT_TOO_SHORT
from mendq.heal.batch import heal_findings
from mendq.model.facts import Facts
from mendq.model.state import State
from tests.account.account import Account
from tests.scan.scanner import Scanner, make_failing_queue


@pytest.fixture
def account(scanner: Scanner) -> Account:
    return scanner.account


@pytest.fixture
def billed_queries(account: Account) -> list[Any]:
    """The metrics that CloudWatch was asked for."""
    queries = list[Any]()

    def note(params: Any, **_: Any) -> None:
        queries.extend(params["MetricDataQueries"])

    events = account.clients.cloudwatch.meta.events
    events.register("before-parameter-build.cloudwatch.GetMetricData", note)
    return queries


def _find_example() -> Facts:
    """Return a queue whose metrics show that its timeout is too short, and how long work takes."""
    return next(
        example.facts
        for example in VISIBILITY_TIMEOUT_TOO_SHORT.examples()
        if isinstance(example, QueueExample) and example.facts.tags
    )


def make_finding(account: Account, mode: str) -> Finding:
    """Make a queue without traffic, and a finding whose metrics say that its timeout is short."""
    example = _find_example()
    queue_arn = account.queue(
        "orders", tag=mode, VisibilityTimeout=example.attributes["VisibilityTimeout"]
    )
    account.tag(queue_arn, **example.tags)
    account.later(hours=8)
    assert example.measurement is not None
    measurement = replace(
        example.measurement,
        since=account.now - timedelta(hours=6),
        until=account.now - timedelta(minutes=10),
    )
    measured = MeasuredFacts(account.now, measurement)
    return Finding(queue_arn, VISIBILITY_TIMEOUT_TOO_SHORT.name, "", measured=measured)


def heal(account: Account, finding: Finding) -> Any:
    """Let heal handle the finding as the scan sends it. Return the outcome."""
    request = json.decode(make_heal_request([finding]))
    batch_result = heal_findings(request, account.run())
    assert batch_result.unexpected_errors == []
    (outcome,) = batch_result.outcome_by_group.values()
    return outcome


def test_heal_reads_no_metric_again_if_it_may_only_propose(
    account: Account, billed_queries: list[Any]
) -> None:
    finding = make_finding(account, "propose")
    outcome = heal(account, finding)
    assert outcome.case.state is State.PROPOSED
    assert billed_queries == []


def test_forged_metrics_lead_to_no_write_because_heal_measures_before_it(
    account: Account, billed_queries: list[Any]
) -> None:
    finding = make_finding(account, "heal")
    before = account.visibility(finding.queue_arn)
    outcome = heal(account, finding)
    assert (outcome.case, outcome.refusal.code) == (None, "not_found")
    assert account.visibility(finding.queue_arn) == before
    assert account.clients.metric_count.take() == len(billed_queries) > 0


def test_heal_measures_a_queue_that_was_changed_after_the_scan_read_its_metrics(
    account: Account, billed_queries: list[Any]
) -> None:
    finding = make_finding(account, "propose")
    assert finding.measured is not None
    account.set(finding.queue_arn, DelaySeconds="1")
    account.later(hours=2)
    measured = MeasuredFacts(account.now, finding.measured.measurement)
    outcome = heal(account, replace(finding, measured=measured))
    assert outcome.refusal.code == "not_found"
    assert billed_queries


@pytest.mark.parametrize("age", [LONGEST_AGE + timedelta(seconds=1), timedelta(seconds=-1)])
def test_heal_measures_if_the_scans_metrics_are_old_or_from_the_future(
    account: Account, billed_queries: list[Any], age: timedelta
) -> None:
    finding = make_finding(account, "propose")
    assert finding.measured is not None
    measured = MeasuredFacts(account.now - age, finding.measured.measurement)
    assert heal(account, replace(finding, measured=measured)).refusal.code == "not_found"
    assert billed_queries


@pytest.mark.parametrize("text", ["", "no base64", "AAAA", "eJwDAAAAAAE="])
def test_heal_ignores_a_field_of_the_finding_that_is_not_packed_metrics(text: str) -> None:
    assert unpack_measured_facts(text) is None


def test_metrics_of_a_finding_survive_the_way_to_heal(account: Account) -> None:
    finding = make_finding(account, "propose")
    assert unpack_measured_facts(finding.reference.measured) == finding.measured


def test_scan_hands_its_metrics_to_heal_which_asks_cloudwatch_for_nothing(
    scanner: Scanner, billed_queries: list[Any]
) -> None:
    queue_arn = make_failing_queue(scanner)
    scanner.run_due_scan([CONSUMER_FAILING])
    assert scanner.list_announced_faults() == [(queue_arn, CONSUMER_FAILING.name)]
    asked_by_scan = len(billed_queries)
    ((outcome,),) = [batch.outcome_by_group.values() for batch in scanner.heal()]
    assert outcome.case is not None
    assert len(billed_queries) == asked_by_scan

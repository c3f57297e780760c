"""Test the first scans of an account in which many queues have configuration faults."""

from __future__ import annotations

from collections import Counter
from unittest.mock import Mock

import pytest
from msgspec import structs

from mendq.aws.errors import FactsUnavailable
from mendq.catalogue.configuration.alarm_missing import ALARM_MISSING
from mendq.model.limits import Limits
from mendq.model.queue import RedrivePolicy
from mendq.scan.selection import MAXIMUM_NEW_FAULTS_PER_DAY
from tests.scan.scanner import Scanner, make_measured_queues, make_slow_symptom, start_next_hour


def test_first_scan_of_60_queues_with_configuration_faults_proposes_ten_and_pages_nobody(
    scanner: Scanner,
) -> None:
    """Each queue has several faults. A rollout must not count as a mass symptom."""
    account = scanner.account
    for n in range(20):
        dead = account.queue(f"q-{n:02}-dlq", tag="propose", MessageRetentionPeriod="345600")
        account.queue(f"q-{n:02}", tag="propose", RedrivePolicy=RedrivePolicy(dead, 1).text)
        account.queue(f"r-{n:02}", tag="Heal", SqsManagedSseEnabled="false")
    start_next_hour(account)
    done = scanner.run_due_scan()
    symptoms = Counter(finding.symptom for finding in done.findings)
    assert symptoms["alarm_missing"] == symptoms["tls_not_enforced"] == 60
    assert symptoms["tag_not_understood"] == symptoms["dlq_retention_too_short"] == 20
    assert len(scanner.list_announced_faults()) == MAXIMUM_NEW_FAULTS_PER_DAY
    states = [
        str(outcome.case.state)
        for healed in scanner.heal()
        for outcome in healed.outcome_by_group.values()
        if outcome.case
    ]
    assert states == ["proposed"] * MAXIMUM_NEW_FAULTS_PER_DAY
    assert account.pages("urgent") == [], "nor of a mass symptom"
    assert len(account.pages("info")) == MAXIMUM_NEW_FAULTS_PER_DAY


def test_findings_document_lists_queues_that_were_not_read_and_queues_skipped_for_the_budget(
    scanner: Scanner, monkeypatch: pytest.MonkeyPatch
) -> None:
    queues = make_measured_queues(scanner, 3)
    scanner.account.settings = structs.replace(
        scanner.account.settings, limits=Limits(scan_metrics_per_day=0)
    )
    denial = FactsUnavailable("CloudWatch does not let us" + "." * 400)
    monkeypatch.setattr("mendq.aws.facts_reader.read_alarmed_metrics", Mock(side_effect=denial))
    done = scanner.run_due_scan([make_slow_symptom(), ALARM_MISSING])
    document = scanner.read_findings()
    assert document["skipped"] == sorted(done.skipped_arns) == sorted(queues)
    assert document["not_looked_at"].keys() == set(queues)
    assert {len(reason) for reason in document["not_looked_at"].values()} == {300}

"""What is wrong with many configurations: told of slowly, looked up once, and said where not."""

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


def test_a_first_rollout_with_many_faults_of_configuration_is_no_mass_symptom(
    scanner: Scanner,
) -> None:
    """Sixty queues, each with several: a few cases a day, whatever the symptoms, and no page."""
    account = scanner.account
    for n in range(20):
        dead = account.queue(f"q-{n:02}-dlq", tag="propose", MessageRetentionPeriod="345600")
        account.queue(f"q-{n:02}", tag="propose", RedrivePolicy=RedrivePolicy(dead, 1).text)
        account.queue(f"r-{n:02}", tag="Heal", SqsManagedSseEnabled="false")
    start_next_hour(account)
    done = scanner.run_due_scan()
    found = Counter(finding.symptom for finding in done.findings)
    assert found["alarm_missing"] == found["tls_not_enforced"] == 60
    assert found["tag_not_understood"] == found["dlq_retention_too_short"] == 20
    assert len(scanner.list_announced_faults()) == MAXIMUM_NEW_FAULTS_PER_DAY
    fixed = [each for healed in scanner.heal() for each in healed.outcome_by_group.values()]
    assert [str(each.case.state) for each in fixed if each.case] == [
        "proposed"
    ] * MAXIMUM_NEW_FAULTS_PER_DAY
    assert account.pages("urgent") == [], "nor of a mass symptom"
    assert len(account.pages("info")) == MAXIMUM_NEW_FAULTS_PER_DAY


def test_a_round_says_what_it_did_not_look_at_and_did_not_measure(
    scanner: Scanner, monkeypatch: pytest.MonkeyPatch
) -> None:
    queues = make_measured_queues(scanner, 3)
    scanner.account.settings = structs.replace(
        scanner.account.settings, limits=Limits(scan_metrics_per_day=0)
    )
    refuses = FactsUnavailable("CloudWatch does not let us" + "." * 400)
    monkeypatch.setattr("mendq.aws.facts_reader.read_alarmed_metrics", Mock(side_effect=refuses))
    done = scanner.run_due_scan([make_slow_symptom(), ALARM_MISSING])
    document = scanner.read_findings()
    assert document["skipped"] == sorted(done.skipped_arns) == sorted(queues)
    assert document["not_looked_at"].keys() == set(queues)
    assert {len(each) for each in document["not_looked_at"].values()} == {300}

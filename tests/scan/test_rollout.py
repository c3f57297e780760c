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

FOUR_DAYS_SECONDS = 345_600
# The mode tag's values are lower-case, so this one means observe.
MISSPELLED_MODE = "Heal"


def make_queues_with_configuration_faults(scanner: Scanner, *, share_retention: bool) -> None:
    """Make 60 queues that have several configuration faults each.

    Twenty of them are DLQs. They keep messages too briefly: all for the same time if
    `share_retention` is True, or each for another time.
    """
    account = scanner.account
    for number in range(20):
        retention = FOUR_DAYS_SECONDS if share_retention else FOUR_DAYS_SECONDS - number
        dlq_arn = account.queue(
            f"q-{number:02}-dlq", tag="propose", MessageRetentionPeriod=f"{retention}"
        )
        account.queue(f"q-{number:02}", tag="propose", RedrivePolicy=RedrivePolicy(dlq_arn, 1).text)
        account.queue(f"r-{number:02}", tag=MISSPELLED_MODE, SqsManagedSseEnabled="false")
    start_next_hour(account)


def test_first_scan_lists_every_configuration_fault_and_passes_ten_a_day_on(
    scanner: Scanner,
) -> None:
    make_queues_with_configuration_faults(scanner, share_retention=False)
    done = scanner.run_due_scan()
    symptoms = Counter(finding.symptom for finding in done.findings)
    assert symptoms["alarm_missing"] == symptoms["tls_not_enforced"] == 60
    assert symptoms["tag_not_understood"] == symptoms["dlq_retention_too_short"] == 20
    assert len(scanner.list_announced_faults()) == MAXIMUM_NEW_FAULTS_PER_DAY


def test_first_scan_of_60_queues_with_configuration_faults_makes_ten_proposals_and_pages_nobody(
    scanner: Scanner,
) -> None:
    """A rollout must not count as a symptom that many queues show at once."""
    make_queues_with_configuration_faults(scanner, share_retention=False)
    scanner.run_due_scan()
    states = [
        str(outcome.case.state)
        for healed in scanner.heal()
        for outcome in healed.outcome_by_group.values()
        if outcome.case
    ]
    assert states == ["proposed"] * MAXIMUM_NEW_FAULTS_PER_DAY
    assert scanner.account.pages("urgent") == []
    assert len(scanner.account.pages("info")) == MAXIMUM_NEW_FAULTS_PER_DAY


def test_first_scan_of_20_dlqs_with_one_wrong_retention_sends_one_proposal_for_all_of_them(
    scanner: Scanner,
) -> None:
    """A shared default counts as one of the ten new faults of a day."""
    make_queues_with_configuration_faults(scanner, share_retention=True)
    scanner.run_due_scan()
    assert len(scanner.list_announced_faults()) == 20
    states = [
        str(outcome.case.state)
        for healed in scanner.heal()
        for outcome in healed.outcome_by_group.values()
        if outcome.case
    ]
    assert states == ["proposed"] * 20
    assert scanner.account.pages("urgent") == []
    assert len(scanner.account.pages("info")) == 1


def test_scan_without_a_metric_budget_lists_every_suspect_queue_as_skipped(
    scanner: Scanner,
) -> None:
    queue_arns = make_measured_queues(scanner, 3)
    limits = Limits(scan_metrics_per_day=0)
    scanner.account.settings = structs.replace(scanner.account.settings, limits=limits)
    done = scanner.run_due_scan([make_slow_symptom()])
    assert sorted(done.skipped_arns) == sorted(queue_arns)
    assert scanner.read_findings()["skipped"] == sorted(queue_arns)


def test_scan_lists_queues_whose_alarms_it_may_not_read_with_a_shortened_reason(
    scanner: Scanner, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue_arns = make_measured_queues(scanner, 3)
    denial = FactsUnavailable("CloudWatch does not let us" + "." * 400)
    monkeypatch.setattr("mendq.aws.facts_reader.read_alarmed_metrics", Mock(side_effect=denial))
    scanner.run_due_scan([ALARM_MISSING])
    reason_by_arn = scanner.read_findings()["not_looked_at"]
    assert reason_by_arn.keys() == set(queue_arns)
    for reason in reason_by_arn.values():
        assert reason == str(denial)[:300]

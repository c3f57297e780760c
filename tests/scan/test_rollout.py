"""What is wrong with many configurations: told of slowly, looked up once, and said where not."""

from __future__ import annotations

from unittest.mock import Mock

import pytest
from msgspec import structs

from mendq.aws.errors import FactsUnavailable
from mendq.cases.finding import Scanned, added_to
from mendq.catalogue.alarm_missing import ALARM_MISSING
from mendq.catalogue.examples import AT
from mendq.heal.repeats import NEW_FAULTS_A_DAY
from mendq.model.limits import Limits
from mendq.model.queue import Redrive
from tests.scan.scanning import Scanning, an_hour_on
from tests.scan.test_scan import measured_queues, slow


def test_a_first_rollout_with_many_faults_of_configuration_is_no_mass_symptom(
    scanned: Scanning,
) -> None:
    """Sixty queues, each with several: a few cases a day, whatever the symptoms, and no page."""
    account = scanned.account
    for n in range(20):
        dead = account.queue(f"q-{n:02}-dlq", tag="propose", MessageRetentionPeriod="345600")
        account.queue(f"q-{n:02}", tag="propose", RedrivePolicy=Redrive(dead, 1).text)
        account.queue(f"r-{n:02}", tag="Heal", SqsManagedSseEnabled="false")
    an_hour_on(account)
    done = scanned.done()
    found = done.by_symptom()
    assert found["alarm_missing"] == found["tls_not_enforced"] == 60
    assert found["tag_not_understood"] == found["dlq_retention_too_short"] == 20
    assert len(scanned.named()) == NEW_FAULTS_A_DAY
    fixed = [each for healed in scanned.heal() for each in healed.fixed.values()]
    assert [str(each.case.state) for each in fixed if each.case] == ["proposed"] * NEW_FAULTS_A_DAY
    assert account.pages("urgent") == [], "nor of a mass symptom"
    assert len(account.pages("info")) == NEW_FAULTS_A_DAY


def test_alarms_are_listed_once_a_round_for_all_queues(scanned: Scanning) -> None:
    asked = list[str]()
    events = scanned.account.clients.cloudwatch.meta.events
    events.register("before-call.cloudwatch.DescribeAlarms", lambda model, **_: asked.append(model))
    for n in range(5):
        scanned.account.queue(f"q-{n}")
    done = scanned.done()
    assert done.by_symptom()["alarm_missing"] == 5
    assert len(asked) == 1


def test_a_round_says_what_it_did_not_look_at_and_did_not_measure(
    scanned: Scanning, monkeypatch: pytest.MonkeyPatch
) -> None:
    queues = measured_queues(scanned, 3)
    scanned.account.settings = structs.replace(
        scanned.account.settings, limits=Limits(scan_metrics_per_day=0)
    )
    refuses = FactsUnavailable("CloudWatch does not let us" + "." * 400)
    monkeypatch.setattr("mendq.scan.reader.queue_alarms", Mock(side_effect=refuses))
    done = scanned.done([slow(), ALARM_MISSING])
    document = scanned.findings()
    assert document["skipped"] == sorted(done.skipped) == sorted(queues)
    assert document["not_looked_at"].keys() == set(queues)
    assert {len(each) for each in document["not_looked_at"].values()} == {300}


def test_a_round_of_two_scans_says_both() -> None:
    first = Scanned(skipped=("a",), failed={"b": ValueError("it"), "c": ValueError("first")})
    second = Scanned(skipped=("d",), failed={"c": ValueError("then")})
    document = added_to(first.document(AT), second.document(AT))
    assert (document["skipped"], document["skipped_for_budget"]) == (["a", "d"], 2)
    assert document["not_looked_at"] == {"b": "it", "c": "then"}
    older = {"findings": [], "failed": 1}
    assert added_to(older, second.document(AT))["skipped"] == ["d"], "a version before"

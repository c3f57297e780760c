"""What people hear of while Mendq only watches: what is broken and only they can fix."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from mendq.cases.record import Notification
from mendq.catalogue import CATALOGUE
from mendq.catalogue.symptom import CallNearMiss, Symptom
from mendq.heal.decide import RecordTransition, decide
from mendq.model.case import Case
from mendq.model.evidence import Evidence, Sighting
from mendq.model.facts import Facts
from mendq.model.limits import Limits
from mendq.model.mode import Mode
from mendq.model.plan import Refusal
from mendq.model.state import State
from tests.account.account import Account
from tests.heal.builders import (
    fail_calls_before_each_rewrite,
    list_refusal_codes,
    make_late_deletes,
)
from tests.heal.situations import NOW, make_read_situation

# What ships with a remedy, and pages all the same where that is used up or in somebody's hands.
REMEDY_OF_NO_USE = {
    ("dlq_source_not_allowed", "denied_to_all"),
    ("dlq_source_not_allowed", "too_many_sources"),
    ("dlq_missing", "name_taken"),
    ("dlq_missing", "names_a_quarantine"),
    ("empty_receives", "already_long_polling"),
    ("fifo_group_blocked", "waits_for_dlq"),
    ("fifo_throttled", "high_throughput_already"),
    ("fifo_throttled", "high_throughput_unknown"),
    ("kms_throttled", "reuse_at_maximum"),
    ("messages_about_to_expire", "retention_at_its_longest"),
}


def _facts_of(entry: Symptom) -> Iterator[Facts]:
    """Of all its examples, those that must not be touched among them, as calls and scans do."""
    for example in entry.examples():
        if not isinstance(example, CallNearMiss) and example.facts is not None:
            yield example.facts
            found = entry.detection and entry.detection.detect(example.facts)
            if found:
                yield replace(example.facts, found=found.because)


def _announced(facts: Facts, entry: Symptom) -> tuple[Case, Notification] | None:
    """What is decided to be written down, and told, while Mendq only watches."""
    found = (Sighting.from_scan(NOW),)
    decision = decide(
        make_read_situation(
            symptom=entry,
            facts=facts,
            evidence=Evidence(found),
            fresh_sightings=found,
            mode=Mode.OBSERVE,
        )
    )
    if not isinstance(decision, RecordTransition):
        return None
    return decision.case, decision.notification


def test_observe_mode_notifies_only_about_symptoms_that_people_alone_can_fix() -> None:
    every = (
        _announced(facts, entry) for entry in CATALOGUE if entry.plan for facts in _facts_of(entry)
    )
    announced = [each for each in every if each]
    assert {case.state for case, _ in announced} == {State.OBSERVED, State.REFUSED, State.ESCALATED}
    loud = [(case, page) for case, page in announced if page.severity is not None]
    assert {case.state for case, _ in loud} == {State.ESCALATED}
    open_cases = {case.transition for case, _ in announced if case.state is State.ESCALATED}
    assert open_cases == {case.transition for case, _ in loud}, "each rings the alarm as well"
    ways = {(page.symptom, case.code) for case, page in loud}
    remedied = {(each.name, code) for each, code in ways if each and not each.notifies_anyway}
    assert remedied == REMEDY_OF_NO_USE


def test_symptoms_that_only_notify_escalate_in_every_mode() -> None:
    for entry in CATALOGUE:
        if entry.plan is None or not entry.notifies_anyway:
            continue
        answers = [entry.plan(each, Limits()) for each in _facts_of(entry)]
        refusals = [each for each in answers if isinstance(each, Refusal)]
        assert any(each.case_state is State.ESCALATED for each in refusals), entry.name
        assert not any(each.silent_in_observe for each in refusals), entry.name


def test_queue_rewritten_six_times_a_day_notifies_nobody_in_observe_mode(account: Account) -> None:
    queue = account.queue(tag="observe", VisibilityTimeout="30")
    assert fail_calls_before_each_rewrite(account, queue, 6, minutes=4) == [
        "before_last_change"
    ] * 5 + ["keeps_changing"]
    (case,) = account.transitions()
    assert (case["to"], case["notified"]) == ("refused", False)
    assert "changed 6 times within 24 hours" in case["reason"]
    assert account.pages("urgent") == account.pages("info") == []
    account.tag(queue, mendq="propose")
    assert fail_calls_before_each_rewrite(account, queue, 1, minutes=4) == ["keeps_changing"]
    assert account.transitions()[-1]["to"] == "escalated", "heard as soon as Mendq may ask"
    assert len(account.pages("urgent")) == 1


def _many(account: Account, tag: str, **attributes: str) -> list[str]:
    return [account.queue(f"q{n}.fifo", tag=tag, **attributes) for n in range(4)]


def test_mass_symptom_that_mendq_could_fix_notifies_nobody_in_observe_mode(
    account: Account,
) -> None:
    queues = _many(account, "observe", VisibilityTimeout="10")
    assert (
        list_refusal_codes(account.heal(make_late_deletes(account, queues))) == ["mass_symptom"] * 4
    )
    assert {each["to"] for each in account.transitions()} == {"refused"}
    assert account.pages("urgent") == account.pages("info") == []
    account.tag(queues[0], mendq="propose")
    account.later(minutes=40)
    again = account.late_deletes(queues[0], "d", "e", "f")
    assert list_refusal_codes(account.heal(again)) == ["mass_symptom"]
    assert len(account.pages("urgent")) == 1, "Mendq may ask of one of them by now"


@pytest.mark.parametrize(
    ("code", "reuse_seconds"), [("KmsThrottled", "3600"), ("KmsAccessDenied", "300")]
)
def test_mass_symptom_that_only_people_can_fix_sends_one_urgent_notification_in_observe_mode(
    account: Account, code: str, reuse_seconds: str
) -> None:
    key = {"KmsMasterKeyId": "alias/orders", "KmsDataKeyReusePeriodSeconds": reuse_seconds}
    over = {"errorCode": code, "errorMessage": "", "eventName": "SendMessage"}
    bodies = make_late_deletes(account, _many(account, "observe", **key), **over)
    assert list_refusal_codes(account.heal(bodies)) == ["mass_symptom"] * 4
    ((subject, _),) = account.pages("urgent")
    assert "4 of 4 queues" in subject

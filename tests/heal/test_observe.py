"""Notifications in observe mode."""

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
from tests.catalogue.entry_checks import SYMPTOMS_THAT_NEVER_PAGE
from tests.heal.builders import (
    fail_calls_before_each_rewrite,
    list_refusal_codes,
    make_late_deletes,
)
from tests.heal.situations import NOW, make_read_situation

# Symptoms with a fix that notify people nevertheless if the fix is exhausted or up to a person.
REMEDY_OF_NO_USE = {
    ("dlq_source_not_allowed", "denied_to_all"),
    ("dlq_source_not_allowed", "too_many_sources"),
    ("dlq_missing", "name_taken"),
    ("dlq_missing", "names_a_quarantine"),
    ("dlq_missing", "receiver_unconfirmed"),
    ("empty_receives", "already_long_polling"),
    ("fifo_group_blocked", "waits_for_dlq"),
    ("fifo_throttled", "high_throughput_already"),
    ("fifo_throttled", "high_throughput_unknown"),
    ("kms_throttled", "reuse_at_maximum"),
    ("mapping_refused", "queue_rolled_back"),
    ("messages_about_to_expire", "retention_at_its_longest"),
}


def _iterate_facts(entry: Symptom) -> Iterator[Facts]:
    """Yield the facts of every example of the symptom, as failed calls and as scans report them."""
    for example in entry.examples():
        if not isinstance(example, CallNearMiss) and example.facts is not None:
            yield example.facts
            found = entry.detection and entry.detection.detect(example.facts)
            if found:
                yield replace(example.facts, found=found.because)


def _decide_in_observe_mode(facts: Facts, entry: Symptom) -> tuple[Case, Notification] | None:
    """Return the case and the notification that observe mode leads to, or None."""
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


def _list_decisions_in_observe_mode() -> list[tuple[Case, Notification]]:
    decisions = []
    for entry in CATALOGUE:
        if not entry.plan:
            continue
        for facts in _iterate_facts(entry):
            decision = _decide_in_observe_mode(facts, entry)
            if decision:
                decisions.append(decision)
    return decisions


def test_observe_mode_notifies_only_about_escalated_cases_that_people_alone_can_fix() -> None:
    announced = _list_decisions_in_observe_mode()
    assert {case.state for case, _ in announced} == {State.OBSERVED, State.REFUSED, State.ESCALATED}
    loud = [
        (case, notification)
        for case, notification in announced
        if notification.severity is not None
    ]
    assert {case.state for case, _ in loud} == {State.ESCALATED}
    open_cases = {case.transition for case, _ in announced if case.state is State.ESCALATED}
    assert open_cases == {case.transition for case, _ in loud}, "each rings the alarm as well"
    loud_fixes = {
        (notification.symptom.name, case.code)
        for case, notification in loud
        if notification.symptom and not notification.symptom.notifies_anyway
    }
    assert loud_fixes == REMEDY_OF_NO_USE


def test_symptoms_without_a_fix_escalate_and_are_not_silent_in_observe_mode() -> None:
    for entry in CATALOGUE:
        if (
            entry.plan is None
            or not entry.notifies_anyway
            or entry.name in SYMPTOMS_THAT_NEVER_PAGE
        ):
            continue
        answers = [entry.plan(facts, Limits()) for facts in _iterate_facts(entry)]
        refusals = [answer for answer in answers if isinstance(answer, Refusal)]
        assert any(refusal.case_state is State.ESCALATED for refusal in refusals), entry.name
        assert not any(refusal.silent_in_observe for refusal in refusals), entry.name


def test_queue_rewritten_six_times_a_day_notifies_in_propose_but_not_in_observe(
    account: Account,
) -> None:
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


def _make_four_queues(account: Account, tag: str, **attributes: str) -> list[str]:
    return [account.queue(f"q{n}.fifo", tag=tag, **attributes) for n in range(4)]


def test_mass_symptom_that_mendq_could_fix_notifies_in_propose_but_not_in_observe_mode(
    account: Account,
) -> None:
    queues = _make_four_queues(account, "observe", VisibilityTimeout="10")
    assert (
        list_refusal_codes(account.heal(make_late_deletes(account, queues))) == ["mass_symptom"] * 4
    )
    assert {transition["to"] for transition in account.transitions()} == {"refused"}
    assert account.pages("urgent") == account.pages("info") == []
    account.tag(queues[0], mendq="propose")
    account.later(minutes=40)
    again = account.late_deletes(queues[0], "d", "e", "f")
    assert list_refusal_codes(account.heal(again)) == ["mass_symptom"]
    assert len(account.pages("urgent")) == 1, "one of the queues is in propose mode by now"


@pytest.mark.parametrize(
    ("code", "reuse_seconds"), [("KmsThrottled", "3600"), ("KmsAccessDenied", "300")]
)
def test_mass_symptom_that_people_must_fix_notifies_once_in_observe_mode(
    account: Account, code: str, reuse_seconds: str
) -> None:
    key = {"KmsMasterKeyId": "alias/orders", "KmsDataKeyReusePeriodSeconds": reuse_seconds}
    over = {"errorCode": code, "errorMessage": "", "eventName": "SendMessage"}
    bodies = make_late_deletes(account, _make_four_queues(account, "observe", **key), **over)
    assert list_refusal_codes(account.heal(bodies)) == ["mass_symptom"] * 4
    ((subject, _),) = account.pages("urgent")
    assert "4 of 4 queues" in subject

"""DLQ messages that wait for a redrive, from the scan's finding to the approved case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from types import MappingProxyType
from typing import Any

from msgspec import structs

from mendq.cases.transactions import NewTransition
from mendq.cases.view import CaseStoreView
from mendq.catalogue.examples import case
from mendq.heal.resume import continue_case
from mendq.model.mode import Mode
from mendq.model.queue import RedrivePolicy
from mendq.model.state import State
from tests.account.change_calendar import CLOSED_BECAUSE, ChangeCalendar
from tests.heal.operators import make_owner_run
from tests.scan.scanner import Scanner

WAITING = "dlq_messages_waiting"
RACE = "visibility_timeout_too_short"
A_DAY = 86_400


def make_queues_with_dlq_messages(
    scanner: Scanner,
    days: int = 14,
    hours_old: Mapping[str, int] = MappingProxyType({"orders": 5}),
) -> dict[str, tuple[str, str]]:
    """Make queues with two messages in each DLQ. A fix for their cause is applied after a day."""
    account = scanner.account
    made = dict[str, tuple[str, str]]()
    for name in hours_old:
        retained = str(days * A_DAY)
        dead = account.queue(f"{name}-dlq", tag="heal", MessageRetentionPeriod=retained)
        source = account.queue(name, tag="heal", RedrivePolicy=RedrivePolicy(dead, 5).text)
        made[name] = source, dead
        for body in ("one", "two"):
            account.clients.sqs.send_message(QueueUrl=account.url(dead), MessageBody=body)
    account.later(days=1)
    for name, (source, dead) in made.items():
        fixed = case(RACE, State.APPLIED, State.WATCHING, queue_arn=source)
        fixed = replace(fixed, at=account.now, opened_at=account.now)
        until = account.now + timedelta(days=2)
        account.run().case_store.record(NewTransition(fixed, CaseStoreView(), "o", "o", {}, until))
        record_dlq_metrics(scanner, dead, hours_old[name], source)
    return made


def record_dlq_metrics(scanner: Scanner, dead: str, hours_old: float = 5, source: str = "") -> None:
    """Record CloudWatch's depth and age of the DLQ, and the deletes at its source."""
    for minutes in (330, 90, 10):
        at = scanner.account.now - timedelta(minutes=minutes)
        scanner.put_metrics(dead, at, visible=2, age=max(int(3600 * hours_old - 60 * minutes), 0))
        if source:
            scanner.put_metrics(source, at, deleted=3_600)


def scan_and_list_cases(scanner: Scanner) -> list[dict[str, Any]]:
    """Scan, let heal handle the findings, and list the case's transitions."""
    scanner.scan()
    for healed in scanner.heal():
        assert healed.error_by_message_id == {}
    return [
        transition
        for transition in scanner.account.transitions()
        if transition["symptom"] == WAITING
    ]


def test_scan_sends_dlq_findings_to_heal_with_the_soonest_expiring_messages_first(
    scanner: Scanner,
) -> None:
    made = make_queues_with_dlq_messages(scanner, hours_old={"a": 3, "b": 5, "c": 4})
    scanner.scan()
    announced = [arn for arn, symptom in scanner.list_announced_faults() if symptom == WAITING]
    assert announced == [made[name][1] for name in ("b", "c", "a")]


def test_findings_file_names_the_seconds_left_only_for_messages_that_wait_in_a_dlq(
    scanner: Scanner,
) -> None:
    ((_, dlq),) = make_queues_with_dlq_messages(scanner, hours_old={"orders": 5}).values()
    scanner.scan()
    findings = scanner.read_findings()["findings"]
    (waiting,) = [finding for finding in findings if finding["symptom"] == WAITING]
    assert waiting["queue_arn"] == dlq
    assert 0 < waiting["seconds_left"] < 14 * A_DAY
    others = [finding for finding in findings if finding["symptom"] != WAITING]
    assert others
    assert not any("seconds_left" in other for other in others)


def test_approved_redrive_waits_while_a_consumer_takes_dlq_messages_and_keeps_its_steps(
    scanner: Scanner,
) -> None:
    """With other steps every approval would expire, because the plan has changed."""
    make_queues_with_dlq_messages(scanner, days=5)
    settings = structs.replace(scanner.account.settings, autonomy={WAITING: Mode.HEAL})
    scanner.account.settings = settings
    (made,) = scan_and_list_cases(scanner)
    assert made["to"] == "approved", "settings let it be done without a person"
    scanner.account.later(minutes=1)
    dead = made["queue_arn"]
    now = scanner.account.now
    scanner.put_metrics(dead, now - timedelta(minutes=5), deleted=1, visible=2)
    request = {"case_id": made["case_id"], "queue_arn": dead, "symptom": WAITING}
    outcome = continue_case(request, make_owner_run(WAITING, scanner.account))
    assert outcome.refusal is not None
    assert (outcome.refusal.code, outcome.case) == ("messages_are_taken", None), "it waits"
    scanner.account.later(minutes=16)
    outcome = continue_case(request, make_owner_run(WAITING, scanner.account))
    assert outcome.refusal is None
    assert outcome.case is not None
    assert outcome.case.state is State.APPLIED
    assert [step["attribute"] for step in made["steps"]] == ["Dlq", "MessageRetentionPeriod"]
    assert list(outcome.case.steps) == made["steps"]
    attributes = scanner.account.attributes(made["queue_arn"])
    assert attributes["MessageRetentionPeriod"] == "1209600"
    assert attributes["ApproximateNumberOfMessages"] == "2", "the start moves no message"


def add_failing_source(scanner: Scanner, dead: str) -> str:
    """Let a second queue share the DLQ. A case says that its consumer fails."""
    account = scanner.account
    billing = account.queue("billing", tag="heal", RedrivePolicy=RedrivePolicy(dead, 5).text)
    fails = case("consumer_failing", State.ESCALATED, queue_arn=billing)
    fails = replace(fails, at=account.now, opened_at=account.now)
    until = account.now + timedelta(days=2)
    account.run().case_store.record(NewTransition(fails, CaseStoreView(), "o", "o", {}, until))
    return billing


def test_redrive_of_a_shared_dlq_starts_without_a_person_for_the_source_that_is_fixed(
    scanner: Scanner,
) -> None:
    ((source, dead),) = make_queues_with_dlq_messages(scanner).values()
    add_failing_source(scanner, dead)
    settings = structs.replace(scanner.account.settings, autonomy={WAITING: Mode.HEAL})
    scanner.account.settings = settings
    (made,) = scan_and_list_cases(scanner)
    assert (made["to"], made["queue_arn"]) == ("approved", dead)
    assert [(step["attribute"], step["after"]) for step in made["steps"]] == [("Dlq", source)]
    assert "Messages of billing stay" in made["reason"]
    scanner.account.later(minutes=1)
    request = {"case_id": made["case_id"], "queue_arn": dead, "symptom": WAITING}
    outcome = continue_case(request, make_owner_run(WAITING, scanner.account))
    assert outcome.refusal is None
    assert outcome.case is not None
    assert outcome.case.state is State.APPLIED


def test_approved_redrive_starts_only_after_the_change_calendar_opens(scanner: Scanner) -> None:
    make_queues_with_dlq_messages(scanner, days=5)
    settings = structs.replace(scanner.account.settings, autonomy={WAITING: Mode.HEAL})
    scanner.account.settings = settings
    (made,) = scan_and_list_cases(scanner)
    assert made["to"] == "approved"
    scanner.account.later(minutes=1)
    request = {"case_id": made["case_id"], "queue_arn": made["queue_arn"], "symptom": WAITING}
    before = scanner.account.attributes(made["queue_arn"])
    calendar = ChangeCalendar(scanner.account)
    outcome = continue_case(request, make_owner_run(WAITING, scanner.account))
    assert outcome.refusal is not None
    assert (outcome.refusal.code, outcome.case) == ("frozen", None)
    assert CLOSED_BECAUSE in outcome.refusal.reason
    assert scanner.account.attributes(made["queue_arn"]) == before
    assert len(scan_and_list_cases(scanner)) == 1
    calendar.state = "OPEN"
    outcome = continue_case(request, make_owner_run(WAITING, scanner.account))
    assert outcome.case is not None
    assert outcome.case.state is State.APPLIED


def test_redrive_approved_by_settings_expires_if_the_source_now_requires_a_proposal(
    scanner: Scanner,
) -> None:
    """The steps are the same, but the source's owner set its tag to propose since."""
    ((source, dead),) = make_queues_with_dlq_messages(scanner, days=5).values()
    settings = structs.replace(scanner.account.settings, autonomy={WAITING: Mode.HEAL})
    scanner.account.settings = settings
    (made,) = scan_and_list_cases(scanner)
    assert made["to"] == "approved"
    assert "settings let redrive do it without a person" in made["reason"]
    scanner.account.later(minutes=1)
    scanner.account.tag(source, mendq="propose")
    before = scanner.account.attributes(dead)
    request = {"case_id": made["case_id"], "queue_arn": dead, "symptom": WAITING}
    outcome = continue_case(request, make_owner_run(WAITING, scanner.account))
    assert outcome.refusal is not None
    assert outcome.refusal.code == "not_by_itself"
    assert outcome.case is not None
    assert outcome.case.state is State.EXPIRED
    assert scanner.account.attributes(dead) == before

"""A probe is stored, sent, seen by heal, and reported if it is lost."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ConnectTimeoutError
from msgspec.structs import replace

from mendq.aws.errors import (
    CaseStoreUnavailable,
    ProbeNotSent,
)
from mendq.model.settings import ProbeSettings
from mendq.probe.probe import PROBE_QUEUE_NAME, Probe
from mendq.probe.send import ProbeRecord, send_probe
from tests.account.account import ACCOUNT, PROBE_ROLE, Account
from tests.scan.scanner import deny_operation

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
TEXT = (
    "The queue should either have ContentBasedDeduplication enabled "
    "or MessageDeduplicationId provided explicitly"
)


@dataclass
class ProbeLambdas:
    """The probe Lambda and heal, each doing its part of a probe."""

    account: Account
    settings: ProbeSettings
    queue_arn: str

    @property
    def record(self) -> ProbeRecord:
        return ProbeRecord(self.account.clients.dynamodb, "case_store")

    @property
    def stored_probe(self) -> Probe:
        probe = self.record.read()
        assert probe is not None
        return probe

    def run_probe(self, **later: float) -> Probe:
        self.account.later(**later)
        now = self.account.now
        return send_probe(self.account.clients, self.settings, now, now + timedelta(seconds=2))

    def make_probe_event(
        self, event_id: str, role: str = PROBE_ROLE, **over: Any
    ) -> dict[str, str]:
        """Return the intake message of a probe that was sent now."""
        arn = f"arn:aws:sts::{ACCOUNT}:assumed-role/x/y"
        session = {"arn": arn, "sessionContext": {"sessionIssuer": {"arn": role}}}
        call = {"eventName": "SendMessage", "errorMessage": TEXT, "userIdentity": session}
        return self.account.late_deletes(self.queue_arn, event_id, **{**call, **over})

    def count_notifications(self) -> int:
        return len(self.account.pages("urgent"))

    def delete_queue(self) -> None:
        self.account.clients.sqs.delete_queue(QueueUrl=self.settings.probe_queue_url)


@pytest.fixture
def lambdas(account: Account) -> ProbeLambdas:
    queue_arn = account.queue(PROBE_QUEUE_NAME, tag=None)
    settings = ProbeSettings(
        ACCOUNT,
        case_table="case_store",
        urgent_topic_arn=account.settings.urgent_topic_arn,
        probe_queue_url=account.url(queue_arn),
    )
    return ProbeLambdas(account, settings, queue_arn)


def test_send_probe_raises_if_sqs_cannot_be_reached(lambdas: ProbeLambdas) -> None:
    nowhere = ConnectTimeoutError(endpoint_url="https://nowhere")
    deny_operation(lambdas.account.clients.sqs, "SendMessage", unreachable=nowhere)
    with pytest.raises(ProbeNotSent, match="could not be reached"):
        lambdas.run_probe()


def test_send_probe_raises_and_names_the_cure_if_sqs_accepts_the_message(
    lambdas: ProbeLambdas,
) -> None:
    lambdas.account.clients.sqs.set_queue_attributes(
        QueueUrl=lambdas.settings.probe_queue_url, Attributes={"ContentBasedDeduplication": "true"}
    )
    with pytest.raises(ProbeNotSent, match="turn ContentBasedDeduplication off"):
        lambdas.run_probe()


def test_send_probe_raises_if_the_probe_queue_was_deleted(lambdas: ProbeLambdas) -> None:
    lambdas.delete_queue()
    with pytest.raises(ProbeNotSent, match="NonExistentQueue"):
        lambdas.run_probe()


def list_stored_probes_at_each_send(lambdas: ProbeLambdas) -> list[Probe | None]:
    """Return a list that grows with each send by the probe that is stored then."""
    stored: list[Probe | None] = []
    lambdas.account.clients.sqs.meta.events.register(
        "before-call.*.SendMessage", lambda **_: stored.append(lambdas.record.read())
    )
    return stored


def test_send_probe_sends_nothing_if_the_probe_cannot_be_stored(lambdas: ProbeLambdas) -> None:
    stored_at_send = list_stored_probes_at_each_send(lambdas)
    deny_operation(lambdas.account.clients.dynamodb, "UpdateItem")
    with pytest.raises(CaseStoreUnavailable):
        lambdas.run_probe()
    assert stored_at_send == []


def test_send_probe_stores_the_probe_before_it_sends_the_message(lambdas: ProbeLambdas) -> None:
    stored_at_send = list_stored_probes_at_each_send(lambdas)
    probe = lambdas.run_probe()
    assert stored_at_send == [probe] == [lambdas.stored_probe]
    assert (probe.lost_in_a_row, probe.seen_at) == (0, None)


ISSUERS = [PROBE_ROLE, PROBE_ROLE.replace(":iam:", ":sts:").replace(":role/", ":assumed-role/")]
NO_QUEUE: dict[str, Any] = {"resources": None, "requestParameters": None}


@pytest.mark.parametrize("issuer", ISSUERS)
@pytest.mark.parametrize(("over", "without_queue"), [({}, False), (NO_QUEUE, True)])
def test_heal_recognizes_a_probe_by_role_or_session_arn_and_without_a_queue(
    lambdas: ProbeLambdas, issuer: str, over: dict[str, Any], *, without_queue: bool
) -> None:
    lambdas.run_probe()
    made = lambdas.make_probe_event("1", issuer, **over)
    lambdas.account.later(minutes=4)
    healed = lambdas.account.heal(made)
    assert (healed.error_by_message_id, healed.outcome_by_group, healed.failed_call_count) == (
        {},
        {},
        0,
    )
    known = lambdas.stored_probe
    assert (known.was_seen, known.seen_at) == (True, lambdas.account.now)
    assert (known.spelled, known.without_queue) == ("InvalidParameterValueException", without_queue)
    assert set(lambdas.account.case_store_items()) == {("account", "probe")}


def test_stored_probe_says_if_the_record_of_the_last_seen_probe_named_its_queue(
    lambdas: ProbeLambdas,
) -> None:
    lambdas.run_probe()
    lambdas.account.heal(lambdas.make_probe_event("1", **NO_QUEUE))
    assert lambdas.stored_probe.without_queue
    lambdas.run_probe(hours=1)
    lambdas.account.heal(lambdas.make_probe_event("2"))
    assert not lambdas.stored_probe.without_queue


def test_probe_that_could_not_be_recorded_is_recorded_by_the_retry_beside_failed_calls(
    lambdas: ProbeLambdas,
) -> None:
    queue = lambdas.account.queue("orders.fifo", VisibilityTimeout="30")
    lambdas.run_probe()
    fix = deny_operation(lambdas.account.clients.dynamodb, "UpdateItem")
    healed = lambdas.account.heal(lambdas.make_probe_event("1"))
    assert isinstance(healed.error_by_message_id["message-1"], CaseStoreUnavailable)
    fix()
    calls = lambdas.account.late_deletes(queue, "a", "b", "c")
    healed = lambdas.account.heal(lambdas.make_probe_event("1") | calls)
    assert (healed.error_by_message_id, healed.failed_call_count) == ({}, 3)
    assert lambdas.account.visibility(queue) > 30
    assert lambdas.stored_probe.was_seen


def count_notifications_each_hour(lambdas: ProbeLambdas, hours: int) -> list[int]:
    """Run a probe each hour. Return the number of notifications so far after each."""
    counts = []
    for _ in range(hours):
        lambdas.run_probe(hours=1)
        counts.append(lambdas.count_notifications())
    return counts


def test_lost_probes_notify_once_from_the_second_on_and_not_again_the_next_day(
    lambdas: ProbeLambdas,
) -> None:
    assert count_notifications_each_hour(lambdas, 26) == [0, 0, *[1] * 24]
    ((subject, body),) = lambdas.account.pages("urgent")
    assert "no probe" in subject
    assert "the last 2 did not" in body


def test_lost_probes_notify_again_after_a_probe_was_seen_in_between(lambdas: ProbeLambdas) -> None:
    assert count_notifications_each_hour(lambdas, 3) == [0, 0, 1]
    lambdas.account.heal(lambdas.make_probe_event("1"))
    assert count_notifications_each_hour(lambdas, 4) == [1, 1, 2, 2]


def test_lost_probes_are_notified_even_if_the_probe_queue_is_deleted(lambdas: ProbeLambdas) -> None:
    lambdas.run_probe()
    lambdas.delete_queue()
    for _ in range(2):
        with pytest.raises(ProbeNotSent):
            lambdas.run_probe(hours=1)
    assert lambdas.count_notifications() == 1


def test_probe_of_one_schedule_is_stored_once_by_two_runs(lambdas: ProbeLambdas) -> None:
    earlier = lambdas.run_probe()
    first = earlier.next_probe(lambdas.account.now + HOUR, lambdas.account.now + HOUR)
    assert lambdas.record.store_sent_probe(first)
    assert not lambdas.record.store_sent_probe(replace(first, sent_at=first.sent_at + MINUTE))
    assert lambdas.stored_probe == first


def test_notification_about_an_earlier_probe_does_not_change_the_stored_newer_one(
    lambdas: ProbeLambdas,
) -> None:
    earlier = lambdas.run_probe()
    newer = lambdas.run_probe(hours=1)
    lambdas.record.store_notified(earlier)
    assert lambdas.stored_probe == newer

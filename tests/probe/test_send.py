"""The probe's way in an account: noted, sent, seen by heal, and told of where it is lost."""

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
class Heart:
    """The probe Lambda and heal, each doing its part of a probe."""

    account: Account
    settings: ProbeSettings
    queue_arn: str

    @property
    def record(self) -> ProbeRecord:
        return ProbeRecord(self.account.clients.dynamodb, "case_store")

    @property
    def known(self) -> Probe:
        probe = self.record.read()
        assert probe is not None
        return probe

    def beat(self, **later: float) -> Probe:
        self.account.later(**later)
        now = self.account.now
        return send_probe(self.account.clients, self.settings, now, now + timedelta(seconds=2))

    def event(self, event_id: str, role: str = PROBE_ROLE, **over: Any) -> dict[str, str]:
        """The intake message of a probe that was made now."""
        arn = f"arn:aws:sts::{ACCOUNT}:assumed-role/x/y"
        session = {"arn": arn, "sessionContext": {"sessionIssuer": {"arn": role}}}
        call = {"eventName": "SendMessage", "errorMessage": TEXT, "userIdentity": session}
        return self.account.late_deletes(self.queue_arn, event_id, **{**call, **over})

    def pages(self) -> int:
        return len(self.account.pages("urgent"))

    def delete_queue(self) -> None:
        self.account.clients.sqs.delete_queue(QueueUrl=self.settings.probe_queue_url)


@pytest.fixture
def heart(account: Account) -> Heart:
    queue_arn = account.queue(PROBE_QUEUE_NAME, tag=None)
    settings = ProbeSettings(
        ACCOUNT,
        case_table="case_store",
        urgent_topic_arn=account.settings.urgent_topic_arn,
        probe_queue_url=account.url(queue_arn),
    )
    return Heart(account, settings, queue_arn)


def test_send_probe_raises_probe_not_sent_for_any_answer_but_the_expected_refusal(
    heart: Heart,
) -> None:
    nowhere = ConnectTimeoutError(endpoint_url="https://nowhere")
    fix = deny_operation(heart.account.clients.sqs, "SendMessage", unreachable=nowhere)
    with pytest.raises(ProbeNotSent, match="could not be reached"):
        heart.beat()
    fix()
    heart.account.clients.sqs.set_queue_attributes(
        QueueUrl=heart.settings.probe_queue_url, Attributes={"ContentBasedDeduplication": "true"}
    )
    with pytest.raises(ProbeNotSent, match="turn ContentBasedDeduplication off"):
        heart.beat()
    heart.delete_queue()
    with pytest.raises(ProbeNotSent, match="NonExistentQueue"):
        heart.beat()


def test_send_probe_stores_the_probe_before_sending_and_sends_nothing_if_it_cannot(
    heart: Heart,
) -> None:
    noted: list[Probe | None] = []
    heart.account.clients.sqs.meta.events.register(
        "before-call.*.SendMessage", lambda **_: noted.append(heart.record.read())
    )
    fix = deny_operation(heart.account.clients.dynamodb, "UpdateItem")
    with pytest.raises(CaseStoreUnavailable):
        heart.beat()
    assert noted == []
    fix()
    probe = heart.beat()
    assert noted == [probe] == [heart.known]
    assert (probe.lost_in_a_row, probe.seen_at) == (0, None)


ISSUERS = [PROBE_ROLE, PROBE_ROLE.replace(":iam:", ":sts:").replace(":role/", ":assumed-role/")]
NO_QUEUE: dict[str, Any] = {"resources": None, "requestParameters": None}


@pytest.mark.parametrize("issuer", ISSUERS)
@pytest.mark.parametrize(("over", "without_queue"), [({}, False), (NO_QUEUE, True)])
def test_heal_recognizes_a_probe_by_role_or_session_arn_and_without_a_queue(
    heart: Heart, issuer: str, over: dict[str, Any], *, without_queue: bool
) -> None:
    heart.beat()
    made = heart.event("1", issuer, **over)
    heart.account.later(minutes=4)
    healed = heart.account.heal(made)
    assert (healed.error_by_message_id, healed.outcome_by_group, healed.failed_call_count) == (
        {},
        {},
        0,
    )
    known = heart.known
    assert (known.was_seen, known.seen_at) == (True, heart.account.now)
    assert (known.spelled, known.without_queue) == ("InvalidParameterValueException", without_queue)
    assert set(heart.account.case_store_items()) == {("account", "probe")}
    heart.beat(hours=1)
    heart.account.heal(heart.event("2"))
    assert not heart.known.without_queue, "the newest that was seen says"


def test_probe_that_cannot_be_recorded_is_retried_and_other_failed_calls_are_handled(
    heart: Heart,
) -> None:
    queue = heart.account.queue("orders.fifo", VisibilityTimeout="30")
    heart.beat()
    fix = deny_operation(heart.account.clients.dynamodb, "UpdateItem")
    healed = heart.account.heal(heart.event("1"))
    assert isinstance(healed.error_by_message_id["message-1"], CaseStoreUnavailable)
    fix()
    calls = heart.account.late_deletes(queue, "a", "b", "c")
    healed = heart.account.heal(heart.event("1") | calls)
    assert (healed.error_by_message_id, healed.failed_call_count) == ({}, 3)
    assert heart.account.visibility(queue) > 30
    assert heart.known.was_seen


def test_two_lost_probes_in_a_row_notify_once_until_a_probe_is_seen_again(heart: Heart) -> None:
    announced = [heart.beat(hours=1) and heart.pages() for _ in range(26)]
    assert announced == [0, 0, *[1] * 24], "nor does the next day tell it again"
    (subject, body) = heart.account.pages("urgent")[0]
    assert "no probe" in subject
    assert "the last 2 did not" in body
    heart.account.heal(heart.event("1"))
    assert [heart.beat(hours=1) and heart.pages() for _ in range(4)] == [1, 1, 2, 2]


def test_lost_probes_are_notified_even_if_the_probe_queue_is_deleted(heart: Heart) -> None:
    heart.beat()
    heart.delete_queue()
    for _ in range(2):
        with pytest.raises(ProbeNotSent):
            heart.beat(hours=1)
    assert heart.pages() == 1


def test_probe_of_one_schedule_is_stored_once_by_two_runs(heart: Heart) -> None:
    earlier = heart.beat()
    first = earlier.next_probe(heart.account.now + HOUR, heart.account.now + HOUR)
    assert heart.record.store_sent_probe(first)
    assert not heart.record.store_sent_probe(replace(first, sent_at=first.sent_at + MINUTE))
    heart.record.store_notified(earlier)
    assert heart.known == first

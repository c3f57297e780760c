from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ConnectTimeoutError

from mendq.aws.errors import (
    CaseStoreUnavailable,
    CaseStoreUnreadable,
    NotificationNotSent,
    ProbeNotSent,
)
from mendq.model.settings import ProbeSettings
from mendq.probe.probe import QUEUE_NAME, Probe
from mendq.probe.send import ProbeRecord, send_probe
from tests.heal.conftest import ACCOUNT, PROBE_ROLE, WORKER, Account

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


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
        identity = {
            "type": "AssumedRole",
            "arn": f"arn:aws:sts::{ACCOUNT}:assumed-role/x/y",
            "sessionContext": {"sessionIssuer": {"arn": role}},
        }
        text = (
            "The queue should either have ContentBasedDeduplication enabled "
            "or MessageDeduplicationId provided explicitly"
        )
        call = {"eventName": "SendMessage", "errorMessage": text, "userIdentity": identity}
        return self.account.late_deletes(self.queue_arn, event_id, **{**call, **over})

    def pages(self) -> int:
        return len(self.account.pages("urgent"))


@pytest.fixture
def heart(account: Account) -> Heart:
    queue_arn = account.queue(QUEUE_NAME, tag=None)
    settings = ProbeSettings(
        ACCOUNT,
        case_table="case_store",
        urgent_topic_arn=account.settings.urgent_topic_arn,
        probe_queue_url=account.url(queue_arn),
    )
    return Heart(account, settings, queue_arn)


def _break(client: Any, operation: str, error: Exception) -> Callable[[], None]:
    """Have one operation of a client fail; the answer fixes it."""

    def fail(**_: Any) -> None:
        raise error

    events, name = client.meta.events, f"before-call.*.{operation}"
    events.register(name, fail)
    return lambda: events.unregister(name, fail)


TIMEOUT = ConnectTimeoutError(endpoint_url="https://nowhere")


def test_a_call_that_sqs_takes_is_a_fault_of_ours(heart: Heart) -> None:
    heart.account.clients.sqs.set_queue_attributes(
        QueueUrl=heart.settings.probe_queue_url, Attributes={"ContentBasedDeduplication": "true"}
    )
    with pytest.raises(ProbeNotSent, match="turn ContentBasedDeduplication off"):
        heart.beat()


def test_a_queue_that_is_gone_or_unreachable_is_another_error_than_the_expected(
    heart: Heart,
) -> None:
    fix = _break(heart.account.clients.sqs, "SendMessage", TIMEOUT)
    with pytest.raises(ProbeNotSent, match="could not be reached"):
        heart.beat()
    fix()
    heart.account.clients.sqs.delete_queue(QueueUrl=heart.settings.probe_queue_url)
    with pytest.raises(ProbeNotSent, match="NonExistentQueue"):
        heart.beat()


def test_a_probe_that_cannot_be_noted_is_not_made(heart: Heart) -> None:
    _break(heart.account.clients.dynamodb, "UpdateItem", TIMEOUT)
    sent: list[object] = []
    heart.account.clients.sqs.meta.events.register(
        "before-call.*.SendMessage", lambda **_: sent.append(1)
    )
    with pytest.raises(CaseStoreUnavailable):
        heart.beat()
    assert not sent


def test_an_item_that_is_not_of_our_making_is_reported(heart: Heart) -> None:
    heart.account.clients.dynamodb.put_item(
        TableName="case_store",
        Item={"pk": {"S": "account"}, "sk": {"S": "probe"}, "sent_at": {"S": "yesterday"}},
    )
    with pytest.raises(CaseStoreUnreadable, match="probe"):
        heart.beat()


def test_the_first_is_noted_before_the_call_and_refused_by_sqs(heart: Heart) -> None:
    noted: list[Probe | None] = []
    heart.account.clients.sqs.meta.events.register(
        "before-call.*.SendMessage", lambda **_: noted.append(heart.record.read())
    )
    probe = heart.beat()
    assert noted == [probe] == [heart.known]
    assert (probe.lost_in_a_row, probe.seen_at) == (0, None)


def test_heal_notes_when_it_saw_it_and_how_it_was_spelled_and_nothing_else(heart: Heart) -> None:
    heart.beat()
    made = heart.event("1")
    heart.account.later(minutes=4)
    healed = heart.account.heal(made)
    assert (healed.errors, healed.fixed, healed.intake.failed_calls) == ({}, {}, 0)
    assert heart.known.spelled == "InvalidParameterValueException"
    assert heart.known.seen_at == heart.account.now
    assert heart.known.was_seen
    assert set(heart.account.case_store_items()) == {("account", "probe")}
    assert heart.account.transitions() == []


def test_repeats_and_older_probes_change_nothing(heart: Heart) -> None:
    heart.beat()
    old = heart.event("1")
    heart.beat(hours=1)
    heart.account.heal(heart.event("2"))
    before = heart.account.case_store_items()
    heart.account.later(minutes=30)
    heart.account.heal(old | heart.event("2", eventTime=f"{heart.known.made_at:%FT%TZ}"))
    assert heart.account.case_store_items() == before


@pytest.mark.parametrize("over", [{"role": WORKER}, {"eventName": "DeleteMessage"}])
def test_a_forged_probe_is_none_and_counts_as_any_failed_call(
    heart: Heart, over: dict[str, Any]
) -> None:
    heart.beat()
    healed = heart.account.heal(heart.event("1", **over))
    assert healed.intake.failed_calls == 1
    assert heart.known.seen_at is None


def test_a_probe_that_cannot_be_noted_comes_again(heart: Heart) -> None:
    heart.beat()
    fix = _break(heart.account.clients.dynamodb, "UpdateItem", TIMEOUT)
    healed = heart.account.heal(heart.event("1"))
    assert isinstance(healed.errors["message-1"], CaseStoreUnavailable)
    fix()
    assert heart.account.heal(heart.event("1")).errors == {}
    assert heart.known.was_seen


def test_a_probe_beside_failed_calls_of_others_takes_none_of_them(heart: Heart) -> None:
    queue = heart.account.queue("orders.fifo", VisibilityTimeout="30")
    heart.beat()
    calls = heart.account.late_deletes(queue, "a", "b", "c")
    healed = heart.account.heal(heart.event("1") | calls)
    assert healed.intake.failed_calls == 3
    assert heart.account.visibility(queue) > 30
    assert heart.known.was_seen


def test_a_probe_that_is_seen_each_time_pages_nobody(heart: Heart) -> None:
    for number in range(4):
        probe = heart.beat(hours=1)
        heart.account.heal(heart.event(f"{number}"))
        assert probe.lost_in_a_row == 0
    assert heart.pages() == 0


def test_two_lost_in_a_row_page_once_until_one_is_seen_again(heart: Heart) -> None:
    announced = [heart.beat(hours=1) and heart.pages() for _ in range(30)]
    assert announced == [0, 0, *[1] * 28], "nor does the next day tell it again"
    (subject, body) = heart.account.pages("urgent")[0]
    assert "no probe" in subject
    assert "the last 2 did not" in body
    heart.account.heal(heart.event("1"))
    assert [heart.beat(hours=1) and heart.pages() for _ in range(4)] == [1, 1, 2, 2]


def test_a_page_that_did_not_go_out_goes_out_with_the_next_try(heart: Heart) -> None:
    heart.beat()
    heart.beat(hours=1)
    fix = _break(heart.account.clients.sns, "Publish", TIMEOUT)
    with pytest.raises(NotificationNotSent):
        heart.beat(hours=1)
    assert not heart.known.notified
    fix()
    now = heart.account.now
    send_probe(heart.account.clients, heart.settings, now, now + 2 * MINUTE)
    assert heart.pages() == 1
    assert heart.known.notified
    assert heart.known.lost_in_a_row == 2, "the same time judges nothing twice"


def test_people_are_paged_though_the_call_itself_cannot_be_made(heart: Heart) -> None:
    heart.beat()
    heart.account.clients.sqs.delete_queue(QueueUrl=heart.settings.probe_queue_url)
    for _ in range(2):
        with pytest.raises(ProbeNotSent):
            heart.beat(hours=1)
    assert heart.pages() == 1


def test_two_runs_of_one_time_note_it_once(heart: Heart) -> None:
    heart.beat()
    first = heart.known.next_one(heart.account.now + HOUR, heart.account.now + HOUR)
    second = replace(first, sent_at=first.sent_at + MINUTE)
    assert heart.record.note_sent(first)
    assert not heart.record.note_sent(second)
    assert heart.known == first


def test_a_page_is_not_noted_on_the_probe_after_it(heart: Heart) -> None:
    heart.beat()
    earlier = heart.known
    heart.beat(hours=1)
    heart.record.note_notified(earlier)
    assert not heart.known.notified


def test_what_the_operators_command_reads_stands_in_the_item(heart: Heart) -> None:
    heart.beat()
    heart.account.heal(heart.event("1"))
    item = heart.account.case_store_items()[("account", "probe")]
    assert {"sent_at", "seen_at", "spelled"} <= item.keys()
    assert json.dumps(item["spelled"]) == '{"S": "InvalidParameterValueException"}'

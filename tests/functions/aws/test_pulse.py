from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ConnectTimeoutError

from functions.aws.errors import (
    LedgerUnavailable,
    LedgerUnreadable,
    PageNotSent,
    PulseNotMade,
)
from functions.aws.pulse import make_pulse
from functions.aws.pulse_record import PulseRecord
from functions.healing.pulse import QUEUE_NAME, Pulse
from functions.settings import PulseSettings
from tests.functions.aws.conftest import ACCOUNT, PULSE_ROLE, WORKER, Account

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


@dataclass
class Heart:
    """The pulse Lambda and heal, each doing its part of a pulse."""

    account: Account
    settings: PulseSettings
    queue_arn: str

    @property
    def record(self) -> PulseRecord:
        return PulseRecord(self.account.clients.dynamodb, "ledger")

    @property
    def known(self) -> Pulse:
        pulse = self.record.read()
        assert pulse is not None
        return pulse

    def beat(self, **later: float) -> Pulse:
        self.account.later(**later)
        now = self.account.now
        return make_pulse(self.account.clients, self.settings, now, now + timedelta(seconds=2))

    def event(self, event_id: str, role: str = PULSE_ROLE, **over: Any) -> dict[str, str]:
        """The intake message of a pulse that was made now."""
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
    settings = PulseSettings(
        ACCOUNT,
        ledger_table="ledger",
        urgent_topic_arn=account.settings.urgent_topic_arn,
        pulse_queue_url=account.url(queue_arn),
    )
    return Heart(account, settings, queue_arn)


def _break(client: Any, operation: str, error: Exception) -> Callable[[], None]:
    """Have one operation of a client fail; the answer mends it."""

    def fail(**_: Any) -> None:
        raise error

    events, name = client.meta.events, f"before-call.*.{operation}"
    events.register(name, fail)
    return lambda: events.unregister(name, fail)


TIMEOUT = ConnectTimeoutError(endpoint_url="https://nowhere")


def test_a_call_that_sqs_takes_is_a_fault_of_ours(heart: Heart) -> None:
    heart.account.clients.sqs.set_queue_attributes(
        QueueUrl=heart.settings.pulse_queue_url, Attributes={"ContentBasedDeduplication": "true"}
    )
    with pytest.raises(PulseNotMade, match="turn ContentBasedDeduplication off"):
        heart.beat()


def test_a_queue_that_is_gone_or_unreachable_is_another_error_than_the_expected(
    heart: Heart,
) -> None:
    mend = _break(heart.account.clients.sqs, "SendMessage", TIMEOUT)
    with pytest.raises(PulseNotMade, match="could not be reached"):
        heart.beat()
    mend()
    heart.account.clients.sqs.delete_queue(QueueUrl=heart.settings.pulse_queue_url)
    with pytest.raises(PulseNotMade, match="NonExistentQueue"):
        heart.beat()


def test_a_pulse_that_cannot_be_noted_is_not_made(heart: Heart) -> None:
    _break(heart.account.clients.dynamodb, "UpdateItem", TIMEOUT)
    sent: list[object] = []
    heart.account.clients.sqs.meta.events.register(
        "before-call.*.SendMessage", lambda **_: sent.append(1)
    )
    with pytest.raises(LedgerUnavailable):
        heart.beat()
    assert not sent


def test_an_item_that_is_not_of_our_making_is_told(heart: Heart) -> None:
    heart.account.clients.dynamodb.put_item(
        TableName="ledger",
        Item={"pk": {"S": "account"}, "sk": {"S": "pulse"}, "sent_at": {"S": "yesterday"}},
    )
    with pytest.raises(LedgerUnreadable, match="pulse"):
        heart.beat()


def test_the_first_is_noted_before_the_call_and_refused_by_sqs(heart: Heart) -> None:
    noted: list[Pulse | None] = []
    heart.account.clients.sqs.meta.events.register(
        "before-call.*.SendMessage", lambda **_: noted.append(heart.record.read())
    )
    pulse = heart.beat()
    assert noted == [pulse] == [heart.known]
    assert (pulse.lost_in_a_row, pulse.seen_at) == (0, None)


def test_heal_notes_when_it_saw_it_and_how_it_was_spelled_and_nothing_else(heart: Heart) -> None:
    heart.beat()
    made = heart.event("1")
    heart.account.later(minutes=4)
    healed = heart.account.heal(made)
    assert (healed.errors, healed.mended, healed.intake.failed_calls) == ({}, {}, 0)
    assert heart.known.spelled == "InvalidParameterValueException"
    assert heart.known.seen_at == heart.account.now
    assert heart.known.was_seen
    assert set(heart.account.ledger_items()) == {("account", "pulse")}
    assert heart.account.transitions() == []


def test_repeats_and_older_pulses_change_nothing(heart: Heart) -> None:
    heart.beat()
    old = heart.event("1")
    heart.beat(hours=1)
    heart.account.heal(heart.event("2"))
    before = heart.account.ledger_items()
    heart.account.later(minutes=30)
    heart.account.heal(old | heart.event("2", eventTime=f"{heart.known.made_at:%FT%TZ}"))
    assert heart.account.ledger_items() == before


@pytest.mark.parametrize("over", [{"role": WORKER}, {"eventName": "DeleteMessage"}])
def test_a_forged_pulse_is_none_and_counts_as_any_failed_call(
    heart: Heart, over: dict[str, Any]
) -> None:
    heart.beat()
    healed = heart.account.heal(heart.event("1", **over))
    assert healed.intake.failed_calls == 1
    assert heart.known.seen_at is None


def test_a_pulse_that_cannot_be_noted_comes_again(heart: Heart) -> None:
    heart.beat()
    mend = _break(heart.account.clients.dynamodb, "UpdateItem", TIMEOUT)
    healed = heart.account.heal(heart.event("1"))
    assert isinstance(healed.errors["message-1"], LedgerUnavailable)
    mend()
    assert heart.account.heal(heart.event("1")).errors == {}
    assert heart.known.was_seen


def test_a_pulse_beside_failed_calls_of_others_takes_none_of_them(heart: Heart) -> None:
    queue = heart.account.queue("orders.fifo", VisibilityTimeout="30")
    heart.beat()
    calls = heart.account.late_deletes(queue, "a", "b", "c")
    healed = heart.account.heal(heart.event("1") | calls)
    assert healed.intake.failed_calls == 3
    assert heart.account.visibility(queue) > 30
    assert heart.known.was_seen


def test_a_pulse_that_is_seen_each_time_pages_nobody(heart: Heart) -> None:
    for number in range(4):
        pulse = heart.beat(hours=1)
        heart.account.heal(heart.event(f"{number}"))
        assert pulse.lost_in_a_row == 0
    assert heart.pages() == 0


def test_two_lost_in_a_row_page_once_until_one_is_seen_again(heart: Heart) -> None:
    told = [heart.beat(hours=1) and heart.pages() for _ in range(30)]
    assert told == [0, 0, *[1] * 28], "nor does the next day tell it again"
    (subject, body) = heart.account.pages("urgent")[0]
    assert "no pulse" in subject
    assert "the last 2 did not" in body
    heart.account.heal(heart.event("1"))
    assert [heart.beat(hours=1) and heart.pages() for _ in range(4)] == [1, 1, 2, 2]


def test_a_page_that_did_not_go_out_goes_out_with_the_next_try(heart: Heart) -> None:
    heart.beat()
    heart.beat(hours=1)
    mend = _break(heart.account.clients.sns, "Publish", TIMEOUT)
    with pytest.raises(PageNotSent):
        heart.beat(hours=1)
    assert not heart.known.paged
    mend()
    now = heart.account.now
    make_pulse(heart.account.clients, heart.settings, now, now + 2 * MINUTE)
    assert heart.pages() == 1
    assert heart.known.paged
    assert heart.known.lost_in_a_row == 2, "the same time judges nothing twice"


def test_people_are_paged_though_the_call_itself_cannot_be_made(heart: Heart) -> None:
    heart.beat()
    heart.account.clients.sqs.delete_queue(QueueUrl=heart.settings.pulse_queue_url)
    for _ in range(2):
        with pytest.raises(PulseNotMade):
            heart.beat(hours=1)
    assert heart.pages() == 1


def test_two_runs_of_one_time_note_it_once(heart: Heart) -> None:
    heart.beat()
    first = heart.known.next_one(heart.account.now + HOUR, heart.account.now + HOUR)
    second = replace(first, sent_at=first.sent_at + MINUTE)
    assert heart.record.note_sent(first)
    assert not heart.record.note_sent(second)
    assert heart.known == first


def test_a_page_is_not_noted_on_the_pulse_after_it(heart: Heart) -> None:
    heart.beat()
    earlier = heart.known
    heart.beat(hours=1)
    heart.record.note_paged(earlier)
    assert not heart.known.paged


def test_what_the_operators_command_reads_stands_in_the_item(heart: Heart) -> None:
    heart.beat()
    heart.account.heal(heart.event("1"))
    item = heart.account.ledger_items()[("account", "pulse")]
    assert {"sent_at", "seen_at", "spelled"} <= item.keys()
    assert json.dumps(item["spelled"]) == '{"S": "InvalidParameterValueException"}'

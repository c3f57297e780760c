"""The calls of a story: reported exactly as they ended, and put down when told."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local_account.demo.traffic import (
    Caller,
    Crashes,
    LateDeletes,
    Nobody,
    Races,
    Running,
    Sends,
    Traffic,
    numbered,
    send,
)

REFUSED = ClientError({"Error": {"Code": "X", "Message": "Rate exceeded"}}, "SendMessage")


class Sqs:
    """A queue that refuses the first calls, and always has the same message."""

    def __init__(self, *, refuses: int = 0) -> None:
        self.left = refuses
        self.sent: list[dict[str, Any]] = []
        self.deleted = 0

    def _refuse(self) -> None:
        if self.left > 0:
            self.left -= 1
            raise REFUSED

    def send_message(self, **request: Any) -> None:
        self._refuse()
        self.sent.append(request)

    def send_message_batch(self, **request: Any) -> None:
        self.sent.append(request)

    def receive_message(self, **_: Any) -> dict[str, Any]:
        attributes = {"MessageGroupId": "g"}
        return {
            "Messages": [{"ReceiptHandle": "handle", "Body": "work 0", "Attributes": attributes}]
        }

    def delete_message(self, **_: Any) -> None:
        self._refuse()
        self.deleted += 1


def _caller(sqs: Any, heard: list[str | None], *, enough: int = 99) -> Caller:
    """Somebody who has had enough after so many calls."""

    def record_transition(fault: str | None) -> None:
        heard.append(fault)
        if len(heard) >= enough:
            caller.enough.set()

    caller = Caller(sqs, "url", record_transition)
    return caller


@pytest.mark.parametrize("traffic", [Sends(), LateDeletes(works_seconds=0)])
def test_every_call_is_reported_with_sqs_s_words_or_as_well(
    traffic: Traffic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("local_account.demo.traffic.SEND_EVERY_SECONDS", 0)
    heard: list[str | None] = []
    caller = _caller(Sqs(refuses=1), heard)
    traffic.work(caller)
    traffic.work(caller)
    assert heard == ["Rate exceeded", None]


def test_a_send_with_an_id_of_its_own_has_another_each_time() -> None:
    sqs = Sqs()
    caller = _caller(sqs, [], enough=1)
    for own in (True, True, False):
        Sends(body_bytes=7, more={"MessageGroupId": "g"}, with_own_id=own).work(caller)
    first, second, third = sqs.sent
    assert (first["MessageBody"], second["MessageGroupId"]) == ("x" * 7, "g")
    assert first["MessageDeduplicationId"] != second["MessageDeduplicationId"]
    assert "MessageDeduplicationId" not in third


def test_who_is_said_to_stop_while_working_deletes_nothing() -> None:
    sqs = Sqs()
    caller = _caller(sqs, [])
    caller.enough.set()
    LateDeletes(works_seconds=60).work(caller)
    assert sqs.deleted == 0


def test_messages_are_sent_as_many_to_a_call_as_sqs_takes() -> None:
    sqs = Sqs()
    send(_caller(sqs, []), numbered(23))
    assert [len(each["Entries"]) for each in sqs.sent] == [10, 10, 3]
    assert all(len({e["Id"] for e in each["Entries"]}) == len(each["Entries"]) for each in sqs.sent)


@pytest.mark.parametrize(("traffic", "deletes"), [(Races(works_seconds=0), 1), (Crashes(), 0)])
def test_who_races_deletes_and_who_crashes_does_not(traffic: Traffic, deletes: int) -> None:
    sqs, heard = Sqs(), list[str | None]()
    traffic.work(_caller(sqs, heard))
    assert (heard, sqs.deleted) == ([None], deletes)


@pytest.mark.parametrize(
    "traffic", [Races(works_seconds=60), Crashes(), Nobody(), LateDeletes(works_seconds=60)]
)
def test_whatever_works_stops_soon(traffic: Traffic) -> None:
    running = Running(traffic, _caller(Sqs(), []))
    running.start()
    running.stop()
    assert running.caller.enough.is_set()
    assert not any(each.name.startswith("url#") for each in threading.enumerate())


def test_somebody_is_always_idle_where_consumers_race() -> None:
    """Else all work at once, all delete in time, and there is nothing to find."""
    races = Races(works_seconds=3.0)
    assert races.workers > races.messages * races.works_seconds

"""Calls that end well and are told as such, and put down soon."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from local_account.demo.silent_traffic import Crashes, Nobody, Races, send
from local_account.demo.traffic import Caller, Running, Traffic


class Sqs:
    """A queue that takes everything and always has the same message."""

    def __init__(self) -> None:
        self.sent: list[int] = []
        self.deleted = 0
        self.enough = threading.Event()

    def send_message_batch(self, *, QueueUrl: str, Entries: list[dict[str, str]]) -> None:  # noqa: N803
        assert QueueUrl
        assert len({each["Id"] for each in Entries}) == len(Entries)
        self.sent.append(len(Entries))

    def receive_message(self, **_: Any) -> dict[str, Any]:
        return {"Messages": [{"ReceiptHandle": "handle", "Body": "work 0"}]}

    def delete_message(self, **_: Any) -> None:
        self.deleted += 1


def _running(traffic: Traffic, sqs: Any, told: list[str | None]) -> Running:
    return Running(traffic, Caller(sqs, "url", told.append))


def test_messages_are_sent_as_many_to_a_call_as_sqs_takes() -> None:
    sqs: Any = Sqs()
    send(Caller(sqs, "url", lambda _: None), 23)
    assert sqs.sent == [10, 10, 3]


def test_who_races_deletes_and_who_crashes_does_not() -> None:
    for traffic, deletes in ((Races(works_seconds=0), True), (Crashes(), False)):
        sqs: Any = Sqs()
        told: list[str | None] = []
        traffic.work(Caller(sqs, "url", told.append))
        assert told == [None]
        assert bool(sqs.deleted) is deletes


@pytest.mark.parametrize("traffic", [Races(works_seconds=60), Crashes(), Nobody()])
def test_whatever_works_stops_soon(traffic: Traffic) -> None:
    running = _running(traffic, Sqs(), [])
    running.start()
    running.stop()
    assert running.caller.enough.is_set()
    assert not any(each.name.startswith("url#") for each in threading.enumerate())


def test_somebody_is_always_idle_where_consumers_race() -> None:
    """Else all work at once, all delete in time, and there is nothing to find."""
    races = Races(works_seconds=3.0)
    assert races.workers > races.messages * races.works_seconds

"""The calls of a story: told exactly as they ended, and put down when told."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from local_account.demo.traffic import Caller, LateDeletes, Running, Sends, Traffic

REFUSED = ClientError({"Error": {"Code": "X", "Message": "Rate exceeded"}}, "SendMessage")


class Sqs:
    """A queue that refuses the first calls."""

    def __init__(self, *, refuses: int) -> None:
        self.left = refuses
        self.sent: list[dict[str, Any]] = []
        self.deleted: list[str] = []

    def _refuse(self) -> None:
        if self.left > 0:
            self.left -= 1
            raise REFUSED

    def send_message(self, **request: Any) -> None:
        self._refuse()
        self.sent.append(request)

    def receive_message(self, **_: Any) -> dict[str, Any]:
        return {"Messages": [{"ReceiptHandle": "handle"}]}

    def delete_message(self, *, QueueUrl: str, ReceiptHandle: str) -> None:  # noqa: N803
        self._refuse()
        self.deleted.append(f"{QueueUrl} {ReceiptHandle}")


def _caller(sqs: Any, told: list[str | None], *, rounds: int) -> Caller:
    """Who has had enough after so many calls."""

    def tell(fault: str | None) -> None:
        told.append(fault)
        if len(told) >= rounds:
            caller.enough.set()

    caller = Caller(sqs, "url", tell)
    return caller


@pytest.mark.parametrize("traffic", [Sends(), LateDeletes(works_seconds=0)])
def test_every_call_is_told_with_sqs_s_words_or_as_well(traffic: Traffic) -> None:
    told: list[str | None] = []
    sqs: Any = Sqs(refuses=1)
    caller = Caller(sqs, "url", told.append)
    traffic.work(caller)
    traffic.work(caller)
    assert told == ["Rate exceeded", None]


def test_a_send_with_an_id_of_its_own_has_another_each_time() -> None:
    sqs = Sqs(refuses=0)
    caller = _caller(sqs, [], rounds=1)
    traffic = Sends(body_bytes=7, more={"MessageGroupId": "g"}, with_own_id=True)
    traffic.work(caller)
    traffic.work(caller)
    first, second = sqs.sent
    assert first["MessageBody"] == "x" * 7
    assert first["MessageGroupId"] == second["MessageGroupId"] == "g"
    assert first["MessageDeduplicationId"] != second["MessageDeduplicationId"]


def test_a_send_without_one_has_none() -> None:
    sqs = Sqs(refuses=0)
    Sends(more={"MessageGroupId": "g"}).work(_caller(sqs, [], rounds=1))
    assert "MessageDeduplicationId" not in sqs.sent[0]


def test_who_is_told_to_stop_while_working_deletes_nothing() -> None:
    sqs = Sqs(refuses=0)
    caller = _caller(sqs, [], rounds=1)
    caller.enough.set()
    LateDeletes(works_seconds=60).work(caller)
    assert sqs.deleted == []


def test_stop_returns_when_nobody_calls_any_more() -> None:
    sqs, told = Sqs(refuses=0), list[str | None]()
    caller = _caller(sqs, told, rounds=3)
    running = Running(LateDeletes(works_seconds=0), caller)
    running.start()
    assert caller.enough.wait(30)
    running.stop()
    made = len(told)
    assert made >= 3
    assert len(sqs.deleted) == made
    assert len(sqs.sent) == LateDeletes.workers
    assert not any(each.is_alive() for each in running._workers)

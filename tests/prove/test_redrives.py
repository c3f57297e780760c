"""The redrive's proofs fail where they have to, and what they stand on is as AWS has it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from random import Random
from typing import Any

import pytest
from moto.dynamodb.models import dynamodb_backends
from msgspec import structs
from msgspec.structs import replace

from mendq.redrive import redrive, store
from mendq.redrive.machine import RedriveSituation
from mendq.redrive.messages import Message, MoveResult
from mendq.redrive.mover import MessageMover
from mendq.redrive.progress import RedriveProgress, RedriveQueues
from mendq.redrive.reads import situation_of
from mendq.redrive.send_batches import Destination, FifoOrder
from mendq.redrive.store import RedriveStore
from tests.heal.conftest import ACCOUNT, REGION, Account, moto_account
from tests.prove.memory_cloud import Cloud
from tests.prove.memory_queue import MemoryQueue
from tests.prove.memory_queue import Message as Stored
from tests.prove.proof import Proving
from tests.prove.redrive_faults import SCENES as SCENES_TO_STRIKE
from tests.prove.redrive_faults import struck_everywhere
from tests.prove.redrive_stops import SCENES as SCENES_TO_STOP
from tests.prove.redrive_stops import stopped
from tests.prove.redrive_table import RedriveTable
from tests.prove.struck_calls import StruckCalls

DEAD = f"arn:aws:sqs:{REGION}:{ACCOUNT}:orders-dlq"


def test_a_mover_that_deletes_before_it_sends_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    put = MessageMover._put

    def deletes_first(
        mover: MessageMover, batch: Sequence[Message], order: FifoOrder, to: Destination
    ) -> MoveResult:
        for each in batch:
            handle = mover._held._holds[each.message_id].handle
            mover._sqs.delete_message(QueueUrl=mover._queue_url, ReceiptHandle=handle)
        return put(mover, batch, order, to)

    monkeypatch.setattr(MessageMover, "_put", deletes_first)
    proving = Proving()
    struck_everywhere(proving, 0.1, SCENES_TO_STRIKE[:1])
    assert "no message is lost" in proving.failures


def test_no_fault_loses_a_message() -> None:
    """At some of the calls of each scene; `make prove` strikes them all."""
    proving = Proving()
    struck_everywhere(proving, 0.04)
    assert proving.failures == []


def test_a_tick_that_does_not_see_the_freeze_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:

    def blind(*asked: Any) -> RedriveSituation:
        return structs.replace(situation_of(*asked), frozen="")

    monkeypatch.setattr(redrive, "situation_of", blind)
    proving = Proving()
    stopped(proving, 0.25, SCENES_TO_STOP[:1])
    assert "each comes to an end, and its source to rest" in proving.failures
    assert "frozen at minute" in str(proving.figures["wrong"])


@pytest.fixture
def account() -> Iterator[Account]:
    with moto_account() as made:
        yield made


def test_the_course_is_retained_as_dynamodb_keeps_it(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same writes, answered by both: the same are refused, the same is left."""
    said: list[list[object]] = []
    for quick in (None, RedriveTable()):
        keys = count()
        monkeypatch.setattr(store, "token_hex", lambda keys=keys: f"key {next(keys)}")
        if quick is not None:
            _answered_by(quick, account)
        said.append(list(_lived(account)))
        if quick is not None:
            (item,) = quick.items.values()
            retained = dynamodb_backends[ACCOUNT][REGION].get_item("case_store", _key())
            assert retained is not None
            stored = retained.to_json()["Attributes"]
            assert {name: stored[name] for name in item} == item
            assert set(stored) - set(item) == {"pk", "sk"}
    assert said[0] == said[1]


def _key() -> dict[str, dict[str, str]]:
    return {"pk": {"S": DEAD}, "sk": {"S": "redrive"}}


def _answered_by(quick: RedriveTable, account: Account) -> None:
    calls = StruckCalls(lambda *_: None)
    calls.answers = Cloud(account, quick, calls).answer
    calls.listen(account.clients)


def _lived(account: Account) -> Iterator[object]:
    """A claim, a second, a save, a save of what has moved, a release by a stranger, one by us."""
    case_store = RedriveStore(account.clients.dynamodb, "case_store")
    queues = RedriveQueues(DEAD, DEAD)
    course = RedriveProgress.begun("case", queues, size=5, now=account.now)
    yield case_store.claim(DEAD, "me", account.now) is not None
    yield case_store.claim(DEAD, "another", account.now) is not None
    saved = case_store.save(course, "me")
    yield saved.n
    yield case_store.save(course, "me").n
    for late, owner in ((replace(course, moved=9), "me"), (saved, "another")):
        with pytest.raises(Exception, match="another run redrives"):
            case_store.save(late, owner)
    case_store.release(DEAD, "another")
    yield case_store.claim(DEAD, "another", account.now) is not None
    case_store.release(DEAD, "me")
    claimed = case_store.claim(DEAD, "another", account.now)
    yield claimed is not None and (claimed.progress == saved, claimed.seal_key == b"key 0")


def _queue(name: str = "orders", **over: Any) -> MemoryQueue:
    always = Random(1)  # noqa: S311 - the same order every time
    queue = MemoryQueue(f"arn:aws:sqs:{REGION}:{ACCOUNT}:{name}", always, **over)
    for n in range(4):
        queue.put(Stored(f"m{n}", 0, group=f"g{n % 2}"), 0)
    return queue


def test_a_queue_in_memory_is_as_sqs_has_it() -> None:
    dead = _queue("orders-dlq")
    queue, fifo = _queue(most_receives=2, dlq=dead), _queue("orders.fifo")
    assert [len(queue.receive(10, at, 30)) for at in (0, 29, 30, 60)] == [4, 0, 4, 0]
    died = {each.body for each in dead.messages.values() if each.source_arn == queue.arn}
    assert died == {"m0", "m1", "m2", "m3"}
    first, *_ = fifo.receive(1, 0, 30)
    assert {each.group for each in fifo.receive(10, 1, 30)} == {"g1"}, "behind it none is shown"
    assert [fifo.delete(first.handle, at) for at in (31, 29)] == [False, True]

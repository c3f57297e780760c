"""What is taken arrives on the bus and in a file."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local_account.cloudtrail import delivery as module
from local_account.cloudtrail.delivery import Delivery
from local_account.cloudtrail.faults import DeliveryFaults
from local_account.cloudtrail.trails import Destination

TRAIL = Destination("arn:aws:cloudtrail:us-east-1:000000000000:trail/mendq", "logs", "")
OTHER = Destination("arn:aws:cloudtrail:us-east-1:000000000000:trail/other", "audit", "x")


class Written:
    """What came out, with a way to wait for it."""

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.files: dict[tuple[str, str], Any] = {}
        self._changed = threading.Condition()

    def put_event(self, record: Any) -> None:
        with self._changed:
            self.events.append(record["eventID"])
            self._changed.notify_all()

    def put_object(self, bucket: str, key: str, content: bytes) -> None:
        with self._changed:
            self.files[bucket, key] = json.loads(gzip.decompress(content))
            self._changed.notify_all()

    def wait_for(self, arrived: Callable[[], bool]) -> bool:
        with self._changed:
            return self._changed.wait_for(arrived, timeout=10)


@contextmanager
def _running(written: Written, faults: DeliveryFaults | None = None) -> Iterator[Delivery]:
    delivery = Delivery(written.put_event, written.put_object, faults or DeliveryFaults())
    delivery.start()
    try:
        yield delivery
    finally:
        delivery.stop()


def test_files_are_flushed_while_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FLUSH_SECONDS", 0.05)
    written = Written()
    with _running(written) as delivery:
        delivery.take({"eventID": "1"}, (TRAIL,))
        assert written.wait_for(lambda: bool(written.files))


def test_each_trail_gets_the_record_in_its_bucket_and_the_bus_gets_it_once() -> None:
    written = Written()
    with _running(written) as delivery:
        delivery.take({"eventID": "1"}, (TRAIL, OTHER))
        assert written.wait_for(lambda: bool(written.events))
    assert written.events == ["1"]
    assert {bucket for bucket, _ in written.files} == {"logs", "audit"}
    assert all(each == {"Records": [{"eventID": "1"}]} for each in written.files.values())


def test_stopping_writes_what_arrived() -> None:
    written = Written()
    with _running(written) as delivery:
        for number in range(50):
            delivery.take({"eventID": str(number)}, (TRAIL,))
    records = [each for file in written.files.values() for each in file["Records"]]
    assert [each["eventID"] for each in records] == written.events == [str(n) for n in range(50)]


def test_what_is_doubled_arrives_twice_with_one_event_id() -> None:
    written = Written()
    with _running(written, DeliveryFaults(duplicated_share=1)) as delivery:
        delivery.take({"eventID": "1"}, (TRAIL,))
        assert written.wait_for(lambda: written.events == ["1", "1"])


def test_a_bus_that_fails_does_not_stop_the_files(caplog: pytest.LogCaptureFixture) -> None:
    written = Written()

    def fail(_: Any) -> None:
        raise RuntimeError("no bus")

    delivery = Delivery(fail, written.put_object)
    delivery.start()
    delivery.take({"eventID": "1"}, (TRAIL,))
    delivery.stop()
    assert written.files
    assert "did not reach the bus" in caplog.text


def test_a_bucket_that_refuses_is_remembered_until_a_file_is_written() -> None:
    written = Written()
    refusing = True

    def put_object(bucket: str, key: str, content: bytes) -> None:
        if refusing:
            raise ClientError({"Error": {"Code": "AccessDenied"}}, "PutObject")
        written.put_object(bucket, key, content)

    delivery = Delivery(written.put_event, put_object)
    delivery.take({"eventID": "1"}, (TRAIL,))
    _deliver_all(delivery)
    assert delivery.latest(TRAIL.trail_arn) == {"LatestDeliveryError": "AccessDenied"}
    refusing = False
    delivery.take({"eventID": "2"}, (TRAIL,))
    _deliver_all(delivery)
    assert delivery.latest(TRAIL.trail_arn).keys() == {"LatestDeliveryTime"}
    assert delivery.latest(OTHER.trail_arn) == {}


def _deliver_all(delivery: Delivery) -> None:
    for record, destinations in delivery._arrived():
        delivery._deliver(record, destinations)
    delivery._flush()

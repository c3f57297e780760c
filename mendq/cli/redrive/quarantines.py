"""The quarantines of an account, their messages as people see them, the file for dropped ones."""

from __future__ import annotations

import json
import os
from base64 import b64encode
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from mendq.aws.errors import QueueGone, looking
from mendq.aws.queue import attributes_of, queue_url
from mendq.cli.account import Account
from mendq.cli.exit_codes import Exit, Stopped
from mendq.cli.output import Output, age, minute
from mendq.cli.queues import managed_queues, queue_arn_of
from mendq.cli.redrive.route import Queue, Route, movable, queue_of, require_idle, require_last
from mendq.model.dlq import arn_of_quarantine
from mendq.model.evidence import to_text
from mendq.model.queue import (
    FIFO,
    QUARANTINE_SUFFIX,
    arn_of,
    arn_of_name,
    is_quarantine,
    parts_of,
    redrive_of,
)
from mendq.notifications.text import counted, plain, value
from mendq.redrive.messages import (
    QUARANTINED,
    REDRIVE_COUNT,
    Message,
    MessageAttribute,
    quarantine_reason,
)

_READS_BACK = timedelta(minutes=15)


@dataclass(frozen=True)
class Quarantine:
    """One beside a managed source; `oldest_at` is None where CloudWatch does not say.

    The oldest message came then or before: SQS's metric leaves out what was received three times,
    and to look is to receive.
    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
    """

    queue: Queue
    source_arn: str
    oldest_at: datetime | None

    @property
    def in_flight(self) -> int:
        return self.queue.in_flight

    @property
    def expires_by(self) -> datetime | None:
        """When SQS has deleted the first message, at the latest."""
        retained = self.queue.attributes.get("MessageRetentionPeriod")
        if self.oldest_at is None or retained is None:
            return None
        return self.oldest_at + timedelta(seconds=int(retained))

    @property
    def messages(self) -> int:
        return self.queue.waiting + self.in_flight


def quarantines(account: Account, now: datetime) -> Iterator[Quarantine]:
    """In order of their sources' names. Raises FactsUnavailable."""
    there = set(_names(account))
    for each in managed_queues(account):
        arn = arn_of_quarantine(each.queue_arn)
        if parts_of(arn).name not in there:
            continue
        try:
            found = attributes_of(account.clients, arn)
        except QueueGone:
            continue
        queue = Queue(arn, queue_url(account.clients, arn), found)
        yield Quarantine(queue, each.queue_arn, _oldest_at(account, queue, now))


def quarantine_named(account: Account, named: str) -> Queue:
    """The quarantine of a queue, or the queue itself where that is one; Stopped where none is."""
    arn = queue_arn_of(account, named)
    arn = arn if is_quarantine(parts_of(arn).name) else arn_of_quarantine(arn)
    try:
        return queue_of(account, arn)
    except Stopped as stopped:
        if stopped.code is not Exit.NOT_FOUND:
            raise
        raise Stopped(_none(account, named, arn), Exit.NOT_FOUND) from stopped


def _none(account: Account, named: str, quarantine_arn: str) -> str:
    """Why a queue has none: it is none itself, or nothing came back yet."""
    name, said = parts_of(quarantine_arn).name, named[:120]
    source_arn = queue_arn_of(account, named)
    if source_arn == quarantine_arn:
        return f"there is no queue {name}: `mendq quarantine list` shows those that there are"
    try:
        attributes_of(account.clients, source_arn)
    except QueueGone:
        shows = "`mendq quarantine list` shows the quarantines that there are"
        return f"there is no queue {said}, and no {name}: {shows}"
    return f"{said} has no quarantine: there is no {name} until a message comes back"


def route_out_of(account: Account, named: str) -> Route:
    """From a quarantine to its source. Stopped where either is gone, or may not be moved out of.

    So it is while Mendq sends back the source's DLQ messages: one that died again after it was
    returned would be taken for one of these.
    """
    messages = quarantine_named(account, named)
    arn = queue_arn_of(account, named)
    source = movable(account, _source_of(arn) if arn == messages.arn else arn)
    require_last(messages)
    redrive = redrive_of(source.attributes.get("RedrivePolicy", ""))
    dlq_arn = arn_of(redrive.dlq_arn) if redrive else None
    if dlq_arn is not None:
        require_idle(account, dlq_arn)
    return Route(movable(account, messages.arn), source, dlq_arn=dlq_arn or "")


def _source_of(quarantine_arn: str) -> str:
    """By the name; of one that had to be cut the source is to be named instead."""
    arn = parts_of(quarantine_arn)
    ending = FIFO if arn.name.endswith(FIFO) else ""
    base = arn.name.removesuffix(FIFO).removesuffix(QUARANTINE_SUFFIX)
    source_arn = arn_of_name(f"{base}{ending}", arn.region, arn.account)
    if source_arn is None or arn_of_quarantine(source_arn) != quarantine_arn:
        raise Stopped(f"{arn.name} does not tell its source: name the source", Exit.USAGE)
    return source_arn


def _names(account: Account) -> Iterator[str]:
    with looking("the queues of the account"):
        pages = account.clients.sqs.get_paginator("list_queues").paginate(
            PaginationConfig={"PageSize": 1_000}
        )
        for page in pages:
            yield from (url.rpartition("/")[2] for url in page.get("QueueUrls", []))


def _oldest_at(account: Account, queue: Queue, now: datetime) -> datetime | None:
    with looking(f"the oldest message of {queue.name}"):
        answer = account.clients.cloudwatch.get_metric_statistics(
            Namespace="AWS/SQS",
            MetricName="ApproximateAgeOfOldestMessage",
            Dimensions=[{"Name": "QueueName", "Value": queue.name}],
            StartTime=now - _READS_BACK,
            EndTime=now,
            Period=60,
            Statistics=["Maximum"],
        )
    found = sorted(answer.get("Datapoints", []), key=lambda each: each["Timestamp"])
    if not found or not queue.waiting:
        return None
    newest = found[-1]
    return newest["Timestamp"].astimezone(UTC) - timedelta(seconds=newest["Maximum"])


_MOST_BODY = 4_096
_MOST_VALUE = 60


def document_of(message: Message, *, with_body: bool) -> dict[str, Any]:
    """All that can be sent again, without what SQS made up itself."""
    retained = quarantine_reason(message)
    return {
        "message_id": message.message_id,
        "sent_at": to_text(message.sent_at),
        "receives": message.receive_count,
        "redrive_count": max(message.redrive_count, retained.redrive_count if retained else 0),
        "source_arn": retained.source if retained else message.source_arn,
        "why": retained.why if retained else None,
        "quarantined_at": retained.at if retained else None,
        "case_id": retained.case if retained else None,
        "group_id": message.group_id or None,
        "deduplication_id": message.deduplication_id or None,
        "trace_header": message.trace_header or None,
        "bytes": message.size_bytes,
        "attributes": {name: _attribute(each) for name, each in message.attributes.items()},
        **({"body": message.body} if with_body else {}),
    }


def show_message(out: Output, message: Message, now: datetime, *, with_body: bool) -> None:
    retained = quarantine_reason(message)
    out.say(message.message_id, "bold")
    if retained is None:
        out.under("why it is here is not known: it bears no mark of Mendq's", "yellow")
    else:
        out.under(plain(retained.why, 400))
        redrive_count = counted(retained.redrive_count, "time")
        out.under(
            f"here since {_moment(retained.at)}, sent back {redrive_count}, "
            f"{plain(retained.case, 80)}"
        )
    group = f", group {value(message.group_id, _MOST_VALUE)}" if message.group_id else ""
    size = counted(message.size_bytes, "byte")
    receives = counted(message.receive_count, "receive")
    out.under(f"{age(message.sent_at, now)} old, {size}, {receives}{group}", "dim")
    for name, each in message.attributes.items():
        if name not in (REDRIVE_COUNT, QUARANTINED):
            out.under(f"{plain(name, _MOST_VALUE)} = {_in_words(each)}", "dim")
    if with_body:
        out.whole(plain(message.body, _MOST_BODY), "", indent=2)


def _moment(written: str) -> str:
    """A mark is a sender's text as well, once it was sent again."""
    try:
        return minute(datetime.fromisoformat(written).astimezone(UTC))
    except (ValueError, OverflowError):
        return plain(written, 40)


def _in_words(attribute: MessageAttribute) -> str:
    if isinstance(attribute.value, bytes):
        return f"({counted(len(attribute.value), 'byte')})"
    return value(attribute.value, _MOST_VALUE) or '""'


def _attribute(attribute: MessageAttribute) -> dict[str, str]:
    if isinstance(attribute.value, bytes):
        text = b64encode(attribute.value).decode()
        return {"DataType": attribute.data_type, "BinaryValue": text}
    return {"DataType": attribute.data_type, "StringValue": attribute.value}


@dataclass
class DropFile:
    """One JSON document a line, readable by its owner alone: bodies are in it.

    Nothing is held back in memory, so that whatever fails fails where it is met.
    """

    path: Path
    handle: int
    _retained_bytes: int = field(default=0, init=False)

    def keep(self, messages: Iterable[Message]) -> None:
        """All on the disk when it returns; Stopped where that fails, and none is in the file."""
        documents = (document_of(each, with_body=True) for each in messages)
        lines = "".join(json.dumps(each, ensure_ascii=True) + "\n" for each in documents).encode()
        try:
            _write(self.handle, lines)
            os.fsync(self.handle)
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self.handle, self._retained_bytes)
            raise Stopped(f"{self.path} cannot be written: {_said(error)}") from error
        self._retained_bytes += len(lines)


@contextmanager
def drop_file(path: Path) -> Iterator[DropFile]:
    """A new one; Stopped where one is there, or none can be made."""
    handle = _made(path)
    try:
        yield DropFile(path, handle)
    finally:
        # Whatever is in it is on the disk already.
        with suppress(OSError):
            os.close(handle)


def place_of(path: Path) -> Path:
    """From the root on; Stopped where the folder that one stands in is gone, or a file is there."""
    try:
        place = path.absolute()
    except OSError as error:
        raise Stopped(f"{path} is nowhere: {_said(error)}", Exit.USAGE) from error
    if os.path.lexists(place):
        raise _is_there(place)
    return place


def _made(path: Path) -> int:
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            _make_lasting(path.parent)
        except OSError:
            os.close(handle)
            path.unlink()
            raise
    except FileExistsError as error:
        raise _is_there(path) from error
    except OSError as error:
        line = f"{path} cannot be made: {_said(error)}; --file names another place"
        raise Stopped(line, Exit.USAGE) from error
    return handle


def _is_there(path: Path) -> Stopped:
    line = f"{path} cannot be made: there is one, and it is not written over; --file names another"
    return Stopped(line, Exit.USAGE)


def _make_lasting(folder: Path) -> None:
    """A new file's name is in its folder, and that is on the disk only when it was told so."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _write(handle: int, lines: bytes) -> None:
    """The system may take less than it was given."""
    left = memoryview(lines)
    while left:
        left = left[os.write(handle, left) :]


def _said(error: OSError) -> str:
    return error.strerror or str(error)

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

from cli.account import Account
from cli.exit_codes import Exit, Stopped
from cli.output import Output, age, minute
from cli.queues import managed_queues, queue_arn_of
from cli.redrive.route import Queue, Route, movable, queue_of, require_idle, require_last
from functions.aws.errors import QueueGone, looking
from functions.aws.queue_look import attributes_of, queue_url
from functions.healing.companions import FIFO
from functions.healing.dead_letters import redrive_of
from functions.healing.evidence import to_text
from functions.healing.letters import HOPS, QUARANTINED, Letter, MessageAttribute
from functions.healing.marks import kept_because
from functions.healing.plain_text import counted, plain, value
from functions.healing.quarantines import SUFFIX, arn_for, is_quarantine
from functions.healing.queue_names import arn_of, arn_of_name, parts_of

_LOOKS_BACK = timedelta(minutes=15)


@dataclass(frozen=True)
class Quarantine:
    """One beside a managed source; `oldest_at` is None where CloudWatch does not say.

    The oldest letter came then or before: SQS's metric leaves out what was received three times,
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
        """When SQS has deleted the first letter, at the latest."""
        kept = self.queue.attributes.get("MessageRetentionPeriod")
        if self.oldest_at is None or kept is None:
            return None
        return self.oldest_at + timedelta(seconds=int(kept))

    @property
    def letters(self) -> int:
        return self.queue.waiting + self.in_flight


def quarantines(account: Account, now: datetime) -> Iterator[Quarantine]:
    """In order of their sources' names. Raises FactsUnavailable."""
    there = set(_names(account))
    for each in managed_queues(account):
        arn = arn_for(each.queue_arn)
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
    arn = arn if is_quarantine(parts_of(arn).name) else arn_for(arn)
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
    return f"{said} has no quarantine: there is no {name} until a letter comes back"


def route_out_of(account: Account, named: str) -> Route:
    """From a quarantine to its source. Stopped where either is gone, or may not be moved out of.

    So it is while Mendq sends back the source's dead letters: one that died again after it was
    returned would be taken for one of these.
    """
    letters = quarantine_named(account, named)
    arn = queue_arn_of(account, named)
    source = movable(account, _source_of(arn) if arn == letters.arn else arn)
    require_last(letters)
    redrive = redrive_of(source.attributes.get("RedrivePolicy", ""))
    dead_letter_arn = arn_of(redrive.dead_letter_arn) if redrive else None
    if dead_letter_arn is not None:
        require_idle(account, dead_letter_arn)
    return Route(movable(account, letters.arn), source, dead_letter_arn=dead_letter_arn or "")


def _source_of(quarantine_arn: str) -> str:
    """By the name; of one that had to be cut the source is to be named instead."""
    arn = parts_of(quarantine_arn)
    ending = FIFO if arn.name.endswith(FIFO) else ""
    base = arn.name.removesuffix(FIFO).removesuffix(SUFFIX)
    source_arn = arn_of_name(f"{base}{ending}", arn.region, arn.account)
    if source_arn is None or arn_for(source_arn) != quarantine_arn:
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
    with looking(f"the oldest letter of {queue.name}"):
        answer = account.clients.cloudwatch.get_metric_statistics(
            Namespace="AWS/SQS",
            MetricName="ApproximateAgeOfOldestMessage",
            Dimensions=[{"Name": "QueueName", "Value": queue.name}],
            StartTime=now - _LOOKS_BACK,
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


def document_of(letter: Letter, *, with_body: bool) -> dict[str, Any]:
    """All that can be sent again, without what SQS made up itself."""
    kept = kept_because(letter)
    return {
        "message_id": letter.message_id,
        "sent_at": to_text(letter.sent_at),
        "receives": letter.receive_count,
        "hops": max(letter.hops, kept.hops if kept else 0),
        "source_arn": kept.source if kept else letter.source_arn,
        "why": kept.why if kept else None,
        "quarantined_at": kept.at if kept else None,
        "case_id": kept.case if kept else None,
        "group_id": letter.group_id or None,
        "deduplication_id": letter.deduplication_id or None,
        "trace_header": letter.trace_header or None,
        "bytes": letter.size_bytes,
        "attributes": {name: _attribute(each) for name, each in letter.attributes.items()},
        **({"body": letter.body} if with_body else {}),
    }


def show_letter(out: Output, letter: Letter, now: datetime, *, with_body: bool) -> None:
    kept = kept_because(letter)
    out.say(letter.message_id, "bold")
    if kept is None:
        out.under("why it is here is not known: it bears no mark of Mendq's", "yellow")
    else:
        out.under(plain(kept.why, 400))
        hops = counted(kept.hops, "time")
        out.under(f"here since {_moment(kept.at)}, sent back {hops}, {plain(kept.case, 80)}")
    group = f", group {value(letter.group_id, _MOST_VALUE)}" if letter.group_id else ""
    size = counted(letter.size_bytes, "byte")
    receives = counted(letter.receive_count, "receive")
    out.under(f"{age(letter.sent_at, now)} old, {size}, {receives}{group}", "dim")
    for name, each in letter.attributes.items():
        if name not in (HOPS, QUARANTINED):
            out.under(f"{plain(name, _MOST_VALUE)} = {_in_words(each)}", "dim")
    if with_body:
        out.whole(plain(letter.body, _MOST_BODY), "", indent=2)


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
    _kept_bytes: int = field(default=0, init=False)

    def keep(self, letters: Iterable[Letter]) -> None:
        """All on the disk when it returns; Stopped where that fails, and none is in the file."""
        documents = (document_of(each, with_body=True) for each in letters)
        lines = "".join(json.dumps(each, ensure_ascii=True) + "\n" for each in documents).encode()
        try:
            _write(self.handle, lines)
            os.fsync(self.handle)
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self.handle, self._kept_bytes)
            raise Stopped(f"{self.path} cannot be written: {_said(error)}") from error
        self._kept_bytes += len(lines)


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

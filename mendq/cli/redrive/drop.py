"""Messages that are dropped: first all of them in a file on the disk, then deleted."""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event
from typing import Any

from mendq.cli.exit_codes import CommandError, Exit
from mendq.cli.redrive.work import Act, MayGo, Work
from mendq.model.evidence import to_text
from mendq.model.json_text import to_json
from mendq.notifications.text import format_count
from mendq.redrive.messages import Message, MoveResult, NotMoved, quarantine_reason
from mendq.redrive.mover import MessageMover


class Drop(Work, frozen=True):
    """Messages that are deleted once the file holds them."""

    file: Path

    done, said, doing = "dropped", "dropped", "dropping"

    def question(self, chosen: int) -> str:
        going = format_count(self.choice.going(chosen), "message")
        return f"Write {going} to {self.file}, and delete them from {self.route.messages.name}?"

    @contextmanager
    def begun(self, stop: Event, faults: list[str]) -> Iterator[Act]:  # noqa: ARG002 - none come
        """A new file; CommandError where one is there, or none can be made."""
        handle = _made(self.file)

        def drop(
            mover: MessageMover, messages: Sequence[Message], may_go: MayGo
        ) -> Iterator[MoveResult]:
            if may_go(len(messages)):
                _keep(messages, handle, self.file)
                yield _deleted(messages, mover)

        try:
            yield drop
        finally:
            # Whatever is in it is on the disk already.
            with suppress(OSError):
                os.close(handle)

    def more(self) -> dict[str, Any]:
        return {"file": str(self.file.absolute())}


def _deleted(messages: Sequence[Message], mover: MessageMover) -> MoveResult:
    gone = mover.delete(messages)
    reason = "SQS did not take the delete: it is in the file, and in the queue still"
    stays = (each.message_id for each in messages if each.message_id not in gone)
    failed = tuple(NotMoved(each, "not_deleted", reason) for each in stays)
    return MoveResult(moved=len(gone), failed=failed)


def _keep(messages: Iterable[Message], handle: int, path: Path) -> None:
    """All on the disk when it returns, one JSON document a line.

    Nothing is held back in memory, so that whatever fails fails where it is met: CommandError
    then, and none of these is in the file.
    """
    documents = (document_of(each, with_body=True) for each in messages)
    lines = "".join(to_json(each) + "\n" for each in documents)
    left, retained_bytes = lines.encode(), os.fstat(handle).st_size
    try:
        # The system may take less than it was given.
        while left:
            left = left[os.write(handle, left) :]
        os.fsync(handle)
    except OSError as error:
        with suppress(OSError):
            os.ftruncate(handle, retained_bytes)
        raise CommandError(f"{path} cannot be written: {_said(error)}") from error


def document_of(message: Message, *, with_body: bool) -> dict[str, Any]:
    """All that can be sent again, without what SQS made up itself."""
    retained = quarantine_reason(message)
    attributes = {name: each.document() for name, each in message.attributes.items()}
    for each in attributes.values():
        if "BinaryValue" in each:
            each["BinaryValue"] = b64encode(each["BinaryValue"]).decode()
    return {
        "message_id": message.message_id,
        "sent_at": to_text(message.sent_at),
        "receives": message.receive_count,
        "redrive_count": message.redrive_count,
        "source_arn": retained.source if retained else message.source_arn,
        "why": retained.why if retained else None,
        "quarantined_at": retained.at if retained else None,
        "case_id": retained.case if retained else None,
        "group_id": message.group_id or None,
        "deduplication_id": message.deduplication_id or None,
        "trace_header": message.trace_header or None,
        "bytes": message.size_bytes,
        "attributes": attributes,
        **({"body": message.body} if with_body else {}),
    }


def _made(path: Path) -> int:
    """Readable by its owner alone: bodies are in it."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            _make_lasting(path.parent)
        except OSError:
            os.close(handle)
            path.unlink()
            raise
    except OSError as error:
        why = _said(error)
        if isinstance(error, FileExistsError):
            why = "there is one, and it is not written over"
        line = f"{path} cannot be made: {why}; --file names another place"
        raise CommandError(line, Exit.USAGE) from error
    return handle


def _make_lasting(folder: Path) -> None:
    """A new file's name is in its folder, and that is on the disk only when it was told so."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _said(error: OSError) -> str:
    return error.strerror or str(error)

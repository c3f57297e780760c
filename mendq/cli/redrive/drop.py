"""Drop messages: write them to a file on the disk, and only then delete them from the queue."""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event
from typing import Any

from mendq.cli.exit_codes import CommandError, Exit
from mendq.cli.redrive.work import Act, DlqWork, MayGo
from mendq.model.evidence import format_time
from mendq.model.json_text import to_json
from mendq.notifications.text import format_count
from mendq.redrive.messages import Message, MoveResult, UnmovedMessage, read_quarantine_mark
from mendq.redrive.mover import MessageMover


class Drop(DlqWork, frozen=True):
    """The work of `mendq quarantine drop`: delete messages after they are stored in a file."""

    file: Path

    result_key = "dropped"
    past_text = "dropped"
    progress_text = "dropping"

    def question(self, chosen: int) -> str:
        """Return the question to confirm."""
        messages = format_count(self.choice.apply_limit(chosen), "message")
        return f"Write {messages} to {self.file}, and delete them from {self.route.messages.name}?"

    @contextmanager
    def start(self, stop: Event, faults: list[str]) -> Iterator[Act]:  # noqa: ARG002 - none come
        """Make the file, and yield the function that stores and deletes messages.

        Raises CommandError if the file exists or cannot be made.
        """
        handle = _create_file(self.file)

        def drop(
            mover: MessageMover, messages: Sequence[Message], may_go: MayGo
        ) -> Iterator[MoveResult]:
            if may_go(len(messages)):
                _store_messages(messages, handle, self.file)
                yield _delete_messages(messages, mover)

        try:
            yield drop
        finally:
            # All that was written is on the disk already, so a failing close loses nothing.
            with suppress(OSError):
                os.close(handle)

    def extra_document(self) -> dict[str, Any]:
        """Return the file's path, for `--json`."""
        return {"file": str(self.file.absolute())}


def _delete_messages(messages: Sequence[Message], mover: MessageMover) -> MoveResult:
    """Delete the messages. The result lists those that SQS did not delete."""
    deleted_ids = mover.delete(messages)
    reason = "SQS did not take the delete: it is in the file, and in the queue still"
    failed = tuple(
        UnmovedMessage(message.message_id, "not_deleted", reason)
        for message in messages
        if message.message_id not in deleted_ids
    )
    return MoveResult(moved_count=len(deleted_ids), unmoved_messages=failed)


def _store_messages(messages: Iterable[Message], handle: int, path: Path) -> None:
    """Append the messages to the file, one JSON document on each line, and flush it to the disk.

    Raises CommandError if that fails; then none of these messages is in the file. It writes without
    a buffer, so that a failure shows here and not when the file is closed.
    """
    lines = [to_json(document_of(message, with_body=True)) + "\n" for message in messages]
    content = "".join(lines).encode()
    size_before = os.fstat(handle).st_size
    try:
        # A write may take only a part of the content.
        while content:
            content = content[os.write(handle, content) :]
        os.fsync(handle)
    except OSError as error:
        with suppress(OSError):
            os.ftruncate(handle, size_before)
        raise CommandError(f"{path} cannot be written: {_error_text(error)}") from error


def document_of(message: Message, *, with_body: bool) -> dict[str, Any]:
    """Return a message as a JSON document: all that is needed to send it again, and more.

    The rest is for people: why the message is in quarantine, and attributes that SQS itself added,
    such as the receive count.
    """
    quarantined = read_quarantine_mark(message)
    attributes = {name: value.to_request() for name, value in message.attributes.items()}
    for attribute in attributes.values():
        if "BinaryValue" in attribute:
            attribute["BinaryValue"] = b64encode(attribute["BinaryValue"]).decode()
    document = {
        "message_id": message.message_id,
        "sent_at": format_time(message.sent_at),
        "receives": message.receive_count,
        "redrive_count": message.redrive_count,
        "source_arn": quarantined.source if quarantined else message.source_arn,
        "why": quarantined.why if quarantined else None,
        "quarantined_at": quarantined.at if quarantined else None,
        "case_id": quarantined.case if quarantined else None,
        "group_id": message.group_id or None,
        "deduplication_id": message.deduplication_id or None,
        "trace_header": message.trace_header or None,
        "bytes": message.size_bytes,
        "attributes": attributes,
    }
    if with_body:
        document["body"] = message.body
    return document


def _create_file(path: Path) -> int:
    """Create the file and return its handle. Only its owner may read it, because it has bodies.

    Raises CommandError if there is such a file, or if it cannot be made.
    """
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            _flush_folder(path.parent)
        except OSError:
            os.close(handle)
            path.unlink()
            raise
    except OSError as error:
        why = _error_text(error)
        if isinstance(error, FileExistsError):
            why = "there is one, and it is not written over"
        line = f"{path} cannot be made: {why}; --file names another place"
        raise CommandError(line, Exit.USAGE) from error
    return handle


def _flush_folder(folder: Path) -> None:
    """Flush the folder to the disk. Without this, a crash could lose a new file's name."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _error_text(error: OSError) -> str:
    return error.strerror or str(error)

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
from mendq.cli.private_file import create_private_file
from mendq.cli.redrive.work import DlqWork, MessageAction, WaitForTurn
from mendq.model.json_text import to_json
from mendq.model.time_text import format_time
from mendq.notifications.text import format_count
from mendq.redrive.messages import Message, MoveResult, UnmovedMessage, read_quarantine_mark
from mendq.redrive.mover import MessageMover


class DropWork(DlqWork, frozen=True):
    """The work of `mendq quarantine drop`: delete messages after they are stored in a file."""

    file_path: Path

    result_key = "dropped"
    finished_work_text = "dropped"
    progress_text = "dropping"

    def make_question(self, chosen_count: int) -> str:
        """Return the question that the operator must confirm."""
        message_text = format_count(self.choice.apply_limit(chosen_count), "message")
        queue_name = self.route.messages_queue.name
        message_text += self.describe_hidden_messages(chosen_count)
        return f"Write {message_text} to {self.file_path}, and delete them from {queue_name}?"

    @contextmanager
    def start(
        self,
        stop_event: Event,  # noqa: ARG002 - nothing goes wrong between two batches
        faults: list[str],  # noqa: ARG002
    ) -> Iterator[MessageAction]:
        """Create the file for the block, and yield the action that stores and deletes messages.

        Raises CommandError if the file exists or cannot be made.
        """
        file_descriptor = _create_file(self.file_path)
        try:
            yield _StoreAndDeleteAction(self.file_path, file_descriptor)
        finally:
            # Everything written is on the disk already, so a failing close loses nothing.
            with suppress(OSError):
                os.close(file_descriptor)

    def make_extra_document(self) -> dict[str, Any]:
        """Return the file's path, for `--json`."""
        return {"file": str(self.file_path.absolute())}


class _StoreAndDeleteAction(MessageAction, frozen=True):
    """Store each batch of messages in the open file, and only then delete it from the queue."""

    file_path: Path
    file_descriptor: int

    def process(
        self, mover: MessageMover, messages: Sequence[Message], wait_for_turn: WaitForTurn
    ) -> Iterator[MoveResult]:
        """Store and delete the messages as one batch. Raises CommandError if storing fails."""
        if wait_for_turn(len(messages)):
            _store_messages(messages, self.file_descriptor, self.file_path)
            yield _delete_messages(messages, mover)


def _delete_messages(messages: Sequence[Message], mover: MessageMover) -> MoveResult:
    """Delete the messages. The result lists those that were not deleted."""
    deleted_message_ids = mover.delete(messages)
    not_deleted_reason = "SQS did not take the delete: it is in the file, and in the queue still"
    undeleted_messages = tuple(
        UnmovedMessage(message.message_id, "not_deleted", not_deleted_reason)
        for message in messages
        if message.message_id not in deleted_message_ids
    )
    return MoveResult(moved_count=len(deleted_message_ids), unmoved_messages=undeleted_messages)


def _store_messages(messages: Iterable[Message], file_descriptor: int, file_path: Path) -> None:
    """Append the messages to the file, one JSON document on each line, and flush it to the disk.

    Raises CommandError if that fails, after an attempt to remove these messages from the file. This
    function writes without a buffer, so that an error appears here and not when the file is closed.
    """
    json_lines = [
        to_json(make_message_document(message, with_body=True)) + "\n" for message in messages
    ]
    unwritten_bytes = "".join(json_lines).encode()
    file_size_before_write = os.fstat(file_descriptor).st_size
    try:
        # A write may take only a part of the bytes.
        while unwritten_bytes:
            unwritten_bytes = unwritten_bytes[os.write(file_descriptor, unwritten_bytes) :]
        os.fsync(file_descriptor)
    except OSError as error:
        with suppress(OSError):
            os.ftruncate(file_descriptor, file_size_before_write)
        raise CommandError(f"{file_path} cannot be written: {_describe_os_error(error)}") from error


def make_message_document(message: Message, *, with_body: bool) -> dict[str, Any]:
    """Return a message as a JSON document, with everything that is needed to send it again.

    The document also says why the message is in quarantine, and what SQS itself added, such as the
    receive count. The body is left out if `with_body` is False.
    """
    quarantine_mark = read_quarantine_mark(message)
    attributes = {name: value.to_request() for name, value in message.attributes.items()}
    for attribute in attributes.values():
        if "BinaryValue" in attribute:
            attribute["BinaryValue"] = b64encode(attribute["BinaryValue"]).decode()
    document = {
        "message_id": message.message_id,
        "sent_at": format_time(message.sent_at),
        "receives": message.receive_count,
        "redrive_count": message.redrive_count,
        "source_arn": quarantine_mark.source if quarantine_mark else message.source_arn,
        "why": quarantine_mark.why if quarantine_mark else None,
        "quarantined_at": quarantine_mark.at if quarantine_mark else None,
        "case_id": quarantine_mark.case if quarantine_mark else None,
        "group_id": message.group_id or None,
        "deduplication_id": message.deduplication_id or None,
        "trace_header": message.trace_header or None,
        "bytes": message.size_bytes,
        "attributes": attributes,
    }
    if with_body:
        document["body"] = message.body
    return document


def _create_file(new_file_path: Path) -> int:
    """Create the file and return its file descriptor.

    Only the file's owner may read it, because it has bodies. Raises CommandError if the file exists
    already, or if it cannot be created.
    """
    try:
        file_descriptor = create_private_file(new_file_path)
        try:
            _flush_folder(new_file_path.parent)
        except OSError:
            os.close(file_descriptor)
            new_file_path.unlink()
            raise
    except OSError as error:
        reason = _describe_os_error(error)
        if isinstance(error, FileExistsError):
            reason = "the file exists already and is not overwritten"
        problem = f"{new_file_path} cannot be made: {reason}; --file names another place"
        raise CommandError(problem, Exit.USAGE) from error
    return file_descriptor


def _flush_folder(folder: Path) -> None:
    """Flush the folder to the disk. Without this, a crash could lose a new file's name."""
    folder_descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(folder_descriptor)
    finally:
        os.close(folder_descriptor)


def _describe_os_error(error: OSError) -> str:
    return error.strerror or str(error)

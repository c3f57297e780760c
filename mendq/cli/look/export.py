"""`mendq export DIR`: write each managed queue's configuration to a file, to be kept in git.

No file is deleted. If a queue is gone, a person must delete its file.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import track

from mendq.aws.errors import QueueGone
from mendq.aws.queue import ManagedQueue, read_queue_attributes
from mendq.cli.commands import (
    IAM_ACTIONS_TO_LIST_MANAGED_QUEUES,
    QUEUE_ATTRIBUTES_ACTIONS,
    CommandKind,
    command,
)
from mendq.cli.exit_codes import CommandError, Exit
from mendq.cli.invocation import Invocation, parse_folder
from mendq.cli.queues import read_managed_queues
from mendq.model.json_text import to_json
from mendq.model.queue import parse_json_object
from mendq.notifications.configuration import select_configuration

JSON_ATTRIBUTES = ("Policy", "RedrivePolicy", "RedriveAllowPolicy")


@command(8, CommandKind.LOOKING, IAM_ACTIONS_TO_LIST_MANAGED_QUEUES | QUEUE_ATTRIBUTES_ACTIONS)
def export(
    call: Invocation,
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", parser=parse_folder, help="Made where it is missing.")
    ],
) -> None:
    """Write the managed queues' configuration, for git.

    Examples:
      mendq export queues/
      mendq export queues/ --json
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CommandError(
            f"{folder} is no folder to write to: {error.strerror}", Exit.USAGE
        ) from error
    with call.out.show_waiting("listing the managed queues"):
        queues = read_managed_queues(call.account)
    written_files: list[str] = []
    unchanged_files: list[str] = []
    deleted_queue_arns: list[str] = []
    for queue in track(queues, "reading queues", console=call.out.progress, transient=True):
        try:
            queue_attributes = read_queue_attributes(call.account.clients, queue.queue_arn)
        except QueueGone:
            deleted_queue_arns.append(queue.queue_arn)
            continue
        file_name = f"{queue.name}.json"
        if replace_if_changed(folder / file_name, make_document_text(queue, queue_attributes)):
            written_files.append(file_name)
        else:
            unchanged_files.append(file_name)
    result_document = {
        "folder": str(folder),
        "written": written_files,
        "unchanged": unchanged_files,
        "gone": deleted_queue_arns,
    }
    call.out.print_json(result_document)
    call.out.say(f"{len(written_files)} written, {len(unchanged_files)} unchanged in {folder}")
    for queue_arn in deleted_queue_arns:
        call.out.say(f"{queue_arn} was deleted meanwhile", "yellow")


def make_document_text(queue: ManagedQueue, attributes: Mapping[str, str]) -> str:
    """Return the queue's configuration and tags as JSON, such that a diff shows only real changes.

    Keys are sorted, JSON attributes are parsed, and all text is ASCII. Counters and times are left
    out.
    """
    configuration: dict[str, Any] = dict(select_configuration(attributes))
    for name in JSON_ATTRIBUTES:
        if name in configuration:
            configuration[name] = parse_json_object(configuration[name]) or configuration[name]
    document = {"queue_arn": queue.queue_arn, "attributes": configuration, "tags": dict(queue.tags)}
    return to_json(document, indent=2, sort_keys=True) + "\n"


def require_writable_path(path: Path) -> None:
    """Raise CommandError if no file can be written at `path`.

    A command calls this function before it starts, so that its work is not lost at the end.
    """
    _require_plain_file(path)
    if not (path.parent.is_dir() and os.access(path.parent, os.W_OK | os.X_OK)):
        raise CommandError(f"{path.parent} is no folder that can be written to", Exit.USAGE)


def _require_plain_file(path: Path) -> None:
    """Raise CommandError if `path` exists and is not a plain file.

    Otherwise the new file could replace a link, or even a device or a pipe if the operator is root.
    """
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise CommandError(f"{path} is no plain file: name one, or a new one", Exit.USAGE)


def replace_if_changed(path: Path, text: str, *, yes: bool = True) -> bool:
    """Write the text to a file and return True. If the file has this content, return False.

    The file is replaced as a whole, so that no reader sees only a part of it. Raises CommandError
    if it cannot be written, if `path` is not a plain file, or if a file with other content exists
    and `yes` is False.
    """
    new_content = text.encode()
    try:
        _require_plain_file(path)
        if path.is_file() and path.read_bytes() == new_content:
            return False
        if path.is_file() and not yes:
            problem = f"{path} is there already and differs: --yes overwrites it; or move it away"
            raise CommandError(problem, Exit.USAGE)
        file_descriptor, temporary_path = tempfile.mkstemp(
            dir=path.parent, prefix=f".{path.name[:40]}."
        )
        try:
            with os.fdopen(file_descriptor, "wb") as temporary_file:
                temporary_file.write(new_content)
            Path(temporary_path).chmod(0o644)
            Path(temporary_path).replace(path)
        finally:
            Path(temporary_path).unlink(missing_ok=True)
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}") from error
    return True

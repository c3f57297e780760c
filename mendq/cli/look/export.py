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
from mendq.aws.queue import ManagedQueue, attributes_of
from mendq.cli.commands import (
    MANAGED_QUEUES_ACTIONS,
    QUEUE_ATTRIBUTES_ACTIONS,
    CommandKind,
    command,
)
from mendq.cli.exit_codes import CommandError, Exit
from mendq.cli.invocation import Invocation, parse_folder
from mendq.cli.queues import managed_queues
from mendq.model.json_text import to_json
from mendq.model.queue import parse_json_object
from mendq.notifications.configuration import select_configuration

DOCUMENTS = ("Policy", "RedrivePolicy", "RedriveAllowPolicy")


@command(8, CommandKind.LOOKING, MANAGED_QUEUES_ACTIONS | QUEUE_ATTRIBUTES_ACTIONS)
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
        queues = managed_queues(call.account)
    written: list[str] = []
    unchanged: list[str] = []
    gone: list[str] = []
    for queue in track(queues, "reading queues", console=call.out.progress, transient=True):
        try:
            text = make_document_text(queue, attributes_of(call.account.clients, queue.queue_arn))
        except QueueGone:
            gone.append(queue.queue_arn)
            continue
        file_name = f"{queue.name}.json"
        if replace_if_changed(folder / file_name, text):
            written.append(file_name)
        else:
            unchanged.append(file_name)
    done = {"folder": str(folder), "written": written, "unchanged": unchanged, "gone": gone}
    call.out.print_json(done)
    call.out.say(f"{len(written)} written, {len(unchanged)} unchanged in {folder}")
    for arn in gone:
        call.out.say(f"{arn} was deleted meanwhile", "yellow")


def make_document_text(queue: ManagedQueue, attributes: Mapping[str, str]) -> str:
    """Return the queue's configuration as JSON that changes only if the configuration does.

    Keys are sorted, JSON attributes are parsed, and all text is ASCII. Counters and times are left
    out.
    """
    chosen: dict[str, Any] = dict(select_configuration(attributes))
    for name in DOCUMENTS:
        if name in chosen:
            chosen[name] = parse_json_object(chosen[name]) or chosen[name]
    document = {"queue_arn": queue.queue_arn, "attributes": chosen, "tags": dict(queue.tags)}
    return to_json(document, indent=2, sort_keys=True) + "\n"


def require_writable_place(path: Path) -> None:
    """Raise CommandError if no file can be written at `path`.

    A command calls it before its work, so that the work is not done in vain.
    """
    _require_file(path)
    if not (path.parent.is_dir() and os.access(path.parent, os.W_OK | os.X_OK)):
        raise CommandError(f"{path.parent} is no folder that can be written to", Exit.USAGE)


def _require_file(path: Path) -> None:
    """Raise CommandError if `path` exists and is no plain file.

    Otherwise the new file would replace a device, a pipe or a link, if the operator is root.
    """
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise CommandError(f"{path} is no plain file: name one, or a new one", Exit.USAGE)


def replace_if_changed(path: Path, text: str, *, yes: bool = True) -> bool:
    """Write the text to a file. Return False if the file has that content already.

    The file is replaced as a whole, so that nobody reads a part of it. Raises CommandError if it
    cannot be written, or if a file with other content exists and `yes` is False.
    """
    content = text.encode()
    try:
        _require_file(path)
        if path.is_file() and path.read_bytes() == content:
            return False
        if path.is_file() and not yes:
            line = f"{path} is there already and differs: --yes overwrites it; or move it away"
            raise CommandError(line, Exit.USAGE)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}.")
        try:
            with os.fdopen(handle, "wb") as opened:
                opened.write(content)
            Path(name).chmod(0o644)
            Path(name).replace(path)
        finally:
            Path(name).unlink(missing_ok=True)
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}") from error
    return True

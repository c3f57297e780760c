"""`mendq export DIR`: every managed queue's configuration, one file each, fit for git.

Nothing is removed: a file whose queue is gone is a person's to delete.
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
from mendq.cli.commands import MANAGED, QUEUE, Kind, command
from mendq.cli.exit_codes import CommandError, Exit
from mendq.cli.invocation import Invocation, parse_folder
from mendq.cli.queues import managed_queues
from mendq.model.json_text import to_json
from mendq.model.queue import parse_json_object
from mendq.notifications.configuration import select_configuration

DOCUMENTS = ("Policy", "RedrivePolicy", "RedriveAllowPolicy")


@command(8, Kind.LOOKING, MANAGED | QUEUE)
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
            text = document_text(queue, attributes_of(call.account.clients, queue.queue_arn))
        except QueueGone:
            gone.append(queue.queue_arn)
            continue
        changed = replace_if_changed(folder / f"{queue.name}.json", text)
        (written if changed else unchanged).append(f"{queue.name}.json")
    done = {"folder": str(folder), "written": written, "unchanged": unchanged, "gone": gone}
    call.out.print_json(done)
    call.out.say(f"{len(written)} written, {len(unchanged)} unchanged in {folder}")
    for arn in gone:
        call.out.say(f"{arn} was deleted meanwhile", "yellow")


def document_text(queue: ManagedQueue, attributes: Mapping[str, str]) -> str:
    """Stable: keys in order, JSON attributes parsed, no counter, no clock, only ASCII."""
    chosen: dict[str, Any] = dict(select_configuration(attributes))
    for name in DOCUMENTS:
        if name in chosen:
            chosen[name] = parse_json_object(chosen[name]) or chosen[name]
    document = {"queue_arn": queue.queue_arn, "attributes": chosen, "tags": dict(queue.tags)}
    return to_json(document, indent=2, sort_keys=True) + "\n"


def require_place(path: Path) -> None:
    """CommandError where no file can be put at `path`: before the work, not after it."""
    _require_file(path)
    if not (path.parent.is_dir() and os.access(path.parent, os.W_OK | os.X_OK)):
        raise CommandError(f"{path.parent} is no folder that can be written to", Exit.USAGE)


def _require_file(path: Path) -> None:
    """A device, a pipe or a link would be replaced by a file: who runs as root loses it."""
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise CommandError(f"{path} is no plain file: name one, or a new one", Exit.USAGE)


def replace_if_changed(path: Path, text: str, *, yes: bool = True) -> bool:
    """Whole or not at all: what reads meanwhile sees no part.

    Raises CommandError where it differs unasked.
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

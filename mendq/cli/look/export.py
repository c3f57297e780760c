"""`mendq export DIR`: write each managed queue's configuration to a file, to be kept in git.

No file is deleted. If a queue is gone, a person must delete its file.
"""

from __future__ import annotations

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
from mendq.cli.private_file import WrittenFile, report_open_files, write_private_file
from mendq.cli.queues import read_managed_queues
from mendq.model.json_text import to_json
from mendq.model.queue import parse_json_object
from mendq.notifications.configuration import select_configuration

JSON_ATTRIBUTES = ("Policy", "RedrivePolicy", "RedriveAllowPolicy")


@command(8, CommandKind.LOOKING, IAM_ACTIONS_TO_LIST_MANAGED_QUEUES | QUEUE_ATTRIBUTES_ACTIONS)
def export(
    call: Invocation,
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR",
            parser=parse_folder,
            help="The folder to write to. It is created if it is missing.",
        ),
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
            f"{folder} is not a folder to write to: {error.strerror}", Exit.USAGE
        ) from error
    with call.out.show_waiting("listing the managed queues"):
        queues = read_managed_queues(call.account)
    written_files: list[WrittenFile] = []
    deleted_queue_arns: list[str] = []
    for queue in track(queues, "reading queues", console=call.out.progress, transient=True):
        try:
            queue_attributes = read_queue_attributes(call.account.clients, queue.queue_arn)
        except QueueGone:
            deleted_queue_arns.append(queue.queue_arn)
            continue
        document_text = make_document_text(queue, queue_attributes)
        written_files.append(write_private_file(folder / f"{queue.name}.json", document_text))
    new_names = [file.path.name for file in written_files if file.is_content_new]
    unchanged_names = [file.path.name for file in written_files if not file.is_content_new]
    result_document = {
        "folder": str(folder),
        "written": new_names,
        "unchanged": unchanged_names,
        "gone": deleted_queue_arns,
    }
    call.out.print_json(result_document)
    call.out.say(f"{len(new_names)} written, {len(unchanged_names)} unchanged in {folder}")
    report_open_files(call.out, written_files)
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

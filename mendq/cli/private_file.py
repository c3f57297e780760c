"""Write files that only their owner can read, because they hold data of the account.

Policies, tags, failed calls and message bodies must not be readable for other users of the machine,
whatever the umask is. So every command that writes such a file does it with this module.
`record_failed_calls.py` runs without Mendq, so it has a function of its own.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from mendq.cli.exit_codes import CommandError, Exit
from mendq.cli.output import Output
from mendq.notifications.text import format_count

PRIVATE_FILE_MODE = 0o600
_MODE_BITS_OF_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class WrittenFile(Struct, frozen=True):
    """Result of `write_private_file`: if the content is new, and the permissions before and now."""

    path: Path
    # False if the file had this content before.
    is_content_new: bool
    # Permission bits before and now. 0 if there was no file before.
    mode_before: int
    mode_now: int

    @property
    def was_open_to_others(self) -> bool:
        """True if the file existed, and group or other users had rights on it."""
        return bool(self.mode_before & _MODE_BITS_OF_OTHERS)

    @property
    def is_open_to_others(self) -> bool:
        """True if others still have rights on the file. Some file systems keep no mode."""
        return bool(self.mode_now & _MODE_BITS_OF_OTHERS)


def require_writable_path(path: Path) -> None:
    """Raise CommandError if no file can be written at `path`.

    A command calls this function before it starts, so that its work is not lost at the end.
    """
    _require_plain_file(path)
    if not (path.parent.is_dir() and os.access(path.parent, os.W_OK | os.X_OK)):
        raise CommandError(
            f"{path.parent} is not a folder that you may write to: name another one", Exit.USAGE
        )


def _require_plain_file(path: Path) -> None:
    """Raise CommandError if `path` exists and is not a plain file.

    Otherwise the new file could replace a link, or even a device or a pipe if the operator is root.
    """
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise CommandError(
            f"{path} is a link, a folder or a device, so it is not overwritten: name another file",
            Exit.USAGE,
        )


def create_private_file(path: Path) -> int:
    """Create a file that only its owner can read and write. Return its file descriptor.

    Raises FileExistsError if there is a file or a link at `path`, and OSError if the file cannot be
    created.
    """
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE_MODE)


def write_private_file(path: Path, text: str, *, yes: bool = True) -> WrittenFile:
    """Write the text to a file that only its owner can read.

    A file that others could read is replaced even if its content stays the same: a new mode alone
    would not end the access of a process that has the old file open. The file is replaced as a
    whole, so that no reader sees only a part of it.

    Args:
        path: The file.
        text: The content.
        yes: True if a file with other content may be replaced.

    Raises:
        CommandError: The file cannot be written, `path` is not a regular file, or a file with other
            content exists and `yes` is False. Nothing was written.
    """
    new_content = text.encode()
    try:
        _require_plain_file(path)
        mode_before = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0
        is_content_new = not path.exists() or path.read_bytes() != new_content
        if path.exists() and is_content_new and not yes:
            problem = f"{path} exists with other content: --yes overwrites it; or move it away"
            raise CommandError(problem, Exit.USAGE)
        if is_content_new or mode_before & _MODE_BITS_OF_OTHERS:
            _replace_file(path, new_content)
        mode_now = stat.S_IMODE(path.stat().st_mode)
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}") from error
    return WrittenFile(path, is_content_new, mode_before, mode_now)


def _replace_file(path: Path, content: bytes) -> None:
    temporary_path = path.with_name(f".{path.name[:40]}.{secrets.token_hex(8)}")
    file_descriptor = create_private_file(temporary_path)
    try:
        with os.fdopen(file_descriptor, "wb") as temporary_file:
            temporary_file.write(content)
        temporary_path.replace(path)
    finally:
        temporary_path.unlink(missing_ok=True)


def report_open_files(out: Output, written_files: Iterable[WrittenFile]) -> None:
    """Tell the operator which files others could read until now, and which they still can."""
    files = list(written_files)
    still_open_files = [file for file in files if file.is_open_to_others]
    closed_files = [
        file for file in files if file.was_open_to_others and not file.is_open_to_others
    ]
    if closed_files:
        were_modes = ", ".join(sorted({f"{file.mode_before:04o}" for file in closed_files}))
        out.say(
            f"other users of this machine could read or write {_name_files(closed_files)} (mode "
            f"{were_modes}); now only you can (mode {PRIVATE_FILE_MODE:04o}). If another user or "
            "a job needs it, give them a copy",
            "yellow",
        )
    if still_open_files:
        out.say(
            f"{_name_files(still_open_files)} can be read or written by other users of this "
            f"machine: the file system does not keep mode {PRIVATE_FILE_MODE:04o}. Write to a "
            "folder on another file system",
            "yellow",
        )


def _name_files(files: list[WrittenFile]) -> str:
    """Return the path of a single file, or the number of files with their folder."""
    first_path = files[0].path
    if len(files) == 1:
        return str(first_path)
    return f"{format_count(len(files), 'file')} in {first_path.parent}"

"""The file that dropped letters are written to before any is deleted."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from cli.exit_codes import Exit, Stopped
from cli.redrive.letter_view import document_of
from functions.healing.letters import Letter


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

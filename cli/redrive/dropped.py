"""The file that dropped letters are written to before any is deleted."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from cli.exit_codes import Exit, Stopped
from cli.redrive.letter_view import document_of
from functions.healing.letters import Letter


@dataclass(frozen=True)
class DropFile:
    """One JSON document a line, readable by its owner alone: bodies are in it."""

    path: Path
    opened: TextIO

    def keep(self, letters: Iterable[Letter]) -> None:
        """On the disk when it returns; Stopped where that fails."""
        try:
            for each in letters:
                line = json.dumps(document_of(each, with_body=True), ensure_ascii=True)
                self.opened.write(line + "\n")
            self.opened.flush()
            os.fsync(self.opened.fileno())
        except OSError as error:
            raise Stopped(f"{self.path} cannot be written: {error.strerror}") from error


@contextmanager
def drop_file(path: Path) -> Iterator[DropFile]:
    """A new one; Stopped where one is there, or none can be made."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        _make_lasting(path.parent)
    except OSError as error:
        raise Stopped(f"{path} cannot be made: {error.strerror}", Exit.USAGE) from error
    with os.fdopen(handle, "w", encoding="ascii") as opened:
        yield DropFile(path, opened)


def _make_lasting(folder: Path) -> None:
    """A new file's name is in its folder, and that is on the disk only when it was told so."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

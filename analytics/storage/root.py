"""What the night asks of the places that it reads and writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class RootUnusable(Exception):
    """A root that cannot be read or written; the text is for the person who named it."""


class Listed(NamedTuple):
    """A file below a root; the path is relative to it."""

    path: str
    size_bytes: int


class Storage(Protocol):
    """All paths are relative to the root; a folder that is not there is empty."""

    def folders(self, folder: str) -> list[str]:
        """The names of the folders directly in `folder`, sorted."""
        ...

    def files(self, folder: str) -> list[Listed]:
        """The files directly in `folder`, sorted."""
        ...

    def no_files(self, folder: str) -> list[str]:
        """What lies directly in `folder` and can never be read as a file, sorted.

        On a disk: folders, pipes, links to nothing. A bucket has files alone.
        """
        ...

    def read(self, path: str) -> bytes | None:
        """None where there is no such file."""
        ...

    def put(self, path: str, content: bytes) -> None:
        """Replace the file whole: a reader sees the old one or the new one."""
        ...

    def remove(self, folder: str) -> None:
        """The folder and what is in it."""
        ...

    def spark_root(self, folders: Sequence[str]) -> str:
        """A root below which Spark finds the files of `folders`, as Hadoop spells it.

        It ends in a slash. What is no file there does not hold Spark up.
        """
        ...

"""A folder of this machine."""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
import weakref
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from analytics.storage.root import Listed, RootUnusable


class FolderStorage:
    """Needs nothing but Python."""

    def __init__(self, root: str) -> None:
        # As Hadoop spells it: without links and `..`, or Spark's files would not be ours.
        self._folder = Path(os.path.realpath(root))
        self._links: Path | None = None

    def folders(self, folder: str) -> list[str]:
        return sorted(each.name for each in self._listed(folder) if each.is_dir())

    def files(self, folder: str) -> list[Listed]:
        found = [each for each in self._listed(folder) if each.is_file()]
        return sorted(Listed(f"{folder}/{each.name}", each.stat().st_size) for each in found)

    def no_files(self, folder: str) -> list[str]:
        found = [each for each in self._listed(folder) if not each.is_file()]
        return sorted(f"{folder}/{each.name}" for each in found)

    def read(self, path: str) -> bytes | None:
        try:
            return (self._folder / path).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise RootUnusable(f"{self._folder / path} cannot be read: {error}") from error

    def put(self, path: str, content: bytes) -> None:
        """Written beside, at the root, so that nothing else ever lies in a table's folder."""
        target = self._folder / path
        beside = self._folder / f".writing-{uuid.uuid4().hex}"
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            beside.write_bytes(content)
            beside.replace(target)
        except OSError as error:
            raise RootUnusable(f"{self._folder} cannot be written to: {error}") from error
        finally:
            with suppress(OSError):  # where the root is a file, that is what is to be said
                beside.unlink()

    def remove(self, folder: str) -> None:
        shutil.rmtree(self._folder / folder, ignore_errors=True)

    def spark_root(self, folders: Sequence[str]) -> str:
        """Spark opens whatever bears a log's name, and a pipe would make it wait for ever.

        So where anything but files lies in `folders`, it is shown links to the files alone.
        """
        if not any(map(self.no_files, folders)):
            return f"file:{self._folder}/"
        if self._links is None:
            self._links = Path(os.path.realpath(tempfile.mkdtemp(prefix="mendq-trail-")))
            weakref.finalize(self, shutil.rmtree, self._links, ignore_errors=True)
        for folder in folders:
            shutil.rmtree(self._links / folder, ignore_errors=True)
            (self._links / folder).mkdir(parents=True)
            for file in self.files(folder):
                (self._links / file.path).symlink_to(self._folder / file.path)
        return f"file:{self._links}/"

    def _listed(self, folder: str) -> list[Path]:
        try:
            return list((self._folder / folder).iterdir())
        except FileNotFoundError:
            return []
        except OSError as error:
            raise RootUnusable(f"{self._folder} cannot be read: {error}") from error

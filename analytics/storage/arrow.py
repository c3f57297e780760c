"""Buckets where Hadoop has no S3 classes: through Arrow's filesystem."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow.fs as pafs

from analytics.storage.root import Listed, RootUnusable


class ArrowStorage:
    """Any filesystem that Arrow knows."""

    def __init__(self, filesystem: pafs.FileSystem, root: str) -> None:
        self._filesystem = filesystem
        self._root = root.rstrip("/")

    def folders(self, folder: str) -> list[str]:
        found = self._listed(folder)
        return sorted(each.base_name for each in found if each.type is pafs.FileType.Directory)

    def files(self, folder: str) -> list[Listed]:
        found = [each for each in self._listed(folder) if each.type is pafs.FileType.File]
        return sorted(Listed(f"{folder}/{each.base_name}", each.size) for each in found)

    def no_files(self, folder: str) -> list[str]:
        del folder
        return []

    def read(self, path: str) -> bytes | None:
        """The bytes as they are: Arrow would unzip by the name's ending."""
        try:
            with self._filesystem.open_input_stream(self._full(path), compression=None) as stream:
                content: bytes = stream.read()
                return content
        except FileNotFoundError:
            return None
        except OSError as error:
            raise RootUnusable(f"{self._full(path)} cannot be read: {error}") from error

    def _listed(self, folder: str) -> list[pafs.FileInfo]:
        selector = pafs.FileSelector(self._full(folder), allow_not_found=True)
        try:
            found: list[pafs.FileInfo] = self._filesystem.get_file_info(selector)
        except OSError as error:
            raise RootUnusable(f"{self._root} cannot be read: {error}") from error
        return found

    def _full(self, path: str) -> str:
        return f"{self._root}/{path}" if path else self._root


class S3Storage(ArrowStorage):
    """A bucket, or a part of one."""

    def __init__(self, root: str, filesystem: pafs.FileSystem | None = None) -> None:
        super().__init__(filesystem or _s3(), root.removeprefix("s3://"))
        self._copies: Path | None = None

    def put(self, path: str, content: bytes) -> None:
        """An object appears whole, when its upload ends."""
        try:
            with self._filesystem.open_output_stream(self._full(path), compression=None) as stream:
                stream.write(content)
        except OSError as error:
            raise RootUnusable(f"s3://{self._root} cannot be written to: {error}") from error

    def remove(self, folder: str) -> None:
        self._filesystem.delete_dir(self._full(folder))

    def spark_root(self, folders: Sequence[str]) -> str:
        """Spark from pip cannot read S3, so the folders are copied here first."""
        if self._copies is None:
            self._copies = Path(tempfile.mkdtemp(prefix="mendq-trail-"))
            weakref.finalize(self, shutil.rmtree, self._copies, ignore_errors=True)
        for folder in folders:
            target = self._copies / folder
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir(parents=True)
            for file in self.files(folder):
                content = self.read(file.path) or b""
                (target / Path(file.path).name).write_bytes(content)
        return f"file:{self._copies}/"


def _s3() -> pafs.S3FileSystem:
    """AWS_ENDPOINT_URL and AWS_REGION as the AWS CLI reads them."""
    endpoint = urlsplit(
        os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""
    )
    return pafs.S3FileSystem(
        region=os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION"),
        endpoint_override=endpoint.netloc or None,
        scheme=endpoint.scheme or "https",
    )

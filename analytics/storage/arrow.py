"""Folders and, where Hadoop has no S3 classes, buckets: through Arrow's filesystems."""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow.fs as pafs

from analytics.storage.root import Listed, RootUnusable


class ArrowStorage:
    """What folders and buckets have in common."""

    def __init__(self, filesystem: pafs.FileSystem, root: str) -> None:
        self._filesystem = filesystem
        self._root = root.rstrip("/")

    def folders(self, folder: str) -> list[str]:
        found = self._listed(folder)
        return sorted(each.base_name for each in found if each.type is pafs.FileType.Directory)

    def files(self, folder: str) -> list[Listed]:
        found = [each for each in self._listed(folder) if each.type is pafs.FileType.File]
        return sorted(Listed(f"{folder}/{each.base_name}", each.size) for each in found)

    def read(self, path: str) -> bytes | None:
        try:
            with self._filesystem.open_input_stream(self._full(path)) as stream:
                content: bytes = stream.read()
                return content
        except FileNotFoundError:
            return None

    def _listed(self, folder: str) -> list[pafs.FileInfo]:
        selector = pafs.FileSelector(self._full(folder), allow_not_found=True)
        try:
            found: list[pafs.FileInfo] = self._filesystem.get_file_info(selector)
        except OSError as error:
            raise RootUnusable(f"{self._root} cannot be read: {error}") from error
        return found

    def _full(self, path: str) -> str:
        return f"{self._root}/{path}" if path else self._root


class FolderStorage(ArrowStorage):
    """A folder of this machine."""

    def __init__(self, root: str) -> None:
        self._folder = Path(root).absolute()
        super().__init__(pafs.LocalFileSystem(), str(self._folder))

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
            beside.unlink(missing_ok=True)

    def spark_root(self, folders: Sequence[str]) -> str:
        del folders
        return f"file:{self._folder}/"


class S3Storage(ArrowStorage):
    """A bucket, or a part of one; AWS_ENDPOINT_URL as in the AWS CLI."""

    def __init__(self, root: str) -> None:
        endpoint = urlsplit(
            os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""
        )
        region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
        filesystem = pafs.S3FileSystem(
            region=region,
            endpoint_override=endpoint.netloc or None,
            scheme=endpoint.scheme or "https",
        )
        super().__init__(filesystem, root.removeprefix("s3://"))
        self._copies: tempfile.TemporaryDirectory[str] | None = None

    def put(self, path: str, content: bytes) -> None:
        """An object appears whole, when its upload ends."""
        try:
            with self._filesystem.open_output_stream(self._full(path)) as stream:
                stream.write(content)
        except OSError as error:
            raise RootUnusable(f"s3://{self._root} cannot be written to: {error}") from error

    def spark_root(self, folders: Sequence[str]) -> str:
        """Spark from pip cannot read S3, so the folders are copied here first."""
        self._copies = self._copies or tempfile.TemporaryDirectory(prefix="mendq-trail-")
        for folder in folders:
            target = Path(self._copies.name) / folder
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir(parents=True)
            for file in self.files(folder):
                content = self.read(file.path) or b""
                (target / Path(file.path).name).write_bytes(content)
        return f"file:{self._copies.name}/"

"""Read and write files in folders of this machine and in S3 buckets.

A `Storage` is one root with files below it. There is one class for each way to reach the files:

- `FolderStorage`: a folder, read by Python, which can distinguish a pipe from a file; Spark cannot.
- `HadoopStorage`: a bucket, through the Hadoop classes that EMR has.
- `ArrowStorage`: a bucket, through pyarrow, if Hadoop has no classes for S3 (as in Spark from pip).
- `AccountsStorage`: the case buckets of several accounts, seen as one.

`open_root` chooses among the first three.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import uuid
import weakref
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

# The prefix of a run's temporary files. The job's role may delete only objects with this prefix.
STAGING_PREFIX = "quality/.writing-"
# The exceptions that Python, Arrow and Hadoop raise if a root cannot be read or written.
_STORAGE_ERRORS = (OSError, Py4JJavaError)


class RootUnusable(Exception):
    """A root cannot be read or written. The error's text is for the person who gave the root."""


class StorageEntry(NamedTuple):
    """An entry of a folder: a file, a folder, or something else, such as a pipe."""

    name: str
    size_bytes: int | None  # None if it is not a file, or cannot be read as one
    is_folder: bool


def open_root(root: str, spark: SparkSession) -> Storage:
    """Return the storage for the name of a folder or an `s3://` URI.

    Raises:
        RootUnusable: `root` is neither.
    """
    scheme, separator, bucket_and_path = root.partition("://")
    if root and not separator:
        return FolderStorage(root)
    if scheme != "s3" or not bucket_and_path.partition("/")[0]:
        raise RootUnusable(f"{root!r} is neither a folder nor an s3:// URI with a bucket")
    return HadoopStorage(root, spark) if has_s3_filesystem(spark) else ArrowStorage(root)


class Storage(ABC):
    """Files below one root. All paths are relative to the root.

    A folder that does not exist counts as empty. All methods raise RootUnusable if the root cannot
    be used.
    """

    root: Any
    # A temporary folder with copies of the files, in which Spark reads them.
    _folder_of_copies: Path | None = None

    @abstractmethod
    def list_entries(self, folder: str) -> list[StorageEntry]:
        """Return the files, folders and other entries directly in `folder`, in any order."""

    @abstractmethod
    def read(self, path: str, maximum_bytes: int = -1) -> bytes | None:
        """Return the content of a file, or None if there is no such file.

        If `maximum_bytes` is not negative, return at most this number of bytes, because a file may
        have grown since it was listed.
        """

    @abstractmethod
    def write(self, path: str, content: bytes) -> None:
        """Write a file. Readers see either the old or the new content, never a part of it."""

    def list_folders(self, folder: str) -> list[str]:
        """Return the names of the folders directly in `folder`, sorted."""
        return sorted(entry.name for entry in self.list_entries(folder) if entry.is_folder)

    def list_file_sizes(self, folder: str) -> dict[str, int]:
        """Return the size in bytes of each file directly in `folder`, by path, sorted by name."""
        size_by_path: dict[str, int] = {}
        for entry in sorted(self.list_entries(folder)):
            if entry.size_bytes is not None:
                size_by_path[f"{folder}/{entry.name}"] = entry.size_bytes
        return size_by_path

    def find_file_size(self, path: str) -> int | None:
        """Return the size of a file in bytes, or None if there is no such file.

        This default lists the file's folder. The classes for folders and buckets override it,
        because others may have put millions of files there.
        """
        return self.list_file_sizes(path.rpartition("/")[0]).get(path)

    def has_folder(self, folder: str) -> bool:
        """Return True if there is such a folder. This default lists the folder above it."""
        parent_folder, _, name = folder.rpartition("/")
        return name in self.list_folders(parent_folder)

    def list_first_folders(self, folder: str, maximum_entries: int) -> list[str]:
        """Return the names of the folders among the first entries of `folder`, sorted.

        This default lists all entries. Only HadoopStorage stops after `maximum_entries`.
        """
        return self.list_folders(folder)[:maximum_entries]

    def make_spark_root(self, folders: Sequence[str]) -> str:
        """Return a URI below which Spark finds the files of `folders`. It ends in a slash.

        This default copies the files to a temporary folder, which is deleted together with the
        storage. Pipes and other entries that are not files are left out, because Spark would wait
        for them forever.
        """
        if self._folder_of_copies is None:
            self._folder_of_copies = Path(os.path.realpath(tempfile.mkdtemp(prefix="mendq-trail-")))
            weakref.finalize(self, shutil.rmtree, self._folder_of_copies, ignore_errors=True)
        for folder in folders:
            shutil.rmtree(self._folder_of_copies / folder, ignore_errors=True)
            (self._folder_of_copies / folder).mkdir(parents=True)
            for path in self.list_file_sizes(folder):
                self.copy_file(path, self._folder_of_copies / path)
        return f"file:{self._folder_of_copies}/"

    def copy_file(self, path: str, target: Path) -> None:
        """Make the content of a file available at `target`, a path on this machine."""
        target.write_bytes(self.read(path) or b"")

    def write_frame(
        self, path: str, rows: Iterable[Mapping[str, Any]], schema: str, spark: SparkSession
    ) -> DataFrame:
        """Write rows at `path` as JSON, and return them as a DataFrame with one partition.

        `createDataFrame` would take longer, because Spark starts Python workers for it. Reading the
        DataFrame raises an exception if a row does not fit the schema.
        """
        json_lines = [json.dumps(dict(row), default=str) for row in rows]
        self.write(path, "\n".join(json_lines).encode())
        file_uri = f"{self.make_spark_root([])}{path}"
        return spark.read.schema(schema).json(file_uri, mode="FAILFAST").coalesce(1)

    @contextmanager
    def staging(self) -> Iterator[Storage]:
        """Provide an empty storage to which Spark can write, and delete it after the block."""
        with tempfile.TemporaryDirectory(prefix="mendq-tables-") as folder:
            yield FolderStorage(folder)

    def _make_unusable_error(self, failed_action: str, error: BaseException) -> RootUnusable:
        """Return the exception that says that the root cannot be read or written, and why."""
        return RootUnusable(
            f"{self.root} cannot be {failed_action}: {_get_first_error_line(error)}"
        )


def _get_first_error_line(error: BaseException) -> str:
    """Return the first line of an exception's text; of Java's text if Java raised it."""
    error_text = str(error.java_exception) if isinstance(error, Py4JJavaError) else str(error)
    return error_text.partition("\n")[0]


def _is_missing_file_error(error: BaseException) -> bool:
    """Return True if an exception means that a file or folder does not exist."""
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return True
    return _get_first_error_line(error).startswith("java.io.FileNotFoundException")


class FolderStorage(Storage):
    """A folder of this machine, read without Spark."""

    def __init__(self, root: str) -> None:
        # Resolve links and `..` as Hadoop does. Otherwise Spark's paths would differ from these.
        self.root = Path(os.path.realpath(root))

    def list_entries(self, folder: str) -> list[StorageEntry]:
        try:
            return [_make_storage_entry(path) for path in (self.root / folder).iterdir()]
        except _STORAGE_ERRORS as error:
            if _is_missing_file_error(error):
                return []
            raise self._make_unusable_error("read", error) from error

    def find_file_size(self, path: str) -> int | None:
        try:
            return _make_storage_entry(self.root / path).size_bytes
        except _STORAGE_ERRORS as error:
            raise self._make_unusable_error("read", error) from error

    def has_folder(self, folder: str) -> bool:
        try:
            is_folder: bool = (self.root / folder).is_dir()
        except _STORAGE_ERRORS as error:
            raise self._make_unusable_error("read", error) from error
        return is_folder

    def read(self, path: str, maximum_bytes: int = -1) -> bytes | None:
        try:
            with (self.root / path).open("rb") as stream:
                content: bytes = stream.read(maximum_bytes)
                return content
        except _STORAGE_ERRORS as error:
            if _is_missing_file_error(error):
                return None
            raise self._make_unusable_error("read", error) from error

    def write(self, path: str, content: bytes) -> None:
        """Write a temporary file, then rename it.

        The temporary file is in the root, so that a table's folder never contains another file.
        """
        target_file = self.root / path
        temporary_file = self.root / f".writing-{uuid.uuid4().hex}"
        try:
            try:
                target_file.parent.mkdir(parents=True, exist_ok=True)
                temporary_file.write_bytes(content)
                temporary_file.replace(target_file)
            finally:
                # If the root is a file, this fails too. Report the first error.
                with suppress(OSError):
                    temporary_file.unlink()
        except _STORAGE_ERRORS as error:
            raise self._make_unusable_error("written to", error) from error

    def make_spark_root(self, folders: Sequence[str]) -> str:
        """Return a URI below which Spark finds the files of `folders`. It ends in a slash.

        It is normally the URI of this folder. But if one of `folders` contains an entry that is not
        a file, such as a pipe, it is the URI of a temporary folder with links to the files only.
        Spark opens everything with a log file's name, and would wait for a pipe forever.
        """
        for folder in folders:
            if any(entry.size_bytes is None for entry in self.list_entries(folder)):
                return super().make_spark_root(folders)
        return f"file:{self.root}/"

    def copy_file(self, path: str, target: Path) -> None:
        """Make a link to the file instead of a copy."""
        target.symlink_to(self.root / path)


def _make_storage_entry(path: Path) -> StorageEntry:
    """Return the entry for a path.

    It has no size if it is not a file, if the file was deleted meanwhile, or if its name is not
    valid UTF-8, which Java does not accept.
    """
    with suppress(FileNotFoundError, UnicodeEncodeError):
        path.name.encode()
        if path.is_file():
            return StorageEntry(path.name, path.stat().st_size, False)
        return StorageEntry(path.name, None, path.is_dir())
    return StorageEntry(path.name, None, False)


class HadoopStorage(Storage):
    """A root that Hadoop can read: S3 on EMR. The tests use it only with `file:` URIs."""

    def __init__(self, root: str, spark: SparkSession) -> None:
        self._spark = spark
        jvm = _get_jvm(spark)
        # Look this up only once, because each part of a class's name costs a call to Java.
        self._path_class = jvm.org.apache.hadoop.fs.Path
        self._file_class = jvm.java.io.File
        self._copy_stream_to_file = jvm.org.apache.commons.io.FileUtils.copyInputStreamToFile
        self._bounded_stream_class = jvm.org.apache.commons.io.input.BoundedInputStream
        self.root = self._path_class(root.rstrip("/") + "/")
        self._filesystem = self.root.getFileSystem(_get_hadoop_configuration(spark))

    def list_entries(self, folder: str) -> list[StorageEntry]:
        entries: list[StorageEntry] = []
        try:
            for file_status in self._filesystem.listStatus(self._make_full_path(folder)):
                is_folder = file_status.isDirectory()
                size_bytes = None if is_folder else file_status.getLen()
                entries.append(StorageEntry(file_status.getPath().getName(), size_bytes, is_folder))
        except _STORAGE_ERRORS as error:
            if _is_missing_file_error(error):
                return []
            raise self._make_unusable_error("read", error) from error
        return entries

    def list_first_folders(self, folder: str, maximum_entries: int) -> list[str]:
        """Return the names of the folders among the first entries of `folder`, sorted.

        S3A, which reads `s3://` on EMR, requests further entries from S3 only if they are needed.
        """
        folder_names: list[str] = []
        try:
            statuses = self._filesystem.listStatusIterator(self._make_full_path(folder))
            for _ in range(maximum_entries):
                if not statuses.hasNext():
                    break
                file_status = statuses.next()
                if file_status.isDirectory():
                    folder_names.append(file_status.getPath().getName())
        except _STORAGE_ERRORS as error:
            if _is_missing_file_error(error):
                return []
            raise self._make_unusable_error("read", error) from error
        return sorted(folder_names)

    def find_file_size(self, path: str) -> int | None:
        try:
            file_status = self._filesystem.getFileStatus(self._make_full_path(path))
            return None if file_status.isDirectory() else int(file_status.getLen())
        except _STORAGE_ERRORS as error:
            if _is_missing_file_error(error):
                return None
            raise self._make_unusable_error("read", error) from error

    def has_folder(self, folder: str) -> bool:
        try:
            return bool(self._filesystem.getFileStatus(self._make_full_path(folder)).isDirectory())
        except _STORAGE_ERRORS as error:
            if _is_missing_file_error(error):
                return False
            raise self._make_unusable_error("read", error) from error

    def read(self, path: str, maximum_bytes: int = -1) -> bytes | None:
        """Return the content of a file, or None if there is no such file.

        The content goes through a file on this machine, because Java can pass only text to Python.
        """
        try:
            stream = self._bounded_stream_class(
                self._filesystem.open(self._make_full_path(path)), maximum_bytes
            )
            return self._read_stream(stream)
        except _STORAGE_ERRORS as error:
            if _is_missing_file_error(error):
                return None
            raise self._make_unusable_error("read", error) from error

    def _read_stream(self, stream: Any) -> bytes:
        try:
            with tempfile.NamedTemporaryFile(prefix="mendq-read-") as temporary_file:
                self._copy_stream_to_file(stream, self._file_class(temporary_file.name))
                return Path(temporary_file.name).read_bytes()
        except FileNotFoundError as error:
            # No temporary folder can be used. Do not let the caller think that the object is
            # missing.
            raise RootUnusable(f"{self.root} cannot be read: {error}") from error

    def write(self, path: str, content: bytes) -> None:
        """Write a file. S3 shows it to readers only after the stream is closed."""
        try:
            with closing(self._filesystem.create(self._make_full_path(path), True)) as stream:
                stream.write(bytearray(content))
        except _STORAGE_ERRORS as error:
            raise self._make_unusable_error("written to", error) from error

    def make_spark_root(self, folders: Sequence[str]) -> str:
        """Return the root's own URI, because Spark can read it directly."""
        del folders
        # Hadoop ends the name of a bucket in a slash, but not that of a folder.
        return f"{self._filesystem.makeQualified(self.root).toString().rstrip('/')}/"

    @contextmanager
    def staging(self) -> Iterator[Storage]:
        """Provide a storage in a new folder below the root, and delete it after the block.

        A local folder cannot be used, because Spark's executors share no disk.
        """
        folder = f"{STAGING_PREFIX}{uuid.uuid4().hex}"
        try:
            yield HadoopStorage(f"{self.make_spark_root([])}{folder}", self._spark)
        finally:
            self._filesystem.delete(self._make_full_path(folder), True)

    def _make_full_path(self, path: str) -> Any:
        """Return a path below the root as an object of Hadoop's class Path.

        With the `./`, Hadoop does not mistake a name such as `ACCOUNT:PATH` for a URI's scheme.
        """
        return self._path_class(self.root, f"./{path}") if path else self.root


def unpack_snappy(spark: SparkSession, packed_bytes: bytes) -> bytes:
    """Unpack Snappy bytes with the library that Spark brings. Raise ValueError for other bytes.

    The first bytes say how much memory this takes.
    """
    snappy = _get_jvm(spark).org.xerial.snappy.Snappy
    try:
        return bytes(snappy.uncompress(bytearray(packed_bytes)))
    except Py4JJavaError as error:
        raise ValueError(_get_first_error_line(error)) from error


def has_s3_filesystem(spark: SparkSession) -> bool:
    """Return True if Spark's Hadoop can read `s3://` URIs."""
    with suppress(Py4JJavaError):
        _get_jvm(spark).org.apache.hadoop.fs.FileSystem.getFileSystemClass(
            "s3", _get_hadoop_configuration(spark)
        )
        return True
    return False


def _get_jvm(spark: SparkSession) -> Any:
    return spark.sparkContext._jvm  # noqa: SLF001 - PySpark has no public way to Hadoop


def _get_hadoop_configuration(spark: SparkSession) -> Any:
    return spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001 - the same


class ArrowStorage(Storage):
    """A bucket or a part of it, through a filesystem of pyarrow.

    Spark from pip cannot read S3, so it reads copies of the files.
    """

    def __init__(self, root: str, filesystem: Any = None) -> None:
        import pyarrow.fs as pafs  # noqa: PLC0415 - EMR may have no pyarrow

        self._pyarrow_filesystem_module = pafs
        self._filesystem = filesystem or pafs.S3FileSystem(endpoint_override=_find_s3_endpoint())
        self.root = root.removeprefix("s3://").rstrip("/")

    def list_entries(self, folder: str) -> list[StorageEntry]:
        folder_selector = self._pyarrow_filesystem_module.FileSelector(
            self._make_full_path(folder), allow_not_found=True
        )
        entries: list[StorageEntry] = []
        try:
            for file_info in self._filesystem.get_file_info(folder_selector):
                size_bytes = file_info.size if file_info.is_file else None
                entries.append(StorageEntry(file_info.base_name, size_bytes, not file_info.is_file))
        except _STORAGE_ERRORS as error:
            if _is_missing_file_error(error):
                return []
            raise self._make_unusable_error("read", error) from error
        return entries

    def find_file_size(self, path: str) -> int | None:
        file_info = self._find_info(path)
        return file_info.size if file_info.is_file else None

    def has_folder(self, folder: str) -> bool:
        folder_type = self._pyarrow_filesystem_module.FileType.Directory
        return bool(self._find_info(folder).type == folder_type)

    def _find_info(self, path: str) -> Any:
        try:
            return self._filesystem.get_file_info(self._make_full_path(path))
        except _STORAGE_ERRORS as error:
            raise self._make_unusable_error("read", error) from error

    def read(self, path: str, maximum_bytes: int = -1) -> bytes | None:
        """Return the content of a file as it is stored, or None if there is no such file.

        With `compression=None`, Arrow does not unzip the file.
        """
        full_path = self._make_full_path(path)
        try:
            with self._filesystem.open_input_stream(full_path, compression=None) as stream:
                content: bytes = stream.read(None if maximum_bytes < 0 else maximum_bytes)
                return content
        except _STORAGE_ERRORS as error:
            if _is_missing_file_error(error):
                return None
            raise self._make_unusable_error("read", error) from error

    def write(self, path: str, content: bytes) -> None:
        """Write a file. S3 shows it to readers only after the upload has ended."""
        full_path = self._make_full_path(path)
        try:
            with self._filesystem.open_output_stream(full_path, compression=None) as stream:
                stream.write(content)
        except _STORAGE_ERRORS as error:
            raise self._make_unusable_error("written to", error) from error

    def _make_full_path(self, path: str) -> str:
        return f"{self.root}/{path}" if path else self.root


# Limits on the files that one run reads from another account's case bucket. For comparison: an
# account with 300 new cases a week, of five transitions each, has 19,500 files in a quarter. An
# hour's scan of 10,000 managed queues takes 1 MB, and a run reads at most 240 scans.
MAXIMUM_FILE_BYTES = 20_000_000
MAXIMUM_FILES_OF_ACCOUNT = 20_000
MAXIMUM_BYTES_OF_ACCOUNT = 500_000_000


class AccountsStorage(Storage):
    """The case buckets of several accounts as one, for reading. A file's path is `ACCOUNT:PATH`.

    - An account's bucket that cannot be listed is left out, and `say` prints why.
    - A file that names another account's queue reads as empty, so that no account can write cases
      about another account's queues.
    - A file larger than MAXIMUM_FILE_BYTES is not listed.
    - After MAXIMUM_FILES_OF_ACCOUNT files or MAXIMUM_BYTES_OF_ACCOUNT bytes of an account, its
      further files read as empty, and `say` prints that.
    """

    def __init__(
        self, storage_by_account: Mapping[str, Storage], say: Callable[[str], None]
    ) -> None:
        self._storage_by_account = dict(storage_by_account)
        self._say = say
        self._read_files_by_account = Counter[str]()
        self._read_bytes_by_account = Counter[str]()
        self._accounts_at_limit: set[str] = set()

    def list_entries(self, folder: str) -> list[StorageEntry]:
        """Return the folders directly in `folder` in all buckets. Files are left out."""
        folder_names: set[str] = set()
        for _, account_storage in self._list_usable_storages(folder):
            folder_names.update(account_storage.list_folders(folder))
        return [StorageEntry(folder_name, None, True) for folder_name in sorted(folder_names)]

    def list_file_sizes(self, folder: str) -> dict[str, int]:
        """Return the size in bytes of each file in `folder`, by `ACCOUNT:PATH`.

        Files larger than MAXIMUM_FILE_BYTES are left out.
        """
        size_by_path: dict[str, int] = {}
        for account, account_storage in self._list_usable_storages(folder):
            for path, size in account_storage.list_file_sizes(folder).items():
                if size <= MAXIMUM_FILE_BYTES:
                    size_by_path[f"{account}:{path}"] = size
        return size_by_path

    def read(self, path: str, maximum_bytes: int = -1) -> bytes | None:
        """Return the content of `ACCOUNT:PATH`.

        Return no bytes if there is no such file, if it cannot be read, if it is not a case or scan
        of this account, or if the account has exceeded its limit. Raise KeyError if the account's
        bucket was left out since the file was listed.
        """
        account, _, path_in_bucket = path.partition(":")
        account_storage = self._storage_by_account[account]
        if self._is_at_limit(account):
            return b""
        try:
            content = account_storage.read(path_in_bucket, maximum_bytes) or b""
        except RootUnusable:
            # The account may have encrypted this file with its own KMS key.
            content = b""
        self._read_files_by_account[account] += 1
        self._read_bytes_by_account[account] += len(content)
        return content if content and _names_only_queues_of_account(account, content) else b""

    def _is_at_limit(self, account: str) -> bool:
        """Return True if no further file of the account may be read. `say` prints that once."""
        if account in self._accounts_at_limit:
            return True
        read_files = self._read_files_by_account[account]
        read_bytes = self._read_bytes_by_account[account]
        if read_files < MAXIMUM_FILES_OF_ACCOUNT and read_bytes < MAXIMUM_BYTES_OF_ACCOUNT:
            return False
        self._accounts_at_limit.add(account)
        self._say(
            f"further case files of {account} are left out: {read_files:,} files with "
            f"{read_bytes:,} bytes were read"
        )
        return True

    def write(self, path: str, content: bytes) -> None:
        """Raise RootUnusable: other accounts' buckets are never written."""
        raise RootUnusable(f"{path}, {len(content)} bytes: others' buckets are read only")

    def _list_usable_storages(self, folder: str) -> Iterator[tuple[str, Storage]]:
        """Yield each account with its bucket, if `folder` can be listed in the bucket.

        An account whose bucket cannot be listed is left out from now on, and `say` prints why.
        """
        for account, account_storage in list(self._storage_by_account.items()):
            try:
                account_storage.list_entries(folder)
            except RootUnusable as error:
                self._say(f"the cases of {account} are left out: {error}")
                del self._storage_by_account[account]
            else:
                yield account, account_storage


def _names_only_queues_of_account(account: str, content: bytes) -> bool:
    """Return True if every queue that a case or a scan names is in this account.

    Return False if the content cannot be read.
    """
    try:
        document = json.loads(content)
        queue_arns: list[str] = []
        if "queue_arn" in document:
            queue_arns.append(document["queue_arn"])
        queue_arns.extend(document.get("managed", ()))
        queue_arns.extend(document.get("queues", ()))
        queue_arns.extend(finding["queue_arn"] for finding in document.get("findings", ()))
        return all(queue_arn.split(":")[4] == account for queue_arn in queue_arns)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return False


def _find_s3_endpoint() -> str | None:
    """Return the S3 endpoint from the environment, or None.

    Arrow itself reads the other variables of the AWS CLI, but not these two.
    """
    return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or None

"""The places that a run reads and writes: a folder, or s3:// through Hadoop, or else Arrow.

A folder is read by Python itself, which tells a pipe from a file; a bucket through the Hadoop that
EMR brings; and where Hadoop has no S3 classes, as in Spark from pip, through Arrow.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import uuid
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

_Method = TypeVar("_Method", bound=Callable[..., Any])
# The job's role may delete what begins so, and nothing else.
STAGING = "quality/.writing-"


class RootUnusable(Exception):
    """A root that cannot be read or written; the text is for the person who named it."""


class Entry(NamedTuple):
    """What lies in a folder; `size_bytes` is None for what can never be read as a file.

    Folders; on a disk also pipes and links to nothing.
    """

    name: str
    size_bytes: int | None
    is_folder: bool


def open_root(root: str, spark: SparkSession) -> Storage:
    """Raise RootUnusable where `root` is neither a folder's name nor an s3:// URI."""
    scheme, separator, rest = root.partition("://")
    if root and not separator:
        return FolderStorage(root)
    if scheme != "s3" or not rest.partition("/")[0]:
        raise RootUnusable(f"{root!r} is neither a folder nor an s3:// URI with a bucket")
    return HadoopStorage(root, spark) if knows_s3(spark) else ArrowStorage(root)


def _usable(done: str, **absent: Any) -> Callable[[_Method], _Method]:
    """Have a storage's method raise RootUnusable where its root is no use.

    Where the file or folder is not there, the answer is `absent`, if that is given.
    """

    def decorated(method: _Method) -> _Method:
        @wraps(method)
        def called(storage: Any, *arguments: Any) -> Any:
            try:
                return method(storage, *arguments)
            except (OSError, Py4JJavaError) as error:
                why = str(getattr(error, "java_exception", error)).partition("\n")[0]
                if absent and (
                    isinstance(error, FileNotFoundError | NotADirectoryError)
                    or why.startswith("java.io.FileNotFoundException")
                ):
                    return absent["absent"]
                raise RootUnusable(f"{storage.root} cannot be {done}: {why}") from error

        return cast("_Method", called)

    return decorated


class Storage(ABC):
    """All paths are relative to the root; a folder that is not there is empty."""

    _shown: Path | None = None

    @abstractmethod
    def entries(self, folder: str) -> list[Entry]:
        """What lies directly in `folder`."""

    @abstractmethod
    def read(self, path: str, most: int = -1) -> bytes | None:
        """Its first `most` bytes where that is no less than 0: a file may grow after it is listed.

        None where there is no such file.
        """

    @abstractmethod
    def put(self, path: str, content: bytes) -> None:
        """Replace the file whole: a reader sees the old one or the new one."""

    def folders(self, folder: str) -> list[str]:
        """The names of the folders directly in `folder`, sorted."""
        return sorted(each.name for each in self.entries(folder) if each.is_folder)

    def files(self, folder: str) -> dict[str, int]:
        """The size of each file directly in `folder`, by its path, sorted."""
        entries = sorted(self.entries(folder))
        sizes = {f"{folder}/{each.name}": each.size_bytes for each in entries}
        return {path: size for path, size in sizes.items() if size is not None}

    def spark_root(self, folders: Sequence[str]) -> str:
        """A root below which Spark finds the files of `folders`, as Hadoop spells it.

        It ends in a slash. What is no file there does not hold Spark up: it is shown the files
        alone, in a temporary folder, unless a storage knows better.
        """
        if self._shown is None:
            self._shown = Path(os.path.realpath(tempfile.mkdtemp(prefix="mendq-trail-")))
            weakref.finalize(self, shutil.rmtree, self._shown, ignore_errors=True)
        for folder in folders:
            shutil.rmtree(self._shown / folder, ignore_errors=True)
            (self._shown / folder).mkdir(parents=True)
            for path in self.files(folder):
                self.show(path, self._shown / path)
        return f"file:{self._shown}/"

    def show(self, path: str, beside: Path) -> None:
        """Have the file at `path` be at `beside`: a copy."""
        beside.write_bytes(self.read(path) or b"")

    def frame(
        self, path: str, rows: Iterable[Mapping[str, Any]], schema: str, spark: SparkSession
    ) -> DataFrame:
        """Put rows at `path` as JSON, and have Spark read them there, as one partition.

        It would start its Python to be given them. What is no row of the schema raises.
        """
        lines = (json.dumps(dict(row), default=str) for row in rows)
        self.put(path, "\n".join(lines).encode())
        asked = spark.read.schema(schema).json(f"{self.spark_root([])}{path}", mode="FAILFAST")
        return asked.coalesce(1)

    @contextmanager
    def staging(self) -> Iterator[Storage]:
        """An empty place into which Spark can write, gone at the end."""
        with tempfile.TemporaryDirectory(prefix="mendq-tables-") as folder:
            yield FolderStorage(folder)


class FolderStorage(Storage):
    """A folder of this machine; needs nothing but Python."""

    def __init__(self, root: str) -> None:
        # As Hadoop spells it: without links and `..`, or Spark's files would not be ours.
        self.root = Path(os.path.realpath(root))

    @_usable("read", absent=[])
    def entries(self, folder: str) -> list[Entry]:
        return [_entry(each) for each in (self.root / folder).iterdir()]

    @_usable("read", absent=None)
    def read(self, path: str, most: int = -1) -> bytes | None:
        with (self.root / path).open("rb") as stream:
            return stream.read(most)

    @_usable("written to")
    def put(self, path: str, content: bytes) -> None:
        """Written beside, at the root, so that nothing else ever lies in a table's folder."""
        target = self.root / path
        beside = self.root / f".writing-{uuid.uuid4().hex}"
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            beside.write_bytes(content)
            beside.replace(target)
        finally:
            with suppress(OSError):  # where the root is a file, that is what is to be said
                beside.unlink()

    def spark_root(self, folders: Sequence[str]) -> str:
        """Spark opens whatever bears a log's name, and a pipe would make it wait for ever.

        So where anything but files lies in `folders`, it is shown links to the files alone.
        """
        lying = (each for folder in folders for each in self.entries(folder))
        if any(each.size_bytes is None for each in lying):
            return super().spark_root(folders)
        return f"file:{self.root}/"

    def show(self, path: str, beside: Path) -> None:
        beside.symlink_to(self.root / path)


def _entry(path: Path) -> Entry:
    """What goes meanwhile costs itself, and so does a name that is no text: Java takes none."""
    with suppress(FileNotFoundError, UnicodeEncodeError):
        path.name.encode()
        is_file = path.is_file()
        size = path.stat().st_size if is_file else None
        return Entry(path.name, size, not is_file and path.is_dir())
    return Entry(path.name, None, False)


class HadoopStorage(Storage):
    """Any URI that Hadoop knows: S3 on EMR; tried here on file: URIs alone."""

    def __init__(self, root: str, spark: SparkSession) -> None:
        self._spark = spark
        jvm = _jvm(spark)
        # Named once: to look for a class asks Java about each part of its name.
        self._path, self._file = jvm.org.apache.hadoop.fs.Path, jvm.java.io.File
        self._copy = jvm.org.apache.commons.io.FileUtils.copyInputStreamToFile
        self._bounded = jvm.org.apache.commons.io.input.BoundedInputStream
        self.root = self._path(root.rstrip("/") + "/")
        self._filesystem = self.root.getFileSystem(_configuration(spark))

    @_usable("read", absent=[])
    def entries(self, folder: str) -> list[Entry]:
        return [
            Entry(each.getPath().getName(), None if is_folder else each.getLen(), is_folder)
            for each in self._filesystem.listStatus(self._full(folder))
            for is_folder in (each.isDirectory(),)  # each answer is a way to Java and back
        ]

    @_usable("read", absent=None)
    def read(self, path: str, most: int = -1) -> bytes | None:
        """By way of this machine's disk: Java hands bytes to Python as text."""
        stream = self._bounded(self._filesystem.open(self._full(path)), most)
        try:
            with tempfile.NamedTemporaryFile(prefix="mendq-read-") as beside:
                self._copy(stream, self._file(beside.name))
                return Path(beside.name).read_bytes()
        except FileNotFoundError as no_place:  # else it would be the file that is not there
            raise RootUnusable(f"{self.root} cannot be read: {no_place}") from no_place

    @_usable("written to")
    def put(self, path: str, content: bytes) -> None:
        """An S3 object appears whole, when its stream is closed."""
        with closing(self._filesystem.create(self._full(path), True)) as stream:
            stream.write(bytearray(content))

    def spark_root(self, folders: Sequence[str]) -> str:
        """Hadoop ends a bucket's own name in a slash, and no other folder's."""
        del folders
        return f"{self._filesystem.makeQualified(self.root).toString().rstrip('/')}/"

    @contextmanager
    def staging(self) -> Iterator[Storage]:
        """Beside, where the job may write and nobody reads: executors share no disk."""
        beside = f"{STAGING}{uuid.uuid4().hex}"
        try:
            yield HadoopStorage(f"{self.spark_root([])}{beside}", self._spark)
        finally:
            self._filesystem.delete(self._full(beside), True)

    def _full(self, path: str) -> Any:
        """Hadoop would take what stands before a colon in the first name for a scheme."""
        return self._path(self.root, f"./{path}") if path else self.root


def knows_s3(spark: SparkSession) -> bool:
    """Whether this Spark's Hadoop has a filesystem for s3://."""
    with suppress(Py4JJavaError):
        _jvm(spark).org.apache.hadoop.fs.FileSystem.getFileSystemClass("s3", _configuration(spark))
        return True
    return False


def _jvm(spark: SparkSession) -> Any:
    return spark.sparkContext._jvm  # noqa: SLF001 - PySpark has no public way to Hadoop


def _configuration(spark: SparkSession) -> Any:
    return spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001 - the same


class ArrowStorage(Storage):
    """A bucket, or a part of one; `filesystem` is any that Arrow knows.

    Spark from pip cannot read S3, so it is shown copies.
    """

    def __init__(self, root: str, filesystem: Any = None) -> None:
        import pyarrow.fs as pafs  # noqa: PLC0415 - EMR may have no pyarrow

        self._pafs = pafs
        self._filesystem = filesystem or pafs.S3FileSystem(endpoint_override=_endpoint())
        self.root = root.removeprefix("s3://").rstrip("/")

    @_usable("read", absent=[])
    def entries(self, folder: str) -> list[Entry]:
        selector = self._pafs.FileSelector(self._full(folder), allow_not_found=True)
        return [
            Entry(each.base_name, each.size if each.is_file else None, not each.is_file)
            for each in self._filesystem.get_file_info(selector)
        ]

    @_usable("read", absent=None)
    def read(self, path: str, most: int = -1) -> bytes | None:
        """The bytes as they are: Arrow would unzip by the name's ending."""
        with self._filesystem.open_input_stream(self._full(path), compression=None) as stream:
            content: bytes = stream.read(None if most < 0 else most)
            return content

    @_usable("written to")
    def put(self, path: str, content: bytes) -> None:
        """An object appears whole, when its upload ends."""
        with self._filesystem.open_output_stream(self._full(path), compression=None) as stream:
            stream.write(content)

    def _full(self, path: str) -> str:
        return f"{self.root}/{path}" if path else self.root


class OfAccounts(Storage):
    """Case buckets of several accounts as one, to be read; a path begins with its account.

    A root that is no use is left out and `say` is told. So is, as a file without content, what an
    account says of another's queue; what is larger than any file of ours is not there.
    """

    def __init__(self, roots: Mapping[str, Storage], say: Callable[[str], None]) -> None:
        self._roots, self._say = dict(roots), say

    def entries(self, folder: str) -> list[Entry]:
        """Folders alone, each once: those of all."""
        names = {name for _, root in self._usable(folder) for name in root.folders(folder)}
        return [Entry(name, None, True) for name in sorted(names)]

    def files(self, folder: str) -> dict[str, int]:
        return {
            f"{account}:{path}": size
            for account, root in self._usable(folder)
            for path, size in root.files(folder).items()
            if size <= MOST_FILE_BYTES
        }

    def read(self, path: str, most: int = -1) -> bytes | None:
        account, _, there = path.partition(":")
        content = self._roots[account].read(there, most)
        return content if content and _tells_of_none_but(account, content) else b""

    def put(self, path: str, content: bytes) -> None:
        raise RootUnusable(f"{path}, {len(content)} bytes: others' buckets are read only")

    def _usable(self, folder: str) -> Iterator[tuple[str, Storage]]:
        for account, root in [*self._roots.items()]:
            try:
                root.entries(folder)
            except RootUnusable as unusable:
                self._say(f"the cases of {account} are left out: {unusable}")
                del self._roots[account]
            else:
                yield account, root


MOST_FILE_BYTES = 20_000_000


def _tells_of_none_but(account: str, content: bytes) -> bool:
    """Whether every queue that a case or a round is about is the account's own."""
    try:
        document = json.loads(content)
        about = [document["queue_arn"]] if "queue_arn" in document else []
        about += [*document.get("managed", ()), *document.get("queues", ())]
        about += [each["queue_arn"] for each in document.get("findings", ())]
        return all(each.split(":")[4] == account for each in about)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return False


def _endpoint() -> str | None:
    """Arrow reads the AWS CLI's other variables itself."""
    return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or None

"""S3 through the Hadoop filesystem that EMR brings; tried here on file: URIs alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from analytics.storage.root import Listed, RootUnusable


def in_one_slash(root: str) -> str:
    """Hadoop ends a bucket's own name in a slash, and no other folder's."""
    return f"{root.rstrip('/')}/"


def knows_s3(spark: SparkSession) -> bool:
    """Whether this Spark's Hadoop has a filesystem for s3://."""
    try:
        _jvm(spark).org.apache.hadoop.fs.FileSystem.getFileSystemClass("s3", _configuration(spark))
    except Py4JJavaError:
        return False
    return True


class HadoopStorage:
    """Any URI that Hadoop knows."""

    def __init__(self, root: str, spark: SparkSession) -> None:
        self._jvm = _jvm(spark)
        self._root = self._jvm.org.apache.hadoop.fs.Path(root.rstrip("/") + "/")
        self._filesystem = self._root.getFileSystem(_configuration(spark))

    def folders(self, folder: str) -> list[str]:
        found = self._listed(folder)
        return sorted(each.getPath().getName() for each in found if each.isDirectory())

    def files(self, folder: str) -> list[Listed]:
        found = [each for each in self._listed(folder) if each.isFile()]
        return sorted(
            Listed(f"{folder}/{each.getPath().getName()}", each.getLen()) for each in found
        )

    def no_files(self, folder: str) -> list[str]:
        del folder
        return []

    def read(self, path: str) -> bytes | None:
        full = self._full(path)
        try:
            stream = self._filesystem.open(full)
        except Py4JJavaError as error:
            if "FileNotFoundException" in str(error.java_exception):
                return None
            raise
        try:
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
        finally:
            stream.close()

    def put(self, path: str, content: bytes) -> None:
        """An S3 object appears whole, when its stream is closed."""
        try:
            stream = self._filesystem.create(self._full(path), True)
            try:
                stream.write(bytearray(content))
            finally:
                stream.close()
        except Py4JJavaError as error:
            why = str(error.java_exception).splitlines()[0]
            raise RootUnusable(f"{self._root} cannot be written to: {why}") from error

    def remove(self, folder: str) -> None:
        self._filesystem.delete(self._full(folder), True)

    def spark_root(self, folders: Sequence[str]) -> str:
        del folders
        return in_one_slash(self._filesystem.makeQualified(self._root).toString())

    def _listed(self, folder: str) -> list[Any]:
        try:
            return list(self._filesystem.listStatus(self._full(folder)))
        except Py4JJavaError as error:
            if "FileNotFoundException" in str(error.java_exception):
                return []
            raise

    def _full(self, path: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self._root, path) if path else self._root


def _jvm(spark: SparkSession) -> Any:
    return spark.sparkContext._jvm  # noqa: SLF001 - PySpark has no public way to Hadoop


def _configuration(spark: SparkSession) -> Any:
    return spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001 - the same

"""Reads publish folders, each once in a run, however often the run asks for more days."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from analytics.days import Days
from analytics.failed_calls import failed_calls, within
from analytics.quality import SPARK_LISTED, SUFFIX
from analytics.readings import SPARK_READING, Reader, binary_files, readings
from analytics.storage import Storage
from analytics.trail import Branch, PublishFolder, branches, publish_days, publish_folders

ListedFile = tuple[str, int, str, str, object, bool]


@dataclass
class TrailReader:
    """The files of a trail as DataFrames, as `reader` reads them, kept by Spark until `close`."""

    spark: SparkSession
    trail: Storage
    reader: Reader
    listed: list[ListedFile] = field(default_factory=list)
    _read: set[PublishFolder] = field(default_factory=set)
    _frames: list[DataFrame] = field(default_factory=list)
    _branches: list[Branch] | None = None

    def failed_calls(self, days: Days) -> DataFrame:
        """The failed calls of `days`, from every publish folder that may hold them."""
        self.read(publish_days(days))
        return within(failed_calls(self.readings()), "event_time", days)

    def read(self, days: Days) -> None:
        """Read the publish folders of `days` that were not read yet."""
        if self._branches is None:
            self._branches = branches(self.trail)
        found = [
            folder
            for branch in self._branches
            for folder in publish_folders(self.trail, branch, days)
        ]
        new = [each for each in found if each not in self._read]
        self._read.update(new)
        with_files = [each.folder for each in new if self._list(each)]
        if with_files:
            root = self.trail.spark_root(with_files)
            files = binary_files(self.spark, root, with_files)
            frame = readings(files, root, self.reader)
            self._frames.append(frame.persist(StorageLevel.MEMORY_AND_DISK))

    def readings(self) -> DataFrame:
        """A row per file that Spark could open."""
        nothing = self.spark.createDataFrame([], SPARK_READING)
        return reduce(DataFrame.unionByName, self._frames, nothing)

    def listing(self) -> DataFrame:
        """A row per file that lies in the folders."""
        return self.spark.createDataFrame(self.listed, SPARK_LISTED)

    def close(self) -> None:
        for frame in self._frames:
            frame.unpersist()

    def _list(self, folder: PublishFolder) -> bool:
        """Whether anything in `folder` is for Spark to open."""
        files = self.trail.files(folder.folder)
        strange = [each for each in self.trail.no_files(folder.folder) if each.endswith(SUFFIX)]
        lying = [(*each, True) for each in files] + [(each, 0, False) for each in strange]
        self.listed += [
            (path, size_bytes, folder.account, folder.region, folder.published, is_file)
            for path, size_bytes, is_file in lying
        ]
        return any(each.path.endswith(SUFFIX) and each.size_bytes for each in files)

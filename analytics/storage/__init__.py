"""Where roots lie: a folder, or s3:// through Hadoop on EMR, through Arrow elsewhere."""

from __future__ import annotations

from pyspark.sql import SparkSession

from analytics.storage.folder import FolderStorage
from analytics.storage.hadoop import HadoopStorage, knows_s3
from analytics.storage.root import Listed, RootUnusable, Storage

__all__ = ["Listed", "RootUnusable", "Storage", "open_root"]


def open_root(root: str, spark: SparkSession) -> Storage:
    """Raise RootUnusable where `root` is neither a folder's name nor an s3:// URI."""
    scheme, separator, rest = root.partition("://")
    if root and not separator:
        return FolderStorage(root)
    if scheme != "s3" or not rest.partition("/")[0]:
        raise RootUnusable(f"{root!r} is neither a folder nor an s3:// URI with a bucket")
    if knows_s3(spark):
        return HadoopStorage(root, spark)
    from analytics.storage.arrow import S3Storage  # noqa: PLC0415 - EMR may have no pyarrow

    return S3Storage(root)

